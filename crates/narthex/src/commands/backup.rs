//! `narthex backup`: a copy of the store, beside a daemon that goes on.

use std::process::ExitCode;

use narthex_cli::BackupArgs;
use narthex_model::ErrorKind;
use serde_json::json;

use super::waiting::waiting;
use crate::{
    Failure,
    cli::Context,
    data_dir::DataDir,
    output::{self, harmless},
};

pub(crate) async fn run(args: BackupArgs, context: Context) -> Result<ExitCode, Failure> {
    if context.settings.daemon_url.is_some() {
        let text = "a backup is made where the store is; leave out --daemon-url, and run this on \
                    the daemon's own machine";
        return Err(Failure::usage(text));
    }
    let to = std::path::absolute(&args.file)?;
    let place = DataDir::open(&context.settings.data)?.with_store(&context.settings);
    let Some(store) = place.look_at_store().await? else {
        let text = "there is no store yet, so there is nothing to copy; start `narthex up` first, \
                    or name another folder with --data";
        return Err(Failure::new(ErrorKind::NotFound, text));
    };
    let copied = waiting("copying the store", &context, store.backup(&to)).await;
    store.close().await;
    let bytes = copied?.bytes;
    let file = to.display().to_string();
    let sentence = format!("copied the store to {} ({bytes} bytes)", harmless(&file));
    let done = output::told(&json!({ "file": file, "bytes": bytes }), &sentence, context.format)?;
    if !context.format.is_json() {
        output::notice(
            "the copy opens only with the master key, which is not in it: keep a copy of \
             master.key, of NARTHEX_MASTER_KEY, or of what the keychain has, elsewhere",
        );
    }
    Ok(done)
}

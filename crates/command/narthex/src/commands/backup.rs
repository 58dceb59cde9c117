//! `narthex backup`: copies the store, also while a daemon runs.

use std::{
    io,
    path::{Path, PathBuf},
    process::ExitCode,
};

use fs_err as fs;
use narthex_client::cli::BackupArgs;
use narthex_model::{ErrorKind, command::narthex};
use serde_json::json;

use super::waiting::waiting;
use crate::{
    Failure,
    cli::Context,
    data_dir::DataDir,
    output::{self, harmless},
    stored::StorePlace,
};

pub(crate) async fn run(args: BackupArgs, context: Context) -> Result<ExitCode, Failure> {
    if context.settings.daemon.daemon_url.is_some() {
        let text = "a backup needs the store's files; run this command on the daemon's machine, \
                    without --daemon-url";
        return Err(Failure::usage(text));
    }
    let to = std::path::absolute(&args.file)?;
    let place = DataDir::open(&context.settings.daemon.data)?;
    let Some(store) = StorePlace::of(&place, &context.settings).look().await? else {
        let text = format!(
            "there is no store yet, so there is nothing to copy; start `{}` first, or name another \
             folder with --data",
            narthex("up", &[])
        );
        return Err(Failure::new(ErrorKind::NotFound, text));
    };
    let copied = waiting("copying the store", &context.client(), store.backup(&to)).await;
    store.close().await;
    let copied = copied.map_err(|error| Failure::caused(error.kind(), &error))?;
    let bytes = copied.bytes;
    let file = to.display().to_string();
    let sentence = format!("copied the store to {} ({bytes} bytes)", harmless(&file));
    let left_out = Shared::look(&place.shares_dir())?;
    let folder = left_out.folder.display().to_string();
    let shared = json!({ "folder": folder, "files": left_out.files, "bytes": left_out.bytes });
    let told = json!({ "file": file, "bytes": bytes, "shared_files_left_out": shared });
    let done = output::told(&told, &sentence, context.format)?;
    if !context.format.is_json() {
        if left_out.files > 0 {
            let Shared { files, bytes, .. } = left_out;
            output::notice(&format!(
                "the copy has no shared files of agents: {files} files ({bytes} bytes) are in {}; \
                 copy that folder now, and restore it together with the copy",
                harmless(&folder)
            ));
        }
        output::notice(
            "secrets in the copy open only with the master key, which is not in the copy: store \
             master.key, NARTHEX_MASTER_KEY or the keychain's entry at another place",
        );
    }
    Ok(done)
}

/// The copies of the files that agents have shared, in a folder beside the store.
struct Shared {
    folder: PathBuf,
    files: u64,
    bytes: u64,
}

impl Shared {
    fn look(folder: &Path) -> Result<Self, Failure> {
        let (mut files, mut bytes) = (0, 0);
        for workspace in entries(&folder.join("workspaces"))? {
            for copy in entries(&workspace.path())? {
                // A running daemon may have deleted it meanwhile.
                match copy.metadata() {
                    Ok(metadata) => (files, bytes) = (files + 1, bytes + metadata.len()),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(Self { folder: folder.to_owned(), files, bytes })
    }
}

fn entries(folder: &Path) -> Result<Vec<fs::DirEntry>, Failure> {
    match fs::read_dir(folder) {
        Ok(entries) => Ok(entries.collect::<Result<_, _>>()?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}

//! `narthex mcp add`: adds a server to the user's settings. Starts the daemon, as `narthex add`
//! does.

mod described;

use std::process::ExitCode;

use crate::cli::AddArgs;
use http::Method;
use narthex_model::{ErrorKind, command::narthex};
use serde_json::Value;

use self::described::entry;
use super::text;
use crate::{
    Context, Failure,
    commands::{running, waiting::waiting},
    daemon_client::{ApiRequest, DaemonClient, server_path},
    output::{self, harmless},
};

pub(super) async fn run(args: AddArgs, context: &Context) -> Result<ExitCode, Failure> {
    let entry = entry(&args)?;
    if !running::is_up(context)? {
        running::ensure(context).await?;
    }
    let client = DaemonClient::operator(&context.daemon)?;
    let mut request = ApiRequest::new(Method::PUT, server_path(&args.name, "")).entry(&entry);
    if !args.replace {
        request = request.for_new_only();
    }
    let saved = waiting(&format!("storing {}", args.name), context, client.api(request)).await;
    let saved = saved.map_err(|failure| match failure.kind.as_str() {
        kind if kind == ErrorKind::Conflict.as_str() && !args.replace => {
            let message = match failure.message.ends_with("replace it") {
                true => format!("{} with --replace", failure.message),
                false => failure.message,
            };
            Failure { message, ..failure }
        }
        _ => failure,
    })?;
    if context.format.is_json() {
        output::done(&saved)?;
        return Ok(ExitCode::SUCCESS);
    }
    let warnings = saved["warnings"].as_array().map(Vec::as_slice).unwrap_or_default();
    for warning in warnings.iter().filter_map(Value::as_str) {
        output::notice(&format!("warning: {}", harmless(warning)));
    }
    if !context.format.is_quiet() {
        let verb = if saved["created"] == true { "added" } else { "replaced" };
        let name = harmless(text(&saved, "name"));
        output::sentence(&format!("{verb} {name}; it connects in the background"))?;
        output::notice(&format!("see if it works with `{}`", narthex("mcp test {}", &[&name])));
    }
    Ok(ExitCode::SUCCESS)
}

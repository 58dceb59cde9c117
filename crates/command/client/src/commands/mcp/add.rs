//! `narthex mcp add`: adds a server to the user's settings.

use std::{
    io::{Read, stdin},
    process::ExitCode,
};

use crate::cli::AddArgs;
use http::Method;
use narthex_model::{ErrorKind, json::without_comments};
use serde_json::{Map, Value, json};

use super::text;
use crate::{
    Context, Failure,
    commands::waiting::waiting,
    daemon_client::{ApiRequest, DaemonClient, server_path},
    output::{self, harmless},
};

/// More than the daemon takes.
const ENTRY_MAX: u64 = 2 * 1024 * 1024;

pub(super) async fn run(args: AddArgs, context: &Context) -> Result<ExitCode, Failure> {
    let entry = entry(&args)?;
    let client = DaemonClient::operator(&context.daemon)?;
    let mut request = ApiRequest::new(Method::PUT, server_path(&args.name, "")).entry(&entry);
    if !args.replace {
        request = request.for_new_only();
    }
    let saved = waiting(&format!("storing {}", args.name), context, client.api(request)).await;
    let saved = saved.map_err(|failure| match failure.kind.as_str() {
        kind if kind == ErrorKind::Conflict.as_str() && !args.replace => {
            let message = format!("{} (--replace overwrites it)", failure.message);
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
        output::line(&format!("{verb} {name}; it connects in the background"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The entry's text.
fn entry(args: &AddArgs) -> Result<String, Failure> {
    match (&args.entry, &args.url, args.command.split_first()) {
        (Some(dash), _, _) if dash == "-" => {
            let mut text = String::new();
            stdin().take(ENTRY_MAX).read_to_string(&mut text)?;
            // The daemon takes JSON alone.
            Ok(String::from_utf8_lossy(&without_comments(text.as_bytes())).into_owned())
        }
        (Some(text), _, _) => Ok(text.clone()),
        (None, Some(url), _) => {
            let transport = if args.sse { "sse" } else { "http" };
            let mut entry = json!({ "transport": transport, "url": url });
            if !args.header.is_empty() {
                entry["headers"] = pairs("--header", &args.header)?;
            }
            Ok(entry.to_string())
        }
        (None, None, Some((command, rest))) => {
            let mut entry = json!({ "transport": "stdio", "command": command, "args": rest });
            if !args.env.is_empty() {
                entry["env"] = pairs("--env", &args.env)?;
            }
            if let Some(folder) = &args.cwd {
                entry["cwd"] = json!(folder);
            }
            Ok(entry.to_string())
        }
        (None, None, None) => {
            let text = "describe the server: an entry as JSON, --url URL, or -- COMMAND";
            Err(Failure::usage(text))
        }
    }
}

fn pairs(flag: &str, words: &[String]) -> Result<Value, Failure> {
    let mut members = Map::new();
    for word in words {
        // The value may be a secret, so it is not repeated.
        let Some((name, value)) = word.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            return Err(Failure::usage(format!("{flag} needs NAME=VALUE")));
        };
        if members.insert(name.to_owned(), json!(value)).is_some() {
            return Err(Failure::usage(format!("{flag} {name} is given twice")));
        }
    }
    Ok(members.into())
}

//! `narthex vfs`: the files of a run, through the daemon.

mod absent;
mod request;

use std::{
    io::{self, Read, Write},
    process::ExitCode,
};

use bytes::Bytes;
use http::Method;
use narthex_client::Context;
use narthex_client::cli::VfsCommand;
use narthex_model::{ErrorKind, json::with_whole_pairs};
use narthex_vfs::{Node, Place};
use narthex_wire::Raw;
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use self::request::{address, look, whole};
use super::waiting::waiting;
use crate::{
    Failure, arguments,
    daemon_client::{ApiRequest, DaemonClient},
    output::{self, harmless},
};

pub(crate) async fn run(command: VfsCommand, context: Context) -> Result<ExitCode, Failure> {
    let client = DaemonClient::of_run(&context.daemon)?;
    let path = match &command {
        VfsCommand::Ls { path }
        | VfsCommand::Cat { path }
        | VfsCommand::Write { path }
        | VfsCommand::Call { path, .. }
        | VfsCommand::Stat { path } => path.clone(),
    };
    match carry_out(command, &client, &context).await {
        Ok(code) => Ok(code),
        Err(failure) => Err(absent::told(failure, &path, &client).await),
    }
}

async fn carry_out(
    command: VfsCommand,
    client: &DaemonClient,
    context: &Context,
) -> Result<ExitCode, Failure> {
    match command {
        VfsCommand::Ls { path } => list(client, &path, context).await,
        VfsCommand::Cat { path } => {
            let asked = client.api_bytes(look(&path, "read"));
            raw(&waiting("reading", context, asked).await?, context)
        }
        VfsCommand::Write { path } => {
            let limit = client.limits().message_bytes as u64;
            let mut text = String::new();
            io::stdin().lock().take(limit + 1).read_to_string(&mut text)?;
            if text.len() as u64 > limit {
                let text = format!("arguments have at most {limit} bytes; write fewer");
                return Err(Failure::new(ErrorKind::Exhausted, text));
            }
            write(client, &path, &text, context).await
        }
        VfsCommand::Call { path, arguments } => {
            let arguments = match is_prompt(&path) {
                true => arguments::parse_texts(&arguments)?,
                false => {
                    // Asking for the schema counts as a call.
                    let schema = match arguments::need_schema(&arguments) {
                        true => schema(client, &path).await,
                        false => None,
                    };
                    arguments::parse(&arguments, schema.as_ref())?
                }
            };
            write(client, &path, &Value::Object(arguments).to_string(), context).await
        }
        VfsCommand::Stat { path } => stat(client, &path, context).await,
    }
}

async fn list(client: &DaemonClient, path: &str, context: &Context) -> Result<ExitCode, Failure> {
    let asked = client.api(look(path, "list"));
    let listed = waiting("listing", context, asked).await?;
    if context.format.is_json() {
        output::done(&listed)?;
        return Ok(ExitCode::SUCCESS);
    }
    for entry in listed["entries"].as_array().into_iter().flatten() {
        let name = entry["name"].as_str().unwrap_or_default();
        // A URI in a path is not encoded; only in folders it is.
        let name = match path.trim_end_matches('/').ends_with("/resources") {
            true => percent_decode_str(name).decode_utf8_lossy(),
            false => name.into(),
        };
        let name = harmless(&name);
        let is_marked = entry["is_directory"] == true && !context.format.is_quiet();
        output::line(&format!("{name}{}", if is_marked { "/" } else { "" }))?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn stat(client: &DaemonClient, path: &str, context: &Context) -> Result<ExitCode, Failure> {
    let asked = client.api(look(path, "stat"));
    let stat = waiting("asking the daemon", context, asked).await?;
    let text = |name: &str| stat[name].as_str().unwrap_or_default();
    let what = match (&stat["is_directory"], &stat["is_writable"]) {
        (Value::Bool(true), _) => "a directory",
        (_, Value::Bool(true)) => "a file that can be written and read",
        _ => "a file that can be read",
    };
    let told = format!("{} of {} is {what}", text("name"), text("device"));
    output::told(&stat, &told, context.format)
}

async fn write(
    client: &DaemonClient,
    path: &str,
    arguments: &str,
    context: &Context,
) -> Result<ExitCode, Failure> {
    let request = ApiRequest::new(Method::POST, address(path)).entry(arguments);
    let written = waiting("calling", context, client.api_bytes(request)).await?;
    let code = raw(&written, context)?;
    Ok(if is_error(&written) { ExitCode::FAILURE } else { code })
}

/// True if a tool says of its result that it is an error.
fn is_error(result: &[u8]) -> bool {
    Raw::new(result).get("isError").and_then(Raw::as_bool).unwrap_or(false)
}

/// Prints bytes unchanged; with `--json`, prints them as JSON if they are JSON, else as text.
fn raw(bytes: &Bytes, context: &Context) -> Result<ExitCode, Failure> {
    if context.format.is_json() {
        let said = serde_json::from_slice(&with_whole_pairs(bytes));
        let said = said.unwrap_or_else(|_text| json!(String::from_utf8_lossy(bytes)));
        output::done(&said)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = output::raw();
    let written = out.write_all(bytes).and_then(|()| match bytes.last() {
        None | Some(b'\n') => Ok(()),
        Some(_) => out.write_all(b"\n"),
    });
    match written.and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        Ok(()) | Err(_) => Ok(ExitCode::SUCCESS),
    }
}

/// The schema of a file's tool, if it is known.
async fn schema(client: &DaemonClient, path: &str) -> Option<Value> {
    let path = format!("{}.schema.json", path.trim_end_matches('/'));
    client.api(look(&path, "read")).await.ok()
}

/// True if a path is that of a prompt.
fn is_prompt(path: &str) -> bool {
    matches!(Place::parse(&whole(path)), Ok(Place::In(_, Node::Prompt(_))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_result_of_a_tool_is_an_error() {
        for (result, expected) in [
            (r#"{"content":[],"isError":true}"#, true),
            (r#"{"content":[],"isError":false}"#, false),
            (r#"{"content":[{"text":"\"isError\":true"}]}"#, false),
            (r#"{"messages":[]}"#, false),
            ("no JSON", false),
        ] {
            assert_eq!(is_error(result.as_bytes()), expected, "{result}");
        }
    }
}

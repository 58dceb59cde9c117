//! The tools, most of which do something wrong.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;

use super::server::{Out, Server, answer};
use super::settings::Offspring;
use super::{offspring, words};
use crate::spawn;

/// All tools that are always there.
pub(super) const NAMES: [&str; 14] = [
    "breed",
    "change",
    "die",
    "echo",
    "environment",
    "fail",
    "flood",
    "hold",
    "late",
    "never",
    "progress",
    "seen",
    "strangers",
    "twice",
];
/// Interval at which a held call checks for its release.
const LOOK: Duration = Duration::from_millis(5);

pub(super) async fn call(server: &mut Server, id: &Value, params: &Value) -> io::Result<()> {
    let arguments = &params["arguments"];
    let number = |name: &str, otherwise: u64| arguments[name].as_u64().unwrap_or(otherwise);
    match params["name"].as_str().unwrap_or_default() {
        "breed" => breed(server, id, arguments).await,
        "change" => change(server, id, arguments["announce"] == true).await,
        "die" => die(number("code", 7)),
        "echo" => server.result(id, text(arguments["text"].as_str().unwrap_or_default())).await,
        "environment" => server.result(id, text(&surroundings()?.to_string())).await,
        "fail" => server.result(id, failure()).await,
        "flood" => {
            let [lines, bytes] = [number("lines", 1000), number("bytes", 80)];
            words::write(size(lines), size(bytes))?;
            server.result(id, text("written")).await
        }
        "hold" => {
            hold(server.out.clone(), id.clone(), arguments);
            Ok(())
        }
        "late" => {
            server.late.push(id.clone());
            Ok(())
        }
        "never" => Ok(()),
        "progress" => progress(server, id, params).await,
        "seen" => server.result(id, text(&serde_json::to_string(&server.seen)?)).await,
        "strangers" => strangers(server, id).await,
        "twice" => {
            server.result(id, text("first")).await?;
            server.result(id, text("second")).await
        }
        _ => {
            let error = json!({"code": -32602, "message": "there is no such tool"});
            server.out.message(&json!({"jsonrpc": "2.0", "id": id, "error": error})).await
        }
    }
}

/// Answers a call of `late` as soon as the client has cancelled it.
pub(super) async fn cancelled(server: &mut Server, id: &Value) -> io::Result<()> {
    if let Some(index) = server.late.iter().position(|late| late == id) {
        let id = server.late.swap_remove(index);
        server.result(&id, text("too late")).await?;
    }
    Ok(())
}

fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

fn failure() -> Value {
    json!({"content": [{"type": "text", "text": "it failed"}], "isError": true})
}

fn size(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[expect(clippy::exit, reason = "dying without an answer is what was asked for")]
fn die(code: u64) -> ! {
    words::last("it dies in a call");
    std::process::exit(i32::try_from(code).unwrap_or(7))
}

async fn breed(server: &Server, id: &Value, arguments: &Value) -> io::Result<()> {
    let is_escaped = arguments["escaped"] == true;
    let kind = if is_escaped { Offspring::Escaped } else { Offspring::Child };
    let process = offspring::start(kind, server.settings.ignores_term)?;
    server.result(id, text(&process.to_string())).await
}

async fn change(server: &mut Server, id: &Value, is_announced: bool) -> io::Result<()> {
    server.has_extra = !server.has_extra;
    if is_announced {
        let method = "notifications/tools/list_changed";
        server.out.message(&json!({"jsonrpc": "2.0", "method": method})).await?;
    }
    server.result(id, text("changed")).await
}

fn surroundings() -> io::Result<Value> {
    let lossy = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
    let variables: serde_json::Map<String, Value> =
        std::env::vars_os().map(|(name, value)| (lossy(name), lossy(value).into())).collect();
    Ok(json!({"variables": variables, "folder": std::env::current_dir()?}))
}

/// Answers when the file `until` is there, or `ms` have passed; other calls are served meanwhile.
fn hold(out: Out, id: Value, arguments: &Value) {
    let until = arguments["until"].as_str().map(PathBuf::from);
    let ms = arguments["ms"].as_u64();
    spawn(async move {
        match until {
            Some(file) => {
                while !file.exists() {
                    sleep(LOOK).await;
                }
            }
            None => sleep(Duration::from_millis(ms.unwrap_or_default())).await,
        }
        if let Err(error) = out.message(&answer(&id, &text("held"))).await {
            words::last(&error.to_string());
        }
    });
}

/// The answer has the token of the call.
async fn progress(server: &Server, id: &Value, params: &Value) -> io::Result<()> {
    let token = &params["_meta"]["progressToken"];
    let steps = params["arguments"]["steps"].as_u64().unwrap_or(3);
    for step in (1..=steps).filter(|_| !token.is_null()) {
        let told = json!({"progressToken": token, "progress": step, "total": steps});
        let method = "notifications/progress";
        server.out.message(&json!({"jsonrpc": "2.0", "method": method, "params": told})).await?;
    }
    server.result(id, text(&token.to_string())).await
}

/// Sends answers without requests, and lines that are no messages, before the proper answer.
async fn strangers(server: &Server, id: &Value) -> io::Result<()> {
    for stranger in [json!(0), json!(987_654_321), json!("x"), Value::Null] {
        server.result(&stranger, text("for no request")).await?;
    }
    server.out.line("a word that is no message").await?;
    let note = json!({"jsonrpc": "2.0", "method": "notifications/odd", "params": {"id": id}});
    server.out.message(&note).await?;
    server.result(id, text("proper")).await
}

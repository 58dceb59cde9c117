//! Verbs for one server, or for the files, in one step.

use std::{process::ExitCode, time::SystemTime};

use http::Method;
use narthex_model::{CallError, ErrorKind};
use serde_json::{Value, json};

use super::{text, with_names};
use crate::{
    Context, Failure,
    commands::{files, waiting::waiting},
    daemon_client::{ApiRequest, DaemonClient, server_path},
    output::{self, counted, harmless},
    rows::logs_of,
};

pub(super) async fn reload(context: &Context) -> Result<ExitCode, Failure> {
    let client = DaemonClient::operator(&context.daemon)?;
    let asked = waiting("reading the files", context, client.api_post("/api/reload"));
    let reloaded = asked.await?;
    let files = reloaded["files"].as_array().map(Vec::as_slice).unwrap_or_default();
    let now = SystemTime::now();
    let refused = files::refused(files, now);
    if !refused.is_empty() {
        let details = Some(reloaded);
        return Err(Failure { details, ..Failure::new(ErrorKind::Invalid, refused.join("\n")) });
    }
    if context.format.is_json() {
        output::done(&reloaded)?;
        return Ok(ExitCode::SUCCESS);
    }
    for sentence in files::gone(files, now) {
        output::notice(&format!("warning: {sentence}"));
    }
    let count = reloaded["server_count"].as_u64().unwrap_or(0);
    match context.format.is_quiet() {
        true => output::line(&count.to_string())?,
        false => output::line(&counted(count, "server"))?,
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn remove(name: &str, context: &Context) -> Result<ExitCode, Failure> {
    let client = DaemonClient::operator(&context.daemon)?;
    let request = ApiRequest::new(Method::DELETE, server_path(name, ""));
    match waiting(&format!("removing {name}"), context, client.api(request)).await {
        Ok(_) => told(&json!({ "name": name }), &format!("removed {name}"), context),
        Err(failure) => Err(with_names(name, failure, &client).await),
    }
}

pub(super) async fn disable(name: &str, context: &Context) -> Result<ExitCode, Failure> {
    let answer = post(name, "disable", context).await?;
    told(&answer, &format!("{name} is switched off"), context)
}

pub(super) async fn enable(name: &str, context: &Context) -> Result<ExitCode, Failure> {
    came_out(name, &post(name, "enable", context).await?, context)
}

pub(super) async fn reauthorize(name: &str, context: &Context) -> Result<ExitCode, Failure> {
    came_out(name, &post(name, "reauthorize", context).await?, context)
}

pub(super) async fn reconnect(name: &str, context: &Context) -> Result<ExitCode, Failure> {
    came_out(name, &post(name, "reconnect", context).await?, context)
}

async fn post(name: &str, verb: &str, context: &Context) -> Result<Value, Failure> {
    let client = DaemonClient::operator(&context.daemon)?;
    let asked = client.api_post(server_path(name, &format!("/{verb}")));
    match waiting(&format!("{verb} {name}"), context, asked).await {
        Ok(answer) => Ok(answer),
        Err(failure) => Err(with_names(name, failure, &client).await),
    }
}

/// Shows the result of a verb for a server; the command fails if the server has failed.
fn came_out(name: &str, answer: &Value, context: &Context) -> Result<ExitCode, Failure> {
    let result = &answer["result"];
    if result["status"] == "error" {
        let error = serde_json::from_value::<CallError>(result["error"].clone());
        let mut error = error.map_err(|error| {
            let text = format!("the daemon's answer cannot be read: {error}");
            Failure::new(ErrorKind::Invalid, text)
        })?;
        let logs = logs_of(name, error.kind.as_str(), answer["server"]["has_logs"] == true);
        error.message.push_str(&logs.unwrap_or_default());
        return Err(Failure::call(error));
    }
    let how = match (text(result, "status"), result["toolCount"].as_u64()) {
        ("ready", Some(count)) => format!("ready: {}", counted(count, "tool")),
        ("authenticating", _) => format!("waiting for a sign-in at {}", text(result, "authUrl")),
        (other, _) => other.to_owned(),
    };
    told(answer, &format!("{name} is {how}"), context)
}

fn told(data: &Value, sentence: &str, context: &Context) -> Result<ExitCode, Failure> {
    if context.format.is_json() {
        output::done(data)?;
    } else if !context.format.is_quiet() {
        output::line(&harmless(sentence))?;
    }
    Ok(ExitCode::SUCCESS)
}

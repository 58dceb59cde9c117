//! `narthex runs create`.

use std::{
    io::{Read, stdin},
    path::Path,
};

use crate::cli::CreateArgs;
use http::Method;
use narthex_model::{ErrorKind, command::narthex, json::without_comments, meant_hint};
use serde_json::{Map, Value, json};

use super::{runs_path, text, words};
use crate::{
    Context, Failure, FailureKind, arguments,
    commands::{across::unless_hidden, waiting::waiting},
    daemon_client::{ApiRequest, DaemonClient, segment, workspace_path},
    output::{self, counted, harmless},
};

/// The placeholder for the token in entries for clients.
const TOKEN_PLACE: &str = "${NARTHEX_TOKEN}";
/// The longest document that is read, in bytes.
const DOCUMENT_MAX: u64 = 1024 * 1024;
const NOTHING_SAID: &str = "name the agent with --agent, a FILE with the whole request, or shared \
                            servers with --tools";
const SCOPE_EXAMPLE: &str =
    "write the scope as one JSON object, such as {\"context_id\": \"ctx-9\"}";
const EXAMPLE: &str = "write the request as one JSON object, such as \
                       {\"agent_name\": \"reader\"} or {\"servers\": {\"docs\": {…}}}";

pub(super) async fn run(args: &CreateArgs, context: &Context) -> Result<(), Failure> {
    let mut document = document(args)?;
    let client = DaemonClient::operator(&context.daemon)?;
    add_params(&mut document, args, &client).await?;
    let request = ApiRequest::new(Method::POST, runs_path(&args.place));
    let request = request.entry(&document.to_string());
    let asked = Box::pin(client.api(request));
    let asked = waiting("starting the servers of the run", context, asked).await;
    told(&begun(asked, context)?, &client, context).await
}

/// Warns of unknown shared servers, each with the known server that was probably meant.
async fn tell_missing(begun: &Value, client: &DaemonClient) -> Result<(), Failure> {
    let missing = begun["missing"].as_array().map(Vec::as_slice).unwrap_or_default();
    if missing.is_empty() {
        return Ok(());
    }
    let rows = unless_hidden(client.api_all("/api/servers").await)?;
    let known = || rows.iter().map(|row| text(row, "name"));
    for name in missing.iter().filter_map(Value::as_str) {
        let warning =
            format!("there is no shared server `{name}` yet{}", meant_hint(name, known()));
        output::notice(&format!("warning: {}", harmless(&warning)));
    }
    Ok(())
}

/// The answer of the daemon, or its refusal as people read it.
pub(crate) fn begun(asked: Result<Value, Failure>, context: &Context) -> Result<Value, Failure> {
    asked.map_err(|failure| match context.format.is_json() {
        true => failure,
        false => with_faults(failure),
    })
}

/// Shows a run that was created.
pub(crate) async fn told(
    begun: &Value,
    client: &DaemonClient,
    context: &Context,
) -> Result<(), Failure> {
    tell_missing(begun, client).await?;
    for warning in begun["warnings"].as_array().into_iter().flatten() {
        output::notice(&format!("warning: {}", harmless(warning.as_str().unwrap_or_default())));
    }
    for server in begun["servers"].as_array().into_iter().flatten() {
        if server["error"].is_object() {
            let (alias, error) = (text(server, "alias"), text(&server["error"], "message"));
            output::notice(&format!("{}: {}", harmless(alias), harmless(error)));
        }
    }
    if context.format.is_json() {
        return output::done(begun);
    }
    let id = text(begun, "run_id");
    if begun["claim"].is_object() {
        return carried_out(begun, context);
    }
    let names = words(&begun["agent_env_names"], |name| name.as_str().unwrap_or_default());
    if names != "-" {
        let text = "the agent holds credentials that an operator injected; --json shows the values \
                    this once, as agent_env";
        output::notice(&format!("{names}: {text}"));
    }
    let token = text(begun, "token");
    if context.format.is_quiet() {
        return output::line(&format!("{id} {token}"));
    }
    let tools = counted(begun["tool_set"]["count"].as_u64().unwrap_or_default(), "tool");
    // Answers have the token in one place; an entry that is pasted into a client needs its own.
    let entries = begun["mcpServers"].to_string().replace(TOKEN_PLACE, token);
    let entries: Value = serde_json::from_str(&entries)
        .map_err(|error| Failure::new(ErrorKind::Bug, error.to_string()))?;
    let snippet = json!({ "mcpServers": entries });
    let end = narthex("runs end {}", &[&id]);
    output::line(&format!(
        "The run {id} was created, with {tools}. This is shown once:\n\n{snippet:#}\n\n`{end}` \
         ends it; it ends by itself at {}.",
        text(begun, "expires_at")
    ))
}

/// Shows a run that an executor of the daemon carries out.
fn carried_out(begun: &Value, context: &Context) -> Result<(), Failure> {
    let (id, session) = (text(begun, "run_id"), text(begun, "session_id"));
    if context.format.is_quiet() {
        return output::line(id);
    }
    let executor = harmless(text(&begun["claim"], "executor"));
    let follow = narthex("sessions events {} --follow", &[&session]);
    let end = narthex("sessions end {}", &[&session]);
    output::line(&format!(
        "The run {id} waits for the executor `{executor}`.\n\n`{follow}` shows what it does; \
         `{end}` ends it.",
    ))
}

/// A set of built-in tools: one of the words, or else names.
fn built_in(text: &str) -> Value {
    if ["none", "ask", "core", "all"].contains(&text) {
        return json!(text);
    }
    let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
    names.map(Value::from).collect()
}

/// The document of the request: the file's, with the values of flags.
fn document(args: &CreateArgs) -> Result<Value, Failure> {
    let mut document = match &args.file {
        None => Map::new(),
        Some(file) => read(file, EXAMPLE)?,
    };
    if let Some(tools) = &args.tools {
        let names: Vec<_> =
            tools.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
        document.insert("tools".to_owned(), json!(names));
    }
    if let Some(agent) = &args.agent {
        document.insert("agent_name".to_owned(), json!(agent));
    }
    if let Some(prompt) = &args.prompt {
        document.insert("prompt".to_owned(), json!(prompt));
    }
    if let Some(file) = &args.scope {
        document.insert("scope".to_owned(), read(file, SCOPE_EXAMPLE)?.into());
    }
    let is_empty = document.is_empty();
    if let Some(builtin) = &args.builtin {
        document.insert("builtin".to_owned(), built_in(builtin));
    }
    if args.sockets {
        document.insert("sockets".to_owned(), json!(true));
    }
    if is_empty {
        let text = match &args.file {
            None => NOTHING_SAID.to_owned(),
            Some(file) => format!("{} is empty; {EXAMPLE}", name(file)),
        };
        return Err(Failure::usage(text));
    }
    Ok(Value::Object(document))
}

/// Adds the parameters of the command line to those of the file. The agent's own schema decides
/// which values are texts.
async fn add_params(
    document: &mut Value,
    args: &CreateArgs,
    client: &DaemonClient,
) -> Result<(), Failure> {
    if args.params.is_empty() {
        return Ok(());
    }
    let agent = document["agent_name"].as_str().unwrap_or_default();
    let mut schema = None;
    if !agent.is_empty() && arguments::need_schema(&args.params) {
        let path = format!("/agents/{}", segment(agent));
        let found = match client.api_get(workspace_path(&args.place.workspace, &path)).await {
            // The request to create the run reports the unknown agent, in the same words with and
            // without parameters.
            Err(failure) if failure.kind == FailureKind::Operation(ErrorKind::NotFound) => {
                Value::Null
            }
            found => found?,
        };
        let declared = &found["definition"]["params_schema"];
        // A schema of JSON has them below, others are by name.
        schema = Some(match declared["properties"].is_object() {
            true => declared.clone(),
            false => json!({ "properties": declared }),
        });
    }
    let given = arguments::parse(&args.params, schema.as_ref())?;
    match &mut document["params"] {
        params @ Value::Null => *params = given.into(),
        Value::Object(params) => params.extend(given),
        _ => return Err(Failure::usage("`params` of the file is not a JSON object")),
    }
    Ok(())
}

/// The object that a file holds, or standard input; `instead` is the remedy for other content.
pub(crate) fn read(file: &Path, instead: &str) -> Result<Map<String, Value>, Failure> {
    let mut bytes = Vec::new();
    match file.as_os_str() == "-" {
        true => stdin().take(DOCUMENT_MAX + 1).read_to_end(&mut bytes)?,
        false => fs_err::File::open(file)?.take(DOCUMENT_MAX + 1).read_to_end(&mut bytes)?,
    };
    let name = name(file);
    let unfit =
        |what: String| Failure::new(ErrorKind::Invalid, format!("{name} {what}; {instead}"));
    if bytes.len() as u64 > DOCUMENT_MAX {
        let text = format!("{name} is longer than the {DOCUMENT_MAX} bytes of a request");
        return Err(Failure::new(ErrorKind::Exhausted, text));
    }
    if bytes.trim_ascii().is_empty() {
        return Err(unfit("is empty".to_owned()));
    }
    match serde_json::from_slice(&without_comments(&bytes)) {
        Ok(Value::Object(document)) => Ok(document),
        Ok(_) => Err(unfit("is not a JSON object".to_owned())),
        Err(error) => Err(unfit(format!("is not JSON: {error}"))),
    }
}

/// The name of a file in messages.
fn name(file: &Path) -> String {
    match file.as_os_str() == "-" {
        true => "standard input".to_owned(),
        false => file.display().to_string(),
    }
}

/// A refusal that shows people every fault, each in a line with its place and its remedy.
fn with_faults(failure: Failure) -> Failure {
    let errors = failure.details.as_ref().and_then(|details| details["errors"].as_array());
    let line = |fault: &Value| {
        let (path, message, remedy) =
            (fault["path"].as_str()?, fault["message"].as_str()?, fault["remedy"].as_str()?);
        let at = if path == "body" { String::new() } else { format!("`{path}`: ") };
        Some(format!("  {at}{message}; {remedy}"))
    };
    let lines: Option<Vec<_>> = errors.into_iter().flatten().map(line).collect();
    match lines {
        Some(lines) if lines.len() > 1 => {
            let faults = counted(lines.len() as u64, "fault");
            let message = format!("no run was created, for {faults}:\n{}", lines.join("\n"));
            Failure { message, ..failure }
        }
        // A single fault is in the message already, and faults of servers have no place.
        Some(_) | None => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_of_built_in_tools_is_a_word_or_names() {
        assert_eq!(built_in("ask"), json!("ask"));
        assert_eq!(built_in("share, emit_status"), json!(["share", "emit_status"]));
        assert_eq!(built_in("cor"), json!(["cor"]), "the daemon names what was meant");
    }
}

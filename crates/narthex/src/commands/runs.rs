//! `narthex runs`: runs of the daemon, of agents or with servers of their own.

use std::{
    io::{Read as _, stdin},
    process::ExitCode,
};

use http::Method;
use narthex_model::ErrorKind;
use serde_json::{Value, json};

use crate::{
    cli::{Context, CreateArgs, RunCommand, WorkspaceArgs},
    daemon_client::{ApiRequest, DaemonClient, segment, workspace_path},
    failure::Failure,
    output::{self, harmless},
    table,
};

/// The longest document that is read.
const DOCUMENT_MAX: u64 = 1024 * 1024;

pub(crate) async fn run(command: RunCommand, context: Context) -> Result<ExitCode, Failure> {
    match command {
        RunCommand::Create(args) => create(&args, &context).await?,
        RunCommand::List { status, place } => list(status.as_deref(), &place, &context).await?,
        RunCommand::Show { id, place } => show(&run_path(&place.workspace, &id), &context).await?,
        RunCommand::End { id, place } => end(&id, &place, &context).await?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn create(args: &CreateArgs, context: &Context) -> Result<(), Failure> {
    let document = document(args)?;
    let client = DaemonClient::operator(&context.settings)?;
    let request = ApiRequest::new(Method::POST, runs_path(&args.place.workspace));
    let request = request.entry(&document.to_string());
    let waiting = Box::pin(client.api(request));
    let begun =
        super::waiting::waiting("starting the servers of the run", context, waiting).await?;
    for warning in begun["warnings"].as_array().into_iter().flatten() {
        output::notice(&format!("warning: {}", harmless(warning.as_str().unwrap_or_default())));
    }
    for name in begun["missing"].as_array().into_iter().flatten() {
        let name = harmless(name.as_str().unwrap_or_default());
        output::notice(&format!("warning: there is no shared server `{name}` yet"));
    }
    for server in begun["servers"].as_array().into_iter().flatten() {
        if server["error"].is_object() {
            let (alias, error) = (text(server, "alias"), text(&server["error"], "message"));
            output::notice(&format!("{}: {}", harmless(alias), harmless(error)));
        }
    }
    if context.format.is_json() {
        return output::done(&begun);
    }
    let names = words(&begun["agent_env_names"], |name| name.as_str().unwrap_or_default());
    if names != "-" {
        let text = "the agent holds credentials that an operator injected; --json shows the values \
                    this once, as agent_env";
        output::notice(&format!("{names}: {text}"));
    }
    let (id, token) = (text(&begun, "run_id"), text(&begun, "token"));
    if context.format.is_quiet() {
        return output::line(&format!("{id} {token}"));
    }
    let count = begun["tool_set"]["count"].as_u64().unwrap_or_default();
    let snippet = json!({ "mcpServers": begun["mcpServers"] });
    output::line(&format!(
        "The run {id} has begun, with {count} tools. This is shown once:\n\n{snippet:#}\n\n\
         `narthex runs end {id}` ends it; it ends by itself at {}.",
        text(&begun, "expires_at")
    ))
}

/// What is asked for: a file's document, with what the flags add.
fn document(args: &CreateArgs) -> Result<Value, Failure> {
    let mut document = match &args.file {
        None => json!({}),
        Some(file) => {
            let text = match file.as_os_str() == "-" {
                true => {
                    let mut text = String::new();
                    stdin().take(DOCUMENT_MAX).read_to_string(&mut text)?;
                    text
                }
                false => fs_err::read_to_string(file)?,
            };
            serde_json::from_str(&text).map_err(|error| {
                let place = file.display();
                let text = format!("{place} is no JSON: {error}; write it like an mcp.json");
                Failure::new(ErrorKind::Invalid, text)
            })?
        }
    };
    if let Some(tools) = &args.tools {
        let names: Vec<_> =
            tools.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
        document["tools"] = json!(names);
    }
    if let Some(agent) = &args.agent {
        document["agent_name"] = json!(agent);
    }
    if let Some(prompt) = &args.prompt {
        document["prompt"] = json!(prompt);
    }
    let is_empty = document.as_object().is_some_and(serde_json::Map::is_empty);
    if args.sockets {
        document["sockets"] = json!(true);
    }
    if is_empty {
        let text = "say what the run has: --agent with its agent, a FILE with the whole request, \
                    or --tools with shared servers";
        return Err(Failure::usage(text));
    }
    Ok(document)
}

async fn list(
    status: Option<&str>,
    place: &WorkspaceArgs,
    context: &Context,
) -> Result<(), Failure> {
    let client = DaemonClient::operator(&context.settings)?;
    let path = runs_path(&place.workspace);
    let (mut runs, mut after) = (Vec::new(), String::new());
    loop {
        let status = status.unwrap_or("all");
        let address = format!("{path}?status={status}&limit=100&after={after}");
        let page = client.api_get(address).await?;
        runs.extend(page["items"].as_array().cloned().unwrap_or_default());
        match page["next"].as_str() {
            Some(next) => next.clone_into(&mut after),
            None => break,
        }
    }
    if context.format.is_json() {
        return output::done(&json!({ "items": runs }));
    }
    if context.format.is_quiet() {
        return runs.iter().try_for_each(|run| output::line(text(run, "run_id")));
    }
    let rows: Vec<_> = runs.iter().map(row).collect();
    let header = [
        "id", "pid", "status", "agent", "created", "servers", "shared", "tools", "sessions", "env",
    ];
    output::line(&table::render(&header, &rows))
}

fn row(run: &Value) -> Vec<String> {
    let id = match run["is_local"] == true {
        true => format!("{} (local)", text(run, "run_id")),
        false => text(run, "run_id").to_owned(),
    };
    let number = |value: &Value| value.as_u64().map_or_else(|| "-".to_owned(), |n| n.to_string());
    let or_none = |text: &str| if text.is_empty() { "-".to_owned() } else { harmless(text) };
    vec![
        id,
        number(&run["pid"]),
        text(run, "status").to_owned(),
        or_none(text(run, "agent_name")),
        text(run, "created_at").to_owned(),
        words(&run["servers"], |server| text(server, "alias")),
        words(&run["tools"], |name| name.as_str().unwrap_or_default()),
        number(&run["tool_set"]["count"]),
        number(&run["mcp_sessions"]),
        words(&run["agent_env_names"], |name| name.as_str().unwrap_or_default()),
    ]
}

/// The servers that a run has for itself, each that cannot be called with its state.
fn own_servers(run: &Value) -> String {
    let one = |server: &Value| match text(server, "state") {
        "ready" => harmless(text(server, "alias")),
        state => format!("{} ({state})", harmless(text(server, "alias"))),
    };
    let all: Vec<_> = run["servers"].as_array().into_iter().flatten().map(one).collect();
    if all.is_empty() { "-".to_owned() } else { all.join(", ") }
}

fn words<'v>(list: &'v Value, word: impl Fn(&'v Value) -> &'v str) -> String {
    let words: Vec<_> = list.as_array().into_iter().flatten().map(word).map(harmless).collect();
    if words.is_empty() { "-".to_owned() } else { words.join(", ") }
}

async fn show(path: &str, context: &Context) -> Result<(), Failure> {
    let client = DaemonClient::operator(&context.settings)?;
    let run = client.api_get(path).await.map_err(with_remedy)?;
    if context.format.is_json() {
        return output::done(&run);
    }
    let tools = run["tool_set"]["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    if context.format.is_quiet() {
        return tools.iter().try_for_each(|tool| output::line(&harmless(text(tool, "name"))));
    }
    output::line(&format!(
        "The run {} was created at {} and is {}.\n\n  own servers     {}\n  \
         shared servers  {}\n  injected env    {}\n  sessions        {}\n  \
         tools           {}, {}\n",
        text(&run, "run_id"),
        text(&run, "created_at"),
        text(&run, "status"),
        own_servers(&run),
        words(&run["tools"], |name| name.as_str().unwrap_or_default()),
        words(&run["agent_env_names"], |name| name.as_str().unwrap_or_default()),
        run["mcp_sessions"].as_u64().unwrap_or_default(),
        run["tool_set"]["count"].as_u64().unwrap_or_default(),
        text(&run["tool_set"], "digest"),
    ))?;
    let cell = |tool: &Value, member: &str| text(tool, member).to_owned();
    let row = |tool: &Value| ["name", "server", "digest"].map(|member| cell(tool, member)).to_vec();
    let rows: Vec<_> = tools.iter().map(row).collect();
    output::line(&table::render(&["tool", "server", "definition"], &rows))
}

async fn end(id: &str, place: &WorkspaceArgs, context: &Context) -> Result<(), Failure> {
    let client = DaemonClient::operator(&context.settings)?;
    let request = ApiRequest::new(Method::DELETE, run_path(&place.workspace, id));
    client.api(request).await.map_err(with_remedy)?;
    if context.format.is_json() {
        return output::done(&json!({ "run_id": id }));
    }
    if !context.format.is_quiet() {
        output::line(&format!("The run {} has ended.", harmless(id)))?;
    }
    Ok(())
}

fn with_remedy(failure: Failure) -> Failure {
    match failure.kind.as_str() == ErrorKind::NotFound.as_str() {
        true => {
            let message = format!("{}; `narthex runs list` shows them", failure.message);
            Failure { message, ..failure }
        }
        false => failure,
    }
}

/// The text of a member, or nothing.
fn text<'v>(value: &'v Value, member: &str) -> &'v str {
    value[member].as_str().unwrap_or_default()
}

fn runs_path(workspace: &str) -> String {
    workspace_path(workspace, "/runs")
}

fn run_path(workspace: &str, id: &str) -> String {
    workspace_path(workspace, &format!("/runs/{}", segment(id)))
}

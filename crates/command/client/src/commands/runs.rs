//! `narthex runs`: runs of agents, and runs with their own servers.

mod claim;
pub(crate) mod create;
mod end;

use std::process::ExitCode;

use crate::cli::{RunCommand, WorkspaceArgs};
use narthex_model::{
    ErrorKind,
    command::{commands_in, narthex},
};
use serde_json::{Value, json};

use super::waiting::waiting;
use crate::{
    Context, Failure,
    daemon_client::{DaemonClient, segment, workspace_path},
    output::{self, harmless},
    table,
};

pub async fn run(command: RunCommand, context: Context) -> Result<ExitCode, Failure> {
    match command {
        RunCommand::Create(args) => create::run(&args, &context).await?,
        RunCommand::List { status, session, place } => {
            let asked = Wanted { status: status.as_deref(), session: session.as_deref() };
            list(&asked, &place, &context).await?;
        }
        RunCommand::Show { id, place } => show(&place, &id, &context).await?,
        RunCommand::Claim(args) => claim::run(&args, &context).await?,
        RunCommand::End(args) => end::run(&args, &context).await?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The filter of the runs that are asked for.
struct Wanted<'a> {
    status: Option<&'a str>,
    session: Option<&'a str>,
}

impl Wanted<'_> {
    /// All of them, the oldest first.
    async fn of(
        &self,
        client: &DaemonClient,
        place: &WorkspaceArgs,
        context: &Context,
    ) -> Result<Vec<Value>, Failure> {
        let mut path = format!("{}?status={}", runs_path(place), self.status.unwrap_or("all"));
        if let Some(session) = self.session {
            path = format!("{path}&session={}", segment(session));
        }
        waiting("asking the daemon", context, client.api_all(&path)).await
    }
}

async fn list(
    wanted: &Wanted<'_>,
    place: &WorkspaceArgs,
    context: &Context,
) -> Result<(), Failure> {
    let client = DaemonClient::operator(&context.daemon)?;
    let runs = wanted.of(&client, place, context).await?;
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
    let none = match (wanted.status, wanted.session) {
        (None | Some("all"), None) => format!("There are no runs in {}.", place.workspace),
        _ => format!("There are no such runs in {}.", place.workspace),
    };
    output::line(&table::render(&header, &rows, &none))
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

/// Some words in a line.
pub(super) fn words<'v>(list: &'v Value, word: impl Fn(&'v Value) -> &'v str) -> String {
    let words: Vec<_> = list.as_array().into_iter().flatten().map(word).map(harmless).collect();
    if words.is_empty() { "-".to_owned() } else { words.join(", ") }
}

/// The id of a run that is named by its id or its number, in its workspace.
async fn id_of(
    client: &DaemonClient,
    place: &WorkspaceArgs,
    named: &str,
    context: &Context,
) -> Result<String, Failure> {
    let Ok(number) = named.parse::<u64>() else { return Ok(named.to_owned()) };
    let runs = Wanted { status: None, session: None }.of(client, place, context).await?;
    let found = runs.iter().find(|run| run["pid"] == number);
    // A number that no run has is asked for as it is, and refused as an id is.
    Ok(found.map_or(named, |run| text(run, "run_id")).to_owned())
}

async fn show(place: &WorkspaceArgs, named: &str, context: &Context) -> Result<(), Failure> {
    let client = DaemonClient::operator(&context.daemon)?;
    let path = run_path(&place.workspace, &id_of(&client, place, named, context).await?);
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
         tools           {}{}\n",
        text(&run, "run_id"),
        text(&run, "created_at"),
        text(&run, "status"),
        own_servers(&run),
        words(&run["tools"], |name| name.as_str().unwrap_or_default()),
        words(&run["agent_env_names"], |name| name.as_str().unwrap_or_default()),
        run["mcp_sessions"].as_u64().unwrap_or_default(),
        run["tool_set"]["count"].as_u64().map_or_else(|| "-".to_owned(), |count| count.to_string()),
        run["tool_set"]["digest"].as_str().map(|text| format!(", {text}")).unwrap_or_default(),
    ))?;
    let cell = |tool: &Value, member: &str| text(tool, member).to_owned();
    let row = |tool: &Value| ["name", "server", "digest"].map(|member| cell(tool, member)).to_vec();
    let rows: Vec<_> = tools.iter().map(row).collect();
    let none = match run["ended_at"].is_string() {
        true => "It has ended. The tools of a run are shown while it is active.",
        false => "It has no tools.",
    };
    output::line(&table::render(&["tool", "server", "definition"], &rows, none))
}

fn with_remedy(failure: Failure) -> Failure {
    let has_remedy = !commands_in(&failure.message).is_empty();
    match failure.kind.as_str() == ErrorKind::NotFound.as_str() && !has_remedy {
        true => {
            let message =
                format!("{}; `{}` shows them", failure.message, narthex("runs list", &[]));
            Failure { message, ..failure }
        }
        false => failure,
    }
}

/// The text of a member, or nothing.
fn text<'v>(value: &'v Value, member: &str) -> &'v str {
    value[member].as_str().unwrap_or_default()
}

fn runs_path(place: &WorkspaceArgs) -> String {
    workspace_path(&place.workspace, "/runs")
}

fn run_path(workspace: &str, id: &str) -> String {
    workspace_path(workspace, &format!("/runs/{}", segment(id)))
}

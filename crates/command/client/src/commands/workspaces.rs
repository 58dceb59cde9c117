//! `narthex workspaces`: lists, creates, changes and deletes workspaces through the daemon.

use std::process::ExitCode;

use http::Method;
use serde_json::{Value, json};

use super::waiting::waiting;
use crate::cli::{ChangeWorkspaceArgs, DeleteWorkspaceArgs, Switch, WorkspacesCommand};
use crate::{
    Context, Failure,
    daemon_client::{ApiRequest, DaemonClient, workspace_path},
    output::{self, counted, harmless},
    table,
};

/// The setting of X-E31.
const OAUTH: &str = "oauth_on_orchestrators";

pub async fn run(command: WorkspacesCommand, context: Context) -> Result<ExitCode, Failure> {
    let client = DaemonClient::operator(&context.daemon)?;
    match command {
        WorkspacesCommand::List { counts: false } => list(&client, &context).await,
        WorkspacesCommand::List { counts: true } => counted_list(&client, &context).await,
        WorkspacesCommand::Create { id, name } => {
            let body = match name {
                Some(name) => json!({ "id": id, "name": name }),
                None => json!({ "id": id }),
            };
            let request = ApiRequest::new(Method::POST, "/api/workspaces");
            let asked = client.api(request.entry(&body.to_string()));
            let made = waiting("creating the workspace", &context, asked).await?;
            output::told(&made, &format!("created the workspace {id}"), context.format)
        }
        WorkspacesCommand::Change(args) => change(&client, &args, &context).await,
        WorkspacesCommand::Delete(args) => delete(&client, &args, &context).await,
    }
}

async fn list(client: &DaemonClient, context: &Context) -> Result<ExitCode, Failure> {
    let items = waiting("asking the daemon", context, client.api_all("/api/workspaces")).await?;
    let row = |one: &Value| {
        let contents = if has_contents(one) { "with contents" } else { "names only" };
        let oauth = table::text(one, OAUTH);
        vec![table::text(one, "id"), table::text(one, "name"), contents.to_owned(), oauth]
    };
    let columns = ["id", "name", "audit", "oauth on orchestrators"];
    table::list(&items, &columns, row, "You have access to no workspace.", context)
}

async fn counted_list(client: &DaemonClient, context: &Context) -> Result<ExitCode, Failure> {
    let asked = client.api_all("/api/daemon/workspaces");
    let items = waiting("asking the daemon", context, asked).await?;
    let row = |one: &Value| {
        let number = |member: &str| one[member].as_u64().unwrap_or_default();
        let servers = number("servers") + number("file_servers");
        let counts = [number("members"), servers, number("runs"), number("calls")];
        let texts = [table::text(one, "id"), table::text(one, "name")];
        texts.into_iter().chain(counts.map(|count| count.to_string())).collect()
    };
    let columns = ["id", "name", "members", "servers", "active runs", "calls today"];
    table::list(&items, &columns, row, "There are no workspaces.", context)
}

/// True if the audit has the arguments and answers of calls.
fn has_contents(workspace: &Value) -> bool {
    workspace["audits_contents"].as_bool() == Some(true)
}

async fn change(
    client: &DaemonClient,
    args: &ChangeWorkspaceArgs,
    context: &Context,
) -> Result<ExitCode, Failure> {
    let ChangeWorkspaceArgs { id, name, audit_contents, oauth_on_orchestrators, .. } = args;
    let mut body = json!({});
    if let Some(name) = name {
        body["name"] = json!(name);
    }
    if let Some(switch) = audit_contents {
        body["audits_contents"] = json!(*switch == Switch::On);
    }
    if let Some(when) = oauth_on_orchestrators {
        body[OAUTH] = json!(when.as_str());
    }
    if let Some(days) = args.events_kept_days {
        body["events_kept_days"] = json!(days);
    }
    if let Some(switch) = args.runtime_requests {
        body["runtime_requests"] = json!(switch == Switch::On);
    }
    if args.any_model || !args.model.is_empty() {
        body["models"] = args.model.iter().map(|text| model(text)).collect();
    }
    let request = ApiRequest::new(Method::PATCH, workspace_path(id, ""));
    let asked = client.api(request.entry(&body.to_string()));
    let changed = waiting("changing the workspace", context, asked).await?;
    let contents = match has_contents(&changed) {
        true => "its audit records arguments and results of calls, for all who can read the audit",
        false => "its audit records no arguments and results of calls",
    };
    let oauth = match table::text(&changed, OAUTH).as_str() {
        "on" => "all agents can use servers that each person signs in to",
        "on_attended" => {
            "agents that are not workers can use servers that each person signs in to only in runs \
             that a person drives"
        }
        _ => "only workers can use servers that each person signs in to",
    };
    let name = table::text(&changed, "name");
    let events = match changed["events_kept_days"].as_u64() {
        Some(0) | None => "events of sessions are stored forever".to_owned(),
        Some(days) => format!("events of sessions are stored for {days} days after their end"),
    };
    let asking = match changed["runtime_requests"].as_bool() {
        Some(false) => "runs cannot ask humans for grants",
        _ => "runs can ask humans for grants",
    };
    let models = match changed["models"].as_array().map_or(0, Vec::len) {
        0 => "runs can ask for any model".to_owned(),
        some => format!("runs can ask for {}", counted(some as u64, "model")),
    };
    let id = harmless(id);
    let sentence = format!("{id} ({name}): {contents}; {oauth}; {events}; {asking}; {models}");
    output::told(&changed, &sentence, context.format)
}

/// A model with its short names, as the API has it.
fn model(text: &str) -> Value {
    let (id, names) = text.split_once('=').unwrap_or((text, ""));
    let names: Vec<_> = names.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    json!({ "id": id.trim(), "short_names": names })
}

async fn delete(
    client: &DaemonClient,
    args: &DeleteWorkspaceArgs,
    context: &Context,
) -> Result<ExitCode, Failure> {
    let DeleteWorkspaceArgs { id, force } = args;
    let query = if *force { "?force=true" } else { "" };
    let path = format!("{}{query}", workspace_path(id, ""));
    let asked = client.api(ApiRequest::new(Method::DELETE, path));
    let deleted = waiting("deleting the workspace", context, asked).await;
    deleted.map_err(|failure| failure.with_flag("force=true", "--force"))?;
    let sentence = format!("deleted the workspace {}", harmless(id));
    output::told(&json!({ "id": id }), &sentence, context.format)
}

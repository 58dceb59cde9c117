//! `narthex workspaces`: listed, made and deleted through the daemon.

use std::process::ExitCode;

use http::Method;
use serde_json::{Value, json};

use super::waiting::waiting;
use crate::{
    cli::{Context, DeleteWorkspaceArgs, WorkspacesCommand},
    daemon_client::{ApiRequest, DaemonClient, workspace_path},
    failure::Failure,
    output::{self, harmless},
    table,
};

pub(crate) async fn run(command: WorkspacesCommand, context: Context) -> Result<ExitCode, Failure> {
    let client = DaemonClient::operator(&context.settings)?;
    match command {
        WorkspacesCommand::List => list(&client, &context).await,
        WorkspacesCommand::Create { id, name } => {
            let body = match name {
                Some(name) => json!({ "id": id, "name": name }),
                None => json!({ "id": id }),
            };
            let request = ApiRequest::new(Method::POST, "/api/workspaces");
            let asked = client.api(request.entry(&body.to_string()));
            let made = waiting("making the workspace", &context, asked).await?;
            output::told(&made, &format!("made the workspace {id}"), context.format)
        }
        WorkspacesCommand::Delete(args) => delete(&client, &args, &context).await,
    }
}

async fn list(client: &DaemonClient, context: &Context) -> Result<ExitCode, Failure> {
    let items = waiting("asking the daemon", context, client.api_all("/api/workspaces")).await?;
    let row = |one: &Value| ["id", "name"].map(|name| table::text(one, name)).to_vec();
    table::list(&items, &["id", "name"], row, "There are no workspaces for you.", context)
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
    waiting("deleting the workspace", context, asked).await?;
    let sentence = format!("deleted the workspace {}", harmless(id));
    output::told(&json!({ "id": id }), &sentence, context.format)
}

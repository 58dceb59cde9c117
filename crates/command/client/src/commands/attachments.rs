//! `narthex agents attach`, `detach` and `attachments`, through the daemon.

use std::process::ExitCode;

use crate::cli::{AgentsCommand, AttachArgs, WorkspaceArgs};
use http::Method;
use narthex_model::{CatalogKind, ErrorKind};
use serde_json::{Value, json};

use super::{
    catalog::{object_path, text, told, warn},
    waiting::waiting,
};
use crate::{
    Context, Failure, FailureKind, arguments,
    daemon_client::{ApiRequest, DaemonClient, segment},
    output::{self, harmless},
    table,
};

pub async fn run(command: AgentsCommand, context: Context) -> Result<ExitCode, Failure> {
    match command {
        AgentsCommand::Catalog(command) => {
            Box::pin(super::catalog::run(CatalogKind::Agent, command, context)).await
        }
        AgentsCommand::Attach(args) => attach(&args, &context).await,
        AgentsCommand::Detach { agent, alias, place } => {
            detach(&agent, &alias, &place, &context).await
        }
        AgentsCommand::Attachments { agent, place } => list(&agent, &place, &context).await,
        AgentsCommand::Connections { agent, place } => connections(&agent, &place, &context).await,
        AgentsCommand::Preview { file, place } => {
            super::transfer::preview(&file, &place, &context).await
        }
    }
}

async fn attach(args: &AttachArgs, context: &Context) -> Result<ExitCode, Failure> {
    let client = DaemonClient::operator(&context.daemon)?;
    let schema = waiting("asking the daemon", context, schema(&client, args)).await?;
    let env = arguments::parse(&args.values, schema.as_ref())?;
    let mut body = json!({ "name": args.server, "env": env });
    if let Some(alias) = &args.alias {
        body["alias"] = json!(alias);
    }
    if args.optional {
        body["optional"] = json!(true);
    }
    let path = attachments_path(&args.agent, &args.place);
    let asked = client.api(ApiRequest::new(Method::PUT, path).entry(&body.to_string()));
    let stored = waiting(&format!("storing {}", args.agent), context, asked).await?;
    if context.format.is_json() {
        output::done(&stored)?;
        return Ok(ExitCode::SUCCESS);
    }
    warn(&stored);
    let alias = text(&stored, "alias");
    told(&format!("the agent {} has the server {} as {alias}", args.agent, args.server), context)
}

async fn detach(
    agent: &str,
    alias: &str,
    place: &WorkspaceArgs,
    context: &Context,
) -> Result<ExitCode, Failure> {
    let client = DaemonClient::operator(&context.daemon)?;
    let at = attachments_path(agent, place);
    let path = format!("{at}/{}", segment(alias));
    let asked = client.api(ApiRequest::new(Method::DELETE, path));
    waiting(&format!("changing {agent}"), context, asked).await?;
    if context.format.is_json() {
        output::done(&json!({ "agent": agent, "alias": alias }))?;
        return Ok(ExitCode::SUCCESS);
    }
    told(&format!("the agent {agent} no longer attaches {alias} itself"), context)
}

async fn list(agent: &str, place: &WorkspaceArgs, context: &Context) -> Result<ExitCode, Failure> {
    let client = DaemonClient::operator(&context.daemon)?;
    let path = attachments_path(agent, place);
    let items = waiting("asking the daemon", context, client.api_all(&path)).await?;
    if context.format.is_json() {
        output::done(&json!({ "items": items }))?;
    } else if context.format.is_quiet() {
        for item in &items {
            output::line(&harmless(text(item, "alias")))?;
        }
    } else {
        let rows: Vec<_> = items.iter().map(row).collect();
        let none = harmless(&format!("The agent {agent} attaches no server itself."));
        output::line(&table::render(&["alias", "server", "values"], &rows, &none))?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn connections(
    agent: &str,
    place: &WorkspaceArgs,
    context: &Context,
) -> Result<ExitCode, Failure> {
    let client = DaemonClient::operator(&context.daemon)?;
    let path = format!("{}/connection-status", attachments_path(agent, place));
    let items = waiting("asking the daemon", context, client.api_all(&path)).await?;
    let row = |one: &Value| {
        let state = if one["connected"] == true { "yes" } else { "no" };
        vec![table::text(one, "name"), table::text(one, "display_name"), state.to_owned()]
    };
    let none = format!("The agent {} has no server that each person signs in to.", harmless(agent));
    table::list(&items, &["server", "about", "signed in"], row, &none, context)
}

fn row(item: &Value) -> Vec<String> {
    let values = item["env"].as_object().into_iter().flatten();
    let values = values.map(|(key, value)| match value.as_str() {
        // A literal, or nothing.
        Some("") => key.clone(),
        Some(reference) => format!("{key}={reference}"),
        None => format!("{key}={value}"),
    });
    let values = values.collect::<Vec<_>>().join(" ");
    vec![harmless(text(item, "alias")), harmless(text(item, "name")), harmless(&values)]
}

/// The server's schema of its keys, so that a text stays one where the schema wants one; nothing of
/// a server that is not there, which is reported when the attachment is stored.
async fn schema(client: &DaemonClient, args: &AttachArgs) -> Result<Option<Value>, Failure> {
    let path = object_path(CatalogKind::Server, &args.place, &args.server);
    match client.api_get(path).await {
        Ok(mut server) => {
            let keys = server["definition"]["config_schema"].take();
            Ok(Some(json!({ "properties": keys })))
        }
        Err(failure) if failure.kind == FailureKind::Operation(ErrorKind::NotFound) => Ok(None),
        Err(failure) => Err(failure),
    }
}

fn attachments_path(agent: &str, place: &WorkspaceArgs) -> String {
    format!("{}/mcp-attachments", object_path(CatalogKind::Agent, place, agent))
}

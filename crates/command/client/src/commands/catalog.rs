//! `narthex servers`, `capabilities` and `agents`: the catalog, through the daemon.

use std::process::ExitCode;

use crate::cli::{CatalogCommand, DeleteArgs, GetArgs, WorkspaceArgs};
use http::Method;
use narthex_model::{CatalogKind, command::narthex};
use serde_json::{Value, json};

use super::{
    manifest_servers::{self, ManifestServer},
    waiting::waiting,
};
use crate::{
    Context, Failure,
    daemon_client::{ApiRequest, DaemonClient, segment, workspace_path},
    output::{self, harmless},
    table,
};

pub async fn run(
    kind: CatalogKind,
    command: CatalogCommand,
    context: Context,
) -> Result<ExitCode, Failure> {
    match command {
        CatalogCommand::List { place } => list(kind, &place, &context).await,
        CatalogCommand::Get(args) => get(kind, &args, &context).await,
        CatalogCommand::Apply(args) => super::transfer::apply(kind, &args, &context).await,
        CatalogCommand::Delete(args) => delete(kind, &args, &context).await,
    }
}

async fn list(
    kind: CatalogKind,
    place: &WorkspaceArgs,
    context: &Context,
) -> Result<ExitCode, Failure> {
    let client = DaemonClient::operator(&context.daemon)?;
    let items =
        waiting("asking the daemon", context, client.api_all(&objects_path(kind, place))).await?;
    let (plural, add) = match kind {
        CatalogKind::Agent => ("agents", narthex("agents apply --file FILE", &[])),
        CatalogKind::Server => ("servers", narthex("servers apply --file FILE", &[])),
        CatalogKind::Capability => ("capabilities", narthex("capabilities apply --file FILE", &[])),
    };
    let none = table::none_yet(plural, &add.in_workspace(&place.workspace));
    let header: &[_] = match kind {
        CatalogKind::Agent => &["id", "about", "revision", "updated", "by", "injected env"],
        CatalogKind::Server | CatalogKind::Capability => {
            &["id", "about", "revision", "updated", "by"]
        }
    };
    table::list(&items, header, row, &none, context)
}

fn row(item: &Value) -> Vec<String> {
    let definition = &item["definition"];
    let about = match item.get("errors") {
        Some(_) => "cannot be used in its stored form",
        None => definition["description"].as_str().or(definition["name"].as_str()).unwrap_or("-"),
    };
    let mut row = vec![
        harmless(text(item, "id")),
        harmless(about),
        item["revision"].as_u64().unwrap_or_default().to_string(),
        harmless(text(item, "updated_at")),
        harmless(text(item, "updated_by")),
    ];
    // Only an agent has this column.
    if let Some(names) = item["agent_env_names"].as_array() {
        let names: Vec<_> = names.iter().filter_map(Value::as_str).map(harmless).collect();
        row.push(if names.is_empty() { "-".to_owned() } else { names.join(", ") });
    }
    row
}

async fn get(kind: CatalogKind, args: &GetArgs, context: &Context) -> Result<ExitCode, Failure> {
    if args.merged && kind != CatalogKind::Agent {
        return Err(Failure::usage("only agents have a merged view"));
    }
    let client = DaemonClient::operator(&context.daemon)?;
    let query = if args.merged { "?view=merged" } else { "" };
    let path = format!("{}{query}", object_path(kind, &args.place, &args.id));
    let found = waiting("asking the daemon", context, client.api_get(path)).await?;
    let is_whole = args.merged || context.format.is_json();
    show(if is_whole { &found } else { &found["definition"] }, context)
}

/// Prints an object as a program wants it, or for people over many lines.
pub(super) fn show(object: &Value, context: &Context) -> Result<ExitCode, Failure> {
    if context.format.is_json() {
        output::done(object)?;
        return Ok(ExitCode::SUCCESS);
    }
    let lines = format!("{object:#}");
    let lines: Vec<_> = lines.split('\n').map(harmless).collect();
    output::line(&lines.join("\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// Shows the warnings about a stored object.
pub(super) fn warn(stored: &Value) {
    for warning in stored["warnings"].as_array().into_iter().flatten() {
        let (place, message) = (super::transfer::place_of(warning), text(warning, "message"));
        output::notice(&harmless(&format!("warning: {place}{message}")));
    }
}

/// Warns of registered clients whose runs the deleted agent had, and gives their ids. It only
/// informs: a caller who may not list clients deletes all the same.
async fn tell_clients(client: &DaemonClient, args: &DeleteArgs) -> Vec<String> {
    let path = workspace_path(&args.place.workspace, "/mcp-clients");
    let clients = client.api_all(&path).await.unwrap_or_default();
    let is_of_it = |one: &&Value| {
        one["closed_because"] == "agent_deleted" && one["agent_name"] == args.id.as_str()
    };
    let ids = clients.iter().filter(is_of_it).map(|one| text(one, "id").to_owned());
    let ids: Vec<_> = ids.collect();
    for id in &ids {
        let remove = narthex("clients revoke {}", &[id]).in_workspace(&args.place.workspace);
        output::notice(&format!(
            "warning: the client {} cannot create runs any more, since its agent {} is deleted; \
             revoke the client with `{remove}`",
            harmless(id),
            harmless(&args.id)
        ));
    }
    ids
}

async fn delete(
    kind: CatalogKind,
    args: &DeleteArgs,
    context: &Context,
) -> Result<ExitCode, Failure> {
    if args.with_servers && kind != CatalogKind::Agent {
        return Err(Failure::usage("--with-servers applies to agents only; leave it out"));
    }
    let client = DaemonClient::operator(&context.daemon)?;
    let query = if args.force { "?force=true" } else { "" };
    let path = format!("{}{query}", object_path(kind, &args.place, &args.id));
    let asked = client.api(ApiRequest::new(Method::DELETE, path));
    let deleted = waiting(&format!("deleting {}", args.id), context, asked).await;
    deleted.map_err(|failure| failure.with_flag("force=true", "--force"))?;
    let of_agent = match kind {
        CatalogKind::Agent => {
            let clients = tell_clients(&client, args).await;
            Some((clients, manifest_servers::after_delete(&client, args).await))
        }
        CatalogKind::Server | CatalogKind::Capability => None,
    };
    if context.format.is_json() {
        let mut done = json!({ "id": args.id });
        if let Some((clients, made)) = of_agent {
            done["clients"] = clients.into();
            done["servers"] = made.iter().map(ManifestServer::json).collect();
        }
        output::done(&done)?;
        return Ok(ExitCode::SUCCESS);
    }
    told(&format!("deleted the {kind} {}", args.id), context)?;
    let made = of_agent.map(|(_, made)| made).unwrap_or_default();
    for one in made.iter().filter(|_| !context.format.is_quiet()) {
        one.tell(&args.id)?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn objects_path(kind: CatalogKind, place: &WorkspaceArgs) -> String {
    let group = match kind {
        CatalogKind::Server => "mcp-servers",
        CatalogKind::Capability => "capabilities",
        CatalogKind::Agent => "agents",
    };
    workspace_path(&place.workspace, &format!("/{group}"))
}

pub(super) fn object_path(kind: CatalogKind, place: &WorkspaceArgs, id: &str) -> String {
    format!("{}/{}", objects_path(kind, place), segment(id))
}

pub fn text<'v>(value: &'v Value, member: &str) -> &'v str {
    value[member].as_str().unwrap_or_default()
}

pub(super) fn told(sentence: &str, context: &Context) -> Result<ExitCode, Failure> {
    if !context.format.is_quiet() {
        output::line(&harmless(sentence))?;
    }
    Ok(ExitCode::SUCCESS)
}

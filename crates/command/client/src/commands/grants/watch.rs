//! `narthex grants pending --watch`: requests of runs and decisions, as they happen.

use std::{collections::BTreeSet, process::ExitCode};

use crate::cli::WorkspaceArgs;
use http::Method;
use serde_json::{Value, json};

use super::{request_row, waiting};
use crate::{
    Context, Failure,
    commands::streams::{again, cut_off},
    daemon_client::{DaemonClient, workspace_path},
    output::{self, harmless},
    table,
};

const WATCHED: &str = "/events?type=agent.permission_request,permission.granted,permission.denied";

/// Shows waiting requests and new ones. A stream that breaks is resumed, and no waiting request is
/// shown twice.
pub(super) async fn requests(
    client: &DaemonClient,
    place: &WorkspaceArgs,
    context: &Context,
) -> Result<ExitCode, Failure> {
    let path = workspace_path(&place.workspace, WATCHED);
    let mut shown = BTreeSet::new();
    let mut stream = client.api_events(Method::GET, path.clone()).await?;
    loop {
        while let Some(event) = stream.next().await.unwrap_or_else(cut_off) {
            match event["type"].as_str() {
                // The stream is open before the first list is read: nothing falls between them.
                Some("stream.begin" | "agent.permission_request") => {
                    show_new(client, place, &mut shown, context).await?;
                }
                _ => show_decision(&event, context)?,
            }
        }
        stream = again(client, &path).await?;
    }
}

/// Shows the waiting requests that were not shown yet; `shown` then has the requests that still
/// wait.
async fn show_new(
    client: &DaemonClient,
    place: &WorkspaceArgs,
    shown: &mut BTreeSet<String>,
    context: &Context,
) -> Result<(), Failure> {
    let path = workspace_path(&place.workspace, "/grant-requests");
    let items = waiting("asking the daemon", context, client.api_all(&path)).await?;
    let id = |request: &Value| request["id"].as_str().unwrap_or_default().to_owned();
    for request in items.iter().filter(|request| !shown.contains(&id(request))) {
        if context.format.is_json() {
            output::json(&json!({ "event": "pending", "request": request }))?;
        } else if context.format.is_quiet() {
            output::line(&id(request))?;
        } else {
            output::line(&format!("pending  {}", request_row(request).join("  ")))?;
        }
    }
    *shown = items.iter().map(id).collect();
    Ok(())
}

fn show_decision(event: &Value, context: &Context) -> Result<(), Failure> {
    if context.format.is_json() {
        return output::json(&json!({ "event": "decided", "decision": event }));
    }
    if context.format.is_quiet() {
        return Ok(());
    }
    let payload = &event["payload"];
    let word = if event["type"] == "permission.granted" { "granted" } else { "denied " };
    let reason = payload["reason"].as_str().map(|reason| format!("  {}", harmless(reason)));
    let (id, by) = (table::text(payload, "grant_request_id"), table::text(payload, "decided_by"));
    output::line(&format!("{word}  {id}  by {by}{}", reason.unwrap_or_default()))
}

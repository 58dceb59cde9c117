//! `narthex runs end`: ends one run, or all runs of some kind.

use crate::cli::EndArgs;
use http::Method;
use narthex_model::ErrorKind;
use serde_json::{Value, json};

use super::{Wanted, id_of, run_path, text, with_remedy};
use crate::{
    Context, Failure, FailureKind,
    commands::waiting::waiting,
    daemon_client::{ApiRequest, DaemonClient},
    output::{self, counted, harmless},
};

/// Number of ids that a sentence names.
const NAMED_MAX: usize = 10;

pub(super) async fn run(args: &EndArgs, context: &Context) -> Result<(), Failure> {
    let client = DaemonClient::operator(&context.daemon)?;
    match &args.id {
        Some(id) => one(&client, id, args, context).await,
        None => many(&client, args, context).await,
    }
}

async fn one(
    client: &DaemonClient,
    id: &str,
    args: &EndArgs,
    context: &Context,
) -> Result<(), Failure> {
    let id = &id_of(client, &args.place, id, context).await?;
    let asked = client.api(ending(id, args));
    waiting("ending the run", context, asked).await.map_err(with_remedy)?;
    if context.format.is_json() {
        return output::done(&json!({ "run_id": id }));
    }
    if !context.format.is_quiet() {
        output::line(&format!("The run {} has ended.", harmless(id)))?;
    }
    Ok(())
}

/// Ends the runs that are active at that moment, one after the other. The daemon's own stays.
async fn many(client: &DaemonClient, args: &EndArgs, context: &Context) -> Result<(), Failure> {
    let wanted = Wanted { status: Some("running"), session: args.session.as_deref() };
    let mut runs = wanted.of(client, &args.place, context).await?;
    let is_of_agent =
        |run: &Value| args.agent.as_deref().is_none_or(|agent| text(run, "agent_name") == agent);
    runs.retain(|run| run["is_local"] != true && is_of_agent(run));
    let ids: Vec<&str> = runs.iter().map(|run| text(run, "run_id")).collect();
    if !ids.is_empty() && !args.yes {
        let named = ids.iter().take(NAMED_MAX).copied().collect::<Vec<_>>().join(", ");
        let more = if ids.len() > NAMED_MAX { ", …" } else { "" };
        let count = counted(ids.len() as u64, "run");
        let text = format!("no run was ended: add --yes to end {count} ({named}{more})");
        return Err(Failure::usage(text));
    }
    let ended = waiting("ending the runs", context, all(client, &ids, args)).await?;
    if context.format.is_json() {
        return output::done(&json!({ "count": ended.len(), "items": ended }));
    }
    if context.format.is_quiet() {
        return ended.iter().try_for_each(|id| output::line(id));
    }
    let have = if ended.len() == 1 { "has" } else { "have" };
    output::line(&format!("{} {have} ended.", counted(ended.len() as u64, "run")))
}

/// Ends the runs; returns the ids of those that had not ended before.
async fn all<'i>(
    client: &DaemonClient,
    ids: &[&'i str],
    args: &EndArgs,
) -> Result<Vec<&'i str>, Failure> {
    let mut ended = Vec::new();
    for id in ids {
        let is_over = |failure: &Failure| {
            let over = [ErrorKind::Conflict, ErrorKind::NotFound];
            over.iter().any(|kind| failure.kind == FailureKind::Operation(*kind))
        };
        match client.api(ending(id, args)).await {
            Ok(_) => ended.push(*id),
            Err(failure) if is_over(&failure) => {}
            Err(failure) => {
                let done = counted(ended.len() as u64, "run");
                let text = format!("{}, after {done} of {} had ended", failure.message, ids.len());
                return Err(Failure { message: text, ..failure });
            }
        }
    }
    Ok(ended)
}

fn ending(id: &str, args: &EndArgs) -> ApiRequest {
    ApiRequest::new(Method::DELETE, run_path(&args.place.workspace, id))
}

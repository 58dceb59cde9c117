//! `narthex usage` and `narthex limits`: today's calls, and their limits.

use std::process::ExitCode;

use http::Method;
use serde_json::{Map, Value, json};

use super::waiting::waiting;
use crate::cli::{LimitsCommand, SetLimitsArgs, UsageArgs, WorkspaceArgs};
use crate::{
    Context, Failure,
    daemon_client::{ApiRequest, DaemonClient, workspace_path},
    output::{self, counted, harmless},
    table,
};

pub async fn usage(args: UsageArgs, context: Context) -> Result<ExitCode, Failure> {
    let client = DaemonClient::operator(&context.daemon)?;
    let path = workspace_path(&args.place.workspace, "/usage");
    let usage = waiting("asking the daemon", &context, client.api_list(&path)).await?;
    if context.format.is_json() {
        output::done(&usage)?;
        return Ok(ExitCode::SUCCESS);
    }
    let items = usage["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    let header = ["kind", "name", "today", "quota", "open", "most open", "rate"];
    let rows: Vec<_> = items.iter().map(row).collect();
    output::line(&table::render(&header, &rows, "Nothing was used today."))?;
    Ok(ExitCode::SUCCESS)
}

pub async fn limits(command: LimitsCommand, context: Context) -> Result<ExitCode, Failure> {
    let client = DaemonClient::operator(&context.daemon)?;
    match command {
        LimitsCommand::Get { place } => {
            let asked = client.api_get(limits_path(&place));
            let limits = waiting("asking the daemon", &context, asked).await?;
            output::told(&limits, &sentence(&limits), context.format)
        }
        LimitsCommand::Set(args) => {
            let request = ApiRequest::new(Method::PUT, limits_path(&args.place));
            let asked = client.api(request.entry(&wanted(&args).to_string()));
            let limits = waiting("setting the limits", &context, asked).await?;
            output::told(&limits, &sentence(&limits), context.format)
        }
    }
}

fn wanted(args: &SetLimitsArgs) -> Value {
    let SetLimitsArgs {
        calls_per_second,
        calls_per_minute,
        burst,
        concurrent_calls,
        calls_per_day,
        servers_per_run,
        memory_mb_per_run,
        children_per_session,
        child_depth,
        children_per_day,
        child_silence_minutes,
        place: _,
    } = args;
    let all = [
        ("calls_per_second", calls_per_second),
        ("calls_per_minute", calls_per_minute),
        ("burst", burst),
        ("concurrent_calls", concurrent_calls),
        ("calls_per_day", calls_per_day),
        ("servers_per_run", servers_per_run),
        ("memory_mb_per_run", memory_mb_per_run),
        ("children_per_session", children_per_session),
        ("child_depth", child_depth),
        ("children_per_day", children_per_day),
        ("child_silence_minutes", child_silence_minutes),
    ];
    let said = all.into_iter().filter_map(|(key, value)| Some((key.to_owned(), json!((*value)?))));
    Value::Object(said.collect::<Map<_, _>>())
}

/// Limits in words.
fn sentence(limits: &Value) -> String {
    let all = [
        rate(limits),
        calls(limits, "concurrent_calls").map(|most| format!("{most} at one time")),
        calls(limits, "calls_per_day").map(|most| format!("{most} a day")),
        number(limits, "servers_per_run").map(|most| format!("{most} servers a run")),
        number(limits, "memory_mb_per_run").map(|most| format!("{most} MiB of memory a run")),
        number(limits, "children_per_session").map(|most| format!("{most} children a session")),
        number(limits, "child_depth").map(|most| format!("{most} sessions above a child")),
        number(limits, "children_per_day").map(|most| format!("{most} children a day")),
        number(limits, "child_silence_minutes").map(|most| format!("{most} minutes of silence")),
    ];
    let said: Vec<_> = all.into_iter().flatten().collect();
    if said.is_empty() { "nothing is limited".to_owned() } else { said.join(", ") }
}

fn row(item: &Value) -> Vec<String> {
    let limits = &item["limits"];
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let kind = item["kind"].as_str().unwrap_or_default().replace('_', " ");
    vec![
        kind,
        harmless(item["name"].as_str().unwrap_or_default()),
        or_none(number(item, "calls_today")),
        or_none(number(limits, "calls_per_day")),
        or_none(number(item, "open_calls")),
        or_none(number(limits, "concurrent_calls")),
        or_none(rate(limits)),
    ]
}

fn rate(limits: &Value) -> Option<String> {
    let per = [("calls_per_second", "second"), ("calls_per_minute", "minute")];
    let (calls, period) =
        per.into_iter().find_map(|(key, period)| Some((number(limits, key)?, period)))?;
    let burst = number(limits, "burst").map(|burst| format!(" in bursts of {burst}"));
    Some(format!("{calls} a {period}{}", burst.unwrap_or_default()))
}

fn calls(of: &Value, member: &str) -> Option<String> {
    of[member].as_u64().map(|count| counted(count, "call"))
}

fn number(of: &Value, member: &str) -> Option<String> {
    of[member].as_u64().map(|number| number.to_string())
}

fn limits_path(place: &WorkspaceArgs) -> String {
    workspace_path(&place.workspace, "/limits")
}

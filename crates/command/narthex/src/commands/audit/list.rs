//! `narthex audit list`.

use std::{process::ExitCode, time::Duration};

use narthex_audit::Waiting;
use narthex_client::Context;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::path;
use crate::{
    Failure,
    commands::waiting::waiting,
    daemon_client::DaemonClient,
    output::{self, harmless},
    table::{self, Rows},
};
use narthex_client::cli::AuditListArgs;

/// The most events of one answer.
const PAGE: u32 = 100;
/// The place of a call's contents in an event.
const CONTENTS: &str = "/details/contents";
/// The interval at which new events are asked for.
const FOLLOW_EVERY: Duration = Duration::from_secs(1);
/// The columns of the table, and those for a narrow terminal.
const WIDE: [&str; 7] = ["time", "kind", "actor", "resource", "server", "tool", "outcome"];
const NARROW: [&str; 5] = ["time", "kind", "actor", "object", "outcome"];
/// Number of letters of a time up to its second.
const SECOND: usize = 19;

pub(super) async fn run(args: &AuditListArgs, context: &Context) -> Result<ExitCode, Failure> {
    let client = DaemonClient::operator(&context.daemon)?;
    if args.follow {
        return follow(&client, args, context).await;
    }
    let mut events = Vec::new();
    let mut next = None;
    let mut still = None;
    while u32::try_from(events.len()).is_ok_and(|count| count < args.limit) {
        let missing = args.limit - u32::try_from(events.len()).unwrap_or(args.limit);
        let limit = missing.min(PAGE);
        let asked = client.api_get(query(args, "newest", limit, next.as_deref()));
        let mut page = waiting("asking the daemon", context, asked).await?;
        if let Value::Array(items) = page["items"].take() {
            events.extend(items);
        }
        still = still.or_else(|| page.get("waiting").cloned());
        next = page["next"].as_str().map(str::to_owned);
        if next.is_none() {
            break;
        }
    }
    if let Some(still) = &still {
        tell_waiting(still);
    }
    if context.format.is_json() {
        let mut listed = json!({ "items": events, "next": next });
        if let Some(still) = still {
            listed["waiting"] = still;
        }
        output::done(&listed)?;
    } else if context.format.is_quiet() {
        for event in &events {
            output::line(event["id"].as_str().unwrap_or_default())?;
        }
    } else if args.contents && !events.is_empty() {
        for event in &events {
            whole(event)?;
        }
    } else {
        output::line(&table_of(&events))?;
        if events.iter().any(|event| event.pointer(CONTENTS).is_some()) {
            output::notice(
                "arguments or results of some of these calls are recorded; show them with \
                 --contents",
            );
        }
        if next.is_some() {
            output::notice(
                "there are older events; show more with --limit, or earlier ones with --until",
            );
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The table of events. A terminal that is too narrow for all columns gets fewer.
fn table_of(events: &[Value]) -> String {
    let wide = Rows { header: &WIDE, rows: events.iter().map(row).collect() };
    let narrow = Rows { header: &NARROW, rows: events.iter().map(narrow_row).collect() };
    table::render_fitting(&wide, &narrow, "There are no such events.")
}

/// Prints the newest, and then each that comes.
async fn follow(
    client: &DaemonClient,
    args: &AuditListArgs,
    context: &Context,
) -> Result<ExitCode, Failure> {
    let mut page = client.api_get(query(args, "newest", args.limit.clamp(1, PAGE), None)).await?;
    let mut events = page["items"].as_array().cloned().unwrap_or_default();
    events.reverse();
    let mut last: Option<String> = None;
    let mut was_stuck = false;
    loop {
        let is_stuck = page["waiting"]["is_stuck"] == true;
        if is_stuck && !was_stuck {
            tell_waiting(&page["waiting"]);
        }
        was_stuck = is_stuck;
        for event in &events {
            match context.format.is_json() {
                true => output::json_text(&event.to_string())?,
                false if args.contents => whole(event)?,
                false => output::line(&line_of(event))?,
            }
            last = event["place"].as_str().map(str::to_owned).or(last);
        }
        if events.is_empty() {
            sleep(FOLLOW_EVERY).await;
        }
        page = client.api_get(query(args, "oldest", PAGE, last.as_deref())).await?;
        events = match page["items"].take() {
            Value::Array(items) => items,
            _ => Vec::new(),
        };
    }
}

fn query(args: &AuditListArgs, order: &str, limit: u32, after: Option<&str>) -> String {
    let limit = limit.to_string();
    let named = [
        ("actor", args.actor.as_deref()),
        ("resource", args.resource.as_deref()),
        ("run", args.run.as_deref()),
        ("kind", args.kind.as_deref()),
        ("since", args.since.as_deref()),
        ("until", args.until.as_deref()),
        ("order", Some(order)),
        ("limit", Some(limit.as_str())),
        ("after", after),
    ];
    let said = named.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let said = said
        .map(|(name, value)| format!("{name}={}", utf8_percent_encode(value, NON_ALPHANUMERIC)));
    format!("{}?{}", path(&args.place), said.collect::<Vec<_>>().join("&"))
}

/// Shows how many events are not listed, since they are not in the store yet.
fn tell_waiting(waiting: &Value) {
    if let Ok(waiting) = Waiting::deserialize(waiting) {
        output::notice(&harmless(&waiting.to_string()));
    }
}

/// A line of its own for an event, with the columns of the table.
fn line_of(event: &Value) -> String {
    table::row_fitting(&row(event), &narrow_row(event))
}

/// Prints an event, and below it the contents of the call.
fn whole(event: &Value) -> Result<(), Failure> {
    output::line(&line_of(event))?;
    for side in ["request", "answer"] {
        let Some(kept) = event.pointer(&format!("{CONTENTS}/{side}")) else { continue };
        let cut = match kept["truncated"].as_bool() {
            Some(true) => format!(" … (cut: {} bytes in all)", kept["bytes"]),
            _ => String::new(),
        };
        let text = harmless(kept["text"].as_str().unwrap_or_default());
        output::line(&format!("    {side}: {text}{cut}"))?;
    }
    Ok(())
}

/// A row for a narrow terminal: the time up to its second, and the tool or the resource without
/// its kind.
fn narrow_row(event: &Value) -> Vec<String> {
    let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str).map(harmless);
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let time = text("/time").map(|time| {
        let second = time.get(..SECOND).unwrap_or(&time);
        second.replacen('T', " ", 1)
    });
    let object = match (text("/server"), text("/tool")) {
        (Some(server), Some(tool)) => Some(format!("{server} {tool}")),
        (server, _) => text("/resource/id").or(server),
    };
    vec![
        or_none(time),
        or_none(text("/kind")),
        or_none(text("/actor/id")),
        or_none(object),
        or_none(text("/outcome")),
    ]
}

fn row(event: &Value) -> Vec<String> {
    let text = |pointer: &str| {
        let found = event.pointer(pointer).and_then(Value::as_str).unwrap_or("-");
        harmless(found)
    };
    let actor = format!("{} {}", text("/actor/kind"), text("/actor/id"));
    let resource = match event["resource"].is_object() {
        true => format!("{} {}", text("/resource/kind"), text("/resource/id")),
        false => "-".to_owned(),
    };
    let (server, tool) = (text("/server"), text("/tool"));
    vec![text("/time"), text("/kind"), actor, resource, server, tool, text("/outcome")]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_row_has_what_a_person_looks_for() {
        let call = json!({
            "time": "2026-11-22T10:39:14.343Z", "kind": "session.mcp.tool_called",
            "actor": { "kind": "run", "id": "run_1" }, "outcome": "ok", "server": "docs",
            "tool": "find", "resource": { "kind": "tool", "id": "docs/find" },
        });
        let expected =
            ["2026-11-22 10:39:14", "session.mcp.tool_called", "run_1", "docs find", "ok"];
        assert_eq!(narrow_row(&call), expected);
        let change = json!({
            "time": "2026-11-22T10:39:14.343Z", "kind": "workspace.secret.set",
            "actor": { "kind": "local_admin", "id": "admin" }, "outcome": "ok",
            "resource": { "kind": "secret", "id": "DOCS_KEY" },
        });
        let expected = ["2026-11-22 10:39:14", "workspace.secret.set", "admin", "DOCS_KEY", "ok"];
        assert_eq!(narrow_row(&change), expected);
        assert_eq!(narrow_row(&json!({})), ["-"; 5]);
    }
}

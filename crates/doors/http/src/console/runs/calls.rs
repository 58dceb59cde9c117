//! Calls of a run as rows: events of the audit, and operations as they happen.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use narthex_audit::CONTENTS;
use narthex_console::{
    pages::runs::trace::{CallRow, Decision, Outcome},
    parts::{Moment, Words},
};
use narthex_control::AuditItem;
use narthex_model::Timestamp;
use narthex_run_events::{Operation, What};
use serde_json::Value;

use super::{
    causes::{Failed, cause},
    one::One,
    places::path,
};
use crate::console::viewer::Viewer;

/// The outcome of a successful call.
const OK: &str = "ok";
/// Differences between the record of a call and its report to watchers, which measure one after
/// the other.
const APART_US: u64 = 20_000;
/// Maximum number of characters of an answer that was recorded.
const ANSWER_MAX: usize = 600;

/// The row of a call in the audit; `None` for an event that is none of a call.
pub(super) fn of_event(viewer: &Viewer<'_>, one: &One, item: &AuditItem) -> Option<CallRow> {
    let event = &item.event;
    let text = |name: &str| event.get(name).and_then(Value::as_str);
    let details = event.get("details");
    let detail = |name: &str| details.and_then(|details| details.get(name));
    let method = detail("method").and_then(Value::as_str)?;
    let outcome = text("outcome").unwrap_or("unknown");
    let end = text("time").and_then(Timestamp::read).unwrap_or(item.place.happened_at);
    let millis = event.get("duration_ms").and_then(Value::as_f64).unwrap_or_default();
    let took = Duration::try_from_secs_f64(millis / 1_000.0).unwrap_or_default();
    let began = end.checked_sub(took).unwrap_or(end);
    let resource = event.get("resource").and_then(|resource| resource.get("id"));
    let name = text("tool").or(resource.and_then(Value::as_str)).unwrap_or(method);
    let bytes = |side: &str| detail(CONTENTS)?.get(side)?.get("bytes")?.as_u64();
    let answer = || detail(CONTENTS)?.get("answer")?.get("text")?.as_str();
    let refused_by = detail("refused_by").and_then(Value::as_str);
    let failed = Failed {
        outcome,
        refused_by,
        rule: detail("rule").and_then(Value::as_str),
        code: detail("code").and_then(Value::as_i64),
        server: text("server"),
        name,
        answer: answer().map(|answer| Words::within(answer, ANSWER_MAX)),
        span: (began, end),
    };
    let mut hasher = DefaultHasher::new();
    item.place.writer.hash(&mut hasher);
    Some(CallRow {
        id: format!("call-{:x}-{}", hasher.finish(), item.place.seq),
        at: Moment::new(began),
        began_us: since_1970(began),
        took_us: micros(took),
        name: Words::new(name),
        server: text("server").map(Words::new),
        method: Words::new(method),
        outcome: outcome_of(outcome, refused_by.is_some()),
        sent: bytes("request"),
        answered: bytes("answer"),
        decision: decision(viewer, one, text("granted_via"), refused_by, detail("rule")),
        cause: cause(viewer, one, &failed),
    })
}

/// The row of an operation that was just reported.
pub(super) fn of_operation(viewer: &Viewer<'_>, one: &One, operation: &Operation) -> CallRow {
    let (server, method, name) = parts(operation);
    let outcome = operation.error.unwrap_or(OK);
    let end = operation.began + operation.took;
    let failed = Failed {
        outcome,
        refused_by: None,
        rule: None,
        code: None,
        server: server.as_deref(),
        name: &name,
        answer: None,
        span: (operation.began, end),
    };
    let mut hasher = DefaultHasher::new();
    (&server, &method, &name, operation.size, operation.took).hash(&mut hasher);
    let began_us = since_1970(operation.began);
    CallRow {
        id: format!("operation-{began_us:x}-{:x}", hasher.finish()),
        at: Moment::new(operation.began),
        began_us,
        took_us: micros(operation.took),
        name: Words::new(&name),
        server: server.as_deref().map(Words::new),
        method: Words::new(&method),
        outcome: outcome_of(outcome, false),
        sent: sent(operation),
        answered: operation.result,
        decision: None,
        cause: cause(viewer, one, &failed),
    }
}

/// Adds the sizes that watchers get to the rows of the same calls: a row and a report belong
/// together if nothing is nearer to either in time.
pub(super) fn measure(rows: &mut [CallRow], recent: &[Operation]) {
    let calls = recent.iter().filter(|one| matches!(one.what, What::Call { .. }));
    let calls: Vec<_> =
        calls.map(|one| (key_of(one), since_1970(one.began), sent(one), one.result)).collect();
    let key = |row: &CallRow| (row.server.clone(), row.method.clone(), row.name.clone());
    let keys: Vec<(Key, u64)> = rows.iter().map(|row| (key(row), row.began_us)).collect();
    for (row, (of, began)) in rows.iter_mut().zip(&keys) {
        let alike = calls.iter().filter(|(key, ..)| key == of);
        let nearest = alike.min_by_key(|(_, at, ..)| at.abs_diff(*began));
        let Some((_, at, sent, answered)) = nearest else { continue };
        let rows_alike = keys.iter().filter(|(key, _)| key == of);
        let least = rows_alike.map(|(_, other)| at.abs_diff(*other)).min();
        if at.abs_diff(*began) <= APART_US && least == Some(at.abs_diff(*began)) {
            row.sent = row.sent.or(*sent);
            row.answered = row.answered.or(*answered);
        }
    }
}

/// The server, the method and the name of a call, as a row shows them.
type Key = (Option<Words>, Words, Words);

fn key_of(operation: &Operation) -> Key {
    let (server, method, name) = parts(operation);
    (server.as_deref().map(Words::new), Words::new(&method), Words::new(&name))
}

/// The server, the method and the name of an operation.
fn parts(operation: &Operation) -> (Option<String>, String, String) {
    match &operation.what {
        What::Call { alias, method, item } => {
            let server = alias.as_ref().map(ToString::to_string);
            let name = item.as_ref().map(|(_, name)| name.to_string());
            let name = name.or_else(|| server.clone()).unwrap_or_else(|| method.to_string());
            (server, method.to_string(), name)
        }
        What::File { name, path, .. } => (None, format!("file {name}"), path.to_string()),
    }
}

fn sent(operation: &Operation) -> Option<u64> {
    operation.size.and_then(|size| u64::try_from(size).ok())
}

fn outcome_of(word: &str, is_refused: bool) -> Outcome {
    Outcome {
        word: Words::new(word),
        is_failure: word != OK,
        is_refused: is_refused || matches!(word, "denied" | "permission_required"),
    }
}

/// The permit of a call, or the check that refused it.
fn decision(
    viewer: &Viewer<'_>,
    one: &One,
    granted_via: Option<&str>,
    refused_by: Option<&str>,
    rule: Option<&Value>,
) -> Option<Decision> {
    let grants = path(viewer, one.id, "grants");
    let (words, href) = match (refused_by, granted_via) {
        (Some(check), _) => match rule.and_then(Value::as_str) {
            Some(rule) => (format!("refused by the rule {rule}"), None),
            None => (format!("refused by the check of {check}"), None),
        },
        (None, Some(ids)) => match ids.split_whitespace().count() {
            1 => (format!("allowed by the grant {ids}"), Some(grants)),
            count => (format!("allowed by {count} grants"), Some(grants)),
        },
        (None, None) => return None,
    };
    Some(Decision { words: Words::new(&words), href })
}

fn since_1970(at: SystemTime) -> u64 {
    micros(at.duration_since(UNIX_EPOCH).unwrap_or_default())
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use narthex_model::Alias;

    use super::*;

    fn call(name: &str, millis: u64) -> Operation {
        Operation {
            what: What::Call {
                alias: Some(Alias::new("git").unwrap()),
                method: "tools/call".into(),
                item: Some(("tool", name.into())),
            },
            began: UNIX_EPOCH + Duration::from_millis(millis),
            size: Some(45),
            result: Some(2048),
            error: None,
            took: Duration::from_millis(5),
            is_inner: false,
        }
    }

    fn row(name: &str, millis: u64) -> CallRow {
        CallRow {
            id: String::new(),
            at: Moment::new(UNIX_EPOCH),
            began_us: millis * 1_000,
            took_us: 5_000,
            name: Words::new(name),
            server: Some(Words::new("git")),
            method: Words::new("tools/call"),
            outcome: outcome_of(OK, false),
            sent: None,
            answered: None,
            decision: None,
            cause: None,
        }
    }

    /// A call gets the sizes of its own report, and none where the report is of another call.
    #[test]
    fn sizes_are_those_of_the_same_call() {
        let mut rows = vec![row("search", 1_000), row("push", 1_000), row("search", 9_000)];
        measure(&mut rows, &[call("search", 1_001), call("push", 8_000)]);
        let sizes: Vec<_> = rows.iter().map(|row| (row.sent, row.answered)).collect();
        assert_eq!(sizes, [(Some(45), Some(2048)), (None, None), (None, None)]);
        let mut rows = vec![row("search", 1_000), row("search", 1_005)];
        let longer = Operation { size: Some(90), ..call("search", 1_006) };
        measure(&mut rows, &[call("search", 1_001), longer]);
        let sizes: Vec<_> = rows.iter().map(|row| row.sent).collect();
        assert_eq!(sizes, [Some(45), Some(90)]);
        let mut rows = vec![row("search", 1_000), row("search", 1_005)];
        measure(&mut rows, &[call("search", 1_006)]);
        let sizes: Vec<_> = rows.iter().map(|row| row.sent).collect();
        assert_eq!(sizes, [None, Some(45)], "one report is of one call");
    }
}

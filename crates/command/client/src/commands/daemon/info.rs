//! `narthex daemon info`: the facts of a daemon, as the daemon itself states them.

use std::process::ExitCode;

use serde_json::Value;

use crate::{
    Context, Failure,
    commands::waiting::waiting,
    daemon_client::DaemonClient,
    output::{self, counted},
    table::text,
};

pub(super) async fn run(context: &Context) -> Result<ExitCode, Failure> {
    let client = DaemonClient::operator(&context.daemon)?;
    let facts = waiting("asking the daemon", context, client.api_get("/api/daemon")).await?;
    output::told_lines(&facts, &lines(&facts), context.format)
}

/// The facts in sentences.
fn lines(facts: &Value) -> Vec<String> {
    let number = |place: &str| facts.pointer(place).and_then(Value::as_u64).unwrap_or_default();
    let mut lines = vec![
        format!(
            "narthex {} on {} {}, process {}, runs since {}",
            text(facts, "version"),
            text(facts, "system"),
            text(facts, "architecture"),
            number("/process"),
            text(facts, "started_at"),
        ),
        format!("it listens at {}", text(facts, "listens_at")),
    ];
    if facts["public_origin"].is_string() {
        lines.push(format!("people sign in at {}", text(facts, "public_origin")));
    }
    let store = &facts["store"];
    lines.push(match store.is_object() {
        true => format!(
            "the store is {}, schema {}, at {}",
            text(store, "engine"),
            number("/store/schema"),
            text(store, "place"),
        ),
        false => "it has no store".to_owned(),
    });
    if facts["process_use"].is_object() {
        lines.push(format!(
            "it uses {} MB of memory, {} and {}",
            number("/process_use/resident_bytes") / 1_000_000,
            counted(number("/process_use/threads"), "thread"),
            counted(number("/process_use/open_files"), "open file"),
        ));
    }
    lines.push(format!(
        "{} of clients, {} and {} are open",
        counted(number("/open/sessions"), "session"),
        counted(number("/open/streams"), "stream"),
        counted(number("/open/parked_calls"), "waiting call"),
    ));
    if facts["audit_waiting"]["is_stuck"] == true {
        lines.push("events of the audit cannot be moved into the store".to_owned());
    }
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn facts_become_sentences() {
        let facts = json!({
            "version": "1.2.3", "system": "linux", "architecture": "x86_64", "process": 7,
            "started_at": "2026-11-22T13:00:00.000Z", "listens_at": "http://127.0.0.1:7717",
            "public_origin": null,
            "store": { "engine": "SQLite", "place": "/data/store.db", "schema": 50 },
            "process_use": { "resident_bytes": 42_000_000, "threads": 1, "open_files": 9 },
            "open": { "sessions": 1, "streams": 2, "page_streams": 0, "parked_calls": 0 },
            "audit_waiting": { "bytes": 0, "is_stuck": true },
        });
        let lines = lines(&facts);
        let expected = [
            "narthex 1.2.3 on linux x86_64, process 7, runs since 2026-11-22T13:00:00.000Z",
            "it listens at http://127.0.0.1:7717",
            "the store is SQLite, schema 50, at /data/store.db",
            "it uses 42 MB of memory, 1 thread and 9 open files",
            "1 session of clients, 2 streams and 0 waiting calls are open",
            "events of the audit cannot be moved into the store",
        ];
        assert_eq!(lines, expected);
    }
}

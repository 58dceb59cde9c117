//! The texts of a report, and the events that wait for the store.

use narthex_audit::{Broken, Fault, Verifier, Waiting};
use serde_json::json;

fn broken(workspace: &str, writer: &str, fault: Fault) -> String {
    let (workspace, writer) = (workspace.to_owned(), writer.to_owned());
    Broken { workspace, writer, seq: 4, line: 7, fault }.to_string()
}

#[test]
fn a_fault_is_reported_with_its_place() {
    assert_eq!(
        broken("w", "n.1", Fault::Removed { count: 1 }),
        "line 7, event 4 of n.1 in w: 1 before it was removed"
    );
    assert_eq!(
        broken("", "n.1", Fault::TailCut { count: 2 }),
        "line 7, event 4 of n.1 in the installation: 2 after it were removed"
    );
    assert_eq!(broken("", "", Fault::Unreadable), "line 7: it is not an audit event");
}

/// The last line of an export says which events are recorded and not in the store yet.
#[test]
fn waiting_events_are_reported() {
    let waiting = json!({ "workspace": "w", "events": 3, "is_more": true, "is_stuck": true,
        "since": "2026-11-26T10:00:00Z" });
    let mut verifier = Verifier::new();
    verifier.line(&json!({ "end": { "events": 0, "waiting": waiting } }).to_string());
    let report = verifier.finish();
    assert!(report.is_whole(), "{:?}", report.broken);
    let [waiting] = &report.waiting[..] else { panic!("{report:?}") };
    assert_eq!(
        waiting.to_string(),
        "at least 3 events of w cannot be moved from the daemon's disk into the store, since \
         2026-11-26T10:00:00Z"
    );
    let none = Waiting::at_end(&json!({ "end": { "events": 0 } }));
    assert_eq!(none, None);
}

#[test]
fn a_number_of_waiting_events_may_be_exact_or_unknown() {
    let waiting = |events, is_more| Waiting {
        workspace: String::new(),
        events,
        is_more,
        since: None,
        is_stuck: false,
    };
    let rest =
        "events of the installation are still to be moved from the daemon's disk into the store";
    assert_eq!(waiting(2, false).to_string(), format!("2 {rest}"));
    assert_eq!(waiting(0, true).to_string(), format!("an unknown number of {rest}"));
}

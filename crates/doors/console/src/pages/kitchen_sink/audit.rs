//! Samples of the audit.

use std::time::Duration;

use super::{frame_of, words};
use crate::{
    pages::audit::{AuditEventPage, AuditFact, AuditPage, AuditRow, Verified},
    parts::{
        Empty, Filter, Moment,
        form::{Field, Input},
    },
};

/// The list with the result of a verification.
#[must_use]
pub fn page_of(more: &str) -> AuditPage {
    let short: String = more.chars().take(200).collect();
    let at = || Moment::after_epoch(Duration::from_secs(1_790_000_000));
    let filter = Filter {
        href: "/w/default/audit".to_owned(),
        label: format!("actor: ada ✕{short}"),
        count: None,
        is_current: true,
    };
    AuditPage {
        frame: frame_of(more),
        path: "/w/default/audit".to_owned(),
        fields: vec![Field::new("actor", "Who", Input::line(&format!("ada{short}")))],
        filters: vec![filter],
        rows: vec![AuditRow {
            href: "/w/default/audit/event?at=1-1-a".to_owned(),
            at: at(),
            kind: words("workspace.secret.set", more),
            actor: words("human ada", more),
            object: words("secret DOCS_KEY", more),
            outcome: words("denied", more),
            is_failure: true,
        }],
        looked_at: Some(1_000),
        next: Some("/w/default/audit?after=1-1-a".to_owned()),
        waiting: Some(words("Not in this list yet: 2 events.", more)),
        verify: "/w/default/audit/verify".to_owned(),
        verified: Some(Verified {
            sentence: words("The audit was changed after it was written.", more),
            is_broken: true,
            faults: vec![words("event 3 was edited", more)],
            until: Some(at()),
        }),
        export: "/w/default/audit/export".to_owned(),
        empty: Empty {
            title: "No event fits",
            sentence: "Take a filter away.".to_owned(),
            example: None,
            page: None,
        },
    }
}

/// One event.
#[must_use]
pub fn event_page_of(more: &str) -> AuditEventPage {
    let fact = |href: Option<&str>| AuditFact {
        name: "who",
        value: words("ada", more),
        href: href.map(str::to_owned),
    };
    AuditEventPage {
        frame: frame_of(more),
        back: "/w/default/audit".to_owned(),
        sentence: words("human ada did workspace.secret.set", more),
        facts: vec![fact(Some("/w/default/audit?actor=ada")), fact(None)],
        hash: "The event matches its hash: it was compared just now.",
        is_as_written: true,
        raw: format!("{{\n  \"v\": 1\n}}\n{}", more.chars().take(40_000).collect::<String>()),
    }
}

//! The last requests to a server, as the audit of the workspace has them.

use http::StatusCode;
use narthex_console::{
    html,
    pages::server::calls::{CallLinks, CallRow, ServerCallsPage},
    parts::{Empty, Filter, Moment, Same, Words},
};
use narthex_control::{AuditItem, AuditPage, AuditQuery};
use narthex_model::{ErrorKind, command::narthex};
use serde_json::Value;

use super::spot::{self, Tabbed};
use crate::{
    console::{
        answer::{self, Answered},
        frame::{Head, frame},
        links::{self, Links},
        viewer::Viewer,
    },
    problem::Problem,
    servers::{Query, audit_cursor, audit_place},
};

/// The beginning of the kinds of requests.
const KIND: &str = "session.mcp.";
/// Number of events that are read for one page.
const READ: u32 = 400;
/// Number of calls of one page.
const PAGE: usize = 50;
/// The outcome of a call that was answered without an error.
const OK: &str = "ok";
/// The filters: a word of the address, and its label.
const SHOWN: [(&str, &str); 3] = [("", "all"), ("ok", "answered"), ("failed", "failed or refused")];

pub(super) async fn show(viewer: &Viewer<'_>) -> Answered {
    let query = viewer.query(&["show", "after"])?;
    let name = viewer.segment(0);
    let (_, row) = spot::find(viewer, &name)?;
    let path = Tabbed::Calls.path(viewer, &name);
    let show = shown(&query)?;
    let page = viewer.control().audit_list(&asked(viewer, &query)?).await?;
    let found = Found::of(&page, &name, show, &|item| links_of(viewer, item));
    let workspace = viewer.workspace.as_str();
    let command = narthex("audit list --kind {}", &[&KIND]).in_workspace(workspace);
    let head = Head {
        title: Words::new(&format!("Calls of {name}")),
        sentence: "The last requests to the server, with their outcome. Arguments are not shown.",
        same: Some(Same::new(
            &command.to_string(),
            &format!("GET /api/workspaces/{workspace}/audit?kind={KIND}"),
        )),
    };
    let next =
        found.next.as_ref().map(|after| spot::with(&path, &[("show", show), ("after", after)]));
    let mut frame = frame(viewer, head).await?;
    let all = &[("kind", KIND), ("server", &*name)];
    frame.related = Links::of(viewer).audit("These calls in the audit", all).found();
    let page = ServerCallsPage {
        frame,
        tabs: spot::tabs(viewer, &row, Tabbed::Calls),
        filters: SHOWN.map(|(word, label)| filter(&path, word, label, show)).to_vec(),
        searched: searched(&found, !query.text("after").is_empty()),
        calls: found.calls,
        next,
        empty: Empty {
            title: "No call",
            sentence: "A request of a client or a run to this server is a call. None of the \
                       searched requests was one to this server."
                .to_owned(),
            example: Some(narthex("tools {}", &[&name]).to_string()),
            page: Some("docs/reference/audit.md"),
        },
    };
    Ok(answer::page(StatusCode::OK, html(&page)))
}

/// The events that are searched for calls of the server.
fn asked(viewer: &Viewer<'_>, query: &Query) -> Result<AuditQuery, Problem> {
    let after = match query.text("after") {
        "" => None,
        text => Some(audit_place(text).ok_or_else(|| {
            let text = "this place of the audit is not known; begin at the newest calls";
            Problem::new(ErrorKind::Invalid, text)
        })?),
    };
    Ok(AuditQuery {
        kind: KIND.to_owned(),
        after,
        ..AuditQuery::newest(Some(viewer.workspace.clone()), READ)
    })
}

/// The word of the filter.
fn shown(query: &Query) -> Result<&'static str, Problem> {
    let found = SHOWN.iter().find(|(word, _)| *word == query.text("show"));
    let text = "this filter is not known; choose one of those above the list";
    found.map(|(word, _)| *word).ok_or_else(|| Problem::new(ErrorKind::Invalid, text))
}

fn filter(path: &str, word: &str, label: &str, chosen: &str) -> Filter {
    Filter {
        href: spot::with(path, &[("show", word)]),
        label: label.to_owned(),
        count: None,
        is_current: word == chosen,
    }
}

/// The calls of a server among some events.
struct Found {
    calls: Vec<CallRow>,
    /// Number of events that were searched.
    searched: usize,
    /// The place after which older events begin.
    next: Option<String>,
    /// True if events are not in the store yet.
    is_late: bool,
}

impl Found {
    /// Searches events, the newest first, until a page is full.
    fn of(
        page: &AuditPage,
        server: &str,
        show: &str,
        link: &dyn Fn(&AuditItem) -> CallLinks,
    ) -> Self {
        let (mut calls, mut searched, mut last) = (Vec::new(), 0, None);
        for item in &page.items {
            if calls.len() == PAGE {
                break;
            }
            searched += 1;
            last = Some(item);
            let is_its = item.event["server"].as_str() == Some(server);
            calls.extend(is_its.then(|| call(item, link)).filter(|call| fits(call, show)));
        }
        let has_more = page.has_more || searched < page.items.len();
        let next = last.filter(|_| has_more).map(|item| audit_cursor(&item.place));
        Self { calls, searched, next, is_late: page.waiting.is_some() }
    }
}

fn fits(call: &CallRow, show: &str) -> bool {
    match show {
        "ok" => call.is_fine,
        "failed" => !call.is_fine,
        _ => true,
    }
}

/// The pages of a call's event and of its run.
fn links_of(viewer: &Viewer<'_>, item: &AuditItem) -> CallLinks {
    let run = item.event["run"].as_str().unwrap_or_default();
    CallLinks {
        event: viewer.path(&format!("audit/event?at={}", audit_cursor(&item.place))),
        run: links::run(viewer, run),
    }
}

fn call(item: &AuditItem, link: &dyn Fn(&AuditItem) -> CallLinks) -> CallRow {
    let event = &item.event;
    let text = |value: &Value| Words::new(value.as_str().unwrap_or_default());
    let outcome = event["outcome"].as_str().unwrap_or_default();
    CallRow {
        links: link(item),
        at: Moment::new(item.place.happened_at),
        method: text(&event["details"]["method"]),
        item: text(&event["resource"]["id"]),
        run: text(&event["run"]),
        outcome: Words::new(outcome),
        is_fine: outcome == OK,
        refused_by: event["details"]["refused_by"].as_str().map(Words::new),
        took: Words::new(
            &event["duration_ms"]
                .as_f64()
                .map_or_else(|| "unknown".to_owned(), |duration| format!("{duration:.1}")),
        ),
    }
}

fn searched(found: &Found, is_older: bool) -> Words {
    let (count, all) = (found.calls.len(), found.searched);
    let which = if is_older { "older" } else { "newest" };
    let late = if found.is_late { "; the newest events are not stored yet" } else { "" };
    Words::new(&format!("{count} of the {all} {which} requests of this workspace{late}"))
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use narthex_control::AuditPlace;
    use serde_json::json;

    use super::*;

    fn page(count: u64, server: &str) -> AuditPage {
        let item = |seq| AuditItem {
            event: json!({
                "server": server, "outcome": if seq % 2 == 0 { "ok" } else { "denied" },
                "details": { "method": "tools/call", "refused_by": "grants" },
                "resource": { "id": "echo" }, "duration_ms": 1.25,
            }),
            place: AuditPlace { happened_at: UNIX_EPOCH, writer: "w".to_owned(), seq },
        };
        AuditPage { items: (0..count).map(item).collect(), has_more: false, waiting: None }
    }

    /// R3: the page says how many requests it has searched, and leads on from the last one.
    #[test]
    fn r3_a_page_of_calls_says_what_was_searched() {
        let links = |_: &AuditItem| CallLinks::default();
        let of = |server, show| Found::of(&page(60, server), "one", show, &links);
        let found = of("one", "");
        assert_eq!((found.calls.len(), found.searched), (PAGE, 50));
        assert!(found.next.as_deref().is_some_and(|next| next.ends_with("-49-w")));
        let failed = of("one", "failed");
        assert_eq!((failed.calls.len(), failed.searched, failed.next), (30, 60, None));
        let other = of("two", "");
        assert_eq!((other.calls.len(), other.searched), (0, 60));
        let words = searched(&other, false);
        assert_eq!(words.as_str(), "0 of the 60 newest requests of this workspace");
    }
}

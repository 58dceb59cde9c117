//! The trace of a run: its calls from the audit, and as they happen.

use std::time::{Duration, SystemTime};

use http::StatusCode;
use narthex_audit::kind;
use narthex_console::{
    html,
    pages::runs::{
        RunNone,
        trace::{CallList, CallRow, CallRowPart, Shown, Timeline, TracePage},
    },
    parts::{Empty, Filter, Same, Words},
};
use narthex_control::AuditQuery;
use narthex_model::{ErrorKind, command::narthex};
use narthex_runs::SeenRun;

use super::{
    calls,
    one::One,
    places::{path, queried},
};
use crate::{
    Access,
    console::{
        answer::{self, Answered},
        frame::{self, Head, frame},
        live::{self, Follows, Fragment, Live, RUN, Topic},
        viewer::Viewer,
    },
    problem::Problem,
    routes::{AUDIT, SEE_RUNS},
    servers::{Query, audit_cursor, audit_place},
};

/// The calls of a run, live.
pub(in crate::console) const TOPIC: Topic = Topic {
    name: "calls",
    access: Access::Member(SEE_RUNS),
    params: &[RUN, "server", "tool", "status", "requests", "before", "view"],
    follows: Follows::Run,
    parts: |viewer, query| Box::pin(parts(viewer, query)),
};

/// Number of calls of one page.
const PAGE: usize = 40;
/// Number of calls that are looked at for one page, if a filter is set.
const LOOKED_AT: u32 = 400;
/// Events of the end of a run may be written a moment later.
pub(super) const AFTER_END: Duration = Duration::from_secs(60);
/// The beginning of the kinds of all requests.
const ALL_REQUESTS: &str = "session.mcp.";
/// The parameters of the address.
const KNOWN: [&str; 6] = ["server", "tool", "status", "requests", "before", "view"];
/// The results by which calls are filtered.
const STATUSES: [&str; 4] = ["all", "failed", "refused", "ok"];

/// The calls of a page.
struct Read {
    rows: Vec<CallRow>,
    /// The place behind the last call that was looked at, if there are more.
    next: Option<String>,
}

pub(super) async fn show(viewer: &Viewer<'_>) -> Answered {
    let query = viewer.query(&KNOWN)?;
    let one = One::of(viewer).await?;
    let read = read(viewer, &one, &query).await?;
    let is_timeline = query.word("view", &["list", "timeline"])? == "timeline";
    let request = format!("GET /api/workspaces/{}/runs/{}/trace", viewer.workspace, one.id);
    let here = viewer.workspace.as_str();
    let head = Head {
        title: Words::new(&format!("Run {}", one.name())),
        sentence: "What the run does, and what it did: its calls, the newest first.",
        same: Some(Same::new(
            &narthex("strace {}", &[&one.id]).in_workspace(here).to_string(),
            &request,
        )),
    };
    let mut frame = frame(viewer, head).await?;
    frame.related = one.related(viewer);
    let top = one.top(viewer);
    let calls = Live { topic: &TOPIC, parts: parts_of(&one, &read, is_timeline) };
    let older = read.next.as_ref().map(|place| {
        let pairs = set(&query, "before").into_iter().chain([("before", place.clone())]);
        address(viewer, &one, &pairs.collect::<Vec<_>>())
    });
    let (filters, views) = (filters(viewer, &one, &query)?, views(viewer, &one, &query));
    let kept = set(&query, "tool").into_iter().filter(|(name, _)| *name != "before").collect();
    let tool = query.text("tool").to_owned();
    let query = one.with_path(query);
    let live = vec![frame::live(&frame), One::live(&top), calls];
    frame.live = Some(live::address(viewer, live, &query));
    let may_audit = viewer.may(Access::Member(AUDIT));
    let lines: Vec<_> = read.rows.iter().map(CallRow::line).collect();
    let page = TracePage {
        frame,
        top,
        tabs: one.tabs(viewer, ""),
        views,
        filters,
        kept,
        tool,
        path: path(viewer, one.id, ""),
        source: source(may_audit, &one),
        none: none(&one, read.rows.is_empty()),
        text: lines.join("\n"),
        download: may_audit.then(|| download(viewer, &one)),
        older,
        shown: match is_timeline {
            true => Shown::Timeline(Timeline::of(&read.rows)),
            false => Shown::List(CallList { rows: read.rows }),
        },
    };
    Ok(answer::page(StatusCode::OK, html(&page)))
}

/// The origin of the rows.
fn source(may_audit: bool, one: &One) -> Words {
    Words::new(match (may_audit, one.is_over()) {
        (true, true) => "From the audit.",
        (true, false) => {
            "From the audit, and as calls end at this daemon. Sizes are measured while someone \
             looks."
        }
        (false, true) => "The calls of a run are in the audit, which admins and auditors read.",
        (false, false) => {
            "Calls as they end at this daemon, from now on. Earlier ones are in the audit, which \
             admins and auditors read."
        }
    })
}

/// The newest events for programs.
fn download(viewer: &Viewer<'_>, one: &One) -> String {
    let pairs = [
        ("run", one.id.to_text()),
        ("kind", kind::TOOL_CALLED.to_owned()),
        ("limit", "100".to_owned()),
    ];
    format!("/api/workspaces/{}/audit?{}", viewer.workspace, queried(&pairs))
}

async fn parts(viewer: &Viewer<'_>, query: &Query) -> Result<Vec<Fragment>, Problem> {
    let one = One::plain(viewer, query.text(RUN)).await?;
    let read = read(viewer, &one, query).await?;
    Ok(parts_of(&one, &read, query.text("view") == "timeline"))
}

fn parts_of(one: &One, read: &Read, is_timeline: bool) -> Vec<Fragment> {
    let none = none(one, read.rows.is_empty());
    let mut all = vec![Fragment::new(none.id, html(&none))];
    if is_timeline {
        all.push(Fragment::new("calls", html(&Timeline::of(&read.rows))));
        return all;
    }
    all.push(Fragment::log("calls", html(&CallList { rows: read.rows.clone() })));
    let entry = |row: &CallRow| {
        Fragment::entry("calls", row.id.clone(), html(&CallRowPart { row: row.clone() }))
    };
    all.extend(read.rows.iter().map(entry));
    all
}

fn none(one: &One, is_empty: bool) -> RunNone {
    let sentence = match one.is_over() {
        true => "A call of a tool is an entry here. None of this run fits, or none is stored now.",
        false => "A call of a tool is an entry here, once it has ended. None of this run fits yet.",
    };
    let command = narthex("strace {}", &[&one.id]);
    let command = match &one.run.row {
        Some(row) => command.in_workspace(row.workspace.as_str()),
        None => command,
    };
    let empty = Empty {
        title: "No calls",
        sentence: sentence.to_owned(),
        example: Some(command.to_string()),
        page: Some("docs/guides/watch-runs.md"),
    };
    RunNone { id: "calls-none", empty: is_empty.then_some(empty) }
}

async fn read(viewer: &Viewer<'_>, one: &One, query: &Query) -> Result<Read, Problem> {
    let wanted = Wanted::of(query)?;
    if !viewer.may(Access::Member(AUDIT)) {
        let recent = viewer.recent.iter().rev().map(|call| calls::of_operation(viewer, one, call));
        let rows = recent.filter(|row| wanted.fits(row)).take(PAGE).collect();
        return Ok(Read { rows, next: None });
    }
    let after = match query.text("before") {
        "" => None,
        text => {
            let unfit = || Problem::new(ErrorKind::Invalid, "this is no place in the trace");
            Some(audit_place(text).ok_or_else(unfit)?)
        }
    };
    let page = u32::try_from(PAGE).unwrap_or(u32::MAX);
    let audit = AuditQuery {
        run: one.id.to_text(),
        kind: if wanted.has_requests { ALL_REQUESTS } else { kind::TOOL_CALLED }.to_owned(),
        since: began(&one.run),
        until: one.run.row.as_ref().and_then(|row| row.ended).map(|(at, _)| at + AFTER_END),
        after,
        ..AuditQuery::newest(
            Some(viewer.workspace.clone()),
            if wanted.is_free() { page } else { LOOKED_AT },
        )
    };
    let found = viewer.control().audit_list(&audit).await?;
    let mut rows = Vec::new();
    let mut last = None;
    let mut is_full = false;
    for item in &found.items {
        if rows.len() >= PAGE {
            is_full = true;
            break;
        }
        last = Some(&item.place);
        rows.extend(calls::of_event(viewer, one, item).filter(|row| wanted.fits(row)));
    }
    calls::measure(&mut rows, &viewer.recent);
    let next = last.filter(|_| is_full || found.has_more).map(audit_cursor);
    Ok(Read { rows, next })
}

/// The time from which on the run can have calls.
fn began(run: &SeenRun) -> SystemTime {
    let stored = run.row.as_ref().map(|row| row.created_at);
    stored.or_else(|| run.view.as_ref().map(|view| view.began)).unwrap_or(SystemTime::UNIX_EPOCH)
}

/// The filters of an address.
struct Wanted {
    server: String,
    tool: String,
    status: &'static str,
    /// True for all requests, and not only calls of tools.
    has_requests: bool,
}

impl Wanted {
    fn of(query: &Query) -> Result<Self, Problem> {
        Ok(Self {
            server: query.text("server").to_owned(),
            tool: query.text("tool").to_lowercase(),
            status: query.word("status", &STATUSES)?,
            has_requests: query.word("requests", &["tools", "all"])? == "all",
        })
    }

    /// True if each call fits.
    fn is_free(&self) -> bool {
        self.server.is_empty() && self.tool.is_empty() && self.status == "all"
    }

    fn fits(&self, row: &CallRow) -> bool {
        let server = row.server.as_ref().map_or("", Words::as_str);
        let is_status = match self.status {
            "failed" => row.outcome.is_failure,
            "refused" => row.outcome.is_refused,
            "ok" => !row.outcome.is_failure,
            _ => true,
        };
        let is_named = row.name.as_str().to_lowercase().contains(&self.tool);
        is_status && is_named && (self.server.is_empty() || self.server == server)
    }
}

/// The parameters of an address that are set, but one.
fn set(query: &Query, but: &str) -> Vec<(&'static str, String)> {
    let names = KNOWN.into_iter().filter(|name| *name != but);
    let pairs = names.map(|name| (name, query.text(name).to_owned()));
    pairs.filter(|(_, value)| !value.is_empty()).collect()
}

fn address(viewer: &Viewer<'_>, one: &One, pairs: &[(&str, String)]) -> String {
    let path = path(viewer, one.id, "");
    match queried(pairs).as_str() {
        "" => path,
        query => format!("{path}?{query}"),
    }
}

/// The address with another value of one parameter, on the first page.
fn with(viewer: &Viewer<'_>, one: &One, query: &Query, name: &'static str, value: &str) -> String {
    let mut pairs = set(query, name);
    pairs.retain(|(other, _)| *other != "before");
    if !value.is_empty() {
        pairs.push((name, value.to_owned()));
    }
    address(viewer, one, &pairs)
}

fn filters(viewer: &Viewer<'_>, one: &One, query: &Query) -> Result<Vec<Filter>, Problem> {
    let status = query.word("status", &STATUSES)?;
    let filter = |label: &str, href: String, is_current| Filter {
        href,
        label: label.to_owned(),
        count: None,
        is_current,
    };
    let of_status = |word: &'static str| {
        let value = if word == "all" { "" } else { word };
        filter(word, with(viewer, one, query, "status", value), status == word)
    };
    let mut all: Vec<_> = STATUSES.map(of_status).to_vec();
    let is_all = query.word("requests", &["tools", "all"])? == "all";
    let value = if is_all { "" } else { "all" };
    all.push(filter("other requests too", with(viewer, one, query, "requests", value), is_all));
    let chosen = query.text("server");
    let aliases = one.run.view.as_ref().map(|view| viewer.door.gateway.aliases(view));
    let mut names: Vec<_> = aliases.unwrap_or_default().iter().map(ToString::to_string).collect();
    if !chosen.is_empty() && !names.iter().any(|name| name == chosen) {
        names.push(chosen.to_owned());
    }
    names.truncate(SERVERS);
    for name in names {
        let is_current = name == chosen;
        let value = if is_current { "" } else { &*name };
        let label = if is_current { format!("{name} ✕") } else { name.clone() };
        all.push(filter(&label, with(viewer, one, query, "server", value), is_current));
    }
    if !query.text("tool").is_empty() {
        let label = format!("named “{}” ✕", Words::within(query.text("tool"), 40));
        all.push(filter(&label, with(viewer, one, query, "tool", ""), true));
    }
    Ok(all)
}

/// Number of servers with a filter of their own.
const SERVERS: usize = 24;

fn views(viewer: &Viewer<'_>, one: &One, query: &Query) -> Vec<Filter> {
    let is_timeline = query.text("view") == "timeline";
    let view = |label: &str, value, is_current| Filter {
        href: with(viewer, one, query, "view", value),
        label: label.to_owned(),
        count: None,
        is_current,
    };
    vec![view("List", "", !is_timeline), view("Timeline", "timeline", is_timeline)]
}

//! Samples of the pages of runs, for the eye and for the laws of all templates.

use std::time::Duration;

use narthex_model::{ServerState, command::narthex};

use super::{
    ConfirmPage, Link, RunFilters, RunList, RunNone, RunRow, RunStatus, RunsPage, SessionList,
    SessionRow, SessionsPage,
    tabs::{
        ChildrenPage, ConfigPage, Fact, FilesPage, GrantRow, GrantsPage, Hidden, MessageForm,
        MessageList, MessageRow, MessageRowPart, MessagesPage, RunServer, RunTabs, RunTop,
        SeenTool, SeenTools, Share, ToolsPage,
    },
    trace::{CallList, CallRow, CallRowPart, Cause, Decision, Outcome, Shown, Timeline, TracePage},
};
use crate::{
    Frame, html,
    parts::{
        Action, Empty, Filter, Moment, Same, State, Words,
        form::{Field, Input},
    },
};

/// Every status of a run, and that of a suspended session.
pub const STATUSES: [&str; 7] =
    ["running", "pending", "ended", "expired", "cancelled", "failed", "suspended"];

const BEGAN: Duration = Duration::from_secs(1_790_000_000);

fn words(text: &str, more: &str) -> Words {
    Words::new(&format!("{text}{more}"))
}

/// A text of the length that handlers cut it to.
fn short(text: &str) -> String {
    text.chars().take(2_000).collect()
}

fn moment() -> Moment {
    Moment::after_epoch(BEGAN)
}

fn link(more: &str) -> Link {
    let href = "/w/default/runs/run_0a1b2c3d4e5f".to_owned();
    Link { href, label: words("run_0a1b2c3d4e5f", more) }
}

fn filter(label: &str, is_current: bool) -> Filter {
    let href = "/w/default/runs?status=running".to_owned();
    Filter { href, label: label.to_owned(), count: Some(3), is_current }
}

fn empty() -> Empty {
    Empty {
        title: "No runs",
        sentence: "A run is an agent at work.".to_owned(),
        example: Some(narthex("runs create --agent reader", &[]).to_string()),
        page: Some("docs/concepts/runs.md"),
    }
}

/// A run in this status.
#[must_use]
pub fn row_of(status: &'static str, more: &str) -> RunRow {
    let is_active = matches!(status, "running" | "pending");
    RunRow {
        id: format!("run-{status}"),
        href: link(more).href,
        pid: 3,
        agent: words("reader", more),
        status: RunStatus(status),
        driver: Some(words("ada", more)),
        parent: (status == "pending").then(|| link(more)),
        created: moment(),
        ended: (!is_active).then(moment),
        expires: is_active.then(moment),
        depth: usize::from(status == "pending") * 2,
    }
}

/// A list with a run in each status.
#[must_use]
pub fn list_of(more: &str) -> RunList {
    RunList { rows: STATUSES.iter().map(|status| row_of(status, more)).collect() }
}

fn top_of(more: &str) -> RunTop {
    let action = Action::new("/w/default/runs/1/suspend".to_owned(), "Suspend", "ends the run");
    RunTop {
        csrf: "token".to_owned(),
        status: RunStatus("ended"),
        session_status: Some(RunStatus("suspended")),
        reason: Some(words("a human suspended its session", more)),
        id: words("run_0a1b2c3d4e5f", more),
        pid: 3,
        session: Some(link(more)),
        parent: Some(link(more)),
        driver: Some(words("ada", more)),
        acts_for: Some(words("bob", more)),
        created_by: Some(words("admin", more)),
        digest: Some(words("12 tools, sha256:9b74", more)),
        created: moment(),
        expires: Some(moment()),
        ended: Some(moment()),
        actions: vec![action.clone(), action.off("the run has ended")],
        questions: vec![link(more)],
    }
}

fn tabs() -> RunTabs {
    RunTabs { tabs: vec![filter("Trace", true), filter("Children", false)] }
}

/// Calls of each kind: a good one, a refused one, and a failed one.
#[must_use]
pub fn calls_of(more: &str) -> Vec<CallRow> {
    let call = |index: u64, name: &str, outcome: &str, cause: Option<Cause>| CallRow {
        id: format!("call-{index}"),
        at: Moment::after_epoch(BEGAN + Duration::from_millis(index * 700)),
        began_us: 1_790_000_000_000_000 + index * 700_000,
        took_us: 350_000 + index,
        name: words(name, more),
        server: Some(words(if index == 1 { "mail" } else { "git" }, more)),
        method: words("tools/call", more),
        outcome: Outcome {
            word: words(outcome, more),
            is_failure: cause.is_some(),
            is_refused: outcome == "permission_required",
        },
        sent: Some(45),
        answered: (outcome != "timeout").then_some(2048),
        decision: Some(Decision {
            words: words("allowed by 1 grant", more),
            href: Some("/w/default/runs/1/grants".to_owned()),
        }),
        cause,
    };
    let cause = |sentence: &str| Cause {
        sentence: words(sentence, more),
        said: Some(words("no answer within 60 s", more)),
        remedy: words("Approve the request if one waits.", more),
        page: Some(link(more)),
        command: Some(words(&narthex("mcp logs git", &[]).to_string(), more)),
    };
    vec![
        call(3, "push", "permission_required", Some(cause("The tool requires a grant."))),
        call(2, "search", "timeout", Some(cause("The server did not answer in time."))),
        call(1, "send", "ok", None),
        call(0, "status", "ok", None),
    ]
}

/// The timeline of the calls.
#[must_use]
pub fn timeline_of(more: &str) -> Timeline {
    Timeline::of(&calls_of(more))
}

fn trace_of(frame: Frame, shown: Shown, more: &str) -> TracePage {
    let lines: Vec<_> = calls_of(more).iter().map(CallRow::line).collect();
    TracePage {
        frame,
        top: top_of(more),
        tabs: tabs(),
        views: vec![filter("List", true), filter("Timeline", false)],
        filters: vec![filter("all", true), filter("failed", false)],
        kept: vec![("status", "failed".to_owned())],
        tool: more.chars().take(200).collect(),
        path: "/w/default/runs/1".to_owned(),
        source: words("From the audit, the newest first.", more),
        shown,
        none: RunNone { id: "calls-none", empty: Some(empty()) },
        text: lines.join("\n"),
        download: Some("/api/workspaces/default/audit?run=run_0a1b2c3d4e5f".to_owned()),
        older: Some("/w/default/runs/1?before=1-1-a".to_owned()),
    }
}

/// Each page of runs with texts that end in another text, under the name of its template.
#[must_use]
pub fn pages(text: &str, frame: &Frame) -> Vec<(&'static str, String)> {
    let list = Shown::List(CallList { rows: calls_of(text) });
    let timeline = Shown::Timeline(timeline_of(text));
    let runs = RunsPage {
        frame: frame.clone(),
        filters: RunFilters { filters: vec![filter("running", true)] },
        list: list_of(text),
        none: RunNone { id: "runs-none", empty: None },
        agent: text.chars().take(200).collect(),
        path: "/w/default/runs".to_owned(),
        sessions: "/w/default/sessions".to_owned(),
        next: Some("/w/default/runs?before=3".to_owned()),
    };
    let confirm = ConfirmPage {
        frame: frame.clone(),
        effects: vec![words("Its open calls end.", text)],
        action: Action::new("/w/default/runs/1/end".to_owned(), "End the run", text).primary(),
        back: "/w/default/runs/1".to_owned(),
    };
    let mut all = tabs_of(text, frame);
    all.extend([
        ("runs", html(&runs)),
        ("run trace", html(&trace_of(frame.clone(), list, text))),
        ("run timeline", html(&trace_of(frame.clone(), timeline, text))),
        ("run confirm", html(&confirm)),
        ("sessions", html(&sessions_of(text, frame.clone()))),
        ("call part", html(&CallRowPart { row: calls_of(text).remove(0) })),
        ("message part", html(&MessageRowPart { row: message_of(text) })),
    ]);
    all
}

fn sessions_of(text: &str, frame: Frame) -> SessionsPage {
    let row = SessionRow {
        id: words("ses_0a1b2c3d4e5f", text),
        agent: words("reader", text),
        status: RunStatus("suspended"),
        runs: "/w/default/runs?session=ses_0a1b2c3d4e5f".to_owned(),
        parent: Some(link(text)),
        created: moment(),
        created_by: words("admin", text),
        suspended: Some((moment(), words("ada", text))),
        ended: Some(moment()),
        env: vec![words("GITHUB_TOKEN", text)],
        actions: vec![Action::new("/w/default/sessions/1/suspend".to_owned(), "Suspend", text)],
        question: Some(link(text)),
    };
    SessionsPage {
        frame,
        list: SessionList { csrf: "token".to_owned(), rows: vec![row], empty: empty() },
        runs: "/w/default/runs".to_owned(),
        next: Some("/w/default/sessions?after=1".to_owned()),
    }
}

fn message_of(text: &str) -> MessageRow {
    MessageRow {
        id: "message-3".to_owned(),
        kind: "question",
        by: words("the agent", text),
        at: moment(),
        text: format!("Which one?\n{}", short(text)),
        question: Some(words("q1", text)),
    }
}

/// The tabs besides the trace.
fn tabs_of(text: &str, frame: &Frame) -> Vec<(&'static str, String)> {
    let (frame, top) = (|| frame.clone(), || top_of(text));
    let children = ChildrenPage {
        frame: frame(),
        top: top(),
        tabs: tabs(),
        list: list_of(text),
        has_more: true,
        empty: empty(),
    };
    let files = FilesPage {
        frame: frame(),
        top: top(),
        tabs: tabs(),
        mounts: vec![words("/mnt/mcp/3-git", text)],
        shares: vec![Share {
            title: words("Report", text),
            about: words("document, 1204 bytes", text),
            updated: moment(),
            download: Some("/api/workspaces/default/shares/1/content".to_owned()),
        }],
        same: Same::new("narthex files ls 3", ""),
    };
    let fields = vec![Field::new("text", "Message", Input::area(&short(text), 4)).help(text)];
    let form = MessageForm { path: "/w/default/runs/1/message".to_owned(), fields, off: None };
    let messages = MessagesPage {
        frame: frame(),
        top: top(),
        tabs: tabs(),
        list: MessageList { rows: vec![message_of(text)] },
        form,
        older: Some("/w/default/runs/1/messages?before=3".to_owned()),
    };
    let mut all = facts_of(text, &frame());
    all.extend([
        ("run children", html(&children)),
        ("run files", html(&files)),
        ("run messages", html(&messages)),
    ]);
    all
}

/// The tabs about the tools, the configuration and the grants.
fn facts_of(text: &str, frame: &Frame) -> Vec<(&'static str, String)> {
    let (frame, top) = (|| frame.clone(), || top_of(text));
    let tool = SeenTool {
        name: words("mcp__git__status", text),
        server: words("git", text),
        digest: words("sha256:9b74", text),
    };
    let hidden = Hidden {
        server: words("git", text),
        why: words("2 tools are hidden by its entry.", text),
        names: vec![words("push", text)],
        remedy: words("Change `tools` of its entry.", text),
    };
    let tools = ToolsPage {
        frame: frame(),
        top: top(),
        tabs: tabs(),
        tools: Some(SeenTools {
            rows: vec![tool],
            count: 1,
            at: Some(moment()),
            next: Some("/w/default/runs/1/tools?after=a".to_owned()),
        }),
        unknown: "",
        hidden: vec![hidden],
    };
    let server = RunServer {
        alias: words("git", text),
        state: State(ServerState::Error),
        origin: words("of the catalog", text),
        about: words("stdio", text),
        path: words("/mnt/mcp/3-git", text),
        error: Some(words("it has ended", text)),
    };
    let fact =
        Fact { name: "agent", value: words("reader", text), origin: "the request for the run" };
    let config = ConfigPage {
        frame: frame(),
        top: top(),
        tabs: tabs(),
        facts: vec![fact],
        servers: Some(vec![server]),
    };
    let grant = GrantRow {
        of: words("tool scope repo.write", text),
        subject: words("agent reader", text),
        duration: words("until the session ends", text),
        by: words("ada", text),
        at: moment(),
        expires: Some(moment()),
        is_advisory: true,
        action: Action::new("/w/default/runs/1/grants/1/revoke".to_owned(), "Revoke", text),
    };
    let grants = GrantsPage {
        frame: frame(),
        top: top(),
        tabs: tabs(),
        rows: vec![grant],
        has_more: true,
        empty: empty(),
    };
    vec![("run tools", html(&tools)), ("run config", html(&config)), ("run grants", html(&grants))]
}

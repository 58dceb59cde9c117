//! Samples of the pages of one server, whose texts end in another text.

use narthex_model::{ServerState, command::narthex};

use super::{
    Count, Fact, ServerNow, ServerPage, ServerTabs, Tab,
    calls::{CallLinks, CallRow, ServerCallsPage},
    configuration::{ServerConfigurationPage, Setting},
    definitions::ServerDefinitionsPage,
    log::ServerLogPage,
    runs::{RunRow, ServerRunsPage},
    samples::{PATH, definitions, empty, filter, log, moment, path, tools, words},
    tools::{ServerToolsPage, ToolList},
};
use crate::{
    Frame,
    pages::kitchen_sink::{frame_of, rows_of},
};

fn frame(title: &str, more: &str) -> Frame {
    Frame { title: words(title, more), ..frame_of(more) }
}

fn tabs() -> ServerTabs {
    let tab = |label, rest: &str, count| Tab {
        href: path(rest),
        label,
        count,
        is_current: rest == "tools",
    };
    ServerTabs {
        tabs: vec![
            Tab { href: PATH.to_owned(), ..tab("Overview", "", None) },
            tab("Tools", "tools", Some(4)),
            tab("Definition differences", "definitions", Some(1)),
            tab("Configuration", "configuration", None),
            tab("Log", "log", None),
        ],
    }
}

/// The first page of a server.
///
/// # Panics
/// Never: there is a row of each state.
#[must_use]
pub fn page(more: &str) -> ServerPage {
    let row = rows_of(more).into_iter().find(|row| row.state.0 == ServerState::Error);
    let now = ServerNow {
        csrf: "token".to_owned(),
        row: row.expect("there is a row of each state"),
        next_step: Some("narthex tries again by itself"),
        facts: vec![
            Fact::words("protocol", &format!("2025-11-25{more}")),
            Fact { words: words("timeout: no answer", more), ..time("last failure") },
        ],
        lists: vec![
            Count { label: "tools", count: Some(12), href: Some(path("tools")) },
            Count { label: "prompts", count: None, href: None },
        ],
        sign_in: vec![Fact::words("issuer", &format!("https://id.example.com{more}"))],
    };
    ServerPage { frame: frame("git", more), tabs: tabs(), now }
}

fn time(label: &'static str) -> Fact {
    Fact::time(label, Some(moment()), "none yet")
}

/// The page with the tools.
#[must_use]
pub fn tools_page(more: &str) -> ServerToolsPage {
    ServerToolsPage {
        frame: frame("Tools of git", more),
        tabs: tabs(),
        filtered: more.chars().take(200).collect(),
        standing: "off".to_owned(),
        path: path("tools"),
        list: ToolList {
            filters: vec![filter("all", true), filter("off", false)],
            tools: tools(more),
        },
    }
}

/// The page with the definitions.
#[must_use]
pub fn definitions_page(more: &str) -> ServerDefinitionsPage {
    let frame = frame("Definitions of git", more);
    ServerDefinitionsPage { frame, tabs: tabs(), list: definitions(more) }
}

/// The page with the configuration.
#[must_use]
pub fn configuration_page(more: &str) -> ServerConfigurationPage {
    let setting = |key: &str, value: &str| Setting {
        key: words(key, more),
        value: words(value, more),
        origin: words("line 12 of mcp.json", more),
    };
    ServerConfigurationPage {
        frame: frame("Configuration of git", more),
        tabs: tabs(),
        place: words("Edit line 12 of /home/ada/work/mcp.json.", more),
        command: Some(narthex("mcp list", &[]).to_string()),
        settings: vec![setting("command", "uvx"), setting("env.TOKEN", "the secret GIT_TOKEN")],
        others: vec![words("The entry of settings.json does not count.", more)],
        fault: Some(words("`timeoutMs` is no number", more)),
    }
}

/// The page with the log.
#[must_use]
pub fn log_page(more: &str) -> ServerLogPage {
    let frame = frame("Log of git", more);
    ServerLogPage { frame, tabs: tabs(), log: log(more), file: path("log.txt") }
}

/// The page with the calls.
#[must_use]
pub fn calls_page(more: &str) -> ServerCallsPage {
    let call = |outcome: &str, is_fine: bool| CallRow {
        links: CallLinks {
            event: "/w/default/audit/event?at=1-2-w".to_owned(),
            run: Some("/w/default/runs/0199f2d4".to_owned()),
        },
        at: moment(),
        method: words("tools/call", more),
        item: words("status", more),
        run: words("0199f2d4", more),
        outcome: words(outcome, more),
        is_fine,
        refused_by: (!is_fine).then(|| words("grants", more)),
        took: words("12.5", more),
    };
    ServerCallsPage {
        frame: frame("Calls of git", more),
        tabs: tabs(),
        filters: vec![filter("all", true), filter("failed", false)],
        calls: vec![call("ok", true), call("denied", false)],
        searched: words("2 of the newest 400 requests of this workspace", more),
        next: Some(path("calls?after=1-2-3")),
        empty: empty(),
    }
}

/// The page with the runs.
#[must_use]
pub fn runs_page(more: &str) -> ServerRunsPage {
    let run = RunRow {
        id: words("0199f2d4", more),
        href: Some("/w/default/runs/0199f2d4".to_owned()),
        pid: 7,
        agent: words("reviewer", more),
        why: "it has all servers of the configuration",
        began: moment(),
        clients: 1,
    };
    ServerRunsPage {
        frame: frame("Runs with git", more),
        tabs: tabs(),
        runs: vec![run],
        searched: words("1 of 3 active runs", more),
        next: Some(path("runs?after=7")),
        empty: empty(),
    }
}

//! Samples of the table of tools and of the playground.

use std::time::Duration;

use narthex_model::command::narthex;

use super::{frame_of, words};
use crate::{
    pages::{
        play::{CallAnswer, CallForm, Fact, Kept, PlayAskPage, PlayPage},
        tools::{Batch, ToolRow, ToolsPage, Unknown},
    },
    parts::{
        Empty, Filter, Moment, Words,
        form::{Choice, Field, Input},
    },
};

/// A text of ours that ends in another one, of the length of a field.
fn text(own: &str, more: &str) -> String {
    let more: String = more.chars().take(200).collect();
    format!("{own}{more}")
}

fn choice(name: &str, label: &str, more: &str) -> Field {
    let option = Choice { value: text("one", more), label: words("one", more), is_chosen: true };
    Field::new(name, &text(label, more), Input::Choice { options: vec![option] })
}

/// The table of tools.
#[must_use]
pub fn tools_page_of(more: &str) -> ToolsPage {
    let row = |index, off: Option<&str>| ToolRow {
        index,
        pick: text("git,git_log", more),
        is_picked: index == 0,
        name: Words::within(&format!("git_log{more}"), 80),
        server: Words::within(&format!("git{more}"), 80),
        server_href: "/w/default/servers?q=git".to_owned(),
        description: Words::within(&format!("Shows the commit logs{more}"), 160),
        state: "need a grant",
        scopes: vec![words("git.read", more)],
        hints: vec!["reads only", "stays inside"],
        called: (index == 0).then(|| Moment::after_epoch(Duration::from_secs(1_790_000_000))),
        tokens: 1_234,
        try_href: Some("/w/default/play?server=git&tool=git_log".to_owned()),
        off: off.map(|why| words(why, more)),
    };
    let scope = Input::Line { value: text("git", more), example: "linear.write".to_owned() };
    ToolsPage {
        frame: frame_of(more),
        path: "/w/default/tools".to_owned(),
        filtered: text("log", more),
        kept: vec![("q", text("log", more)), ("state", "gated".to_owned())],
        filters: vec![filter("all", more)],
        sorts: vec![filter("by server", "")],
        rows: vec![row(0, None), row(1, Some("changed in /home/ada/mcp.json"))],
        fitting: 2,
        all: 312,
        previous: Some("/w/default/tools".to_owned()),
        next: Some("/w/default/tools?page=2".to_owned()),
        looked_at: Some(200),
        unknown: Some(Unknown { count: 2, href: "/w/default/servers".to_owned() }),
        batch: Some(Batch {
            path: "/w/default/tools/change".to_owned(),
            act: choice("act", "Change", more),
            scope: Field::new("scope", "Tool scope", scope).fault(Some(&text("no scope", more))),
            whole: Field::new("whole", &text("All", more), Input::Check { is_on: false }),
        }),
        empty: Empty {
            title: "No tool fits",
            sentence: "Take a filter away.".to_owned(),
            example: None,
            page: None,
        },
    }
}

fn filter(label: &str, more: &str) -> Filter {
    Filter {
        href: "/w/default/tools".to_owned(),
        label: text(label, more),
        count: Some(2),
        is_current: true,
    }
}

/// The playground with an answer.
#[must_use]
pub fn play_page_of(more: &str) -> PlayPage {
    let fact = |name, value: &str| Fact { name, value: words(value, more) };
    let raw = |own: &str| {
        let more: String = more.chars().take(24_000).collect();
        format!("{own}\n{more}")
    };
    PlayPage {
        frame: frame_of(more),
        path: "/w/default/play".to_owned(),
        action: "/w/default/play/call".to_owned(),
        choices: vec![choice("server", "Server", more), choice("tool", "Tool", more)],
        note: Some(words("Choose a tool.", more)),
        form: Some(form_of(more)),
        answer: Some(CallAnswer {
            verdict: "The call was refused",
            is_failure: true,
            kind: Some("permission_required"),
            explained: Some("A human must allow this tool first."),
            said: Some(words("the tool requires git.read", more)),
            run: Some("/w/default/runs/1".to_owned()),
            facts: vec![fact("time", "12 ms"), fact("decision", "refused by the check grants")],
            request: raw("{}"),
            text: raw("{\n  \"isError\": true\n}"),
            is_cut: true,
        }),
    }
}

fn form_of(more: &str) -> CallForm {
    let count = Field::new("v1", &text("count", more), Input::line(&text("many", more)));
    let json = Field::new("json", "JSON", Input::area(&text("{\n}", more), 8));
    CallForm {
        tool: words("git_log", more),
        description: words("Shows the commit logs", more),
        hints: vec!["destructive"],
        scopes: vec![words("git.read", more)],
        caller: words("you, in a new run", more),
        kept: vec![kept(more)],
        fields: vec![count.help(&text("A whole number.", more)).fault(Some(&text("no", more)))],
        remark: Some("The form has no room for further arguments."),
        json: json.fault(Some(&text("this is not JSON", more))),
        params: Some(Field::new("params", "Parameters", Input::area(&text("{}", more), 3))),
        schema: Some(text("{\n  \"type\": \"object\"\n}", more)),
        command: Some(text(&narthex("call git git_log", &[]).to_string(), more)),
        request: text("POST /mcp/w/default/git/tools/git_log", more),
    }
}

fn kept(more: &str) -> Kept {
    Kept { name: "base", value: text("{}", more) }
}

/// The question before a destructive call.
#[must_use]
pub fn play_ask_page_of(more: &str) -> PlayAskPage {
    PlayAskPage {
        frame: frame_of(more),
        action: "/w/default/play/call".to_owned(),
        tool: words("drop_table", more),
        server: words("db", more),
        caller: words("you, in a new run", more),
        arguments: text("{\n  \"table\": \"users\"\n}", more),
        kept: vec![kept(more)],
    }
}

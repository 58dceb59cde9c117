//! Samples of the parts of the pages of one server, whose texts end in another text.

use std::time::Duration;

use narthex_model::command::narthex;

use super::{
    definitions::{Change, Definition, DefinitionList, Review},
    log::{Log, LogBlock},
    tools::{Standing, Tool, Tools},
};
use crate::parts::{Empty, Filter, Moment, Words};

/// The path of the sample's first page.
pub(super) const PATH: &str = "/w/default/servers/git";

pub(super) fn words(text: &str, more: &str) -> Words {
    Words::new(&format!("{text}{more}"))
}

pub(super) fn moment() -> Moment {
    Moment::after_epoch(Duration::from_secs(1_790_000_000))
}

pub(super) fn path(rest: &str) -> String {
    format!("{PATH}/{rest}")
}

pub(super) fn empty() -> Empty {
    Empty { title: "None", sentence: "Nothing is here.".to_owned(), example: None, page: None }
}

pub(super) fn filter(label: &str, is_current: bool) -> Filter {
    Filter { href: path("tools?show=off"), label: label.to_owned(), count: Some(2), is_current }
}

/// Tools of each standing.
#[must_use]
pub fn tools(more: &str) -> Tools {
    let tool = |standing: Standing| Tool {
        name: words(standing.word(), more),
        title: Some(words("A title", more)),
        description: words("Shows the working tree", more),
        standing,
        reason: (standing != Standing::Visible).then(|| words("a rule hides it", more)),
        claims: vec!["it only reads"],
        arguments: vec![words("path", more)],
        more_arguments: 2,
        scopes: vec!["repo.read".to_owned()],
        tokens: Some(120),
    };
    Tools {
        fault: Some(words("the list of tools was cut", more)),
        tools: Standing::ALL.map(tool).to_vec(),
        count: 40,
        next: Some(path("tools?after=log")),
        none: "The server has no tools.",
    }
}

/// Definitions in each state.
#[must_use]
pub fn definitions(more: &str) -> DefinitionList {
    let item = |state: Review| Definition {
        id: format!("definition-{}", state.word().replace(' ', "-")),
        digest: "1f2e3d4c".to_owned(),
        kind: words("tool", more),
        name: words(state.word(), more),
        state,
        reason: Some(words("it has changed", more)),
        findings: vec![words("it has invisible characters", more)],
        changes: vec![Change::new(
            &format!("/description{more}"),
            Some(&format!("{}\\nFast.", words("Shows the tree.", more))),
            Some("Shows the tree, and pushes it.\\nFast."),
        )],
        left_out: 3,
        text: words("{\"name\":\"status\"}", more),
        whole: (state == Review::Rejected).then(|| path("definitions?digest=1f2e3d4c")),
        first_seen: moment(),
        decided: Some((words("ada", more), moment())),
    };
    DefinitionList {
        csrf: "token".to_owned(),
        note: Some(words("Another server lists a similar name.", more)),
        example: Some(narthex("servers definitions git --live", &[]).to_string()),
        filters: vec![filter("under review", true)],
        items: Review::ALL.map(item).to_vec(),
        accept: path("definitions/accept"),
        reject: path("definitions/reject"),
        next: Some(path("definitions?after=1f2e3d4c")),
        empty: empty(),
    }
}

/// The last lines of a log.
#[must_use]
pub fn log(more: &str) -> Log {
    let block = |number| LogBlock {
        number,
        lines: vec![words("listening", more), words("", ""), words("a request", more)],
    };
    Log { blocks: vec![block(7), block(8)], left_out: 12, none: "The program wrote nothing." }
}

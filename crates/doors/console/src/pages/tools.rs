//! All tools of the servers of this daemon's configuration, in one table.

use askama::Template;

use crate::{
    Frame, filters,
    parts::{Empty, Filter, Moment, Words, form::Field},
};

/// The page.
#[derive(Debug, Template)]
#[template(path = "tools.html")]
pub struct ToolsPage {
    /// The frame.
    pub frame: Frame,
    /// The path of this page.
    pub path: String,
    /// The text of the filter.
    pub filtered: String,
    /// The filters that both forms keep, each with its value.
    pub kept: Vec<(&'static str, String)>,
    /// The filters by state.
    pub filters: Vec<Filter>,
    /// The links that sort.
    pub sorts: Vec<Filter>,
    /// The rows of this page.
    pub rows: Vec<ToolRow>,
    /// Number of rows that fit the filters.
    pub fitting: usize,
    /// Number of all tools that the human sees.
    pub all: usize,
    /// The address of the page before this one.
    pub previous: Option<String>,
    /// The address of the next page.
    pub next: Option<String>,
    /// Number of the last calls that were looked at; `None` for those who may not read the audit.
    pub looked_at: Option<usize>,
    /// The servers whose tools are unknown, if there are any.
    pub unknown: Option<Unknown>,
    /// The form that changes several tools, for those who may.
    pub batch: Option<Batch>,
    /// Shown where there are no rows.
    pub empty: Empty,
}

/// The form that changes the chosen tools.
#[derive(Debug, Clone)]
pub struct Batch {
    /// The path that it is sent to.
    pub path: String,
    /// The change.
    pub act: Field,
    /// The tool scope that is required.
    pub scope: Field,
    /// The box that chooses all tools that fit the filters.
    pub whole: Field,
}

/// Servers that are not ready.
#[derive(Debug, Clone)]
pub struct Unknown {
    /// The number of servers.
    pub count: usize,
    /// The page that shows them.
    pub href: String,
}

/// A tool.
#[derive(Debug, Clone)]
pub struct ToolRow {
    /// The number of the row on this page.
    pub index: usize,
    /// The value that chooses the tool.
    pub pick: String,
    /// True for a chosen tool.
    pub is_picked: bool,
    /// The server's own name of it.
    pub name: Words,
    /// The server.
    pub server: Words,
    /// The page of the server's row.
    pub server_href: String,
    /// The description, which is text of the server.
    pub description: Words,
    /// The visibility for callers: a word.
    pub state: &'static str,
    /// The tool scopes that it requires.
    pub scopes: Vec<Words>,
    /// The hints that the server gives about it, in words.
    pub hints: Vec<&'static str>,
    /// The time of the last call, if it is among the last ones.
    pub called: Option<Moment>,
    /// The size of the definition in tokens, as an estimate.
    pub tokens: u64,
    /// The page that calls the tool, if callers see it.
    pub try_href: Option<String>,
    /// The reason why the tool cannot be changed here.
    pub off: Option<Words>,
}

//! The active runs that have a server.

use askama::Template;

use super::ServerTabs;
use crate::{
    Frame, filters,
    parts::{Empty, Moment, Words},
};

/// The page.
#[derive(Debug, Template)]
#[template(path = "server_runs.html")]
pub struct ServerRunsPage {
    /// The frame.
    pub frame: Frame,
    /// The links to the pages of the server.
    pub tabs: ServerTabs,
    /// The runs of this page.
    pub runs: Vec<RunRow>,
    /// The searched part of the active runs, in words.
    pub searched: Words,
    /// The address of the next page.
    pub next: Option<String>,
    /// Shown where there are none.
    pub empty: Empty,
}

/// A run.
#[derive(Debug, Clone)]
pub struct RunRow {
    /// The id.
    pub id: Words,
    /// The path of its page, for those who may open it.
    pub href: Option<String>,
    /// The number of the run.
    pub pid: u64,
    /// The agent, or the words for a run without one.
    pub agent: Words,
    /// The reason why it has the server.
    pub why: &'static str,
    /// The time at which it began.
    pub began: Moment,
    /// Number of open sessions of clients.
    pub clients: usize,
}

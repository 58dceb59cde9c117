//! The last calls of a server, as the audit has them.

use askama::Template;

use super::ServerTabs;
use crate::{
    Frame, filters,
    parts::{Empty, Filter, Moment, Words},
};

/// The page.
#[derive(Debug, Template)]
#[template(path = "server_calls.html")]
pub struct ServerCallsPage {
    /// The frame.
    pub frame: Frame,
    /// The links to the pages of the server.
    pub tabs: ServerTabs,
    /// The filters by outcome.
    pub filters: Vec<Filter>,
    /// The calls, the newest first.
    pub calls: Vec<CallRow>,
    /// The part of the audit that was searched, in words.
    pub searched: Words,
    /// The address of the page with older calls.
    pub next: Option<String>,
    /// Shown where there are none.
    pub empty: Empty,
}

/// The pages that belong to a call.
#[derive(Debug, Clone, Default)]
pub struct CallLinks {
    /// The address of its event.
    pub event: String,
    /// The path of its run, for those who may see runs.
    pub run: Option<String>,
}

/// A call.
#[derive(Debug, Clone)]
pub struct CallRow {
    /// The pages that belong to it.
    pub links: CallLinks,
    /// The time of its end.
    pub at: Moment,
    /// The method.
    pub method: Words,
    /// The tool, prompt or resource.
    pub item: Words,
    /// The run that made the call.
    pub run: Words,
    /// The outcome, as in the audit.
    pub outcome: Words,
    /// True if it was answered without an error.
    pub is_fine: bool,
    /// The check that refused it.
    pub refused_by: Option<Words>,
    /// The time that it took, in milliseconds.
    pub took: Words,
}

//! Runs: the list, one run with its tabs, and the sessions of agents.

pub mod samples;
pub mod tabs;
pub mod trace;

use askama::Template;

use crate::{
    Frame, filters,
    parts::{Action, Empty, Filter, Moment, Words},
};

/// The list of runs.
#[derive(Debug, Template)]
#[template(path = "runs.html")]
pub struct RunsPage {
    /// The frame.
    pub frame: Frame,
    /// The filters by status, and those that are set.
    pub filters: RunFilters,
    /// The live part.
    pub list: RunList,
    /// The words where there are no rows.
    pub none: RunNone,
    /// The text of the filter by agent.
    pub agent: String,
    /// The path of this page.
    pub path: String,
    /// The path of the list of sessions.
    pub sessions: String,
    /// The address of the next page.
    pub next: Option<String>,
}

/// The filters above the rows, with numbers of active runs.
#[derive(Debug, Clone, Template)]
#[template(path = "parts/run_filters.html")]
pub struct RunFilters {
    /// The filters.
    pub filters: Vec<Filter>,
}

/// The rows of a page.
#[derive(Debug, Clone, Template)]
#[template(path = "parts/run_list.html")]
pub struct RunList {
    /// The rows, the newest first.
    pub rows: Vec<RunRow>,
}

/// The words where a list has no rows; an empty element otherwise.
#[derive(Debug, Clone, Template)]
#[template(path = "parts/run_none.html")]
pub struct RunNone {
    /// The id of the element.
    pub id: &'static str,
    /// The words.
    pub empty: Option<Empty>,
}

/// One row, as the event stream sends it.
#[derive(Debug, Clone, Template)]
#[template(path = "parts/run_row.html")]
pub struct RunRowPart {
    /// The row.
    pub row: RunRow,
}

/// A run in a list.
#[derive(Debug, Clone)]
pub struct RunRow {
    /// The id of the row's element.
    pub id: String,
    /// The path of the run's page.
    pub href: String,
    /// The number of the run in its workspace.
    pub pid: u64,
    /// The name of the agent, or words for a run without one.
    pub agent: Words,
    /// The status.
    pub status: RunStatus,
    /// The human who drives the run.
    pub driver: Option<Words>,
    /// The run that created this one.
    pub parent: Option<Link>,
    /// The time of creation.
    pub created: Moment,
    /// The time of the end.
    pub ended: Option<Moment>,
    /// The time at which an active run ends by itself.
    pub expires: Option<Moment>,
    /// Number of generations between this run and the one of the page, from 1; 0 in a list.
    pub depth: usize,
}

/// A link to a page, with its words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// The path.
    pub href: String,
    /// The words.
    pub label: Words,
}

/// The status of a run or a session, as in the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunStatus(pub &'static str);

/// The sessions of agents.
#[derive(Debug, Template)]
#[template(path = "sessions.html")]
pub struct SessionsPage {
    /// The frame.
    pub frame: Frame,
    /// The rows.
    pub list: SessionList,
    /// The path of the list of runs.
    pub runs: String,
    /// The address of the next page.
    pub next: Option<String>,
}

/// The rows of a page of sessions.
#[derive(Debug, Clone, Template)]
#[template(path = "parts/session_list.html")]
pub struct SessionList {
    /// The value that forms repeat.
    pub csrf: String,
    /// The rows.
    pub rows: Vec<SessionRow>,
    /// Shown where there are no rows.
    pub empty: Empty,
}

/// A session of an agent.
#[derive(Debug, Clone)]
pub struct SessionRow {
    /// The id of the session.
    pub id: Words,
    /// The name of the agent, or words for a session without one.
    pub agent: Words,
    /// The status.
    pub status: RunStatus,
    /// The list of its runs.
    pub runs: String,
    /// The run that created the session.
    pub parent: Option<Link>,
    /// The time of creation.
    pub created: Moment,
    /// The principal who created it.
    pub created_by: Words,
    /// The time of the suspension, and the principal who suspended it.
    pub suspended: Option<(Moment, Words)>,
    /// The time of the end.
    pub ended: Option<Moment>,
    /// The names of variables that hold credentials which narthex does not control.
    pub env: Vec<Words>,
    /// The buttons.
    pub actions: Vec<Action>,
    /// The page that asks before the end of the session.
    pub question: Option<Link>,
}

/// The question before an action that cannot be undone.
#[derive(Debug, Template)]
#[template(path = "run_confirm.html")]
pub struct ConfirmPage {
    /// The frame.
    pub frame: Frame,
    /// The effects of the action, one sentence each.
    pub effects: Vec<Words>,
    /// The button that does it.
    pub action: Action,
    /// The page to go back to.
    pub back: String,
}

impl RunStatus {
    /// The word, as in the API and on the command line.
    #[must_use]
    pub fn word(self) -> &'static str {
        self.0
    }

    /// The icon.
    #[must_use]
    pub fn icon(self) -> &'static str {
        match self.0 {
            "running" => "play",
            "pending" => "clock",
            "suspended" => "pause",
            "failed" => "warning",
            "cancelled" => "cross",
            _ => "check",
        }
    }
}

impl RunRow {
    /// The class for the depth of a run in its tree. Deeper runs have the last one.
    #[must_use]
    pub fn depth_class(&self) -> &'static str {
        match self.depth {
            0 | 1 => "",
            2 => "deep-2",
            3 => "deep-3",
            _ => "deep-4",
        }
    }
}

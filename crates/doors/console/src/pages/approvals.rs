//! The inbox of approvals: the requests of agents, and the other things that wait for a human.

use askama::Template;

use crate::{
    Frame, filters,
    parts::{Empty, Filter, Moment, Words},
};

/// The page.
#[derive(Debug, Template)]
#[template(path = "approvals.html")]
pub struct ApprovalsPage {
    /// The frame.
    pub frame: Frame,
    /// Things that wait and are no requests; live.
    pub others: OtherWaits,
    /// The requests; live.
    pub list: ApprovalList,
}

/// The requests, and the filters above them.
#[derive(Debug, Clone, Template)]
#[template(path = "parts/approval_list.html")]
pub struct ApprovalList {
    /// The filters.
    pub filters: Vec<Filter>,
    /// The requests of this page.
    pub rows: Vec<RequestRow>,
    /// The address of the next page.
    pub next: Option<String>,
    /// Shown where there are no rows.
    pub empty: Empty,
}

/// One row, as the event stream sends it.
#[derive(Debug, Clone, Template)]
#[template(path = "parts/approval_row.html")]
pub struct RequestRowPart {
    /// The row.
    pub row: RequestRow,
}

/// A request of a run.
#[derive(Debug, Clone)]
pub struct RequestRow {
    /// The id of the row's element.
    pub id: String,
    /// The path of the page of the request.
    pub href: String,
    /// The requested permission.
    pub what: Words,
    /// The agent, or the run if it has none.
    pub who: Words,
    /// The address of the list of this agent's requests.
    pub who_href: Option<String>,
    /// The human who drives the run.
    pub driver: Option<Words>,
    /// The reason in the words of the agent.
    pub reason: Words,
    /// The time of the request.
    pub since: Moment,
    /// The time until which it waits.
    pub until: Moment,
    /// The decision; `None` while the request waits.
    pub outcome: Option<Outcome>,
    /// True if the human may decide it.
    pub is_for_me: bool,
}

/// The end of a request.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The status, as in the API.
    pub word: &'static str,
    /// True if the request was approved.
    pub is_granted: bool,
    /// The human who decided, and the time; `None` without a decision.
    pub decided: Option<Decided>,
}

/// A decision of a human.
#[derive(Debug, Clone)]
pub struct Decided {
    /// The human.
    pub by: Words,
    /// The time.
    pub at: Moment,
    /// The reason in the words of the human.
    pub reason: Words,
}

/// The things that wait and are no requests.
#[derive(Debug, Clone, Default, Template)]
#[template(path = "parts/other_waits.html")]
pub struct OtherWaits {
    /// All of them, by kind.
    pub items: Vec<OtherWait>,
}

/// Something that waits for a human.
#[derive(Debug, Clone)]
pub struct OtherWait {
    /// The thing that waits.
    pub name: Words,
    /// The reason why it waits.
    pub sentence: Words,
    /// The page on which it is done.
    pub href: String,
    /// The words of the link.
    pub label: &'static str,
    /// The command that shows the same, if a page alone does not.
    pub command: Option<String>,
}

//! The first page of a workspace: what is broken, and what waits.

use askama::Template;

use super::servers::ServerRow;
use crate::{
    Frame, filters,
    parts::{Moment, Words},
};

/// The page.
#[derive(Debug, Template)]
#[template(path = "home.html")]
pub struct HomePage {
    /// The frame.
    pub frame: Frame,
    /// True if the human may add a passkey, and has none.
    pub offers_passkey: bool,
    /// The first steps, while one of them is open.
    pub steps: Vec<Step>,
    /// The live part.
    pub now: Now,
}

/// The state of the workspace now. The event stream sends it again when it changes.
#[derive(Debug, Clone, Template)]
#[template(path = "parts/home_now.html")]
pub struct Now {
    /// The value that forms repeat.
    pub csrf: String,
    /// The number of servers; `None` for a human who may not see them.
    pub servers: Option<Counted>,
    /// The numbers of active runs; `None` for a human who may not see them.
    pub runs: Option<Runs>,
    /// Number of calls in the workspace today.
    pub calls: Number,
    /// The requests that wait for a decision, the oldest first.
    pub requests: Vec<Asking>,
    /// True if more requests wait.
    pub has_more_requests: bool,
    /// The servers with definitions under review.
    pub held_back: Vec<HeldBack>,
    /// The servers that are neither ready nor disabled.
    pub broken: Vec<ServerRow>,
    /// Number of further such servers.
    pub more_broken: usize,
    /// The address of the list of the servers that are ready.
    pub ready: String,
    /// The address of the list of the servers that are neither ready nor disabled.
    pub unready: String,
    /// The address of the list of the requests that wait.
    pub approvals: String,
}

/// Numbers of servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counted {
    /// All that are not disabled.
    pub all: usize,
    /// Those that are ready.
    pub ready: usize,
}

/// A number, and the list of what it counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Number {
    /// The number.
    pub count: u64,
    /// True if there may be more.
    pub is_part: bool,
    /// The address of the list; `None` for a human who may not open it.
    pub href: Option<String>,
}

/// Numbers of active runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Runs {
    /// Number of runs that are running.
    pub running: Number,
    /// Number of runs that no executor has begun.
    pub pending: Number,
}

/// A request that waits for a human.
#[derive(Debug, Clone)]
pub struct Asking {
    /// The path of the page on which it is decided.
    pub href: String,
    /// The agent or the run that asks.
    pub who: Words,
    /// The permission that it asks for.
    pub what: Words,
    /// The time of the request.
    pub since: Moment,
    /// The time until which it waits.
    pub until: Moment,
}

/// A server with definitions under review.
#[derive(Debug, Clone)]
pub struct HeldBack {
    /// The server.
    pub server: Words,
    /// The number of its definitions under review.
    pub count: usize,
    /// The path of the page on which they are decided.
    pub href: String,
}

/// One of the first steps.
#[derive(Debug, Clone)]
pub struct Step {
    /// The step.
    pub title: &'static str,
    /// How to do it.
    pub sentence: &'static str,
    /// The page on which it is done.
    pub href: String,
    /// The words on the link to that page.
    pub label: &'static str,
    /// The command that does it.
    pub command: String,
    /// True once narthex has seen it done.
    pub is_done: bool,
}

impl Now {
    /// True if a server is configured, as far as the human may see.
    #[must_use]
    pub fn has_servers(&self) -> bool {
        self.servers.is_some_and(|counted| counted.all > 0)
    }

    /// True if nothing is broken and nothing waits, as far as the human may see.
    #[must_use]
    pub fn is_calm(&self) -> bool {
        self.requests.is_empty() && self.held_back.is_empty() && self.broken.is_empty()
    }
}

//! The grants: what humans allow agents and users now.

use askama::Template;

use crate::{
    Frame, filters,
    parts::{Action, Empty, Filter, Moment, Words, form::Field},
};

/// The page.
#[derive(Debug, Template)]
#[template(path = "grants.html")]
pub struct GrantsPage {
    /// The frame.
    pub frame: Frame,
    /// The filters.
    pub filters: Vec<Filter>,
    /// The form that finds a tool scope.
    pub find: Find,
    /// The grants of this page.
    pub rows: Vec<GrantRow>,
    /// The address of the next page.
    pub next: Option<String>,
    /// Shown where there are no rows.
    pub empty: Empty,
}

/// The form that finds a tool scope.
#[derive(Debug, Clone)]
pub struct Find {
    /// The path of the page.
    pub path: String,
    /// The filters that stay, each with its value.
    pub kept: Vec<(&'static str, String)>,
    /// The tool scope.
    pub scope: Field,
}

/// A grant.
#[derive(Debug, Clone)]
pub struct GrantRow {
    /// The path of its page.
    pub href: String,
    /// The permission.
    pub what: Words,
    /// The kind of the subject: an agent or a user.
    pub kind: &'static str,
    /// The subject.
    pub subject: Words,
    /// The address of the list of the subject's grants.
    pub subject_href: String,
    /// The number of uses, or the time.
    pub lasts: Words,
    /// The time at which it ends in any case.
    pub ends: Option<Moment>,
    /// The human who granted it.
    pub by: Words,
    /// The proof that this was a human, in words.
    pub proof: &'static str,
    /// The time of the grant.
    pub at: Moment,
    /// The reason in the words of the human.
    pub reason: Words,
    /// The reason why it allows no call now.
    pub ended: Option<Ended>,
}

/// The reason why a grant allows no call.
#[derive(Debug, Clone)]
pub struct Ended {
    /// The reason.
    pub sentence: Words,
    /// The time since which this is so, if it is known.
    pub at: Option<Moment>,
}

/// The page of one grant.
#[derive(Debug, Template)]
#[template(path = "grant.html")]
pub struct GrantPage {
    /// The frame.
    pub frame: Frame,
    /// The grant.
    pub row: GrantRow,
    /// Further facts, such as the digest of exact arguments.
    pub details: Vec<(&'static str, Words)>,
    /// The runs that lose it, if it is revoked; `None` if they are unknown.
    pub losing: Option<Losing>,
    /// The button that revokes it.
    pub revoke: Option<Action>,
    /// The page to go back to.
    pub back: String,
}

/// Active runs that may use a grant.
#[derive(Debug, Clone, Default)]
pub struct Losing {
    /// Some of the runs, each with its agent.
    pub runs: Vec<LosingRun>,
    /// Number of the runs that were found.
    pub count: usize,
    /// True if only a part of the active runs was looked at.
    pub is_part: bool,
}

/// An active run that may use a grant.
#[derive(Debug, Clone)]
pub struct LosingRun {
    /// The run.
    pub run: Words,
    /// The path of its page, if there is one.
    pub href: Option<String>,
    /// The agent.
    pub agent: Words,
}

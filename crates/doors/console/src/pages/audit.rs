//! The audit: what was done, by whom, and whether the record of it is as it was written.

use askama::Template;

use crate::{
    Frame, filters,
    parts::{Empty, Filter, Moment, Words, form::Field},
};

/// The list of events.
#[derive(Debug, Template)]
#[template(path = "audit.html")]
pub struct AuditPage {
    /// The frame.
    pub frame: Frame,
    /// The path of this page.
    pub path: String,
    /// The fields of the filters.
    pub fields: Vec<Field>,
    /// The filters that are set, each as the link without it.
    pub filters: Vec<Filter>,
    /// The events.
    pub rows: Vec<AuditRow>,
    /// The number of events that were read for these rows, if some do not fit.
    pub looked_at: Option<usize>,
    /// The address of the next page.
    pub next: Option<String>,
    /// Events that are not in the list yet, in words.
    pub waiting: Option<Words>,
    /// The path that verifies the record.
    pub verify: String,
    /// The result of a verification, if this page is the answer to one.
    pub verified: Option<Verified>,
    /// The path of the export.
    pub export: String,
    /// Shown where there are no rows.
    pub empty: Empty,
}

/// An event in the list.
#[derive(Debug, Clone)]
pub struct AuditRow {
    /// The page of the event.
    pub href: String,
    /// The time.
    pub at: Moment,
    /// The kind.
    pub kind: Words,
    /// The principal.
    pub actor: Words,
    /// The object.
    pub object: Words,
    /// The outcome.
    pub outcome: Words,
    /// True if the act was not done.
    pub is_failure: bool,
}

/// The result of a verification.
#[derive(Debug, Clone)]
pub struct Verified {
    /// The result in words.
    pub sentence: Words,
    /// True if an event was changed, or could not be verified.
    pub is_broken: bool,
    /// The faults, the first of each chain.
    pub faults: Vec<Words>,
    /// The time of the newest event that was verified.
    pub until: Option<Moment>,
}

/// One event.
#[derive(Debug, Template)]
#[template(path = "audit_event.html")]
pub struct AuditEventPage {
    /// The frame.
    pub frame: Frame,
    /// The list.
    pub back: String,
    /// The event in one sentence.
    pub sentence: Words,
    /// The members that say something, in words.
    pub facts: Vec<AuditFact>,
    /// The result of comparing the event with its hash.
    pub hash: &'static str,
    /// True if the event matches its hash.
    pub is_as_written: bool,
    /// The event as it was written.
    pub raw: String,
}

/// A member of an event.
#[derive(Debug, Clone)]
pub struct AuditFact {
    /// The name in words.
    pub name: &'static str,
    /// The value.
    pub value: Words,
    /// The list of all events with this value, if it is a filter.
    pub href: Option<String>,
}

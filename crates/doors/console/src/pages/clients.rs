//! The registered clients of a workspace: programs that humans let in, and clients with a token of
//! their own.

use askama::Template;

use crate::{
    Frame, filters,
    parts::{Empty, Filter, Moment, Words, item::Item},
};

/// The page.
#[derive(Debug, Template)]
#[template(path = "clients.html")]
pub struct ClientsPage {
    /// The frame.
    pub frame: Frame,
    /// The facts of the client of the address.
    pub open: Option<Facts>,
    /// The text of the filter.
    pub filtered: String,
    /// The path of this page.
    pub path: String,
    /// The path of the page on which a client is connected.
    pub connect: String,
    /// The filters by kind.
    pub filters: Vec<Filter>,
    /// The rows of this page.
    pub rows: Vec<Item>,
    /// Number of clients that fit the filters.
    pub count: usize,
    /// The address of the next page.
    pub next: Option<String>,
    /// Shown where there are no rows.
    pub empty: Empty,
}

/// The facts of one client.
#[derive(Debug, Clone)]
pub struct Facts {
    /// The name.
    pub title: Words,
    /// The facts, each with its name.
    pub pairs: Vec<(&'static str, Words)>,
    /// The times, each with its name.
    pub times: Vec<(&'static str, Moment)>,
    /// The addresses to which the answers of a sign-in may go.
    pub redirects: Vec<Words>,
    /// The address of the list without these facts.
    pub close: String,
}

#[cfg(test)]
pub(super) mod samples;

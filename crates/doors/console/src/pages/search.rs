//! The results of a search over everything that the human may see.

use askama::Template;

use crate::{Frame, filters, parts::Words};

/// The page.
#[derive(Debug, Template)]
#[template(path = "search.html")]
pub struct SearchPage {
    /// The frame, with the text that was searched.
    pub frame: Frame,
    /// The groups with results, in the order of the pages.
    pub groups: Vec<Group>,
}

/// The results of one kind.
#[derive(Debug, Clone)]
pub struct Group {
    /// The kind, as a heading.
    pub title: &'static str,
    /// The results.
    pub found: Vec<Found>,
    /// True if more results exist.
    pub has_more: bool,
}

/// One result.
#[derive(Debug, Clone)]
pub struct Found {
    /// The path of its page.
    pub href: String,
    /// The name.
    pub name: Words,
    /// The kind of thing, in a few words.
    pub about: Words,
}

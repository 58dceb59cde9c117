//! One server: the links to its pages, and the first of them, with its state and its facts.

pub mod calls;
pub mod configuration;
pub mod definitions;
pub mod log;
pub mod runs;
pub mod sample_pages;
pub mod samples;
pub mod tools;

use askama::Template;

use super::servers::ServerRow;
use crate::{
    Frame, filters,
    parts::{Moment, Words},
};

/// The page.
#[derive(Debug, Template)]
#[template(path = "server.html")]
pub struct ServerPage {
    /// The frame.
    pub frame: Frame,
    /// The links to the pages of the server.
    pub tabs: ServerTabs,
    /// The live part.
    pub now: ServerNow,
}

/// The links to the pages of one server.
#[derive(Debug, Clone, Template)]
#[template(path = "parts/server_tabs.html")]
pub struct ServerTabs {
    /// The links, in their order.
    pub tabs: Vec<Tab>,
}

/// A link to a page of one server.
#[derive(Debug, Clone)]
pub struct Tab {
    /// The path.
    pub href: String,
    /// The name of the page.
    pub label: &'static str,
    /// Number of things on the page, where it matters.
    pub count: Option<usize>,
    /// True for the page that is open.
    pub is_current: bool,
}

/// The state of the server now. The event stream sends it again when it changes.
#[derive(Debug, Clone, Template)]
#[template(path = "parts/server_now.html")]
pub struct ServerNow {
    /// The value that forms repeat.
    pub csrf: String,
    /// The row of the server.
    pub row: ServerRow,
    /// Narthex's next step without a human, if there is one.
    pub next_step: Option<&'static str>,
    /// The facts of the server.
    pub facts: Vec<Fact>,
    /// The lists of the server.
    pub lists: Vec<Count>,
    /// The facts of the sign-in, if the server has one.
    pub sign_in: Vec<Fact>,
}

/// A fact: a name, and its value.
#[derive(Debug, Clone)]
pub struct Fact {
    /// The name.
    pub label: &'static str,
    /// The value in words.
    pub words: Words,
    /// The time of the fact.
    pub at: Option<Moment>,
}

/// A number of things, which leads to them.
#[derive(Debug, Clone)]
pub struct Count {
    /// The name of the things.
    pub label: &'static str,
    /// Their number; `None` if it is unknown.
    pub count: Option<usize>,
    /// The path of a page with them.
    pub href: Option<String>,
}

impl Fact {
    /// A fact in words.
    #[must_use]
    pub fn words(label: &'static str, words: &str) -> Self {
        Self { label, words: Words::new(words), at: None }
    }

    /// A time, or the words for none.
    #[must_use]
    pub fn time(label: &'static str, at: Option<Moment>, none: &str) -> Self {
        let words = if at.is_some() { Words::default() } else { Words::new(none) };
        Self { label, words, at }
    }
}

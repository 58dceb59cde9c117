//! Connect a client: what to paste or run, the file that narthex can write, and the clients that
//! came since the page was opened.

use askama::Template;

use crate::{
    Frame, filters,
    parts::{Action, Filter, Moment, Words},
};

/// The page.
#[derive(Debug, Template)]
#[template(path = "connect.html")]
pub struct ConnectPage {
    /// The frame.
    pub frame: Frame,
    /// The clients to choose from.
    pub clients: Vec<Filter>,
    /// The address of all servers.
    pub url: String,
    /// The chosen client.
    pub chosen: Option<Chosen>,
    /// The live part.
    pub arrived: Arrived,
    /// The address of the page with the same beginning.
    pub again: String,
}

/// The ways of one client.
#[derive(Debug, Clone)]
pub struct Chosen {
    /// The name of the client.
    pub name: Words,
    /// The file on this machine.
    pub file: OwnFile,
    /// The ways in which a person connects the client.
    pub ways: Vec<Way>,
}

/// The file of the client on this machine.
#[derive(Debug, Clone)]
pub enum OwnFile {
    /// The reason why narthex writes no file.
    Off(Words),
    /// The file, with the change that a button makes.
    Known {
        /// The path.
        path: Words,
        /// A sentence about the state of the file.
        state: Words,
        /// The lines that come into the file.
        lines: Vec<Words>,
        /// The way in which the client takes the change.
        refresh: Words,
        /// The button.
        action: Option<Action>,
    },
}

/// A way to connect a client.
#[derive(Debug, Clone)]
pub struct Way {
    /// The heading.
    pub title: &'static str,
    /// How it goes.
    pub sentence: Words,
    /// Texts to copy.
    pub texts: Vec<Text>,
}

/// A text to copy.
#[derive(Debug, Clone)]
pub struct Text {
    /// The place for the text.
    pub label: Words,
    /// The text. It is not cut.
    pub text: String,
}

/// The clients that came since the page was opened. The event stream sends it again.
#[derive(Debug, Clone, Template)]
#[template(path = "parts/connect_arrived.html")]
pub struct Arrived {
    /// The last ones, the newest first.
    pub clients: Vec<Arrival>,
}

/// A client that described itself.
#[derive(Debug, Clone)]
pub struct Arrival {
    /// The client's own name for itself.
    pub name: Words,
    /// The client's own version.
    pub version: Words,
    /// The time.
    pub at: Moment,
}

#[cfg(test)]
pub(super) mod samples;

//! The search in a registry of servers, and one server of it.

pub mod samples;

use askama::Template;

use crate::{
    Frame, filters,
    parts::{Empty, Words, form::Field},
};

/// The search.
#[derive(Debug, Template)]
#[template(path = "registry.html")]
pub struct RegistryPage {
    /// The frame.
    pub frame: Frame,
    /// The address of the registry.
    pub registry: Words,
    /// The searched words.
    pub words: String,
    /// The path of this page.
    pub path: String,
    /// The result; `None` before a search.
    pub result: Option<SearchResult>,
}

/// The result of a search.
#[derive(Debug, Clone)]
pub enum SearchResult {
    /// The registry has answered.
    Found(FoundList),
    /// The registry has not answered, or has refused.
    Failed(Failed),
}

/// The servers of one page.
#[derive(Debug, Clone)]
pub struct FoundList {
    /// The servers.
    pub rows: Vec<FoundRow>,
    /// Number of servers that the search found.
    pub count: usize,
    /// The address of the next page.
    pub next: Option<String>,
    /// True if the registry has more servers than were read.
    pub is_cut: bool,
    /// Number of servers that this version cannot read.
    pub unread: usize,
    /// Shown where there are no rows.
    pub empty: Empty,
}

/// A server that was found.
#[derive(Debug, Clone)]
pub struct FoundRow {
    /// The name in the registry.
    pub name: Words,
    /// The path of its page.
    pub href: String,
    /// The version.
    pub version: Words,
    /// The publisher's namespace.
    pub publisher: Words,
    /// The purpose, in the publisher's words.
    pub description: Words,
    /// The state in the registry, unless it is in use.
    pub status: Option<Words>,
    /// The ways that narthex can use, in words.
    pub ways: Words,
}

/// A failure of the registry, with the address that tries again.
#[derive(Debug, Clone)]
pub struct Failed {
    /// The kind of the failure.
    pub kind: &'static str,
    /// The failure.
    pub sentence: Words,
    /// The address that asks again.
    pub again: String,
}

/// One server.
#[derive(Debug, Template)]
#[template(path = "registry_server.html")]
pub struct RegistryServerPage {
    /// The frame.
    pub frame: Frame,
    /// The page to go back to.
    pub back: String,
    /// The server, or the reason why it is not there.
    pub result: ServerResult,
}

/// The description of a server, or the reason why it is not there.
#[derive(Debug, Clone)]
pub enum ServerResult {
    /// The registry has answered.
    Described(Box<Described>),
    /// The registry has not answered, or has refused.
    Failed(Failed),
}

/// The description of one version of a server.
#[derive(Debug, Clone)]
pub struct Described {
    /// The name in the registry.
    pub name: Words,
    /// The version.
    pub version: Words,
    /// The purpose, in the publisher's words.
    pub description: Words,
    /// The publisher's namespace.
    pub publisher: Words,
    /// The address of the source code, as text.
    pub source: Option<Words>,
    /// The address of the publisher's page, as text.
    pub website: Option<Words>,
    /// The state in the registry, unless it is in use.
    pub status: Option<Words>,
    /// The ways that narthex can use.
    pub ways: Vec<WayPart>,
    /// The parts that it cannot use.
    pub unusable: Vec<Words>,
    /// The command that adds the server to the configuration of this daemon.
    pub command: Words,
}

/// A way to reach the server.
#[derive(Debug, Clone)]
pub struct WayPart {
    /// The kind.
    pub kind: &'static str,
    /// The package with its version, or the address.
    pub target: Words,
    /// True for an image, whose signature is unknown.
    pub is_image: bool,
    /// The values that it takes.
    pub inputs: Vec<InputPart>,
    /// The form that adds it to the catalog, or the reason why there is none.
    pub draft: Result<DraftForm, Words>,
}

/// A value that a server takes.
#[derive(Debug, Clone)]
pub struct InputPart {
    /// The name.
    pub name: Words,
    /// The place of the value.
    pub place: Words,
    /// The purpose, in the publisher's words.
    pub description: Words,
    /// True if the server does not work without it.
    pub is_required: bool,
    /// True for a secret.
    pub is_secret: bool,
    /// The publisher's default.
    pub default: Option<Words>,
}

/// The form that adds a way to the catalog.
#[derive(Debug, Clone)]
pub struct DraftForm {
    /// The path that the form is sent to.
    pub path: String,
    /// The server's name, for the form. It is not cut.
    pub server: String,
    /// The version, for the form.
    pub version: String,
    /// The number of the way.
    pub way: usize,
    /// The id in the catalog.
    pub id: Field,
}

//! The port by which pages find servers in the registry of others. The program fills it in.

use std::{fmt, pin::Pin};

use narthex_model::ErrorKind;
use serde_json::Value;

/// An answer of the registry that is awaited.
pub type Finding<'a, T> = Pin<Box<dyn Future<Output = Result<T, FindFault>> + Send + 'a>>;

/// The registry of servers that this daemon asks.
pub trait PublicServers: fmt::Debug + Send + Sync {
    /// Returns the address of the registry.
    fn address(&self) -> String;

    /// Finds the newest versions of servers that have all of these words.
    fn search<'a>(&'a self, words: &'a str) -> Finding<'a, FoundServers>;

    /// Reads one version of a server; `latest` is the newest.
    fn describe<'a>(&'a self, name: &'a str, version: &'a str) -> Finding<'a, FoundServer>;
}

/// The reason why the registry gave no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FindFault {
    /// The kind of the fault.
    pub kind: ErrorKind,
    /// The sentence for a person.
    pub sentence: String,
}

/// The servers that a search found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FoundServers {
    /// The servers, in the order of their names.
    pub servers: Vec<FoundServer>,
    /// True if the registry has more servers with these words.
    pub is_cut: bool,
    /// Number of servers that this version of narthex cannot read.
    pub unread: usize,
}

/// One version of a server, as its publisher describes it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FoundServer {
    /// The name in the registry.
    pub name: String,
    /// The name for people.
    pub title: Option<String>,
    /// The version.
    pub version: String,
    /// The purpose, in the publisher's words.
    pub description: String,
    /// The namespace of the publisher.
    pub publisher: String,
    /// The address of the source code.
    pub source: Option<String>,
    /// The address of the publisher's page.
    pub website: Option<String>,
    /// The state in the registry with its reason, unless the version is in use.
    pub status: Option<String>,
    /// The ways that narthex can use.
    pub ways: Vec<FoundWay>,
    /// The parts that it cannot use, each with the reason.
    pub unusable: Vec<String>,
}

/// A way to reach a server.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundWay {
    /// The kind, such as `npm` or `http`.
    pub kind: &'static str,
    /// The package with its version, or the address.
    pub target: String,
    /// The values that it takes.
    pub inputs: Vec<FoundInput>,
    /// The server for the catalog without its id, or the reason why the catalog cannot have it.
    pub draft: Result<Value, String>,
}

/// A value that a server takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundInput {
    /// The name.
    pub name: String,
    /// The place, such as "the variable `KEY`".
    pub place: String,
    /// The purpose, in the publisher's words.
    pub description: Option<String>,
    /// True if the server does not work without it.
    pub is_required: bool,
    /// True for a secret.
    pub is_secret: bool,
    /// The publisher's default.
    pub default: Option<String>,
}

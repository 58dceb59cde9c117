//! The device behind a mount: one server, as one process may use it.

use std::{fmt::Debug, future::Future, pin::Pin};

use bytes::Bytes;

use crate::{Failure, tools};

/// A future of a device's answer.
pub type Answer<'a> = Pin<Box<dyn Future<Output = Result<Bytes, Failure>> + Send + 'a>>;

/// The kind of things that a server lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Tools.
    Tools,
    /// Resources.
    Resources,
    /// Prompts.
    Prompts,
}

impl Kind {
    /// Every kind, in the order in which a mount shows them.
    pub const ALL: [Self; 3] = narthex_model::every![Tools, Resources, Prompts];

    /// The name of the directory, and of the member of the list's result.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::Prompts => "prompts",
        }
    }
}

/// One server as one process may use it. The implementation checks every call: this crate checks
/// only the permission of the path. Dropping a future gives its call up.
pub trait Device: Debug + Send + Sync {
    /// The whole list, all pages as one result of MCP, such as `{"tools":[…]}`.
    fn list(&self, kind: Kind) -> Answer<'_>;

    /// The result of `tools/call`. A result with `isError` that the server gave is none of our
    /// failures (R-O12).
    fn call<'a>(&'a self, tool: &'a str, arguments: Bytes) -> Answer<'a>;

    /// The result of `resources/read`.
    fn read<'a>(&'a self, uri: &'a str) -> Answer<'a>;

    /// The result of `prompts/get`.
    fn prompt<'a>(&'a self, name: &'a str, arguments: Bytes) -> Answer<'a>;

    /// The schema of a tool's arguments as its server lists it; that of any object if it lists
    /// none.
    fn schema<'a>(&'a self, tool: &'a str) -> Answer<'a> {
        Box::pin(async move { tools::schema(&self.list(Kind::Tools).await?, tool) })
    }

    /// The description of a tool, as Markdown.
    fn description<'a>(&'a self, tool: &'a str) -> Answer<'a> {
        Box::pin(async move { tools::description(&self.list(Kind::Tools).await?, tool) })
    }

    /// The status of the server: a JSON object.
    fn status(&self) -> Answer<'_>;

    /// The stored part of the server's standard error, without known secrets.
    fn logs(&self) -> Answer<'_>;
}

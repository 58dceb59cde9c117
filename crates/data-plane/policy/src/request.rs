//! One request as policy sees it, and as it will be sent.

use std::sync::Arc;

use narthex_model::{Alias, ArgumentsDigest, Exposed, GrantId};
use narthex_wire::{Message, Rewrite};

/// The item that a request is about, under the server's own name for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// A tool.
    Tool(Arc<str>),
    /// A prompt.
    Prompt(Arc<str>),
    /// A resource or a template, by URI.
    Resource(Arc<str>),
    /// A task, by the server's id.
    Task(Arc<str>),
    /// The server as such: lists, vendor methods, subscriptions.
    Server,
}

impl Item {
    /// The name alone; empty for [`Item::Server`].
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Tool(name) | Self::Prompt(name) | Self::Resource(name) | Self::Task(name) => name,
            Self::Server => "",
        }
    }

    /// True if a server's rules let callers see the item. Lists ask the same of each entry (D5).
    #[must_use]
    pub fn is_exposed(&self, exposed: &Exposed) -> bool {
        match self {
            Self::Tool(name) => exposed.tools.lets(name),
            Self::Prompt(name) => exposed.prompts.lets(name),
            Self::Resource(uri) => exposed.resources.lets(uri),
            // A task is made by a call that was let through.
            Self::Task(_) | Self::Server => true,
        }
    }
}

/// A request or notification that is to go to one server, in its final form but for what belongs
/// to the hop (id, progress token, headers).
#[derive(Debug, Clone)]
pub struct Request {
    /// The server.
    pub alias: Alias,
    /// The checked bytes.
    pub message: Message,
    /// The item that the request is about, under the server's own name.
    pub item: Item,
    /// The changes to the caller's bytes: the server's own name of the item, and the edits for the
    /// server's protocol era.
    pub rewrite: Rewrite<'static>,
    /// The tool call that made the task, if the item is a task.
    pub origin: Option<Arc<Origin>>,
    /// The arguments that rules see: the same values in their one canonical spelling. Grants for
    /// exact arguments compare the sent ones.
    pub shown: Option<Arc<[u8]>>,
}

/// The call of a tool that made a task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    /// The tool, by the server's own name.
    pub tool: Arc<str>,
    /// The digest of the call's arguments, if they have one.
    pub arguments: Option<ArgumentsDigest>,
    /// The grants for a single call that it used up.
    pub paid: Vec<GrantId>,
}

impl Request {
    /// A request that goes as it is.
    #[must_use]
    pub fn new(alias: Alias, message: Message, item: Item) -> Self {
        Self { alias, message, item, rewrite: Rewrite::default(), origin: None, shown: None }
    }
}

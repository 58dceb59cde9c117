//! One request, as policy sees it and the link sends it.

use std::sync::Arc;

use narthex_model::{Alias, ArgumentsDigest, Exposed, GrantId};
use narthex_wire::{Message, Rewrite};

/// The item of a request, by the server's own name.
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
    /// The server itself: lists, vendor methods, subscriptions.
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

    /// True if a server's rules show the item to callers. Lists check each entry in this way (D5).
    #[must_use]
    pub fn is_exposed(&self, exposed: &Exposed) -> bool {
        match self {
            Self::Tool(name) => exposed.tools.lets(name),
            Self::Prompt(name) => exposed.prompts.lets(name),
            Self::Resource(uri) => exposed.resources.lets(uri),
            // A task was created by a call that was allowed.
            Self::Task(_) | Self::Server => true,
        }
    }
}

/// A request or notification for one server, in its final form but for the parts of the hop (id,
/// progress token, headers).
#[derive(Debug, Clone)]
pub struct Request {
    /// The server.
    pub alias: Alias,
    /// The checked bytes.
    pub message: Message,
    /// The item of the request, by the server's own name.
    pub item: Item,
    /// The changes to the caller's bytes: the server's own name of the item, and the edits for the
    /// server's protocol era.
    pub rewrite: Rewrite<'static>,
    /// The tool call that made the task, if the item is a task.
    pub origin: Option<Arc<Origin>>,
    /// The arguments for rules: the same values in their canonical spelling. Grants for exact
    /// arguments compare the sent ones.
    pub shown: Option<Arc<[u8]>>,
}

/// The tool call that made a task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    /// The tool, by the server's own name.
    pub tool: Arc<str>,
    /// The digest of the call's arguments; `None` if they have no unambiguous digest.
    pub arguments: Option<ArgumentsDigest>,
    /// The grants for a single call that the call used up.
    pub paid: Vec<GrantId>,
}

impl Request {
    /// A request without changes to its bytes.
    #[must_use]
    pub fn new(alias: Alias, message: Message, item: Item) -> Self {
        Self { alias, message, item, rewrite: Rewrite::default(), origin: None, shown: None }
    }
}

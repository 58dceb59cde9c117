//! One request as policy sees it, and as it will be sent.

use std::sync::Arc;

use bytes::Bytes;
use narthex_model::Alias;
use narthex_wire::Message;

/// What a request is about, under the server's own name for it.
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
}

/// A member of `params` that is written anew because the server knows the thing by another name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rename {
    /// The member of `params`.
    pub member: &'static str,
    /// Its new value, as JSON.
    pub value: Bytes,
}

/// A request or notification that is to go to one server.
#[derive(Debug, Clone)]
pub struct Request {
    /// The server.
    pub alias: Alias,
    /// The checked bytes.
    pub message: Message,
    /// What it is about. With a rename, this is the new name.
    pub item: Item,
    /// What is written in place of the caller's name.
    pub rename: Option<Rename>,
}

impl Request {
    /// A request that goes as it is.
    #[must_use]
    pub fn new(alias: Alias, message: Message, item: Item) -> Self {
        Self { alias, message, item, rename: None }
    }
}

//! Requests that narthex itself may send to a server.

use narthex_wire::method;

/// A request of narthex itself. No such request makes a server act for a client: a request that
/// acts goes through [`crate::Link::forward`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asking {
    /// Asks a legacy server for a sign of life.
    Ping,
    /// Asks a modern server for a sign of life.
    Discover,
    /// Lists a page of tools.
    Tools,
    /// Lists a page of prompts.
    Prompts,
    /// Lists a page of resources.
    Resources,
    /// Lists a page of resource templates.
    Templates,
    /// Subscribes to changes of a resource.
    Subscribe,
    /// Ends a subscription to changes of a resource.
    Unsubscribe,
    /// Sets the lowest level of log messages.
    SetLevel,
    /// Reads the status of a task.
    TaskState,
    /// Lists a page of tasks.
    Tasks,
}

impl Asking {
    /// The request for the list of this method; `None` if the method is no list.
    #[must_use]
    pub fn list(method: &str) -> Option<Self> {
        let lists = [Self::Tools, Self::Prompts, Self::Resources, Self::Templates];
        lists.into_iter().find(|list| list.method() == method)
    }

    /// The method.
    #[must_use]
    pub fn method(self) -> &'static str {
        match self {
            Self::Ping => method::PING,
            Self::Discover => method::SERVER_DISCOVER,
            Self::Tools => method::TOOLS_LIST,
            Self::Prompts => method::PROMPTS_LIST,
            Self::Resources => method::RESOURCES_LIST,
            Self::Templates => method::RESOURCES_TEMPLATES_LIST,
            Self::Subscribe => method::RESOURCES_SUBSCRIBE,
            Self::Unsubscribe => method::RESOURCES_UNSUBSCRIBE,
            Self::SetLevel => method::LOGGING_SET_LEVEL,
            Self::TaskState => method::TASKS_GET,
            Self::Tasks => method::TASKS_LIST,
        }
    }
}

//! Requests that narthex may send to a server by itself.

use narthex_wire::method;

/// A request of narthex's own. No server acts for a client because of one: a request that acts goes
/// through [`crate::Link::forward`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asking {
    /// A sign of life of a legacy server.
    Ping,
    /// A sign of life of a modern server.
    Discover,
    /// A page of its tools.
    Tools,
    /// A page of its prompts.
    Prompts,
    /// A page of its resources.
    Resources,
    /// A page of its templates.
    Templates,
    /// Asks for reports of changes of a resource.
    Subscribe,
    /// Ends these reports.
    Unsubscribe,
    /// To log from this level on.
    SetLevel,
    /// The status of a task.
    TaskState,
    /// A page of its tasks.
    Tasks,
}

impl Asking {
    /// The list of this method; `None` if it is no list.
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

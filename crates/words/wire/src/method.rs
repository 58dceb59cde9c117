//! Names of methods: of requests, then of notifications.

/// The constant for a quoted method that is called often.
pub(crate) fn frequent(quoted: &[u8]) -> Option<&'static str> {
    match quoted {
        br#""tools/call""# => Some(TOOLS_CALL),
        br#""tools/list""# => Some(TOOLS_LIST),
        br#""prompts/get""# => Some(PROMPTS_GET),
        br#""resources/read""# => Some(RESOURCES_READ),
        br#""notifications/progress""# => Some(PROGRESS),
        _ => None,
    }
}

/// Opens a legacy session.
pub const INITIALIZE: &str = "initialize";
/// Asks the other side for a sign of life (legacy).
pub const PING: &str = "ping";
/// Reads a server's description and capabilities (modern).
pub const SERVER_DISCOVER: &str = "server/discover";
/// Lists tools.
pub const TOOLS_LIST: &str = "tools/list";
/// Calls a tool.
pub const TOOLS_CALL: &str = "tools/call";
/// Lists prompts.
pub const PROMPTS_LIST: &str = "prompts/list";
/// Gets a prompt.
pub const PROMPTS_GET: &str = "prompts/get";
/// Lists resources.
pub const RESOURCES_LIST: &str = "resources/list";
/// Lists resource templates.
pub const RESOURCES_TEMPLATES_LIST: &str = "resources/templates/list";
/// Reads a resource.
pub const RESOURCES_READ: &str = "resources/read";
/// Subscribes to changes of a resource (legacy).
pub const RESOURCES_SUBSCRIBE: &str = "resources/subscribe";
/// Ends a subscription to a resource (legacy).
pub const RESOURCES_UNSUBSCRIBE: &str = "resources/unsubscribe";
/// Lists a directory of resources (skills extension).
pub const RESOURCES_DIRECTORY_READ: &str = "resources/directory/read";
/// Lists skills (skills extension).
pub const SKILLS_LIST: &str = "skills/list";
/// Gets a skill (skills extension).
pub const SKILLS_GET: &str = "skills/get";
/// Modern: opens a stream of change notifications.
pub const SUBSCRIPTIONS_LISTEN: &str = "subscriptions/listen";
/// Completes an argument.
pub const COMPLETION_COMPLETE: &str = "completion/complete";
/// Sets the lowest level of log messages of a session (legacy).
pub const LOGGING_SET_LEVEL: &str = "logging/setLevel";
/// Asks the client for a message of its model. A request of the server in legacy, embedded in a
/// result in modern.
pub const SAMPLING_CREATE_MESSAGE: &str = "sampling/createMessage";
/// Asks the client for input of its user; sent like sampling.
pub const ELICITATION_CREATE: &str = "elicitation/create";
/// Asks the client for its roots; sent like sampling.
pub const ROOTS_LIST: &str = "roots/list";
/// Reads the status of a task (both eras).
pub const TASKS_GET: &str = "tasks/get";
/// Gives input to a task (modern).
pub const TASKS_UPDATE: &str = "tasks/update";
/// Cancels a task (both eras).
pub const TASKS_CANCEL: &str = "tasks/cancel";
/// Waits for the result of a task (legacy).
pub const TASKS_RESULT: &str = "tasks/result";
/// Lists tasks (legacy).
pub const TASKS_LIST: &str = "tasks/list";

/// Legacy: the session is open.
pub const INITIALIZED: &str = "notifications/initialized";
/// A request is given up.
pub const CANCELLED: &str = "notifications/cancelled";
/// The progress of a request.
pub const PROGRESS: &str = "notifications/progress";
/// A log message.
pub const MESSAGE: &str = "notifications/message";
/// Tools changed.
pub const TOOLS_LIST_CHANGED: &str = "notifications/tools/list_changed";
/// Prompts changed.
pub const PROMPTS_LIST_CHANGED: &str = "notifications/prompts/list_changed";
/// Resources changed.
pub const RESOURCES_LIST_CHANGED: &str = "notifications/resources/list_changed";
/// One resource changed.
pub const RESOURCES_UPDATED: &str = "notifications/resources/updated";
/// Legacy: the client's roots changed.
pub const ROOTS_LIST_CHANGED: &str = "notifications/roots/list_changed";
/// Legacy: an elicitation by URL is done.
pub const ELICITATION_COMPLETE: &str = "notifications/elicitation/complete";
/// Modern: the first message of a listen stream.
pub const SUBSCRIPTIONS_ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
/// Tasks, modern: the status of a task.
pub const TASKS: &str = "notifications/tasks";
/// Tasks, legacy: the status of a task.
pub const TASKS_STATUS: &str = "notifications/tasks/status";

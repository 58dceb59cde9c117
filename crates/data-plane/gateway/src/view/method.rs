//! The one table of methods: the eras that know each method, its item, and the servers that answer
//! it.

use narthex_model::{folded_method, is_plain_method};
use narthex_wire::{Era, ListKind, Notification, method};

/// The way in which a method is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Handling {
    /// An empty result, at once.
    Ping,
    /// The capabilities of the endpoint.
    Discover,
    /// A list out of the lists of servers.
    List(ListKind),
    /// Goes to the server that has the named tool.
    Tool,
    /// Goes to the server that has the named prompt.
    Prompt,
    /// Goes to the server that has the URI.
    Resource,
    /// Starts or ends updates of one resource (legacy).
    Subscribe {
        /// True if the updates start.
        is_start: bool,
    },
    /// Goes to the server of the prompt or template that is completed.
    Complete,
    /// Sets the session's log level (legacy).
    SetLevel,
    /// Opens a stream of changes (modern).
    Listen,
    /// Goes to the server that made the task.
    Task,
    /// The caller's tasks at all servers (legacy).
    TaskList,
    /// Any method that the tables do not know, where there is one server: goes to that server.
    Vendor,
}

impl Handling {
    /// True if a request counts as an act of its run: signs of life do not.
    pub(crate) fn is_act(self) -> bool {
        !matches!(self, Self::Ping | Self::Listen)
    }
}

/// A row of the table: a method and its facts.
struct Row {
    name: &'static str,
    eras: Eras,
    handling: Handling,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Eras {
    Both,
    Legacy,
    Modern,
}

const fn row(name: &'static str, eras: Eras, handling: Handling) -> Row {
    Row { name, eras, handling }
}

const ROWS: &[Row] = &[
    row(method::TOOLS_CALL, Eras::Both, Handling::Tool),
    row(method::TOOLS_LIST, Eras::Both, Handling::List(ListKind::Tools)),
    row(method::PROMPTS_LIST, Eras::Both, Handling::List(ListKind::Prompts)),
    row(method::PROMPTS_GET, Eras::Both, Handling::Prompt),
    row(method::RESOURCES_LIST, Eras::Both, Handling::List(ListKind::Resources)),
    row(method::RESOURCES_TEMPLATES_LIST, Eras::Both, Handling::List(ListKind::Templates)),
    row(method::RESOURCES_READ, Eras::Both, Handling::Resource),
    row(method::RESOURCES_SUBSCRIBE, Eras::Legacy, Handling::Subscribe { is_start: true }),
    row(method::RESOURCES_UNSUBSCRIBE, Eras::Legacy, Handling::Subscribe { is_start: false }),
    row(method::RESOURCES_DIRECTORY_READ, Eras::Modern, Handling::Resource),
    row(method::COMPLETION_COMPLETE, Eras::Both, Handling::Complete),
    row(method::LOGGING_SET_LEVEL, Eras::Legacy, Handling::SetLevel),
    row(method::PING, Eras::Legacy, Handling::Ping),
    row(method::SERVER_DISCOVER, Eras::Modern, Handling::Discover),
    row(method::SUBSCRIPTIONS_LISTEN, Eras::Modern, Handling::Listen),
    row(method::TASKS_GET, Eras::Both, Handling::Task),
    row(method::TASKS_CANCEL, Eras::Both, Handling::Task),
    row(method::TASKS_RESULT, Eras::Legacy, Handling::Task),
    row(method::TASKS_LIST, Eras::Legacy, Handling::TaskList),
    row(method::TASKS_UPDATE, Eras::Modern, Handling::Task),
];

/// Methods that exist in one era only, but have no row of their own.
const LEGACY_ONLY: [&str; 1] = [method::INITIALIZE];

/// Returns the handling of a request. `None` if its era does not know the method, if the name
/// nearly spells a known one, or if it is no plain name: a server might misread such a name.
#[must_use]
pub(crate) fn handling(name: &str, era: Era) -> Option<Handling> {
    let Some(row) = ROWS.iter().find(|row| row.name == name) else {
        let is_vendor = is_plain_method(name)
            && !is_like_known(name)
            && !folded_method(name).starts_with(Notification::PREFIX);
        return is_vendor.then_some(Handling::Vendor);
    };
    let is_known = match row.eras {
        Eras::Both => true,
        Eras::Legacy => era == Era::Legacy,
        Eras::Modern => era == Era::Modern,
    };
    is_known.then_some(row.handling)
}

/// True if a name is that of a request or a notification of some revision, in any spelling.
#[must_use]
pub(crate) fn is_like_known(name: &str) -> bool {
    let folded = folded_method(name);
    let is_it = |known: &str| known.eq_ignore_ascii_case(&folded);
    names().chain(notification_names()).any(is_it)
}

/// The names of all requests, of all revisions.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    ROWS.iter().map(|row| row.name).chain(LEGACY_ONLY)
}

fn notification_names() -> impl Iterator<Item = &'static str> {
    Notification::ALL.iter().map(|known| known.name)
}

/// The tables' own copy of a method's name.
#[must_use]
pub(crate) fn known_name(name: &str) -> Option<&'static str> {
    ROWS.iter().map(|row| row.name).chain(notification_names()).find(|known| *known == name)
}

/// True if calls of a method may have further rounds.
pub(crate) fn has_rounds(method: &str) -> bool {
    matches!(method, method::TOOLS_CALL | method::PROMPTS_GET | method::RESOURCES_READ)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A modern caller may not use methods that its revision removed (protocol 2026-07-28).
    #[test]
    fn removed_methods_are_unknown_to_modern_callers() {
        for name in [
            "initialize",
            "ping",
            "logging/setLevel",
            "resources/subscribe",
            "tasks/result",
            "tasks/list",
        ] {
            assert_eq!(handling(name, Era::Modern), None, "{name}");
        }
        for name in ["server/discover", "subscriptions/listen", "tasks/update"] {
            assert_eq!(handling(name, Era::Legacy), None, "{name}");
            assert!(handling(name, Era::Modern).is_some());
        }
        assert_eq!(handling("vendor/thing", Era::Modern), Some(Handling::Vendor));
        assert_eq!(handling("skills/list", Era::Modern), Some(Handling::Vendor));
    }

    /// S12: a name that a lenient server reads as a known one is no vendor's.
    #[test]
    fn s12_a_misspelling_of_a_known_method_is_unknown() {
        for era in [Era::Legacy, Era::Modern] {
            for known in names() {
                let spellings = [
                    known.to_uppercase(),
                    format!(" {known}"),
                    format!("{known}\t"),
                    known.replace('s', "ſ").replace('k', "\u{212a}") + "\u{a0}",
                ];
                for spelt in spellings {
                    assert_eq!(handling(&spelt, era), None, "{spelt:?}");
                }
            }
            for name in ["notifications/cancelled", "Notifications/acme", "", "acme thing"] {
                assert_eq!(handling(name, era), None, "{name:?}");
            }
        }
    }

    #[test]
    fn no_method_has_two_rows() {
        for (index, row) in ROWS.iter().enumerate() {
            assert!(ROWS[..index].iter().all(|earlier| earlier.name != row.name), "{}", row.name);
        }
    }
}

//! The one table of notifications: who sends each, what it is about, and how clients ask for it.

use crate::{Era, ListKind, method};

/// A notification of the protocol: one row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Notification {
    /// Its method.
    pub name: &'static str,
    /// The sides that send it.
    pub sender: Sender,
    /// The only era that has it; `None` for both.
    pub era: Option<Era>,
    /// The thing that it is about, which decides who gets it.
    pub about: About,
    /// The member of a listener's filter that asks for it; `None` if no filter does.
    pub filter: Option<Filter>,
}

/// The sides that send a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sender {
    /// Clients alone.
    Client,
    /// Servers alone.
    Server,
    /// Clients and servers.
    Both,
}

/// The thing that a notification is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum About {
    /// The link: its session is open.
    Session,
    /// A request of the sender's, which is given up: `requestId` names it.
    Request,
    /// A call: its progress, by the receiver's token.
    Progress,
    /// The server's log, and perhaps a call that is open.
    Log,
    /// Lists that the receiver has to read anew.
    Lists(&'static [ListKind]),
    /// One resource, which changed: `uri` names it.
    Resource,
    /// One task, whose status changed: `taskId` names it.
    Task,
    /// The client's roots, which changed.
    Roots,
    /// An elicitation by URL, which is done.
    Elicitation,
    /// A listener's stream, which its server acknowledges.
    Stream,
}

/// A member of `notifications` of `subscriptions/listen`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filter {
    /// `true` asks for the notification.
    Flag(&'static str),
    /// A list of the URIs or ids that the client wants to hear of.
    Names(&'static str),
}

/// The member of a listener's filter that names resources.
pub const RESOURCES_FILTER: &str = "resourceSubscriptions";
/// The member of a listener's filter that names tasks.
pub const TASKS_FILTER: &str = "taskIds";

const fn row(name: &'static str, sender: Sender, era: Option<Era>, about: About) -> Notification {
    Notification { name, sender, era, about, filter: None }
}

const fn list(
    name: &'static str,
    lists: &'static [ListKind],
    filter: &'static str,
) -> Notification {
    row(name, Sender::Server, None, About::Lists(lists)).with(Filter::Flag(filter))
}

/// The table, the most frequent first.
const ROWS: &[Notification] = &[
    row(method::PROGRESS, Sender::Both, None, About::Progress),
    row(method::MESSAGE, Sender::Server, None, About::Log),
    row(method::CANCELLED, Sender::Both, None, About::Request),
    list(method::TOOLS_LIST_CHANGED, &[ListKind::Tools], "toolsListChanged"),
    list(method::PROMPTS_LIST_CHANGED, &[ListKind::Prompts], "promptsListChanged"),
    list(
        method::RESOURCES_LIST_CHANGED,
        &[ListKind::Resources, ListKind::Templates],
        "resourcesListChanged",
    ),
    row(method::RESOURCES_UPDATED, Sender::Server, None, About::Resource)
        .with(Filter::Names(RESOURCES_FILTER)),
    row(method::TASKS, Sender::Server, Some(Era::Modern), About::Task)
        .with(Filter::Names(TASKS_FILTER)),
    row(method::TASKS_STATUS, Sender::Both, Some(Era::Legacy), About::Task),
    row(method::INITIALIZED, Sender::Client, Some(Era::Legacy), About::Session),
    row(method::ROOTS_LIST_CHANGED, Sender::Client, Some(Era::Legacy), About::Roots),
    row(method::ELICITATION_COMPLETE, Sender::Server, Some(Era::Legacy), About::Elicitation),
    row(method::SUBSCRIPTIONS_ACKNOWLEDGED, Sender::Server, Some(Era::Modern), About::Stream),
];

/// Number of rows with a filter.
const fn filters_len() -> usize {
    let (mut at, mut number) = (0, 0);
    while at < ROWS.len() {
        number += ROWS[at].filter.is_some() as usize;
        at += 1;
    }
    number
}

const fn filters() -> [Filter; filters_len()] {
    let mut filters = [Filter::Flag(""); filters_len()];
    let (mut at, mut next) = (0, 0);
    while at < ROWS.len() {
        if let Some(filter) = ROWS[at].filter {
            filters[next] = filter;
            next += 1;
        }
        at += 1;
    }
    filters
}

impl Notification {
    /// The prefix of the names of all notifications of the protocol.
    pub const PREFIX: &'static str = "notifications/";

    /// All rows of the table.
    pub const ALL: &'static [Self] = ROWS;

    const fn with(self, filter: Filter) -> Self {
        Self { filter: Some(filter), ..self }
    }

    /// The notification of this method; `None` if the protocol has none of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        ROWS.iter().find(|known| known.name == name)
    }

    /// The notifications that lists have changed.
    pub fn of_lists() -> impl Iterator<Item = &'static Self> {
        ROWS.iter().filter(|known| !known.lists().is_empty())
    }

    /// True if the notification of this method announces that a list changed.
    #[must_use]
    pub fn is_list_change(name: &str) -> bool {
        Self::named(name).is_some_and(|known| !known.lists().is_empty())
    }

    /// The lists that the receiver has to read anew; empty for other notifications.
    #[must_use]
    pub fn lists(&self) -> &'static [ListKind] {
        match self.about {
            About::Lists(lists) => lists,
            _ => &[],
        }
    }

    /// True if clients send it.
    #[must_use]
    pub fn is_of_clients(&self) -> bool {
        matches!(self.sender, Sender::Client | Sender::Both)
    }

    /// True if it only maintains a link and its requests, and acts on nothing of a server.
    #[must_use]
    pub fn is_upkeep(&self) -> bool {
        match self.about {
            About::Session | About::Request | About::Progress | About::Roots => true,
            About::Log
            | About::Lists(_)
            | About::Resource
            | About::Task
            | About::Elicitation
            | About::Stream => false,
        }
    }
}

impl Filter {
    /// The name of the member.
    #[must_use]
    pub const fn member(self) -> &'static str {
        match self {
            Self::Flag(member) | Self::Names(member) => member,
        }
    }

    /// The filters of all notifications.
    pub const ALL: &'static [Self] = &filters();

    /// The members that name resources and tasks.
    pub fn naming() -> impl Iterator<Item = &'static str> {
        Self::ALL.iter().filter_map(|filter| match *filter {
            Self::Names(member) => Some(member),
            Self::Flag(_) => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_notification_and_no_filter_has_two_rows() {
        let mut seen = HashSet::new();
        assert!(ROWS.iter().all(|known| seen.insert(known.name)));
        assert!(ROWS.iter().all(|known| known.name.starts_with(Notification::PREFIX)));
        let mut seen = HashSet::new();
        assert!(Filter::ALL.iter().all(|filter| seen.insert(filter.member())));
    }

    /// The constants of `method` and the rows are the same notifications.
    #[test]
    fn each_notification_with_a_name_has_a_row() {
        let named = include_str!("method.rs").lines();
        let named = named.filter_map(|line| line.strip_prefix("pub const ")?.split_once('"'));
        let named = named.map(|(_, name)| name.trim_end_matches("\";"));
        let named = named.filter(|name| name.starts_with(Notification::PREFIX));
        let rows: HashSet<_> = ROWS.iter().map(|known| known.name).collect();
        assert_eq!(named.collect::<HashSet<_>>(), rows);
    }

    #[test]
    fn a_changed_list_of_resources_also_changes_templates() {
        let lists = Notification::named(method::RESOURCES_LIST_CHANGED).unwrap().lists();
        assert_eq!(lists, [ListKind::Resources, ListKind::Templates]);
        let all: Vec<_> = Notification::of_lists().flat_map(Notification::lists).collect();
        assert_eq!(all.len(), 4);
        assert!(!Notification::is_list_change(method::ROOTS_LIST_CHANGED));
    }
}

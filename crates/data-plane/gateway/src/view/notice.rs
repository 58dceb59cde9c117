//! The one table of notifications that clients send: which of them go to a server.

use narthex_model::{is_plain_method, is_protocol_method};
use narthex_wire::method;

use crate::view::method::is_like_known;

/// The treatment of a notification of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Notice {
    /// Gives up one of the client's own requests. Ends here.
    Cancel,
    /// Reports that the session is open, which is known. Ends here.
    Opened,
    /// Goes to each server that was offered the client's roots.
    Roots,
    /// Belongs to a question of a server to this client: forwarded if the server has a link for
    /// this client alone, as a server can only ask over such a link.
    OfQuestion,
    /// A notification that servers send to clients. Ends here.
    OfServers,
    /// Unknown, and named like a notification: goes to the server of a transparent endpoint.
    Vendor,
    /// Unknown, and named otherwise: goes to that server if the server's entry lists it.
    Listed,
}

const ROWS: &[(&str, Notice)] = &[
    (method::CANCELLED, Notice::Cancel),
    (method::INITIALIZED, Notice::Opened),
    (method::ROOTS_LIST_CHANGED, Notice::Roots),
    (method::PROGRESS, Notice::OfQuestion),
    (method::TASKS_STATUS, Notice::OfQuestion),
    (method::MESSAGE, Notice::OfServers),
    (method::TOOLS_LIST_CHANGED, Notice::OfServers),
    (method::PROMPTS_LIST_CHANGED, Notice::OfServers),
    (method::RESOURCES_LIST_CHANGED, Notice::OfServers),
    (method::RESOURCES_UPDATED, Notice::OfServers),
    (method::ELICITATION_COMPLETE, Notice::OfServers),
    (method::SUBSCRIPTIONS_ACKNOWLEDGED, Notice::OfServers),
    (method::TASKS, Notice::OfServers),
];

/// The prefix of the names of all notifications of the protocol.
pub(crate) const PREFIX: &str = "notifications/";

/// Returns the treatment of a notification of this name. `None` if no notification may have it: the
/// name is that of a request of some revision, nearly spells a known name, or is no plain name.
#[must_use]
pub(crate) fn notice(name: &str) -> Option<Notice> {
    if let Some((_, notice)) = ROWS.iter().find(|(known, _)| *known == name) {
        return Some(*notice);
    }
    if !is_plain_method(name) || is_like_known(name) {
        return None;
    }
    if name.strip_prefix(PREFIX).is_some_and(|rest| !rest.is_empty()) {
        return Some(Notice::Vendor);
    }
    (!is_protocol_method(name)).then_some(Notice::Listed)
}

/// The names of the table.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    ROWS.iter().map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S12: no request passes as a notification, in no spelling and of no revision.
    #[test]
    fn s12_no_notification_is_named_like_a_request() {
        for known in crate::view::method::names() {
            for name in [known.to_owned(), known.to_uppercase(), format!(" {known}\t")] {
                assert_eq!(notice(&name), None, "{name:?}");
            }
            assert!(is_protocol_method(known), "{known} could be listed in an entry");
        }
        for name in names() {
            assert!(notice(name).is_some(), "{name}");
            assert_eq!(notice(&name.to_uppercase()), None, "{name}");
            assert_eq!(notice(&format!("{name} ")), None, "{name}");
        }
    }

    #[test]
    fn unknown_notifications_go_on_by_their_form() {
        let table = [
            ("notifications/acme/changed", Some(Notice::Vendor)),
            ("notifications/", None),
            ("Notifications/acme", None),
            ("notifications/acmé", None),
            ("acme/changed", Some(Notice::Listed)),
            ("$/cancelRequest", Some(Notice::Listed)),
            ("tools/acme", None),
            ("acme changed", None),
            ("", None),
        ];
        for (name, expected) in table {
            assert_eq!(notice(name), expected, "{name:?}");
        }
    }

    #[test]
    fn no_notification_has_two_rows() {
        let mut seen = std::collections::HashSet::new();
        assert!(names().all(|name| seen.insert(name)));
    }
}

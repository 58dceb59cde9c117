//! The treatment of notifications that clients send: which of them go to a server.

use narthex_model::{is_plain_method, is_protocol_method};
use narthex_wire::{Notification, notification::About};

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

/// Returns the treatment of a notification of this name. `None` if no notification may have it: the
/// name is that of a request of some revision, nearly spells a known name, or is no plain name.
#[must_use]
pub(crate) fn notice(name: &str) -> Option<Notice> {
    if let Some(known) = Notification::named(name) {
        return Some(known_notice(known));
    }
    if !is_plain_method(name) || is_like_known(name) {
        return None;
    }
    if name.strip_prefix(Notification::PREFIX).is_some_and(|rest| !rest.is_empty()) {
        return Some(Notice::Vendor);
    }
    (!is_protocol_method(name)).then_some(Notice::Listed)
}

fn known_notice(known: &Notification) -> Notice {
    if !known.is_of_clients() {
        return Notice::OfServers;
    }
    match known.about {
        About::Request => Notice::Cancel,
        About::Session => Notice::Opened,
        About::Roots => Notice::Roots,
        // A client sends these only about a question that a server asked it.
        About::Progress
        | About::Task
        | About::Log
        | About::Lists(_)
        | About::Resource
        | About::Elicitation
        | About::Stream => Notice::OfQuestion,
    }
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
        for name in Notification::ALL.iter().map(|known| known.name) {
            assert!(notice(name).is_some(), "{name}");
            assert_eq!(notice(&name.to_uppercase()), None, "{name}");
            assert_eq!(notice(&format!("{name} ")), None, "{name}");
        }
    }

    #[test]
    fn unknown_notifications_are_classified_by_the_form_of_their_name() {
        let table = [
            ("notifications/cancelled", Some(Notice::Cancel)),
            ("notifications/initialized", Some(Notice::Opened)),
            ("notifications/roots/list_changed", Some(Notice::Roots)),
            ("notifications/progress", Some(Notice::OfQuestion)),
            ("notifications/tasks/status", Some(Notice::OfQuestion)),
            ("notifications/message", Some(Notice::OfServers)),
            ("notifications/tools/list_changed", Some(Notice::OfServers)),
            ("notifications/resources/updated", Some(Notice::OfServers)),
            ("notifications/tasks", Some(Notice::OfServers)),
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
}

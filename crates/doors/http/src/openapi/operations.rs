//! Every operation of the door, in words. A route that is not here fails a test.

mod access;
mod catalog;
mod clients;
mod door;
mod events;
mod grants;
mod oauth;
mod outbound;
mod policy;
mod public_registry;
mod runs;
mod servers;
mod shares;
mod signin;

use super::operation::Operation;

/// All of them, by subject.
pub(super) const OPERATIONS: &[(&str, &[Operation])] = &[
    ("mcp", door::OPERATIONS),
    ("sign-in", signin::OPERATIONS),
    ("oauth", oauth::OPERATIONS),
    ("servers", servers::OPERATIONS),
    ("access", access::OPERATIONS),
    ("clients", clients::OPERATIONS),
    ("catalog", catalog::OPERATIONS),
    ("registry", public_registry::OPERATIONS),
    ("runs", runs::OPERATIONS),
    ("events", events::OPERATIONS),
    ("shares", shares::OPERATIONS),
    ("outbound", outbound::OPERATIONS),
    ("grants", grants::OPERATIONS),
    ("policy", policy::OPERATIONS),
];

/// The subject and the words of an operation.
pub(super) fn find(method: &str, template: &str) -> Option<(&'static str, &'static Operation)> {
    let is_it = |one: &&Operation| one.method == method && one.template == template;
    OPERATIONS.iter().find_map(|(tag, all)| Some((*tag, all.iter().find(is_it)?)))
}

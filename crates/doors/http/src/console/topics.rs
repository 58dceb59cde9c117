//! The live parts of all pages.

use super::{approvals, frame, home, live::Topic, server, servers};

/// All of them; their names differ, since addresses have them.
pub(super) const TOPICS: &[&Topic] = &[
    &frame::TOPIC,
    &home::TOPIC,
    &servers::TOPIC,
    &server::OVERVIEW,
    &server::TOOLS,
    &server::DEFINITIONS,
    &server::LOG,
    &approvals::TOPIC,
];

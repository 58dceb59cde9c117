//! The live parts of all pages.

use super::{approvals, connect, frame, home, live::Topic, runs, server, servers};

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
    &connect::TOPIC,
    &runs::TOPIC,
    &runs::ONE_TOPIC,
    &runs::TRACE_TOPIC,
    &runs::MESSAGES_TOPIC,
];

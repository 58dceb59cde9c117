//! The live parts of all pages.

use super::{frame, home, live::Topic, runs, servers};

/// All of them; their names differ, since addresses have them.
pub(super) const TOPICS: &[&Topic] = &[
    &frame::TOPIC,
    &home::TOPIC,
    &servers::TOPIC,
    &runs::TOPIC,
    &runs::ONE_TOPIC,
    &runs::TRACE_TOPIC,
    &runs::MESSAGES_TOPIC,
];

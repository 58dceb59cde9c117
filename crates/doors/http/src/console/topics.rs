//! The live parts of all pages.

use super::{connect, frame, home, live::Topic, servers};

/// All of them; their names differ, since addresses have them.
pub(super) const TOPICS: &[&Topic] =
    &[&frame::TOPIC, &home::TOPIC, &servers::TOPIC, &connect::TOPIC];

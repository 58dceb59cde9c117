//! The events of the files, in order, for one listener.

use std::{collections::VecDeque, path::Path, sync::Arc};

use tokio::sync::watch;

use super::{FollowError, LayersState};
use crate::{config::ConfigWarning, layers::Declared};

/// An event for a listener to act on.
#[derive(Debug, Clone)]
pub enum LayersEvent {
    /// The declared set has changed.
    Changed {
        /// The whole set; the global layer's entries come first.
        declared: Arc<[Declared]>,
        /// Warnings about tolerated, changed or ignored content of the files.
        warnings: Arc<[ConfigWarning]>,
    },
    /// A file's present content does not count; the last good one stays in effect.
    Failed {
        /// The file.
        file: Arc<Path>,
        /// The reason and the remedy.
        error: FollowError,
    },
    /// A file that had failed is good again.
    Recovered {
        /// The file.
        file: Arc<Path>,
    },
    /// A file was removed, and declares nothing until it exists again.
    Gone {
        /// The file.
        file: Arc<Path>,
    },
}

/// Events from the moment of subscribing. A slow listener misses superseded events, never the
/// newest set and never the last failure of a file.
#[derive(Debug)]
pub struct Subscription {
    states: watch::Receiver<Arc<LayersState>>,
    seen: Arc<LayersState>,
    pending: VecDeque<LayersEvent>,
}

impl Subscription {
    pub(super) fn new(mut states: watch::Receiver<Arc<LayersState>>) -> Self {
        let seen = states.borrow_and_update().clone();
        Self { states, seen, pending: VecDeque::new() }
    }

    /// The next event; `None` once the files are dropped. Cancelling the future loses no event.
    pub async fn next(&mut self) -> Option<LayersEvent> {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Some(event);
            }
            self.states.changed().await.ok()?;
            let state = self.states.borrow_and_update().clone();
            self.pending.extend(news(&self.seen, &state));
            self.seen = state;
        }
    }
}

fn news(seen: &LayersState, state: &LayersState) -> Vec<LayersEvent> {
    let mut events = Vec::new();
    let files = || seen.files.iter().zip(&state.files);
    for (old, new) in files().filter(|(_, new)| new.error.is_none()) {
        if new.recoveries > old.recoveries {
            events.push(LayersEvent::Recovered { file: new.file.clone() });
        }
    }
    for (old, new) in files().filter(|(_, new)| new.gone_since.is_some()) {
        if new.departures > old.departures {
            events.push(LayersEvent::Gone { file: new.file.clone() });
        }
    }
    if state.revision != seen.revision {
        let LayersState { declared, warnings, .. } = state.clone();
        events.push(LayersEvent::Changed { declared, warnings });
    }
    for (old, new) in files() {
        if let Some(error) = new.error.clone().filter(|_| new.failures > old.failures) {
            events.push(LayersEvent::Failed { file: new.file.clone(), error });
        }
    }
    events
}

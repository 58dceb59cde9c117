//! The open event streams of pages, by login session.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

/// Number of open streams of one login session. A browser has six connections to a host.
const STREAMS_MAX: usize = 4;

/// The open streams of each login session.
#[derive(Debug, Default)]
pub(crate) struct PageStreams(Arc<Mutex<HashMap<String, usize>>>);

/// The place of one open stream.
#[derive(Debug)]
pub(crate) struct PagePlace {
    session: String,
    all: Arc<Mutex<HashMap<String, usize>>>,
}

impl PageStreams {
    /// Number of open streams of all login sessions.
    pub(crate) fn count(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).values().sum()
    }

    /// Takes a place for a stream of a login session; `None` if it has too many.
    pub(crate) fn take(&self, session: &str) -> Option<PagePlace> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let open = all.entry(session.to_owned()).or_default();
        if *open >= STREAMS_MAX {
            return None;
        }
        *open += 1;
        Some(PagePlace { session: session.to_owned(), all: self.0.clone() })
    }
}

impl Drop for PagePlace {
    fn drop(&mut self) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = all.get_mut(&self.session) {
            *open = open.saturating_sub(1);
            if *open == 0 {
                all.remove(&self.session);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A login session has few streams, and gives back the place of each that ends.
    #[test]
    fn a_login_session_has_a_few_streams_at_a_time() {
        let streams = PageStreams::default();
        let mut places: Vec<_> = (0..STREAMS_MAX).map(|_| streams.take("ada").unwrap()).collect();
        assert!(streams.take("ada").is_none());
        assert!(streams.take("bob").is_some());
        assert_eq!(streams.count(), STREAMS_MAX);
        places.pop();
        places.push(streams.take("ada").unwrap());
        drop(places);
        assert!(streams.0.lock().unwrap().is_empty());
    }
}

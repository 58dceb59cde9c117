//! The pages whose end a session waits for.

use std::{
    collections::HashSet,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// The pages whose end is reported to a session, by their ids.
#[derive(Debug, Default)]
pub(crate) struct Pages(Mutex<HashSet<String>>);

/// Outcome of a session's attempt to wait for a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waited {
    /// The session waits for the page from now on.
    New,
    /// The session waits for the page already, and is notified once.
    Already,
    /// The session waits for as many pages as it may.
    Full,
}

impl Pages {
    pub(crate) fn wait_for(&self, id: &str) -> Waited {
        let mut all = self.lock();
        if all.contains(id) {
            return Waited::Already;
        }
        if all.len() == PAGES_MAX {
            return Waited::Full;
        }
        all.insert(id.to_owned());
        Waited::New
    }

    pub(crate) fn done(&self, id: &str) {
        self.lock().remove(id);
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Number of pages that one session waits for at a time.
const PAGES_MAX: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    /// X-M55: a session is notified once of the end of a page, and waits for a limited number of
    /// pages.
    #[test]
    fn a_session_waits_for_a_limited_number_of_pages() {
        let pages = Pages::default();
        for number in 0..PAGES_MAX {
            assert_eq!(pages.wait_for(&number.to_string()), Waited::New);
        }
        assert_eq!((pages.wait_for("0"), pages.wait_for("more")), (Waited::Already, Waited::Full));
        pages.done("0");
        assert_eq!((pages.wait_for("more"), pages.wait_for("0")), (Waited::New, Waited::Full));
    }
}

//! Decisions and names of other servers that are applied to live servers here.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use narthex_registry::Held;

use crate::reviews::live_names::{KnownNames, NamesDigest};

/// The applied decisions on the definitions of each live server, by place and alias. `numbers` has
/// the number of the store that was read before the last look at all lists of the server, and
/// `names` the other names that it was compared with.
#[derive(Debug, Default)]
pub(crate) struct AppliedDecisions {
    pub(crate) numbers: StateOfServers<i64>,
    pub(crate) names: StateOfServers<NamesDigest>,
    pub(crate) logged: Logged,
    pub(crate) known: KnownNames,
}

/// Definitions under review of each live server, by place and alias, that were logged. A server is
/// looked at several times when it starts: on each of its links, and beside the lists of others.
#[derive(Debug, Default)]
pub(crate) struct Logged(Mutex<BTreeMap<(String, String), Vec<Held>>>);

impl Logged {
    /// Number of lists of a server, which differ by the link, that are remembered.
    const LISTS_MAX: usize = 8;

    /// True if this was not logged since the last look that found none under review.
    pub(crate) fn is_news(&self, place: &str, server: &str, held: &Held) -> bool {
        let key = (place.to_owned(), server.to_owned());
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if held.count() == 0 {
            known.remove(&key);
            return false;
        }
        let told = known.entry(key).or_default();
        if told.contains(held) {
            return false;
        }
        if told.len() == Self::LISTS_MAX {
            told.remove(0);
        }
        told.push(held.clone());
        true
    }
}

/// The state with which all lists of each live server, by place and alias, were looked at.
#[derive(Debug)]
pub(crate) struct StateOfServers<T>(Mutex<BTreeMap<(String, String), Option<T>>>);

impl<T> Default for StateOfServers<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: PartialEq> StateOfServers<T> {
    /// Notes the state with which one list of a server was looked at. An earlier state stays: other
    /// lists of it may have been looked at with less.
    pub(crate) fn note_first(&self, place: &str, server: &str, with: T) {
        self.known().entry((place.to_owned(), server.to_owned())).or_insert(Some(with));
    }

    /// Notes the state with which one list of a server was looked at. If it differs from the state
    /// before, the server's state is unknown until all lists were looked at.
    pub(crate) fn note_one(&self, place: &str, server: &str, with: T) {
        let mut known = self.known();
        match known.get_mut(&(place.to_owned(), server.to_owned())) {
            Some(before) if before.as_ref() == Some(&with) => {}
            Some(before) => *before = None,
            None => drop(known.insert((place.to_owned(), server.to_owned()), Some(with))),
        }
    }

    /// Notes the state with which all lists of a server were looked at.
    pub(crate) fn note(&self, place: &str, server: &str, with: T) {
        self.known().insert((place.to_owned(), server.to_owned()), Some(with));
    }

    /// True if all lists of a server were looked at with this state.
    pub(crate) fn holds(&self, place: &str, server: &str, with: &T) -> bool {
        let known = self.known();
        known
            .get(&(place.to_owned(), server.to_owned()))
            .is_some_and(|it| it.as_ref() == Some(with))
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<(String, String), Option<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use narthex_model::Alias;
    use narthex_upstream::Listed;

    use super::*;

    /// S22: definitions under review are logged once, and again when they change, or when the same
    /// ones return after none were.
    #[test]
    fn s22_definitions_under_review_are_logged_once_for_each_change() {
        let alias = Alias::new("git").unwrap();
        let held = |names: &[&str]| {
            let mut held = Held::default();
            names.iter().for_each(|name| held.names.add(&alias, Listed::Tool, name));
            held
        };
        let logged = Logged::default();
        let is_news = |names: &[&str]| logged.is_news("mcp.json", "git", &held(names));
        let looks: [&[&str]; 7] = [&["a"], &["a"], &["a", "b"], &["a"], &[], &["a"], &["a"]];
        assert_eq!(looks.map(is_news), [true, false, true, false, false, true, false]);
        assert!(logged.is_news("mcp.json", "mail", &held(&["a"])), "each server for itself");
    }
}

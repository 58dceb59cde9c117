//! The table of live runs.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use narthex_model::{RunId, RunToken};
use subtle::ConstantTimeEq;
use tokio::sync::watch;

use super::RunView;

/// Number of ended runs that are remembered.
const ENDED_MAX: usize = 4096;

/// All live runs. Reads take no lock.
#[derive(Debug, Default)]
pub struct RunTable {
    runs: papaya::HashMap<RunId, Arc<RunView>>,
    /// Hashes of the tokens of runs that have ended lately, the oldest first.
    ended: Mutex<VecDeque<[u8; 32]>>,
    /// Rises with each run that is added or removed.
    changed: watch::Sender<u64>,
}

impl RunTable {
    /// Adds a run.
    pub(crate) fn insert(&self, run: &Arc<RunView>) {
        self.runs.pin().insert(run.id, run.clone());
        self.changed.send_modify(|count| *count += 1);
    }

    /// Removes a run: its token opens nothing any more. `None` if there is no such run.
    pub(crate) fn remove(&self, id: RunId) -> Option<Arc<RunView>> {
        let run = self.runs.pin().remove(&id).cloned()?;
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        if ended.len() >= ENDED_MAX {
            ended.pop_front();
        }
        ended.push_back(run.token_hash);
        drop(ended);
        self.changed.send_modify(|count| *count += 1);
        Some(run)
    }

    /// Tells of runs that are added or removed from now on.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// True if a token is the token of a run that has ended in this process. The table remembers
    /// only the last ones.
    #[must_use]
    pub fn has_ended(&self, token: &str) -> bool {
        if RunToken::id_in(token).is_none() {
            return false;
        }
        let hash = RunToken::hash_of(token);
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).contains(&hash)
    }

    /// Every run, the oldest first.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<RunView>> {
        let mut all: Vec<_> = self.runs.pin().values().cloned().collect();
        all.sort_by_key(|run| (run.began, run.id));
        all
    }

    /// Number of live runs.
    #[must_use]
    pub fn len(&self) -> usize {
        self.runs.len()
    }

    /// True if no run is live.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The live run of an id.
    #[must_use]
    pub fn get(&self, id: RunId) -> Option<Arc<RunView>> {
        self.runs.pin().get(&id).cloned()
    }

    /// The run that a token opens; `None` for any other text.
    #[must_use]
    pub fn identify(&self, token: &str) -> Option<Arc<RunView>> {
        let run = self.get(RunToken::id_in(token)?)?;
        bool::from(RunToken::hash_of(token).ct_eq(&run.token_hash)).then_some(run)
    }
}

#[cfg(test)]
mod tests {
    use narthex_policy::RunPolicy;

    use super::*;

    #[test]
    fn a_token_opens_its_own_run_only() {
        let table = RunTable::default();
        let (one, two) = (RunToken::generate().unwrap(), RunToken::generate().unwrap());
        for token in [&one, &two] {
            table.insert(&Arc::new(RunView::new(token, RunPolicy::AllAttached)));
        }
        assert_eq!(table.identify(one.expose()).unwrap().id, one.run_id());
        assert_ne!(one.run_id(), two.run_id());
        let mut forged = one.expose().to_owned();
        let last = if forged.ends_with('A') { 'Q' } else { 'A' };
        forged.pop();
        forged.push(last);
        for bad in
            ["", "nxt_", "nxt_AAAA", &forged, &one.expose()[4..], &format!("{} ", one.expose())]
        {
            assert!(table.identify(bad).is_none(), "{bad}");
        }
        assert!(!table.has_ended(one.expose()));
        let changes = table.changes();
        table.remove(one.run_id()).unwrap();
        assert!(table.identify(one.expose()).is_none() && table.has_ended(one.expose()));
        assert!(changes.has_changed().unwrap(), "readers of the table notice the end");
        assert!(!table.has_ended(&forged) && !table.has_ended(two.expose()));
    }

    /// S27: debug output contains no token.
    #[test]
    fn s27_debug_output_does_not_contain_tokens() {
        let token = RunToken::generate().unwrap();
        let view = RunView::new(&token, RunPolicy::AllAttached);
        assert!(!format!("{token:?} {view:?}").contains(&token.expose()[20..]));
    }
}

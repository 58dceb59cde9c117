//! The clients that described themselves last, for a person who waits for one. Imports no other
//! module of this crate.
//!
//! No call comes here: a legacy client describes itself once for a session, and a modern one when
//! it asks for the description of an endpoint.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
    time::SystemTime,
};

use narthex_model::{PrincipalId, WorkspaceId};
use narthex_wire::Raw;
use tokio::sync::watch;

/// Number of clients that are kept.
const KEPT: usize = 100;
/// Maximum number of characters of a client's name and of its version.
const TEXT_MAX: usize = 100;

/// A client that described itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrival {
    /// The time.
    pub at: SystemTime,
    /// The client's own name for itself, which proves nothing.
    pub name: String,
    /// The client's own version.
    pub version: String,
    /// The workspace of its run.
    pub workspace: WorkspaceId,
    /// The human who drives its run.
    pub user: Option<PrincipalId>,
}

/// The last arrivals of this process, in their order.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    kept: Mutex<VecDeque<Arrival>>,
    changes: watch::Sender<u64>,
}

impl Arrivals {
    /// Notes a client by its `clientInfo`.
    pub(crate) fn note(&self, info: Raw<'_>, workspace: &WorkspaceId, user: Option<PrincipalId>) {
        let text = |name: &str| {
            let text = info.get(name).and_then(Raw::as_str).unwrap_or_default();
            text.chars().take(TEXT_MAX).collect::<String>()
        };
        let arrival = Arrival {
            at: SystemTime::now(),
            name: text("name"),
            version: text("version"),
            workspace: workspace.clone(),
            user,
        };
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT {
            kept.pop_front();
        }
        kept.push_back(arrival);
        drop(kept);
        self.changes.send_modify(|count| *count += 1);
    }

    /// All that are kept, in their order.
    pub(crate) fn all(&self) -> Vec<Arrival> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().cloned().collect()
    }

    /// Changes with each arrival.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names of clients are texts of strangers: they are cut, and only the last ones are kept.
    #[test]
    fn s11_the_last_clients_are_kept_and_their_names_cut() {
        let arrivals = Arrivals::default();
        let changes = arrivals.changes();
        let long = "x".repeat(5_000);
        for count in 0..150 {
            let info = format!(r#"{{"name":"{count}-{long}","version":7}}"#);
            arrivals.note(Raw::new(info.as_bytes()), &WorkspaceId::default(), None);
        }
        let all = arrivals.all();
        assert_eq!(all.len(), KEPT);
        assert!(all[0].name.starts_with("50-x") && all[KEPT - 1].name.starts_with("149-x"));
        assert!(all.iter().all(|one| one.name.len() == TEXT_MAX && one.version.is_empty()));
        assert!(changes.has_changed().unwrap());
    }
}

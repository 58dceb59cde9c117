//! Open attempts that have ended: finished in vain here or by another process.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use crate::{
    fetch::POST_TIME,
    holding::{Holding, Parts},
    known::Known,
    store::StoreFault,
};

/// Seconds from the end of an attempt to the next one: its tokens may still arrive, and a program
/// that waits for them must see that it has ended.
pub(crate) const REOPENS: u64 = 60;
const _: () = assert!(POST_TIME.as_secs() < REOPENS);

/// Compares the open attempts of this process with those of the store.
///
/// # Errors
/// When the store fails.
pub(crate) async fn see_ended(parts: &Parts, known: &Known) -> Result<(), StoreFault> {
    let now = parts.now();
    let mut open: BTreeMap<String, Vec<(Arc<Holding>, String)>> = BTreeMap::new();
    for one in known.by_grant().into_iter().flat_map(|(_, of)| of) {
        let holding = &one.holding;
        reopen(holding, now);
        let hash = holding
            .with_state(|state| state.open_attempt(now).map(|attempt| attempt.state_hash.clone()));
        if let Some(hash) = hash {
            let here = open.entry(holding.key.workspace.clone()).or_default();
            here.push((Arc::clone(holding), hash));
        }
    }
    for (workspace, of) in open {
        // Read after the memory: an attempt is stored before it is shown.
        let present = parts.options.store.open_attempts(workspace).await?;
        let present: HashSet<_> = present.iter().map(String::as_str).collect();
        for (holding, hash) in of.iter().filter(|(_, hash)| !present.contains(hash.as_str())) {
            holding.attempt_ended(hash, now.saturating_add(REOPENS));
        }
    }
    Ok(())
}

/// Tells subscribers of a server that waits for a person, and has no address for them.
fn reopen(holding: &Holding, now: u64) {
    let is_due = holding.with_state(|state| {
        let is_over = state.reopens_at.is_some_and(|at| at <= now);
        is_over && state.usable(now).is_none() && state.open_attempt(now).is_none()
    });
    if is_due {
        holding.update(|state| state.reopens_at = None);
        // The human of the grant opens the next attempt in their own browser.
        if !holding.key.needs_own_browser() {
            holding.parts.changed(&holding.key);
        }
    }
}

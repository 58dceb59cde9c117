//! Renewals of idle grants, by choice of an entry (C26): some refresh tokens end if they are not
//! used for a while.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use narthex_oauth::client::Freshness;
use tokio::time::sleep;

use crate::{
    holding::{Holding, Parts},
    job::{self, Job},
};

/// The pause between two looks.
const PAUSE: Duration = Duration::from_secs(3600);
/// Seconds since the last renewal after which an ended token is renewed.
const IDLE: u64 = 24 * 3600;

/// Looks after an idle grant for as long as its credential lives, if the entry asks for it.
pub(crate) fn watch(holding: &Arc<Holding>) {
    let wants = holding.entry().person().is_ok_and(|person| person.keep_alive);
    if wants && holding.begins_keep_alive() {
        let (weak, parts) = (Arc::downgrade(holding), Arc::clone(&holding.parts));
        let options = &holding.parts.options;
        drop(options.tasks.spawn_on(look(weak, parts), &options.runtime));
    }
}

async fn look(holding: Weak<Holding>, parts: Arc<Parts>) {
    loop {
        tokio::select! {
            // Hours are long enough for the lifetimes of refresh tokens, which are days.
            () = sleep(PAUSE) => {}
            () = parts.stop.cancelled() => return,
        }
        let Some(holding) = holding.upgrade() else { return };
        if is_idle(&holding) {
            // Failures are noted by the task itself.
            drop(job::run(&holding, Job::Renew).await);
        }
    }
}

/// True if the grant was not renewed for a day.
fn is_idle(holding: &Holding) -> bool {
    let now = holding.now();
    holding.with_state(|state| {
        state.held.as_ref().is_some_and(|held| {
            let grant = &held.value.grant;
            let is_old = now >= grant.tokens.obtained_at.saturating_add(IDLE);
            let is_of_person = !grant.origin.is_repeatable();
            is_of_person && is_old && grant.can_renew() && grant.freshness(now) != Freshness::Fresh
        })
    })
}

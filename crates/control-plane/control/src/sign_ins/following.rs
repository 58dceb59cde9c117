//! Follows the grants of this process: changes, failed renewals, and attempts that have ended.

use narthex_oauth_client::{
    SignIns,
    store::{GrantFacts, GrantKey},
};
use tokio::sync::broadcast::{Receiver, error::RecvError};
use tokio_util::sync::CancellationToken;

use crate::live::Polls;

/// The events of grants, from the moment at which this was made.
pub(super) struct Following {
    sign_ins: SignIns,
    changes: Receiver<GrantKey>,
    failures: Receiver<(GrantKey, GrantFacts)>,
}

impl Following {
    pub(super) fn of(sign_ins: SignIns) -> Self {
        let (changes, failures) = (sign_ins.changes(), sign_ins.failures());
        Self { sign_ins, changes, failures }
    }

    /// Follows until `closing` is cancelled: `changed` gets each grant that was given or dropped,
    /// and `failed` each one for which a request for tokens has failed. Neither may block. The
    /// store is asked only for attempts that are open.
    pub(super) async fn run(
        mut self,
        closing: CancellationToken,
        changed: impl Fn(&GrantKey) + Send,
        failed: impl Fn(&GrantKey, &GrantFacts) + Send,
    ) {
        let mut polls = Polls::until(closing.clone());
        loop {
            tokio::select! {
                biased;
                () = closing.cancelled() => return,
                change = self.changes.recv() => match change {
                    Ok(key) => changed(&key),
                    // Some changes were missed: all grants may have changed.
                    Err(RecvError::Lagged(_)) => {
                        self.sign_ins.statuses().iter().for_each(|(key, _)| changed(key));
                    }
                    Err(RecvError::Closed) => return,
                },
                failure = self.failures.recv() => match failure {
                    Ok((key, facts)) => failed(&key, &facts),
                    Err(RecvError::Lagged(count)) => {
                        tracing::warn!("{count} failed renewals are not recorded in the audit");
                    }
                    Err(RecvError::Closed) => return,
                },
                _is_open = polls.next() => {
                    if let Err(error) = self.sign_ins.see_ended_attempts().await {
                        tracing::debug!(%error, "ended sign-ins cannot be found");
                    }
                }
            }
        }
    }
}

//! Counts and records the renewals of tokens, which no operator asks for.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use narthex_audit::{Actor, Audit, AuditEvent, kind};
use narthex_model::WorkspaceId;
use narthex_oauth_client::{
    SignInHooks,
    store::{GrantFacts, GrantKey},
};

/// Numbers of answers to requests for tokens, since the start.
#[derive(Debug, Default)]
pub struct SignInCounts {
    succeeded: AtomicU64,
    failed: AtomicU64,
}

impl SignInCounts {
    /// The numbers, each with the name of its result.
    #[must_use]
    pub fn by_result(&self) -> [(&'static str, u64); 2] {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        [("succeeded", read(&self.succeeded)), ("failed", read(&self.failed))]
    }
}

/// Notes each change of tokens: in the counts, and failures in the audit.
#[derive(Debug)]
pub struct SignInRecorder {
    audit: Audit,
    counts: Arc<SignInCounts>,
}

impl SignInRecorder {
    /// A recorder without counts yet.
    #[must_use]
    pub fn new(audit: Audit) -> Self {
        Self { audit, counts: Arc::default() }
    }

    /// The counts, which change with each request for tokens.
    #[must_use]
    pub fn counts(&self) -> Arc<SignInCounts> {
        self.counts.clone()
    }
}

impl SignInHooks for SignInRecorder {
    fn on_tokens_changed(&self, key: &GrantKey, facts: Option<&GrantFacts>) {
        // Tokens that were dropped are recorded by the action that dropped them.
        let Some(facts) = facts else { return };
        let Some(failure) = &facts.failure else {
            self.counts.succeeded.fetch_add(1, Ordering::Relaxed);
            return;
        };
        self.counts.failed.fetch_add(1, Ordering::Relaxed);
        let mut event = AuditEvent::new(kind::SERVER_RENEWAL_FAILED, Actor::system());
        event.outcome = "failed".into();
        if let Ok(workspace) = WorkspaceId::new(&key.workspace) {
            event = event.in_workspace(&workspace);
        }
        let event = event.on("server", key.server.clone()).with("reason", failure.clone());
        let event = event.with("issuer", facts.issuer.clone());
        if let Err(full) = self.audit.note(event) {
            tracing::warn!("a failed renewal could not be recorded in the audit: {full}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Successes and failures are told apart, and a sign-out counts as neither.
    #[test]
    fn oauth_c25_renewals_are_counted_by_their_result() {
        let recorder = SignInRecorder::new(Audit::disabled());
        let key = GrantKey { workspace: "default".into(), server: "linear".into(), user: None };
        let failed = GrantFacts { failure: Some("timeout".to_owned()), ..GrantFacts::default() };
        recorder.on_tokens_changed(&key, Some(&GrantFacts::default()));
        recorder.on_tokens_changed(&key, Some(&failed));
        recorder.on_tokens_changed(&key, Some(&failed));
        recorder.on_tokens_changed(&key, None);
        assert_eq!(recorder.counts().by_result(), [("succeeded", 1), ("failed", 2)]);
    }
}

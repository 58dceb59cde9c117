//! Counts and records requests for tokens, which no operator makes.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use narthex_audit::{Actor, Audit, AuditEvent, kind};
use narthex_login::{LoginOptions, PublicOrigin, oidc::Client};
use narthex_model::{SharedGrant, WorkspaceId};
use narthex_oauth::client::ClientIdentity;
use narthex_oauth_client::{
    SignInHooks, SignIns,
    store::{GrantFacts, GrantKey},
};
use url::Url;

use crate::connection_path;

/// The sign-ins of a process, and the counts of their requests.
#[derive(Debug, Clone)]
pub struct ServerSignIns {
    /// The sign-ins, which the registry uses as well.
    pub sign_ins: SignIns,
    /// The counts, which are hooks of the sign-ins.
    pub counts: Arc<SignInCounts>,
}

/// Numbers of requests for tokens, since the start.
#[derive(Debug, Default)]
pub struct SignInCounts {
    succeeded: AtomicU64,
    failed: AtomicU64,
    /// The origin at which humans sign in to narthex.
    origin: Option<PublicOrigin>,
    /// The clients at the login providers, by name.
    providers: BTreeMap<String, Client>,
}

impl SignInCounts {
    /// Counts without requests yet. Humans connect their accounts at pages of `origin`.
    #[must_use]
    pub fn at(origin: Option<PublicOrigin>) -> Self {
        Self { origin, ..Self::default() }
    }

    /// The same with the login providers of these options. Those that keep no identity of humans
    /// give none.
    #[must_use]
    pub fn with_logins(mut self, login: Option<&LoginOptions>) -> Self {
        let providers = login.into_iter().flat_map(|login| &login.providers);
        let kept = providers.filter(|one| one.client.keeps_identity);
        self.providers = kept.map(|one| (one.name.clone(), one.client.clone())).collect();
        self
    }

    /// The numbers, each with the name of its result.
    #[must_use]
    pub fn by_result(&self) -> [(&'static str, u64); 2] {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        [("succeeded", read(&self.succeeded)), ("failed", read(&self.failed))]
    }
}

impl SignInHooks for SignInCounts {
    fn on_tokens_changed(&self, _key: &GrantKey, facts: Option<&GrantFacts>) {
        // Tokens that were dropped are recorded by the action that dropped them.
        if facts.is_some() {
            self.succeeded.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn on_tokens_failed(&self, _key: &GrantKey, _facts: &GrantFacts) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }

    fn login_client(&self, provider: &str) -> Option<ClientIdentity> {
        let Client { client_id, client_secret, .. } = self.providers.get(provider)?;
        Some(ClientIdentity::new(client_id, client_secret.clone(), None))
    }

    fn login_page(&self, provider: &str) -> Option<Url> {
        let origin = self.origin.as_ref().filter(|_| self.providers.contains_key(provider))?;
        Url::parse(&origin.at(&format!("/signin/oidc/{provider}"))).ok()
    }

    fn exchanges_for(&self, provider: &str, server: &Url) -> Option<bool> {
        let servers = self.providers.get(provider)?.exchange_servers.as_ref()?;
        Some(servers.contains(&server.origin().ascii_serialization()))
    }

    fn page_of(&self, key: &GrantKey) -> Option<Url> {
        let (origin, id) = (self.origin.as_ref()?, SharedGrant::catalog_id(&key.server)?);
        let workspace = WorkspaceId::new(&key.workspace).ok()?;
        Url::parse(&origin.at(&connection_path(&workspace, id))).ok()
    }
}

/// Records the failure of a request for tokens in the audit.
pub(super) fn record_failure(key: &GrantKey, facts: &GrantFacts, audit: &Audit) {
    let mut event = AuditEvent::new(kind::SERVER_RENEWAL_FAILED, Actor::system());
    event.outcome = "failed".into();
    if let Ok(workspace) = WorkspaceId::new(&key.workspace) {
        event = event.in_workspace(&workspace);
    }
    let server = SharedGrant::catalog_id(&key.server).unwrap_or(&key.server).to_owned();
    let event = event.on("server", server).with("issuer", facts.issuer.clone());
    let event = event.with("reason", facts.failure.clone().unwrap_or_default());
    if let Err(full) = audit.note(event) {
        tracing::warn!("a failed renewal could not be recorded in the audit: {full}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each failure counts when it happens, and a sign-out is neither success nor failure.
    #[test]
    fn oauth_c25_renewals_are_counted_by_their_result() {
        let counts = SignInCounts::default();
        let key = GrantKey { workspace: "default".into(), server: "linear".into(), user: None };
        counts.on_tokens_changed(&key, Some(&GrantFacts::default()));
        counts.on_tokens_changed(&key, None);
        for _ in 0..2 {
            counts.on_tokens_failed(&key, &GrantFacts::default());
        }
        assert_eq!(counts.by_result(), [("succeeded", 1), ("failed", 2)]);
    }
}

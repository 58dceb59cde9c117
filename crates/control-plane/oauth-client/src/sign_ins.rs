//! All sign-ins of one process.

use std::{fmt, sync::Arc};

use narthex_model::SharedGrant;
use narthex_oauth::client::{ClientDocument, redirect_uri};
use narthex_upstream::{
    CredentialQuery, CredentialSource, Credentials, FinishFault, Finishing, SignInRedirect, changes,
};
use tokio::sync::broadcast;
use url::Url;

use crate::{
    SignInError, SignInTarget, attempts,
    consent::{self, BeginAs, Consent},
    credential::ServerCredential,
    device::{self, DeviceBegun, DeviceState, Devices},
    entry::{Entry, Mode, place},
    exchange,
    fetch::Fetcher,
    finish::{self, BrowserAnswer, Finished, Unfinished},
    holding::{Holding, Parts},
    identity_row::{self, LoginIdentity},
    job::{self, Job},
    keep_alive,
    known::Known,
    options::SignInOptions,
    sign_out::{self, SignedOut},
    state::OpenAttempt,
    status::{GrantStatus, newest},
    store::{GrantFacts, GrantKey, StoreFault},
};

/// Number of changes that a slow subscriber may miss.
const CHANGES: usize = 256;
/// Number of tasks that one begin waits for.
const ROUNDS: usize = 8;

/// All sign-ins of one process. Clones share them.
#[derive(Clone)]
pub struct SignIns {
    inner: Arc<Inner>,
    /// The workspace of servers that belong to no human.
    workspace: Arc<str>,
}

struct Inner {
    parts: Arc<Parts>,
    known: Known,
    devices: Devices,
}

/// An open attempt.
#[derive(Debug, Clone)]
pub struct Begun {
    /// The address at which the person signs in.
    pub url: Url,
    /// The end of the attempt, in seconds since 1970.
    pub expires_at: u64,
    /// The redirect URI, as the authorization server knows it.
    pub redirect_uri: Url,
}

/// A server for which all is found that a sign-in needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prepared {
    /// True if the server has answered a request without a token: it may need no sign-in.
    pub is_open: bool,
}

/// Shows the number of servers alone.
impl fmt::Debug for SignIns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SignIns({} servers)", self.inner.known.count())
    }
}

impl SignIns {
    /// The sign-ins of a process. Nothing is asked for before a link needs a credential.
    #[must_use]
    pub fn new(options: SignInOptions) -> Self {
        let workspace = options.workspace.as_str().into();
        let parts = Parts {
            fetcher: Fetcher::new(&options),
            changes: broadcast::Sender::new(CHANGES),
            failures: broadcast::Sender::new(CHANGES),
            stop: options.shutdown.child_token(),
            options,
        };
        let (known, devices) = (Known::default(), Devices::default());
        Self { inner: Arc::new(Inner { parts: Arc::new(parts), known, devices }), workspace }
    }

    /// The same sign-ins for another workspace: servers that belong to no human are those of it.
    #[must_use]
    pub fn in_workspace(&self, workspace: &str) -> Self {
        Self { inner: Arc::clone(&self.inner), workspace: workspace.into() }
    }

    /// The keys of grants that were given or dropped from now on. A renewal is no change.
    #[must_use]
    pub fn changes(&self) -> broadcast::Receiver<GrantKey> {
        self.inner.parts.changes.subscribe()
    }

    /// The grants for which a request for tokens fails from now on, with the time and the reason.
    #[must_use]
    pub fn failures(&self) -> broadcast::Receiver<(GrantKey, GrantFacts)> {
        self.inner.parts.failures.subscribe()
    }

    /// Compares the open attempts of this process with the store, which another process may have
    /// ended. The address of one that has ended is shown no longer. If no tokens follow, the grant
    /// is among the [changes](Self::changes), so that another attempt is opened.
    ///
    /// Costs nothing while no attempt is open. The owner calls it again and again.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn see_ended_attempts(&self) -> Result<(), StoreFault> {
        attempts::see_ended(&self.inner.parts, &self.inner.known).await
    }

    /// Starts a sign-in by a person, or gives the open one.
    ///
    /// # Errors
    /// When the authorization server cannot be found, or takes no client.
    pub async fn begin(&self, server: &SignInTarget, how: BeginAs) -> Result<Begun, SignInError> {
        let credential = self.hold(server);
        let holding = &credential.holding;
        holding.entry().person()?;
        holding.clear_step_ups();
        let mut wants_anew = how == BeginAs::Anew;
        for _ in 0..ROUNDS {
            if !wants_anew && let Some(open) = open_attempt(holding, server.session.as_deref()) {
                return Ok(open);
            }
            let first = match holding.with_state(|state| state.read_at.is_none()) {
                true => Job::Load,
                false => Job::Consent(Consent {
                    session: server.session.clone(),
                    how,
                    ..Consent::default()
                }),
            };
            let is_consent = matches!(first, Job::Consent(_));
            let started = job::start(holding, first);
            let is_own = started.is_own;
            let ended = started.wait().await;
            if is_own {
                ended?;
                wants_anew = wants_anew && !is_consent;
            }
        }
        Err(SignInError::Busy { server: server.alias.clone() })
    }

    /// Finds the authorization server of a server, and registers narthex there if that is the way:
    /// what a later sign-in needs (X-M13). No sign-in begins, and nothing else is stored. The
    /// server is asked once without a token, as its refusal may name its metadata.
    ///
    /// # Errors
    /// When the authorization server cannot be found, or takes no client.
    pub async fn prepare(&self, server: &SignInTarget) -> Result<Prepared, SignInError> {
        let SignInTarget { key, alias, url, auth, session: _ } = server;
        let parts = Arc::clone(&self.inner.parts);
        let holding = Holding::new(parts, key.clone(), Entry::new(alias, url, auth), 0);
        let options = &self.inner.parts.options;
        let preparing = async move {
            let is_open = match &holding.entry().mode {
                Mode::Exchange(_) => exchange::prepare(&holding).await?,
                Mode::Person(_) | Mode::Machine(_) | Mode::Faulty(_) => {
                    consent::prepare(&holding).await?
                }
            };
            Ok(Prepared { is_open })
        };
        let ended = options.tasks.spawn_on(preparing, &options.runtime).await;
        ended.unwrap_or(Err(SignInError::Stopped))
    }

    /// Finishes a sign-in with the browser's answer.
    ///
    /// The work goes on if the caller stops waiting, as a code counts once.
    ///
    /// # Errors
    /// When the answer belongs to no open attempt, came to the address of another server, or the
    /// authorization server gives no tokens.
    pub async fn finish(&self, answer: BrowserAnswer<'_>) -> Result<Finished, Unfinished> {
        let BrowserAnswer { query, server, session } = answer;
        let (me, query) = (self.clone(), query.to_owned());
        let (server, session) = (server.map(str::to_owned), session.map(str::to_owned));
        let finishing = async move {
            let (server, session) = (server.as_deref(), session.as_deref());
            me.finish_here(BrowserAnswer { query: &query, server, session }).await
        };
        let options = &self.inner.parts.options;
        let ended = options.tasks.spawn_on(finishing, &options.runtime).await;
        ended.unwrap_or_else(|_ended| Err(SignInError::Stopped.into()))
    }

    async fn finish_here(&self, answer: BrowserAnswer<'_>) -> Result<Finished, Unfinished> {
        let known = &self.inner.known;
        // The address of an entry may have changed since its attempt was opened.
        let is_current = |key: &GrantKey, server: &Url| {
            let all = known.of(key);
            all.is_empty() || of_place(&all, server).is_some()
        };
        let end = finish::finish(&self.inner.parts, answer, is_current).await?;
        let finish::End { state_hash, is_proved, key, alias, server, outcome } = end;
        let all = known.of(&key);
        let has_it = |one: &&Arc<ServerCredential>| {
            let is_it = |open: &Arc<OpenAttempt>| open.state_hash == state_hash;
            one.holding.with_state(|state| state.attempt.as_ref().is_some_and(is_it))
        };
        let own = all.iter().find(has_it).or_else(|| of_place(&all, &server));
        match outcome {
            Ok(row) => {
                let is_own =
                    |one: &Arc<ServerCredential>| own.is_some_and(|own| Arc::ptr_eq(own, one));
                for other in all.iter().filter(|one| !is_own(one)) {
                    other.holding.adopt(&row)?;
                }
                match own {
                    Some(own) => own.holding.given(&row)?,
                    None => self.given_elsewhere(&key, &row.facts),
                }
                Ok(Finished { key, alias, facts: row.facts })
            }
            Err(failed) => {
                let reopens_at = self.inner.parts.now().saturating_add(attempts::REOPENS);
                all.iter().for_each(|one| one.holding.attempt_ended(&state_hash, reopens_at));
                if let (Some(own), Some(next)) = (own, failed.next) {
                    consent::show(&own.holding, &alias, *next).await;
                }
                Err(Unfinished { error: failed.error, key: Some(Box::new(key)), is_proved })
            }
        }
    }

    /// Tells of a grant for a server that this process has no credential for.
    fn given_elsewhere(&self, key: &GrantKey, facts: &GrantFacts) {
        let parts = &self.inner.parts;
        parts.options.hooks.on_tokens_changed(key, Some(facts));
        parts.changed(key);
    }

    /// Begins a sign-in on another device. This process polls for its end.
    ///
    /// # Errors
    /// When the authorization server has no such consents, or takes no client.
    pub async fn begin_device(&self, server: &SignInTarget) -> Result<DeviceBegun, SignInError> {
        let credential = self.hold(server);
        device::begin(&credential.holding, &self.inner.devices).await
    }

    /// The state of a sign-in on another device.
    #[must_use]
    pub fn device_state(&self, id: &str) -> DeviceState {
        self.inner.devices.state(id)
    }

    /// Signs out of a server: revokes the tokens if the authorization server can, and drops them.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn sign_out(&self, key: &GrantKey) -> Result<SignedOut, SignInError> {
        let parts = &self.inner.parts;
        let known = self.inner.known.of(key);
        let entries: Vec<_> = known.iter().map(|one| one.holding.entry()).collect();
        let done = sign_out::sign_out(parts, key, &entries).await?;
        let mut had_grant = done.had_grant;
        for one in &known {
            had_grant |= one.holding.with_state(|state| state.held.is_some());
            one.holding.signed_out();
        }
        if had_grant {
            parts.options.hooks.on_tokens_changed(key, None);
            parts.changed(key);
        }
        Ok(done)
    }

    /// Keeps the identity of a human who has signed in to narthex, for exchanges (C31).
    ///
    /// # Errors
    /// When the store fails.
    pub async fn keep_identity(&self, user: &str, login: LoginIdentity) -> Result<(), SignInError> {
        let Inner { parts, known, devices: _ } = &*self.inner;
        identity_row::keep(parts, user, login).await?;
        known.has_new_identity(parts, user);
        Ok(())
    }

    /// Forgets the identities of a human who has signed out of narthex. True if there was one.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn forget_identities(&self, user: &str) -> Result<bool, SignInError> {
        identity_row::forget(&self.inner.parts, user).await
    }

    /// The status of a grant, from memory. `None` if nothing is known of it.
    #[must_use]
    pub fn status(&self, key: &GrantKey) -> Option<GrantStatus> {
        newest(&self.inner.known.of(key))
    }

    /// The status of all grants of this process, from memory.
    #[must_use]
    pub fn statuses(&self) -> Vec<(GrantKey, GrantStatus)> {
        let known = self.inner.known.by_grant();
        known.into_iter().filter_map(|(key, of)| Some((key, newest(&of)?))).collect()
    }

    /// Narthex's client id metadata document, if it has a public address (C12).
    #[must_use]
    pub fn client_document(&self) -> Option<ClientDocument> {
        let options = &self.inner.parts.options;
        let bases = options.redirect_base.all();
        Some(ClientDocument {
            id: options.client_metadata_url.clone()?,
            name: options.client_name.clone(),
            uri: options.redirect_base.public.clone(),
            redirect_uris: bases.map(|base| redirect_uri(base, None)).collect(),
            jwks_uri: None,
        })
    }

    /// Reads a grant again that another process may have stored or dropped. Does nothing for a
    /// server that this process does not know, and does not wait.
    pub fn changed_elsewhere(&self, key: &GrantKey) {
        let Inner { parts, known, devices: _ } = &*self.inner;
        if let Some(user) = identity_row::human_of(key) {
            known.has_new_identity(parts, user);
        }
        let options = &parts.options;
        for one in known.of(key).iter().filter(|one| one.holding.may_have_read()) {
            let reading = job::read_again(Arc::clone(&one.holding));
            drop(options.tasks.spawn_on(reading, &options.runtime));
        }
    }

    /// Ends the waiting tasks, and waits for those that talk to an authorization server.
    pub async fn close(&self) {
        self.inner.parts.stop.cancel();
        let known = self.inner.known.by_grant();
        for one in known.into_iter().flat_map(|(_, of)| of) {
            one.holding.rest().await;
        }
    }

    /// The key of the grant of a server.
    fn key_of(&self, query: CredentialQuery<'_>) -> GrantKey {
        let CredentialQuery { alias, target, holder } = query;
        let user = holder.map(|holder| holder.user.clone());
        if let Some(SharedGrant { workspace, server }) = target.auth.grant() {
            let workspace = workspace.as_str().to_owned();
            return GrantKey { workspace, server: server.clone(), user };
        }
        let workspace = holder.map(|holder| holder.workspace.clone());
        GrantKey {
            workspace: workspace.unwrap_or_else(|| self.workspace.to_string()),
            server: alias.as_str().to_owned(),
            user,
        }
    }

    /// The credential of a server, with these settings.
    fn hold(&self, server: &SignInTarget) -> Arc<ServerCredential> {
        let credential = self.inner.known.hold(&self.inner.parts, server);
        keep_alive::watch(&credential.holding);
        credential
    }
}

impl CredentialSource for SignIns {
    fn credentials(&self, query: CredentialQuery<'_>) -> Option<Arc<dyn Credentials>> {
        let CredentialQuery { alias, target, holder: _ } = query;
        if !changes(&target.auth) {
            return None;
        }
        let key = self.key_of(query);
        // Runs may give a server of the catalog any alias.
        let name = SharedGrant::catalog_id(&key.server).unwrap_or(alias.as_str()).to_owned();
        let server = SignInTarget {
            key,
            alias: name,
            url: Url::parse(&target.url).ok()?,
            auth: target.auth.clone(),
            session: None,
        };
        Some(self.hold(&server))
    }

    /// Finishes a sign-in for a program that embeds the registry: it has no login, so no session.
    fn finish_auth(&self, redirect: SignInRedirect) -> Finishing<'_> {
        Box::pin(async move {
            let (query, server) = (redirect.query.expose(), redirect.server.as_deref());
            let done = self.finish(BrowserAnswer { query, server, session: None }).await;
            let refused = |ended: Unfinished| FinishFault::Refused { why: ended.error.to_string() };
            done.map(|done| done.alias).map_err(refused)
        })
    }
}

/// The open attempt, if this browser may finish it.
fn open_attempt(holding: &Holding, session: Option<&str>) -> Option<Begun> {
    let now = holding.now();
    holding.with_state(|state| {
        let open = state.open_attempt(now).filter(|open| open.session.as_deref() == session)?;
        let OpenAttempt { url, expires_at, redirect_uri, .. } = &**open;
        let (url, redirect_uri) = (url.clone(), redirect_uri.clone());
        Some(Begun { url, expires_at: *expires_at, redirect_uri })
    })
}

/// The credential of a server's address that was asked for last.
fn of_place<'k>(
    known: &'k [Arc<ServerCredential>],
    server: &Url,
) -> Option<&'k Arc<ServerCredential>> {
    let wanted = place(server);
    known.iter().rfind(|one| place(&one.holding.entry().url) == wanted)
}

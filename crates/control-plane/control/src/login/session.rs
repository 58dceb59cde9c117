//! Sessions of humans: a proof starts them, this process has them in memory, and their owners or an
//! operator end them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use narthex_audit::{AuditEvent, kind};
use narthex_login::{LoginMethod, LoginSession, SessionLimits, Token, TokenHash};
use narthex_model::{PrincipalId, PrincipalKind};
use narthex_store::LoginSessionRow;

use super::LoginError;
use crate::{AccessError, Account, Control, ControlError, ServerSignInError, access::of_principal};

/// A human who has signed in.
#[derive(Debug, Clone)]
pub struct SignedIn {
    /// The hash of the session's token.
    pub session: String,
    /// The human.
    pub account: Arc<Account>,
    /// The method of sign-in.
    pub method: LoginMethod,
    /// The time of sign-in.
    pub since: SystemTime,
}

/// A new session. Only the browser receives its token.
#[derive(Debug)]
pub struct NewSession {
    /// The token for the browser's later requests.
    pub token: Token,
    /// The human.
    pub principal: PrincipalId,
    /// Time at which the session ends in any case.
    pub expires_at: SystemTime,
}

/// A session of a human, as that human sees it.
#[derive(Debug, Clone)]
pub struct OwnSession {
    /// The name by which the human ends the session. It signs no one in.
    pub id: String,
    /// The method of sign-in.
    pub method: LoginMethod,
    /// The time of sign-in.
    pub since: SystemTime,
    /// The time of the last use that this process knows of.
    pub seen_at: SystemTime,
    /// True for the session of the browser that asks.
    pub is_this: bool,
}

/// A session in the memory of this process.
#[derive(Debug)]
pub(crate) struct KnownSession {
    account: Arc<Account>,
    method: LoginMethod,
    created_at: SystemTime,
    /// Times of the last use and of the last stored use, in milliseconds since 1970.
    seen_ms: AtomicU64,
    stored_ms: AtomicU64,
}

impl KnownSession {
    /// Creates the session of a row. `before` has the last known use. `None` if the sign-in method
    /// is unknown.
    pub(crate) fn new(
        row: &LoginSessionRow,
        account: Arc<Account>,
        before: Option<&Self>,
    ) -> Option<Self> {
        let stored_ms = since_ms(row.seen_at);
        let seen_ms = before.map_or(0, |before| before.seen_ms.load(Ordering::Relaxed));
        Some(Self {
            account,
            method: LoginMethod::parse(&row.method)?,
            created_at: row.created_at,
            seen_ms: AtomicU64::new(seen_ms.max(stored_ms)),
            stored_ms: AtomicU64::new(stored_ms),
        })
    }

    /// The human of the session, if the session is valid now. The call counts as a use of the
    /// session. `hash` is the session's own hash.
    pub(crate) fn signed_in(&self, hash: &str, limits: &SessionLimits) -> Option<SignedIn> {
        let now = SystemTime::now();
        let session = LoginSession {
            method: self.method,
            created_at: self.created_at,
            seen_at: at_ms(self.seen_ms.load(Ordering::Relaxed)),
        };
        if session.check(limits, now).is_err() || self.account.disabled_at.is_some() {
            return None;
        }
        self.seen_ms.fetch_max(since_ms(now), Ordering::Relaxed);
        let (account, method) = (self.account.clone(), self.method);
        Some(SignedIn { session: hash.to_owned(), account, method, since: self.created_at })
    }

    /// The session as its human sees it, if the session is valid at this time. No use is counted.
    fn shown(&self, hash: &str, limits: &SessionLimits, now: SystemTime) -> Option<OwnSession> {
        let (method, since) = (self.method, self.created_at);
        let seen_at = at_ms(self.seen_ms.load(Ordering::Relaxed));
        let session = LoginSession { method, created_at: since, seen_at };
        session.check(limits, now).ok()?;
        Some(OwnSession { id: name_of(hash), method, since, seen_at, is_this: false })
    }

    /// The account of the session's human.
    pub(crate) fn account(&self) -> &Arc<Account> {
        &self.account
    }

    /// The time of the last use, if it is due to be stored again.
    pub(crate) fn newly_seen(&self, step: Duration) -> Option<SystemTime> {
        let step = u64::try_from(step.as_millis()).unwrap_or(u64::MAX);
        let seen_ms = self.seen_ms.load(Ordering::Relaxed);
        let is_new = seen_ms >= self.stored_ms.load(Ordering::Relaxed).saturating_add(step);
        is_new.then(|| at_ms(seen_ms))
    }

    pub(crate) fn mark_stored(&self, seen_at: SystemTime) {
        self.stored_ms.store(since_ms(seen_at), Ordering::Relaxed);
    }
}

impl Control {
    /// Returns the human with the session of this token; `None` for an unknown or ended session.
    ///
    /// # Errors
    /// When this process could not read the store for so long that the session may have ended
    /// meanwhile.
    pub fn signed_in(&self, token: &str) -> Result<Option<SignedIn>, AccessError> {
        let Some(login) = &self.shared.login else { return Ok(None) };
        self.session_of(TokenHash::of(token).as_str(), &login.limits)
    }

    /// Ends the session of a token; does nothing if there is none. What narthex has of the human at
    /// a company's provider ends, too (C31).
    ///
    /// # Errors
    /// When the store fails.
    pub async fn sign_out(&self, token: &str) -> Result<(), ControlError> {
        let owner = self.session_end(token).await?;
        self.forget_identities(owner).await
    }

    /// Ends what narthex has of a human at a company's provider (C31).
    async fn forget_identities(&self, owner: Option<PrincipalId>) -> Result<(), ControlError> {
        if let (Some(owner), Some(sign_ins)) = (owner, self.sign_ins()) {
            let forgotten = sign_ins.forget_identities(owner.as_str()).await;
            forgotten.map_err(ServerSignInError::Failed)?;
        }
        Ok(())
    }

    /// Ends the session of a token, such as one that another session of the same browser replaces.
    /// Returns the human, if the session was known.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn session_end(&self, token: &str) -> Result<Option<PrincipalId>, ControlError> {
        self.session_end_of(TokenHash::of(token).as_str().to_owned()).await
    }

    /// The sessions of a human, the newest first.
    ///
    /// # Errors
    /// When sign-in is off.
    pub fn own_sessions(&self, of: &SignedIn) -> Result<Vec<OwnSession>, ControlError> {
        let (limits, now) = (&self.login()?.limits, SystemTime::now());
        let all = self.sessions_of(&of.account.id).into_iter();
        let shown = all.filter_map(|(hash, session)| {
            let shown = session.shown(&hash, limits, now)?;
            Some(OwnSession { is_this: hash == of.session, ..shown })
        });
        let mut shown: Vec<_> = shown.collect();
        shown.sort_by(|one, other| (other.since, &other.id).cmp(&(one.since, &one.id)));
        Ok(shown)
    }

    /// Ends a session of a human by its name, as [`Self::sign_out`] ends the browser's own.
    ///
    /// # Errors
    /// When the human has no such session, or the store fails.
    pub async fn own_session_end(&self, of: &SignedIn, id: &str) -> Result<(), ControlError> {
        let all = self.sessions_of(&of.account.id).into_iter();
        let found = all.map(|(hash, _)| hash).find(|hash| name_of(hash) == id);
        let hash = found.ok_or(LoginError::NoSuchSession)?;
        let owner = self.session_end_of(hash).await?;
        self.forget_identities(owner).await
    }

    async fn session_end_of(&self, hash: String) -> Result<Option<PrincipalId>, ControlError> {
        self.change_access(async move |this, store| {
            let owner = this.session_owner(&hash);
            // A session without a known owner is ended too, but is not recorded.
            let noted = match &owner {
                Some(owner) => {
                    let event = of_principal(kind::SIGNED_OUT, &owner.id, owner.actor());
                    Some(this.note(event).await?)
                }
                None => None,
            };
            store.logins().end(&hash).await.map_err(ControlError::Store)?;
            if let Some(noted) = noted {
                noted.done().await;
            }
            Ok(owner.map(|owner| owner.id.clone()))
        })
        .await
    }

    /// Begins a session for a human who has proved their identity.
    pub(super) async fn begin_session(
        &self,
        principal: PrincipalId,
        method: LoginMethod,
    ) -> Result<NewSession, ControlError> {
        let (new, row) = self.new_session(principal, method)?;
        let expires_at = new.expires_at;
        self.change_access(async move |this, store| {
            let noted = this.note(this.signs_in(&row)?).await?;
            let begun = store.logins().begin(&row, expires_at).await;
            begun.map_err(ControlError::Store)?;
            noted.done().await;
            Ok(())
        })
        .await?;
        Ok(new)
    }

    /// Creates a session and its row, without storing them. The token is random and new, so that no
    /// one can know it beforehand.
    pub(super) fn new_session(
        &self,
        principal: PrincipalId,
        method: LoginMethod,
    ) -> Result<(NewSession, LoginSessionRow), ControlError> {
        let token = Token::generate().map_err(LoginError::Randomness)?;
        let session = LoginSession::begin(method, SystemTime::now());
        let row = LoginSessionRow {
            hash: token.hash().as_str().to_owned(),
            principal: principal.clone(),
            method: method.as_str().to_owned(),
            created_at: session.created_at,
            seen_at: session.seen_at,
        };
        let expires_at = session.expires_at(&self.login()?.limits);
        Ok((NewSession { token, principal, expires_at }, row))
    }

    /// The event of a human's sign-in. Fails if the human may not sign in.
    pub(super) fn signs_in(
        &self,
        row: &LoginSessionRow,
    ) -> Result<AuditEvent<'static>, ControlError> {
        let account = self.may_sign_in(&row.principal)?;
        let event = of_principal(kind::SIGNED_IN, &account.id, account.actor());
        Ok(event.with("method", row.method.as_str()))
    }

    /// Checks that a principal is a human who is not disabled.
    pub(super) fn may_sign_in(&self, id: &PrincipalId) -> Result<Arc<Account>, ControlError> {
        let account = self.principal(id.as_str())?;
        if account.kind != PrincipalKind::Human {
            return Err(LoginError::NoHuman.into());
        }
        match account.disabled_at {
            None => Ok(account),
            Some(_) => Err(LoginError::Disabled.into()),
        }
    }
}

/// The name of a session for its human, from which neither the hash nor the token follows.
fn name_of(hash: &str) -> String {
    TokenHash::for_purpose("own-session", hash).as_str().to_owned()
}

fn since_ms(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn at_ms(ms: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(ms)
}

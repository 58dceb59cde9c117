//! The credential of a connection, and the wait for a person who signs in.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use narthex_model::{CallErrorKind, ServerFailure, ServerState, WantedSignIn};
use narthex_upstream::{AtHand, ConnectContext, Credentials};
use tokio::sync::Notify;

use super::Connection;
use crate::{Found, registry::Shared};

/// The credential of a connection that can change, with the signal of a change.
#[derive(Debug, Clone, Default)]
pub(crate) struct SignIn {
    credentials: Option<Arc<dyn Credentials>>,
    /// True if the credential is the grant of one human, and not the shared one.
    has_holder: bool,
    news: Arc<News>,
}

/// The signal that a grant was given or dropped.
#[derive(Debug, Default)]
struct News {
    is_there: AtomicBool,
    arrived: Notify,
}

impl SignIn {
    pub(crate) fn new(credentials: Option<Arc<dyn Credentials>>, has_holder: bool) -> Self {
        Self { credentials, has_holder, news: Arc::default() }
    }
}

impl Connection {
    /// Gives a link that is opened the credential of the connection.
    pub(crate) fn equip(&self, context: &mut ConnectContext) {
        context.credentials = self.sign_in.credentials.clone();
        context.has_holder = self.sign_in.has_holder;
    }

    /// True if the credential of the connection can change.
    pub(crate) fn signs_in(&self) -> bool {
        self.sign_in.credentials.is_some()
    }

    /// Notes that the grant was given or dropped: the server is connected anew.
    pub(crate) fn credential_changed(&self) {
        self.sign_in.news.is_there.store(true, Ordering::Release);
        self.sign_in.news.arrived.notify_one();
    }

    /// Forgets earlier changes of the grant: the attempt that begins knows them.
    pub(super) fn credential_read(&self) {
        self.sign_in.news.is_there.store(false, Ordering::Release);
    }

    /// Waits until the grant has changed since the last attempt began.
    pub(super) async fn credential_news(&self) {
        while !self.sign_in.news.is_there.swap(false, Ordering::AcqRel) {
            self.sign_in.news.arrived.notified().await;
        }
    }

    /// True if a request would have a credential now.
    pub(super) fn has_credential(&self) -> bool {
        let credentials = self.sign_in.credentials.as_ref();
        credentials.is_some_and(|one| matches!(one.at_hand(), AtHand::Ready(Some(_))))
    }

    /// Shows that a person must sign in first. This is no failure (D17), and the server is not
    /// tried again before the grant changes.
    pub(super) fn authenticating(&self, shared: &Shared, why: &str, wanted: WantedSignIn) {
        tracing::info!(server.name = %self.alias(), "waits for the sign-in of a person: {why}");
        let address = wanted.address.clone();
        let failure = ServerFailure::new(CallErrorKind::AuthUnavailable, why);
        let failure = failure.with_sign_in(Some(wanted));
        self.update(shared, |found| {
            *found = Found {
                state: ServerState::Authenticating,
                activity: None,
                error: Some(failure),
                auth_url: address,
                link: None,
                is_asleep: false,
                is_probed: false,
                is_backing_off: false,
                attempt: 0,
                ..found.clone()
            };
        });
    }

    /// Shows that the server is connected anew, with another grant.
    pub(super) fn signed_in(&self, shared: &Shared) {
        self.update(shared, |found| {
            found.state = ServerState::Connecting;
            found.activity = Some("connecting");
            found.error = None;
            found.link = None;
        });
    }
}

//! Clients whose person one of the company's own issuers named, and the issuer's access tokens, as
//! this process has verified them.

use std::{
    sync::{Arc, OnceLock},
    time::{Duration, SystemTime},
};

use narthex_login::IssuerOptions;
use narthex_model::{McpClientId, PrincipalId};
use narthex_oauth::{
    scopes::Scopes,
    server::{ClientId, Resource, StoredTime},
};

/// Time after which a token is verified again, as its key may be withdrawn.
const AGAIN: Duration = Duration::from_mins(5);

/// An access token of an issuer, as this process has verified it.
#[derive(Debug)]
pub(super) struct VerifiedToken {
    /// The client, with its way to a run.
    pub(super) foreign: Arc<DoorForeign>,
    pub(super) expires_at: StoredTime,
    pub(super) checked_at: StoredTime,
}

/// A client that acts for a person whom an issuer of the company named.
#[derive(Debug)]
pub struct DoorForeign {
    pub(super) issuer: Arc<IssuerOptions>,
    /// The account of the person.
    pub(super) human: PrincipalId,
    /// The client, as the issuer or this server names it.
    pub(super) client_id: ClientId,
    /// The kind of proof and its issuer, which keep equal ids of clients apart.
    pub(super) place: String,
    /// The endpoint of the door.
    pub(super) resource: Resource,
    /// The scopes of the token or the assertion.
    pub(super) scopes: Scopes,
    /// The registered client, once it is known.
    pub(super) connection: OnceLock<McpClientId>,
}

impl DoorForeign {
    /// The name of the client for humans.
    #[must_use]
    pub fn name(&self) -> &str {
        self.client_id.as_str()
    }
}

impl VerifiedToken {
    /// True if the token is valid, and was verified shortly before.
    pub(super) fn is_fresh(&self, now: SystemTime) -> bool {
        let now = StoredTime::of(now);
        now < self.expires_at && now.since(self.checked_at) < AGAIN
    }
}

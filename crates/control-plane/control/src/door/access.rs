//! Access tokens of clients at the door.

use std::{sync::Arc, time::SystemTime};

use narthex_oauth::{
    TokenHash,
    scopes::Scopes,
    server::{AccessRecord, Refusal, Resource, TokenKind},
};

use super::{DoorDesk, documents::read, server::SeenToken};
use crate::{AccessError, ControlError, KnownClient};

/// A client that showed an access token.
#[derive(Debug, Clone)]
pub struct DoorAccess {
    /// The client.
    pub client: Arc<KnownClient>,
    seen: Arc<SeenToken>,
}

impl DoorAccess {
    /// The record of the token.
    pub(super) fn record(&self) -> &AccessRecord {
        &self.seen.record
    }

    /// Checks that the token opens a resource, and has these scopes.
    ///
    /// # Errors
    /// When it has expired, is for another resource, or lacks a scope.
    pub fn check(&self, resource: &Resource, scopes: &Scopes) -> Result<(), Refusal> {
        self.seen.record.check(resource, scopes, SystemTime::now()).map(drop)
    }
}

impl DoorDesk<'_> {
    /// The client of an access token; `None` for an unknown, expired or revoked token, and for any
    /// other text. Reads the store only for a token that this process sees for the first time.
    ///
    /// # Errors
    /// When the store fails, or could not be read for so long that the client may have been revoked
    /// meanwhile.
    pub async fn access(&self, token: &str) -> Result<Option<DoorAccess>, ControlError> {
        let is_given_here = self.server.gives_tokens();
        if TokenKind::of(token) != Some(TokenKind::Access) || !is_given_here {
            return Ok(None);
        }
        let server = self.server;
        let hash = TokenHash::of(token);
        let seen = match server.seen.get(&hash) {
            Some(seen) => seen,
            None => match self.stored_access(&hash).await? {
                Some(read) => {
                    server.seen.insert(hash.clone(), read.clone());
                    read
                }
                None => return Ok(None),
            },
        };
        let table = self.control.access();
        let now = SystemTime::now();
        let is_over = !seen.record.is_valid(now) || table.revoked_tokens.contains(hash.as_str());
        let client = table.clients.get(&seen.connection).filter(|one| one.is_live(now));
        match client.filter(|_| !is_over).cloned() {
            Some(_) if !self.control.is_access_fresh() => Err(AccessError::Stale.into()),
            Some(client) => Ok(Some(DoorAccess { client, seen })),
            None => {
                server.seen.remove(&hash);
                Ok(None)
            }
        }
    }

    /// Reads a token from the store. Another daemon may have registered its client just now.
    async fn stored_access(
        &self,
        hash: &TokenHash,
    ) -> Result<Option<Arc<SeenToken>>, ControlError> {
        let found = self.store.door_tokens().token(hash.as_str()).await;
        let Some(row) = found.map_err(ControlError::Store)? else { return Ok(None) };
        let record = read(&row.document)?;
        if !self.control.access().clients.contains_key(&row.connection) {
            self.control.catch_up().await?;
        }
        Ok(Some(Arc::new(SeenToken { record, connection: row.connection })))
    }
}

//! Registered clients of people whom an issuer of the company named. The issuer asked for the
//! person's consent, so that no page of this daemon does.

use std::{sync::Arc, time::SystemTime};

use narthex_oauth::server::{Consent, StoredTime};
use tokio::sync::OwnedMutexGuard;

use super::{
    DoorDesk, connections::NewConnection, fault::DoorFault, foreign_token::DoorForeign,
    requests::DoorHuman,
};
use crate::{AccessError, ControlError, KnownClient};

impl DoorDesk<'_> {
    /// The registered client of a person and a program, if there is one that sees the same. Reads
    /// only memory. A refresh of the token keeps the client.
    ///
    /// # Errors
    /// When the client was revoked for this person, or the store could not be read for so long that
    /// it may have been revoked meanwhile.
    pub fn let_in_before(
        &self,
        foreign: &DoorForeign,
    ) -> Result<Option<Arc<KnownClient>>, ControlError> {
        if !self.control.is_access_fresh() {
            return Err(AccessError::Stale.into());
        }
        let (table, now) = (self.control.access(), SystemTime::now());
        let known = foreign.connection.get().and_then(|id| table.clients.get(id));
        if let Some(known) = known.filter(|known| known.is_live(now)) {
            return Ok(Some(known.clone()));
        }
        let choice = foreign.choice(self.control.home());
        let mut found = None;
        for client in table.clients.values().filter(|client| is_of(client, foreign)) {
            // The issuer gives tokens without asking again, so that a revocation lasts.
            if client.row.revoked_at.is_some() || client.account.disabled_at.is_some() {
                return Err(DoorFault::Revoked.into());
            }
            if client.is_live(now) && choice.is_of(client) {
                found = Some(client.clone());
            }
        }
        if let Some(client) = &found {
            // Another request may have stored the same id.
            foreign.connection.get_or_init(|| client.row.id.clone());
        }
        Ok(found)
    }

    /// Waits until no other request lets a client of this person in.
    pub async fn turn_of(&self, foreign: &DoorForeign) -> OwnedMutexGuard<()> {
        self.server.letting_in.take(&foreign.human).await
    }

    /// The person, as the actor of changes.
    ///
    /// # Errors
    /// When there is no such account.
    pub fn person_of(&self, foreign: &DoorForeign) -> Result<DoorHuman, ControlError> {
        let account = self.control.principal(foreign.human.as_str())?;
        Ok(DoorHuman { id: account.id.clone(), by: account.actor() })
    }

    /// Registers the client of a person and a program.
    ///
    /// # Errors
    /// When the person may not let a client act there, there are too many clients, or the store
    /// fails.
    pub async fn let_in(
        &self,
        foreign: &DoorForeign,
        human: &DoorHuman,
        new: NewConnection,
    ) -> Result<Arc<KnownClient>, ControlError> {
        self.may_choose(human, &foreign.choice(self.control.home()))?;
        let consent = Consent {
            user: human.id.clone(),
            client_id: foreign.client_id.clone(),
            place: foreign.place.clone(),
            workspace: new.workspace.as_str().to_owned(),
            agent: new.sees.agent().cloned(),
            resource: foreign.resource.clone(),
            scopes: foreign.scopes.clone(),
            given_at: StoredTime::of(SystemTime::now()),
        };
        self.connect(new, &consent, &human.by).await
    }
}

/// True for a registered client of this person and program.
fn is_of(client: &KnownClient, foreign: &DoorForeign) -> bool {
    client.connection.as_ref().is_some_and(|connection| {
        let consent = &connection.consent;
        connection.acts_for == foreign.human
            && consent.client_id == foreign.client_id
            && consent.place == foreign.place
    })
}

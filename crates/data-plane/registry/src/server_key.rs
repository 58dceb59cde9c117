//! Identifies the server behind an alias.

use narthex_model::Alias;

use crate::ConnectionId;

/// Identifies the server behind an alias: several owners may each have one of the same alias.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServerKey {
    /// The server's name.
    pub alias: Alias,
    /// Set for a server that an owner has mounted. A mount has the same connection for as long as
    /// it lives, and no other ever has its number.
    own: Option<ConnectionId>,
}

impl ServerKey {
    /// The server that all share under this alias, whatever it is connected by.
    #[must_use]
    pub fn shared(alias: &Alias) -> Self {
        Self { alias: alias.clone(), own: None }
    }

    /// The key of a server that an owner has mounted for itself.
    #[must_use]
    pub fn own(alias: &Alias, connection: ConnectionId) -> Self {
        Self { alias: alias.clone(), own: Some(connection) }
    }

    /// The connection of an owner's own server.
    #[must_use]
    pub fn connection(&self) -> Option<ConnectionId> {
        self.own
    }
}

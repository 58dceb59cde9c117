//! Identifies the server behind an alias.

use narthex_model::Alias;

use crate::ConnectionId;

/// Identifies the server behind an alias: several owners may each have a server of the same alias.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServerKey {
    /// The server's name.
    pub alias: Alias,
    /// The connection of a server that an owner has mounted. A mount has one connection for its
    /// whole life, and no other mount ever gets its number.
    own: Option<ConnectionId>,
}

impl ServerKey {
    /// The key of the shared server under this alias, whichever connection it has.
    #[must_use]
    pub fn shared(alias: &Alias) -> Self {
        Self { alias: alias.clone(), own: None }
    }

    /// The key of an owner's own mounted server.
    #[must_use]
    pub fn own(alias: &Alias, connection: ConnectionId) -> Self {
        Self { alias: alias.clone(), own: Some(connection) }
    }

    /// The connection of an owner's own server; `None` for a shared one.
    #[must_use]
    pub fn connection(&self) -> Option<ConnectionId> {
        self.own
    }
}

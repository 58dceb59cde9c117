//! Which server of all an alias stands for.

use narthex_model::Alias;

use crate::ConnectionId;

/// Which server of all an alias stands for: several owners may each have one of the same alias.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServerKey {
    /// What it is called.
    pub alias: Alias,
    /// Set for an owner's own. A mount has the same connection for as long as it lives, and no
    /// other ever has its number.
    own: Option<ConnectionId>,
}

impl ServerKey {
    /// The server that all share under this alias, whatever it is connected by.
    #[must_use]
    pub fn shared(alias: &Alias) -> Self {
        Self { alias: alias.clone(), own: None }
    }

    /// One that an owner has mounted for itself.
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

//! Options of signing in.

use narthex_model::{Roles, WorkspaceId};

use crate::{
    PublicOrigin, SessionLimits,
    oidc::{Admission, Client},
};

/// The ways in which humans sign in at this process.
#[derive(Debug, Clone)]
pub struct LoginOptions {
    /// The address that browsers reach it by.
    pub origin: PublicOrigin,
    /// The lifetimes of a sign-in.
    pub limits: SessionLimits,
    /// The OpenID providers.
    pub providers: Vec<ProviderOptions>,
}

impl LoginOptions {
    /// The usual, without providers.
    #[must_use]
    pub fn new(origin: PublicOrigin) -> Self {
        Self { origin, limits: SessionLimits::default(), providers: Vec::new() }
    }
}

/// An OpenID provider.
#[derive(Debug, Clone)]
pub struct ProviderOptions {
    /// Its name here, in addresses and on the page: 1 to 64 of `a-z`, `0-9`, `-`.
    pub name: String,
    /// Ourselves there.
    pub client: Client,
    /// The rules that admit persons who were not here before.
    pub admission: Admission,
    /// The roles that those persons get, per workspace.
    pub roles: Vec<(WorkspaceId, Roles)>,
}

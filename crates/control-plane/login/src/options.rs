//! Options of signing in.

use narthex_model::{Roles, WorkspaceId};

use crate::{
    PublicOrigin, SessionLimits,
    oidc::{Admission, Client},
};

/// The ways for humans to sign in at this process.
#[derive(Debug, Clone)]
pub struct LoginOptions {
    /// The address at which browsers reach the process.
    pub origin: PublicOrigin,
    /// The lifetimes of a sign-in.
    pub limits: SessionLimits,
    /// The OpenID providers.
    pub providers: Vec<ProviderOptions>,
}

impl LoginOptions {
    /// The default options, without providers.
    #[must_use]
    pub fn new(origin: PublicOrigin) -> Self {
        Self { origin, limits: SessionLimits::default(), providers: Vec::new() }
    }
}

/// An OpenID provider.
#[derive(Debug, Clone)]
pub struct ProviderOptions {
    /// Narthex's name for the provider, in addresses and on the page: 1 to 64 of `a-z`, `0-9`, `-`.
    pub name: String,
    /// Narthex as a client of the provider.
    pub client: Client,
    /// The rules that admit unknown persons.
    pub admission: Admission,
    /// The roles of admitted persons, per workspace.
    pub roles: Vec<(WorkspaceId, Roles)>,
}

//! What signing in is told.

use narthex_model::{Roles, WorkspaceId};

use crate::{
    PublicOrigin, SessionLimits,
    oidc::{Admission, Client},
};

/// How humans sign in at this process.
#[derive(Debug, Clone)]
pub struct LoginOptions {
    /// Where browsers reach it.
    pub origin: PublicOrigin,
    /// How long a sign-in holds.
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
    /// What it is called here, in addresses and on the page: 1 to 64 of `a-z`, `0-9`, `-`.
    pub name: String,
    /// Ourselves there.
    pub client: Client,
    /// Who is let in that was not here before.
    pub admission: Admission,
    /// What those may do, and where.
    pub roles: Vec<(WorkspaceId, Roles)>,
}

//! Reasons why an operator's request fails.

use narthex_audit::AuditFull;
use narthex_model::{ErrorKind, command::narthex};
use narthex_registry::{VerbError, layers::EditError};
use narthex_store::StatementError;
use narthex_vault::VaultError;

use crate::{
    AccessError, CatalogError, DoorFault, GrantError, KeyedError, LoginError, MessageError,
    RulesError, ServerSignInError,
};

/// An error of a request that has changed nothing.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The registry refuses the request.
    #[error(transparent)]
    Verb(#[from] VerbError),
    /// The settings file cannot be changed in this way.
    #[error(transparent)]
    Edit(#[from] EditError),
    /// The store failed.
    #[error("the data that must survive a restart cannot be stored")]
    Store(#[source] StatementError),
    /// The vault refuses the request.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// The catalog refuses the request.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The request cannot be recorded, so it is not carried out.
    #[error(transparent)]
    Audit(#[from] AuditFull),
    /// The process has no audit to read.
    #[error("this process has no audit; start the daemon with `{}`", narthex("up", &[]))]
    NoAudit,
    /// Permissions stay unchanged.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// Grants stay unchanged.
    #[error(transparent)]
    Grant(#[from] GrantError),
    /// The rules stay unchanged.
    #[error(transparent)]
    Rules(#[from] RulesError),
    /// A sign-in failed.
    #[error(transparent)]
    Login(#[from] LoginError),
    /// A request at the door's authorization server failed.
    #[error(transparent)]
    Door(#[from] DoorFault),
    /// The message is not delivered.
    #[error(transparent)]
    Message(#[from] MessageError),
    /// Another request with the same idempotency key conflicts.
    #[error(transparent)]
    Keyed(#[from] KeyedError),
    /// A sign-in to a server failed.
    #[error(transparent)]
    SignIn(#[from] ServerSignInError),
    /// This process has no vault.
    #[error("this process has no secrets; start the daemon with `{}`", narthex("up", &[]))]
    NoVault,
    /// The process has no settings file.
    #[error(
        "there is no settings file for servers; start the daemon with --servers FILE, or add the \
         server to the project's mcp.json"
    )]
    NoSettings,
    /// The server is configured in a place that narthex does not write (E139, E144).
    #[error("server `{name}` is configured in {place}; change it there")]
    NotOurs {
        /// The server.
        name: String,
        /// The file, or another source that configures it.
        place: String,
    },
    /// A fault of narthex.
    #[error("narthex failed internally; check the daemon's log, then try again")]
    Bug(#[source] tokio::task::JoinError),
    /// The process follows no files.
    #[error("the daemon follows no configuration file, so there is nothing to reload")]
    NoFiles,
}

impl ControlError {
    /// The kind of failure (D24).
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Verb(VerbError::Unknown(_)) => ErrorKind::NotFound,
            Self::Verb(VerbError::DisabledByConfig { .. }) | Self::NotOurs { .. } => {
                ErrorKind::Conflict
            }
            Self::Verb(VerbError::Faulty(_)) => ErrorKind::Invalid,
            Self::Verb(VerbError::Closed) => ErrorKind::Unavailable,
            Self::Edit(error) => error.kind(),
            Self::Store(error) => error.kind(),
            Self::Vault(error) => error.kind(),
            Self::Catalog(error) => error.kind(),
            Self::Audit(full) => full.kind(),
            Self::Access(error) => error.kind(),
            Self::Grant(error) => error.kind(),
            Self::Rules(error) => error.kind(),
            Self::Login(error) => error.kind(),
            Self::Door(error) => error.kind(),
            Self::Message(error) => error.kind(),
            Self::Keyed(error) => error.kind(),
            Self::SignIn(error) => error.kind(),
            Self::Bug(_) => ErrorKind::Bug,
            Self::NoSettings | Self::NoFiles | Self::NoVault | Self::NoAudit => ErrorKind::Conflict,
        }
    }
}

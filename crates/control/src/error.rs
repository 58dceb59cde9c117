//! Why something that an operator wanted is not done.

use narthex_audit::AuditFull;
use narthex_model::{ErrorKind, command::narthex};
use narthex_registry::{VerbError, layers::EditError};
use narthex_store::StatementError;
use narthex_vault::VaultError;

use crate::{
    AccessError, CatalogError, GrantError, KeyedError, LoginError, MessageError, RulesError,
};

/// Nothing of what was asked for has happened.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The registry does not do it.
    #[error(transparent)]
    Verb(#[from] VerbError),
    /// The settings file cannot be changed so.
    #[error(transparent)]
    Edit(#[from] EditError),
    /// The store failed.
    #[error("what must outlive a restart cannot be stored")]
    Store(#[source] StatementError),
    /// The vault does not do it.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// The catalog does not take it.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// It cannot be recorded, so it is not done.
    #[error(transparent)]
    Audit(#[from] AuditFull),
    /// There is no audit to read.
    #[error("this process keeps no audit; start the daemon with `{}`", narthex("up", &[]))]
    NoAudit,
    /// Who may what stays as it is.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// What is granted stays as it is.
    #[error(transparent)]
    Grant(#[from] GrantError),
    /// The rules stay as they are.
    #[error(transparent)]
    Rules(#[from] RulesError),
    /// Somebody does not get in.
    #[error(transparent)]
    Login(#[from] LoginError),
    /// Nobody is told.
    #[error(transparent)]
    Message(#[from] MessageError),
    /// Another request of its idempotency key stands in the way.
    #[error(transparent)]
    Keyed(#[from] KeyedError),
    /// Nobody keeps secrets.
    #[error("this process keeps no secrets; start the daemon with `{}`", narthex("up", &[]))]
    NoVault,
    /// There is no settings file to write to.
    #[error(
        "there is no settings file to keep servers in; start the daemon with --servers FILE, or \
         put the server into the project's mcp.json"
    )]
    NoSettings,
    /// The server is configured somewhere that is not ours to write (E139, E144).
    #[error("server `{name}` is configured in {place}; change it there")]
    NotOurs {
        /// The server.
        name: String,
        /// The file, or what else configures it.
        place: String,
    },
    /// A fault of ours.
    #[error("this failed inside narthex; look at the log, and try again")]
    Bug(#[source] tokio::task::JoinError),
    /// There is nothing to reload.
    #[error("no configuration file is followed, so there is nothing to read again")]
    NoFiles,
}

impl ControlError {
    /// What kind of failure it is (D24).
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Verb(VerbError::Unknown(_)) => ErrorKind::NotFound,
            Self::Verb(VerbError::DisabledByConfig(_)) | Self::NotOurs { .. } => {
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
            Self::Message(error) => error.kind(),
            Self::Keyed(error) => error.kind(),
            Self::Bug(_) => ErrorKind::Bug,
            Self::NoSettings | Self::NoFiles | Self::NoVault | Self::NoAudit => ErrorKind::Conflict,
        }
    }
}

//! Identifiers, names, domain types and error kinds that every other crate may say.
//!
//! No I/O and no async here: this crate is the vocabulary.

mod alias;
mod confinement;
mod error;
mod exposed;
mod provenance;
mod qualified;
mod secret;
mod secrets;
mod server;
mod timestamp;
mod workspace;

pub use alias::{Alias, AliasError};
pub use confinement::{Confinement, FileAccess, NetworkAccess, ProcessLimits};
pub use error::{CallError, CallErrorKind, ErrorKind, Side};
pub use exposed::{EVERYTHING, Exposed, NameRule};
pub use provenance::Provenance;
pub use qualified::{QUALIFIED_NAME_MAX, QualifiedName, QualifiedNames};
pub use secret::Secret;
pub use secrets::{
    KeyId, SealedSecret, SecretName, SecretNameError, SecretReference, SecretReferenceError,
    SecretSummary, SecretVersion, VersionSummary,
};
pub use server::{
    ApiKeyAuth, ConfigFault, HttpTarget, OutputLimits, ServerAuth, ServerDefinition, ServerState,
    StdioTarget, Target, TransportKind, is_secret_variable,
};
pub use timestamp::Timestamp;
pub use workspace::{WorkspaceId, WorkspaceIdError};

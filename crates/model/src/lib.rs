//! Identifiers, names, domain types and error kinds that every other crate may say.
//!
//! No I/O and no async here: this crate is the vocabulary.

mod alias;
mod error;
mod qualified;
mod secret;
mod server;

pub use alias::{Alias, AliasError};
pub use error::{CallError, CallErrorKind, ErrorKind, Side};
pub use qualified::{QUALIFIED_NAME_MAX, QualifiedName, QualifiedNames};
pub use secret::Secret;
pub use server::{
    ApiKeyAuth, ConfigFault, HttpTarget, ServerAuth, ServerDefinition, ServerState, StdioTarget,
    Target, TransportKind, is_secret_variable,
};

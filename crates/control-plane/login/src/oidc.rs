//! Sign-in at an OpenID provider: the authorization code flow with PKCE, state and nonce.
//!
//! Each step is a value that leads to the next: [`Metadata`] of the provider, an [`Attempt`] with
//! the address for the browser, a [`TokenRequest`] for the browser's answer, and the [`Identity`]
//! in the ID token of the answer. The caller sends the requests.
//!
//! Against mix-ups (S20) each provider has its own redirect address, an attempt knows its provider,
//! and `iss` (RFC 9207) is checked if the provider sends it.

mod attempt;
mod error;
mod id_token;
mod metadata;
mod settings;

pub use attempt::{Attempt, Callback, TokenRequest};
pub use error::OidcError;
pub use id_token::{Identity, Keys};
pub use metadata::Metadata;
pub use settings::{Admission, Claim, Client};

//! Sign-in at an OpenID provider: the authorization code flow with PKCE, state and nonce.
//!
//! The steps, each a value that leads to the next: [`Metadata`] of the provider, an [`Attempt`]
//! with the address that the browser is sent to, a [`TokenRequest`] for the browser's answer, and
//! the [`Identity`] in the ID token of the answer. Requests are the caller's to send.
//!
//! Against mix-ups (S20) each provider has a redirect address of its own, an attempt knows its
//! provider, and `iss` (RFC 9207) is checked where the provider sends it.

mod attempt;
mod error;
mod id_token;
mod metadata;
mod ring_provider;
mod settings;

pub use attempt::{Attempt, Callback, TokenRequest};
pub use error::OidcError;
pub use id_token::{Identity, Keys};
pub use metadata::Metadata;
pub use settings::{Admission, Claim, Client};

//! Authorization servers and a protected MCP server for tests, on loopback, in process.
//!
//! [`AuthorizationFixture`] speaks OAuth 2.1: metadata at all well-known addresses, registration,
//! codes with PKCE, rotated refresh tokens whose second use revokes their family, client
//! credentials, devices, token exchange and assertions. Its MCP server takes living tokens of the
//! right audience and scopes only. Each of the [`Quirks`] has it misbehave as servers in the world
//! do.
//!
//! A test has its subject call the MCP server, visits the link to sign in by
//! [`AuthorizationFixture::browse`], and passes the address of the redirect back to its subject.
//! The fixture remembers every request, so that tests can tell where a token went, and its clock
//! moves by the test's hand only.

mod answer;
mod asked;
mod authorize;
mod books;
mod client_auth;
mod exchange;
mod gate;
mod issue;
mod kinds;
mod metadata;
mod protected;
mod quirks;
mod registration;
mod router;
mod running;
mod settings;
mod signer;
mod site;
mod token;

pub use self::asked::{Asked, Basic, coded, form, form_of};
pub use self::books::{Counts, Grant};
pub use self::gate::{Gate, Moment};
pub use self::kinds::{AuthMethod, Endpoint};
pub use self::quirks::{CallbackIss, ExpiresIn, Quirks, TokenFailure, WrongResource};
pub use self::running::AuthorizationFixture;
pub use self::settings::{
    ClientSettings, DEVICE_CODE, GRANT_TYPES, Issuer, JWT_BEARER, Settings, TOKEN_EXCHANGE,
};
pub use self::signer::{Signed, Signer, verified};

#[cfg(test)]
mod tests;

//! Proofs of humans: passkeys, one-time sign-in links and OpenID Connect, and the login sessions
//! that follow.
//!
//! State machines over values: this crate knows no database, no HTTP server and no HTTP client. The
//! caller stores their values, sends their requests, and passes them the time. Stored data gives no
//! access: tokens leave as texts and are stored as hashes.

pub mod oidc;

mod bearer;
mod consent;
mod link;
mod options;
mod passkey;
mod pending;
mod session;
mod token;

pub use bearer::{BearerHash, McpClientToken, ServiceToken, client_of, service_of};
pub use consent::{CONSENT_LIFE, ConsentError, Consents};
pub use link::{LINK_LIFE, SignInLink};
pub use options::{DoorOptions, LocalConsent, LoginOptions, ProviderOptions};
pub use passkey::{
    Passkey, PasskeyError, Passkeys, PublicOrigin, PublicOriginError, Registration, SignIn,
    UserHandle,
};
pub use pending::{Pending, PendingFull};
pub use session::{LoginMethod, LoginSession, SessionEnd, SessionLimits};
pub use token::Token;

pub use narthex_oauth::TokenHash;

//! One-time sign-in links: created by an operator, valid for one sign-in and a short time.

use std::time::{Duration, SystemTime};

use crate::Token;

/// Time for which a link is valid.
pub const LINK_LIFE: Duration = Duration::from_mins(15);

/// A new link. Its token is shown once; the store has the hash, and removes it when the link is
/// used.
#[derive(Debug)]
pub struct SignInLink {
    /// The token at the end of the link.
    pub token: Token,
    /// Time from which the link is no longer valid.
    pub expires_at: SystemTime,
}

impl SignInLink {
    /// Generates a link that is valid from now on.
    ///
    /// # Errors
    /// When the operating system gives no random bytes.
    pub fn generate(now: SystemTime) -> Result<Self, getrandom::Error> {
        Ok(Self { token: Token::generate()?, expires_at: now + LINK_LIFE })
    }
}

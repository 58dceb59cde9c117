//! One-time sign-in links: made by an operator, good for one sign-in, for a short while.

use std::time::{Duration, SystemTime};

use crate::Token;

/// Time in which a link may be used.
pub const LINK_LIFE: Duration = Duration::from_mins(15);

/// A new link. Its token is shown once; the store has the hash, and removes it when the link is
/// used.
#[derive(Debug)]
pub struct SignInLink {
    /// The token at the end of the link.
    pub token: Token,
    /// The time from which it opens nothing.
    pub expires_at: SystemTime,
}

impl SignInLink {
    /// One that is good from now on.
    ///
    /// # Errors
    /// When the operating system gives no random bytes.
    pub fn generate(now: SystemTime) -> Result<Self, getrandom::Error> {
        Ok(Self { token: Token::generate()?, expires_at: now + LINK_LIFE })
    }
}

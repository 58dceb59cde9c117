//! The stored form of random tokens.

use std::fmt;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// The stored form of a token: SHA-256, as 43 characters of base64url. With 256 random bits in the
/// token, a slow hash would add nothing.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TokenHash(String);

impl TokenHash {
    /// The hash of a caller's text, which may be no token.
    #[must_use]
    pub fn of(text: &str) -> Self {
        Self(URL_SAFE_NO_PAD.encode(Sha256::digest(text)))
    }

    /// A hash of the token for another purpose, such as a form's hidden field. It reveals nothing
    /// about the token, and is of no use for other purposes.
    #[must_use]
    pub fn for_purpose(purpose: &str, text: &str) -> Self {
        Self(URL_SAFE_NO_PAD.encode(Sha256::digest(format!("narthex {purpose}\n{text}"))))
    }

    /// A stored hash.
    #[must_use]
    pub fn from_stored(text: String) -> Self {
        Self(text)
    }

    /// The stored form, by which the caller finds the row of a token.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// True if this is the hash of the text. Takes the same time for every text.
    #[must_use]
    pub fn opens_for(&self, text: &str) -> bool {
        self.0.as_bytes().ct_eq(Self::of(text).0.as_bytes()).into()
    }
}

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenHash")
    }
}

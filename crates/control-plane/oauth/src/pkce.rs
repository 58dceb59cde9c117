//! Proof keys for code exchange (RFC 7636), with S256 only.

use std::fmt;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use narthex_model::Secret;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::random::random_text;

/// The only supported method (OAuth 2.1).
pub const METHOD: &str = "S256";

const RANDOM_BYTES: usize = 32;
/// Limits of a verifier's length (RFC 7636, 4.1).
const LENGTHS: std::ops::RangeInclusive<usize> = 43..=128;

/// The verifier of one authorization: 256 random bits as 43 characters.
#[derive(Debug, Clone)]
pub struct Verifier(Secret);

/// The challenge of an authorization: the SHA-256 hash of its verifier, as 43 characters of
/// base64url.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CodeChallenge(String);

impl Verifier {
    /// Generates a verifier.
    ///
    /// # Errors
    /// When the operating system gives no random bytes.
    pub fn generate() -> Result<Self, getrandom::Error> {
        random_text::<RANDOM_BYTES>().map(|text| Self(Secret::new(text)))
    }

    /// A verifier that was stored by the caller.
    #[must_use]
    pub fn from_stored(text: Secret) -> Self {
        Self(text)
    }

    /// The text for the token request.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.0.expose()
    }

    /// The S256 challenge for the authorization request (RFC 7636, 4.2).
    #[must_use]
    pub fn challenge(&self) -> CodeChallenge {
        CodeChallenge::of(self.expose())
    }
}

impl CodeChallenge {
    /// The challenge of a verifier (RFC 7636, 4.2).
    #[must_use]
    pub fn of(verifier: &str) -> Self {
        Self(URL_SAFE_NO_PAD.encode(Sha256::digest(verifier)))
    }

    /// Reads a client's challenge; `None` if the text is no SHA-256 hash in base64url.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let is_hash = URL_SAFE_NO_PAD.decode(text).is_ok_and(|bytes| bytes.len() == 32);
        is_hash.then(|| Self(text.to_owned()))
    }

    /// The text for the authorization request.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// True if a client's verifier is well-formed and this is its challenge (RFC 7636, 4.6). The
    /// comparison takes the same time for all verifiers of a length.
    #[must_use]
    pub fn opens_for(&self, verifier: &str) -> bool {
        let is_unreserved = |b: u8| b.is_ascii_alphanumeric() || b"-._~".contains(&b);
        LENGTHS.contains(&verifier.len())
            && verifier.bytes().all(is_unreserved)
            && bool::from(self.0.as_bytes().ct_eq(Self::of(verifier).0.as_bytes()))
    }
}

impl fmt::Debug for CodeChallenge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CodeChallenge")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The example of RFC 7636, appendix B.
    const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
    const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

    #[test]
    fn a_challenge_opens_for_its_verifier_alone() {
        let challenge = CodeChallenge::parse(CHALLENGE).unwrap();
        assert_eq!(CodeChallenge::of(VERIFIER), challenge);
        assert!(challenge.opens_for(VERIFIER));
        let other = format!("{VERIFIER}a");
        for bad in ["", CHALLENGE, &other, &VERIFIER[1..]] {
            assert!(!challenge.opens_for(bad), "{bad}");
        }
        // The hashes are right, but a verifier has 43 to 128 unreserved characters.
        for bad in ["short", &VERIFIER[1..], &format!("{} x", &VERIFIER[2..])] {
            assert!(!CodeChallenge::of(bad).opens_for(bad), "{bad}");
        }
    }

    #[test]
    fn a_challenge_has_the_form_of_a_hash() {
        let long = format!("{CHALLENGE}A");
        for bad in ["", VERIFIER.trim_end_matches('k'), &long, &CHALLENGE.replace('-', "+")] {
            assert_eq!(CodeChallenge::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn oauth_c16_verifiers_have_32_bytes_differ_and_print_nothing() {
        let (one, other) = (Verifier::generate().unwrap(), Verifier::generate().unwrap());
        assert_eq!(URL_SAFE_NO_PAD.decode(one.expose()).unwrap().len(), 32);
        assert_ne!(one.expose(), other.expose());
        assert!(!format!("{one:?}").contains(one.expose()));
        assert!(one.challenge().opens_for(one.expose()));
        assert!(!other.challenge().opens_for(one.expose()));
    }

    proptest! {
        #[test]
        fn only_the_verifier_proves_its_challenge(
            one in "[A-Za-z0-9._~-]{43,128}",
            other in "[A-Za-z0-9._~-]{43,128}",
        ) {
            prop_assert!(CodeChallenge::of(&one).opens_for(&one));
            prop_assert_eq!(CodeChallenge::of(&other).opens_for(&one), one == other);
        }
    }
}

//! Fingerprints of certificates.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Number of bytes of a SHA-256 hash.
const LENGTH: usize = 32;

/// The SHA-256 hash of a certificate, written as `openssl x509 -fingerprint -sha256` prints it:
/// pairs of hex digits with colons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Fingerprint([u8; LENGTH]);

/// The text is no fingerprint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("is not a SHA-256 fingerprint: write 64 hex digits, with or without colons")]
pub struct FingerprintError;

impl Fingerprint {
    /// The fingerprint of a certificate in DER.
    #[must_use]
    pub fn of(certificate: &[u8]) -> Self {
        Self(Sha256::digest(certificate).into())
    }
}

impl FromStr for Fingerprint {
    type Err = FingerprintError;

    fn from_str(text: &str) -> Result<Self, FingerprintError> {
        let text = text.trim();
        let prefix = text.get(..7).filter(|start| start.eq_ignore_ascii_case("sha256:"));
        let digits = text[prefix.map_or(0, str::len)..].replace(':', "");
        let mut bytes = [0; LENGTH];
        hex::decode_to_slice(digits, &mut bytes).map_err(|_other| FingerprintError)?;
        Ok(Self(bytes))
    }
}

impl TryFrom<String> for Fingerprint {
    type Error = FingerprintError;

    fn try_from(text: String) -> Result<Self, FingerprintError> {
        text.parse()
    }
}

impl From<Fingerprint> for String {
    fn from(fingerprint: Fingerprint) -> Self {
        fingerprint.to_string()
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, byte) in self.0.iter().enumerate() {
            let colon = if index == 0 { "" } else { ":" };
            write!(f, "{colon}{byte:02X}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_is_read_in_each_usual_spelling() {
        let of = Fingerprint::of(b"");
        let shown = of.to_string();
        assert!(shown.starts_with("E3:B0:C4:42:") && shown.len() == 95, "{shown}");
        let plain = shown.replace(':', "").to_lowercase();
        for text in [&shown, &plain, &format!("sha256:{plain}"), &format!(" SHA256:{shown}\n")] {
            assert_eq!(text.parse(), Ok(of), "{text}");
        }
        let json = serde_json::to_string(&of).unwrap();
        assert_eq!(json, format!("{shown:?}"));
        assert_eq!(serde_json::from_str::<Fingerprint>(&json).unwrap(), of);
    }

    #[test]
    fn other_texts_are_no_fingerprint() {
        let good = Fingerprint::of(b"").to_string();
        for text in ["", "sha256:", "ééé", &good[1..], &good.replace('E', "G"), &format!("{good}0")]
        {
            assert_eq!(text.parse::<Fingerprint>(), Err(FingerprintError), "{text}");
        }
    }
}

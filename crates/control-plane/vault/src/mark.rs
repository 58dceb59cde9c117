//! The mark of narthex's own texts: HMAC-SHA-256 under a key derived from a master key.

use base64::{Engine, engine::general_purpose::STANDARD};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::key::MasterKey;

/// Keeps this use of a master key apart from sealing.
const PURPOSE: &[u8] = b"narthex mark\n";

/// The mark of a text.
pub(crate) fn of(key: &MasterKey, text: &str) -> String {
    STANDARD.encode(mac(key, text).finalize().into_bytes())
}

/// True if a mark is of this text.
pub(crate) fn fits(key: &MasterKey, text: &str, mark: &str) -> bool {
    let Ok(mark) = STANDARD.decode(mark) else { return false };
    mac(key, text).verify_slice(&mark).is_ok()
}

fn mac(key: &MasterKey, text: &str) -> Hmac<Sha256> {
    let own: Zeroizing<[u8; 32]> =
        Zeroizing::new(under(key.bytes(), PURPOSE).finalize().into_bytes().into());
    under(&own, text.as_bytes())
}

fn under(key: &[u8; 32], text: &[u8]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key of any length is taken");
    mac.update(text);
    mac
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_matches_only_its_text_and_key() {
        let (key, other) = (MasterKey::generate().unwrap(), MasterKey::generate().unwrap());
        let mark = of(&key, "text");
        assert!(fits(&key, "text", &mark));
        assert!(!fits(&key, "texts", &mark) && !fits(&other, "text", &mark));
        assert!(!fits(&key, "text", "") && !fits(&key, "text", "no base64"));
    }
}

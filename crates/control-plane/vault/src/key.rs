//! One master key: 32 bytes, and an id that is computed from them.

use std::fmt;

use narthex_model::KeyId;
use sha2::{Digest, Sha256};
use zeroize::{Zeroize, Zeroizing};

const KEY_BYTES: usize = 32;
/// Number of hexadecimal digits of a key.
pub(crate) const KEY_DIGITS: usize = 2 * KEY_BYTES;
/// Fewer different bytes than this are no accident: of 32 random ones, about 30 differ, and that
/// 16 or fewer do happens once in some hundred million keys.
const DIFFERENT_BYTES_MIN: usize = 17;
/// Number of bytes of the digest that make the id.
const ID_BYTES: usize = 8;

/// A key that seals secrets. Its memory is overwritten when it is dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct MasterKey {
    id: KeyId,
    bytes: Zeroizing<[u8; KEY_BYTES]>,
}

/// The reason why a text has no valid keys. It does not repeat the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyFault {
    /// The text has no keys.
    #[error("it has no key")]
    Empty,
    /// The text has no key at this place.
    #[error("key {number} is not {KEY_DIGITS} hexadecimal digits")]
    NotHex {
        /// Number of the key, from 1.
        number: usize,
    },
    /// The key is an example, a pattern or a word, which any stranger could guess (S15).
    #[error("key {number} is not random; make one with `openssl rand -hex 32`")]
    Weak {
        /// Number of the key, from 1.
        number: usize,
    },
    /// The text has one key twice.
    #[error("key {number} is listed twice")]
    Twice {
        /// Number of the key, from 1.
        number: usize,
    },
    /// The text has more keys than any rotation leaves behind.
    #[error("there are more than {most} keys")]
    TooMany {
        /// Maximum number of keys of a text.
        most: usize,
    },
}

impl MasterKey {
    /// A new random key.
    ///
    /// # Errors
    /// When the operating system gives no random bytes.
    pub fn generate() -> Result<Self, getrandom::Error> {
        loop {
            let mut bytes = Zeroizing::new([0; KEY_BYTES]);
            getrandom::fill(&mut *bytes)?;
            // A key that a reader would refuse is not made.
            if !is_weak(&bytes) {
                return Ok(Self::of(bytes));
            }
        }
    }

    /// Reads the `number`th key of a text.
    pub(crate) fn parse(text: &str, number: usize) -> Result<Self, KeyFault> {
        let bytes = unhex(text).ok_or(KeyFault::NotHex { number })?;
        if is_weak(&bytes) {
            return Err(KeyFault::Weak { number });
        }
        Ok(Self::of(bytes))
    }

    fn of(bytes: Zeroizing<[u8; KEY_BYTES]>) -> Self {
        let digest = Sha256::new().chain_update(b"narthex master key\n").chain_update(*bytes);
        let digits: String =
            digest.finalize().iter().take(ID_BYTES).map(|byte| format!("{byte:02x}")).collect();
        let id = KeyId::new(&digits).expect("an id is written in hexadecimal digits");
        Self { id, bytes }
    }

    /// The key's id.
    #[must_use]
    pub fn id(&self) -> &KeyId {
        &self.id
    }

    pub(crate) fn bytes(&self) -> &[u8; KEY_BYTES] {
        &self.bytes
    }

    /// Writes the key as hexadecimal digits.
    pub(crate) fn write(&self, text: &mut Zeroizing<String>) {
        for byte in *self.bytes {
            for nibble in [byte >> 4, byte & 15] {
                text.push(char::from_digit(nibble.into(), 16).expect("a nibble is below 16"));
            }
        }
    }
}

impl fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MasterKey({})", self.id)
    }
}

fn is_weak(bytes: &[u8; KEY_BYTES]) -> bool {
    let mut sorted = *bytes;
    sorted.sort_unstable();
    let different = 1 + sorted.windows(2).filter(|pair| pair[0] != pair[1]).count();
    sorted.zeroize();
    different < DIFFERENT_BYTES_MIN
}

fn unhex(text: &str) -> Option<Zeroizing<[u8; KEY_BYTES]>> {
    let mut bytes = Zeroizing::new([0; KEY_BYTES]);
    if text.len() != KEY_DIGITS {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        let digit = |at: usize| char::from(pair[at]).to_digit(16);
        *byte = u8::try_from(digit(0)? * 16 + digit(1)?).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "feffe9928665731c6d6a8f9467308308e0d1c2b3a49586776859403122130475";

    /// X-M26, X-E68: written as 64 hexadecimal digits, which give the key and its id.
    #[test]
    fn x_m26_a_key_is_64_digits() {
        let key = MasterKey::parse(TEXT, 1).unwrap();
        assert_eq!(key.bytes()[..4], [0xfe, 0xff, 0xe9, 0x92]);
        // Computed by another program: sha256("narthex master key\n" + key).
        assert_eq!(key.id().as_str(), "34ee1ed132cdd22a");
        assert_eq!(MasterKey::parse(&TEXT.to_uppercase(), 1).unwrap(), key);
        let mut text = Zeroizing::new(String::new());
        key.write(&mut text);
        assert_eq!(*text, TEXT);
        let long = format!("{TEXT}00");
        for bad in ["", &TEXT[1..], &long, &TEXT.replace('f', "g"), &TEXT.replace("fe", "+1")] {
            assert_eq!(MasterKey::parse(bad, 3), Err(KeyFault::NotHex { number: 3 }), "{bad}");
        }
    }

    /// S15, X-E68: keys of examples, and those that a person types, are refused.
    #[test]
    fn s15_keys_that_are_not_random_are_refused() {
        let patterns = [
            "0".repeat(64),
            "f".repeat(64),
            "01".repeat(32),
            "0123456789abcdef".repeat(4),
            "00112233445566778899aabbccddeeff".repeat(2),
            "deadbeef".repeat(8),
        ];
        for pattern in patterns {
            let weak = Err(KeyFault::Weak { number: 1 });
            assert_eq!(MasterKey::parse(&pattern, 1), weak, "{pattern}");
        }
    }

    /// S15: the least number of different bytes, exactly.
    #[test]
    fn s15_a_key_needs_17_different_bytes() {
        let with = |different: usize| {
            let bytes = (0..KEY_BYTES).map(|at| at.min(different - 1));
            let text: String = bytes.map(|byte| format!("{byte:02x}")).collect();
            MasterKey::parse(&text, 1).map(drop)
        };
        assert_eq!(with(16), Err(KeyFault::Weak { number: 1 }));
        assert_eq!(with(17), Ok(()));
    }

    #[test]
    fn generated_keys_differ_and_can_be_parsed() {
        let mut ids = std::collections::BTreeSet::new();
        for _ in 0..200 {
            let key = MasterKey::generate().unwrap();
            let mut text = Zeroizing::new(String::new());
            key.write(&mut text);
            assert_eq!(MasterKey::parse(&text, 1).unwrap(), key);
            ids.insert(key.id().clone());
        }
        assert_eq!(ids.len(), 200);
    }

    #[test]
    fn s27_a_key_and_its_faults_do_not_print() {
        let key = MasterKey::parse(TEXT, 1).unwrap();
        assert_eq!(format!("{key:?}"), format!("MasterKey({})", key.id()));
        let fault = MasterKey::parse(&TEXT.replace('f', "g"), 1).unwrap_err();
        assert!(!format!("{fault} {fault:?}").contains("6573"), "{fault}");
    }
}

//! The key ring: the key that seals, and older ones that still open.

use std::fmt;

use narthex_model::KeyId;
use zeroize::Zeroizing;

use crate::key::{KEY_DIGITS, KeyFault, MasterKey};

/// Largest number of keys. A rotation leaves one key, and an interrupted rotation leaves two.
const KEYS_MAX: usize = 16;

/// Master keys by id. Never empty.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyRing {
    /// The keys; the first one seals.
    keys: Vec<MasterKey>,
}

impl KeyRing {
    /// A ring of one key.
    #[must_use]
    pub fn new(key: MasterKey) -> Self {
        Self { keys: vec![key] }
    }

    /// Reads keys from a file or a variable: 64 hexadecimal digits each, separated by commas,
    /// spaces or line ends. A line that begins with `#` is a comment.
    ///
    /// # Errors
    /// When the text has no key, or any other text.
    pub fn parse(text: &str) -> Result<Self, KeyFault> {
        let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
        let words = lines.flat_map(|line| line.split(|c: char| c == ',' || c.is_whitespace()));
        let mut keys: Vec<MasterKey> = Vec::new();
        for (at, word) in words.filter(|word| !word.is_empty()).enumerate() {
            let key = MasterKey::parse(word, at + 1)?;
            if at == KEYS_MAX {
                return Err(KeyFault::TooMany { most: KEYS_MAX });
            }
            if keys.contains(&key) {
                return Err(KeyFault::Twice { number: at + 1 });
            }
            keys.push(key);
        }
        if keys.is_empty() { Err(KeyFault::Empty) } else { Ok(Self { keys }) }
    }

    /// Writes the keys, one per line, in the form for [`KeyRing::parse`].
    #[must_use]
    pub fn write(&self) -> Zeroizing<String> {
        // At once as long as it gets: a text that moves leaves a copy behind.
        let length = self.keys.len() * (KEY_DIGITS + 1);
        let mut text = Zeroizing::new(String::with_capacity(length));
        for key in &self.keys {
            key.write(&mut text);
            text.push('\n');
        }
        text
    }

    /// The key that seals.
    #[must_use]
    pub fn current(&self) -> &MasterKey {
        &self.keys[0]
    }

    /// The keys that only open.
    pub fn older(&self) -> impl Iterator<Item = &MasterKey> {
        self.keys[1..].iter()
    }

    /// The key of this id, if the ring has it.
    #[must_use]
    pub fn get(&self, id: &KeyId) -> Option<&MasterKey> {
        self.keys.iter().find(|key| key.id() == id)
    }

    /// This ring with a new key that seals from now on.
    ///
    /// # Errors
    /// When the ring has the maximum number of keys.
    pub fn with(&self, key: MasterKey) -> Result<Self, KeyFault> {
        if self.keys.len() == KEYS_MAX {
            return Err(KeyFault::TooMany { most: KEYS_MAX });
        }
        let mut keys = vec![key];
        keys.extend_from_slice(&self.keys);
        Ok(Self { keys })
    }

    /// This ring with only the key that seals.
    #[must_use]
    pub fn without_older(&self) -> Self {
        Self::new(self.current().clone())
    }
}

impl fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.keys).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> MasterKey {
        MasterKey::generate().unwrap()
    }

    fn hex(key: &MasterKey) -> String {
        KeyRing::new(key.clone()).write().trim().to_owned()
    }

    #[test]
    fn a_key_ring_survives_a_round_trip() {
        let (first, second) = (key(), key());
        let ring = KeyRing::new(second.clone()).with(first.clone()).unwrap();
        assert_eq!(KeyRing::parse(&ring.write()).unwrap(), ring);
        assert_eq!((ring.current(), ring.older().count()), (&first, 1));
        assert_eq!(ring.get(second.id()), Some(&second));
        assert_eq!(ring.get(key().id()), None);
        assert_eq!(ring.without_older(), KeyRing::new(first.clone()));
        for between in [",", " ", "\n", " , ", "\r\n# a word for people\n"] {
            let text = format!("  {}{between}{}\n", hex(&first), hex(&second));
            assert_eq!(KeyRing::parse(&text).unwrap(), ring, "{between:?}");
        }
    }

    /// S15: an empty variable and an empty file are no key.
    #[test]
    fn s15_an_invalid_key_ring_is_refused_with_the_number_of_the_key() {
        for nothing in ["", " \n", ",", "# only words"] {
            assert_eq!(KeyRing::parse(nothing), Err(KeyFault::Empty), "{nothing:?}");
        }
        let one = hex(&key());
        let fault = |text: &str| KeyRing::parse(text).unwrap_err();
        assert_eq!(fault(&format!("{one} x")), KeyFault::NotHex { number: 2 });
        assert_eq!(fault(&format!("{one} {one}")), KeyFault::Twice { number: 2 });
        let many: Vec<_> = (0..=KEYS_MAX).map(|_| hex(&key())).collect();
        assert_eq!(fault(&many.join("\n")), KeyFault::TooMany { most: KEYS_MAX });
        let full = KeyRing::parse(&many[1..].join("\n")).unwrap();
        assert_eq!(full.with(key()), Err(KeyFault::TooMany { most: KEYS_MAX }));
    }

    /// S27: a text that grows is copied, and its old place is not overwritten.
    #[test]
    fn s27_the_keys_are_written_in_one_place() {
        let text = KeyRing::new(key()).with(key()).unwrap().write();
        assert_eq!(text.capacity(), text.len());
    }

    #[test]
    fn s27_a_ring_does_not_print() {
        let key = key();
        let shown = format!("{:?}", KeyRing::new(key.clone()));
        assert_eq!(shown, format!("[MasterKey({})]", key.id()));
    }
}

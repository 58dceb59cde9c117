//! Seals a text under a key ring itself, for stores that have no database.

use narthex_model::Secret;

use crate::{
    KeeperError, KeyRing,
    seal::{Closed, open_text, seal_text},
};

/// Kind and version of the sealed form: another form gets another word.
const FORM: &[u8] = b"narthex text 1\n";

/// The reason why a sealed text does not open. It repeats no part of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TextFault {
    /// The key is not in the ring.
    #[error("it was sealed under another key")]
    OtherKey,
    /// The text was changed, or sealed for another place.
    #[error("it was changed, or sealed for another place")]
    Damaged,
}

impl KeyRing {
    /// Seals a text for one place, at which alone it opens.
    ///
    /// # Errors
    /// When the system gives no random bytes.
    pub fn seal(&self, place: &str, text: &Secret) -> Result<String, KeeperError> {
        let key = self.current();
        let sealed = seal_text(key, &associated(place), text).map_err(KeeperError::Randomness)?;
        Ok(format!("{}.{sealed}", key.id()))
    }

    /// Opens a text that was sealed for this place.
    ///
    /// # Errors
    /// When no key of the ring has sealed it, or it was changed.
    pub fn open(&self, place: &str, sealed: &str) -> Result<Secret, TextFault> {
        let (id, sealed) = sealed.split_once('.').ok_or(TextFault::Damaged)?;
        let mut keys = std::iter::once(self.current()).chain(self.older());
        let key = keys.find(|key| key.id().as_str() == id).ok_or(TextFault::OtherKey)?;
        open_text(key, &associated(place), sealed).map_err(|Closed| TextFault::Damaged)
    }
}

fn associated(place: &str) -> Vec<u8> {
    [FORM, place.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MasterKey;

    fn ring() -> KeyRing {
        KeyRing::new(MasterKey::generate().unwrap())
    }

    /// E15: a text opens at its place alone, also after the ring got another key, and a changed
    /// text not at all.
    #[test]
    fn e15_a_text_opens_at_its_place_under_its_key() {
        let first = ring();
        let sealed = first.seal("here", &Secret::new("größe")).unwrap();
        assert!(!sealed.contains("größe"));
        let both = first.with(MasterKey::generate().unwrap()).unwrap();
        assert_eq!(both.open("here", &sealed).unwrap().expose(), "größe");
        assert_eq!(first.open("there", &sealed).unwrap_err(), TextFault::Damaged);
        assert_eq!(ring().open("here", &sealed).unwrap_err(), TextFault::OtherKey);
        assert_eq!(both.without_older().open("here", &sealed).unwrap_err(), TextFault::OtherKey);
        assert_eq!(first.open("here", "no dot").unwrap_err(), TextFault::Damaged);
        let mut changed = sealed.into_bytes();
        let at = changed.len() - 3;
        changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(changed).unwrap();
        assert_eq!(first.open("here", &changed).unwrap_err(), TextFault::Damaged);
    }
}

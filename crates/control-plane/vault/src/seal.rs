//! Seals one value for one place, and opens it there: AES-256-GCM with a fresh nonce.
//!
//! A sealed value is bound to workspace, name and version. These are authenticated with the value,
//! each with its length, so that no two places are equal. A nonce is 96 random bits, which is safe
//! for some four billion values under one key (NIST SP 800-38D).

use aes_gcm::{
    Aes256Gcm, KeyInit,
    aead::{Aead, Payload},
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use narthex_model::{SealedSecret, Secret, SecretName, SecretVersion, WorkspaceId};
use zeroize::Zeroize;

use crate::key::MasterKey;

const NONCE_BYTES: usize = 12;
/// Kind and version of the sealed form: another form gets another word.
const FORM: &[u8] = b"narthex secret 1\n";

/// The place that a value belongs to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) workspace: &'a WorkspaceId,
    pub(crate) name: &'a SecretName,
    pub(crate) version: SecretVersion,
}

/// A sealed text does not open: another key, another place, or a changed byte. The cipher does not
/// tell which.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Closed;

impl<'a> Place<'a> {
    /// The place that a row names.
    pub(crate) fn of(sealed: &'a SealedSecret) -> Self {
        let SealedSecret { workspace, name, version, .. } = sealed;
        Self { workspace, name, version: *version }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = FORM.to_vec();
        for text in [self.workspace.as_str(), self.name.as_str()] {
            bytes.extend_from_slice(&(text.len() as u64).to_be_bytes());
            bytes.extend_from_slice(text.as_bytes());
        }
        bytes.extend_from_slice(&self.version.get().to_be_bytes());
        bytes
    }

    /// Seals a value for this place.
    ///
    /// # Errors
    /// When the operating system gives no random bytes.
    pub(crate) fn seal(
        &self,
        key: &MasterKey,
        value: &Secret,
    ) -> Result<SealedSecret, getrandom::Error> {
        Ok(SealedSecret {
            workspace: self.workspace.clone(),
            name: self.name.clone(),
            version: self.version,
            key: key.id().clone(),
            sealed: seal_text(key, &self.bytes(), value)?,
        })
    }

    #[cfg(test)]
    fn seal_with(&self, key: &MasterKey, nonce: [u8; NONCE_BYTES], value: &Secret) -> String {
        seal_with(key, nonce, &self.bytes(), value)
    }

    /// Opens a text that was sealed for this place under this key.
    pub(crate) fn open(&self, key: &MasterKey, sealed: &str) -> Result<Secret, Closed> {
        open_text(key, &self.bytes(), sealed)
    }
}

/// Seals a text, bound to the associated data.
///
/// # Errors
/// When the operating system gives no random bytes.
pub(crate) fn seal_text(
    key: &MasterKey,
    associated: &[u8],
    value: &Secret,
) -> Result<String, getrandom::Error> {
    let mut nonce = [0; NONCE_BYTES];
    getrandom::fill(&mut nonce)?;
    Ok(seal_with(key, nonce, associated, value))
}

fn seal_with(
    key: &MasterKey,
    nonce: [u8; NONCE_BYTES],
    associated: &[u8],
    value: &Secret,
) -> String {
    let payload = Payload { msg: value.expose().as_bytes(), aad: associated };
    let sealed = Aes256Gcm::new(key.bytes().into()).encrypt(&nonce.into(), payload);
    // The only limit is 64 GiB.
    let sealed = sealed.expect("a value is shorter than AES-GCM can seal");
    URL_SAFE_NO_PAD.encode([&nonce[..], &sealed].concat())
}

/// Opens a text that was sealed with the same words.
pub(crate) fn open_text(
    key: &MasterKey,
    associated: &[u8],
    sealed: &str,
) -> Result<Secret, Closed> {
    let bytes = URL_SAFE_NO_PAD.decode(sealed).map_err(|_malformed| Closed)?;
    let (nonce, sealed) = bytes.split_first_chunk::<NONCE_BYTES>().ok_or(Closed)?;
    let payload = Payload { msg: sealed, aad: associated };
    let cipher = Aes256Gcm::new(key.bytes().into());
    let value = cipher.decrypt(&(*nonce).into(), payload).map_err(|_closed| Closed)?;
    String::from_utf8(value).map(Secret::new).map_err(|error| {
        // Only text is ever sealed, so this value is damaged.
        error.into_bytes().zeroize();
        Closed
    })
}

#[cfg(test)]
mod tests;

//! Sealed state: data that a client holds between two requests and can neither read nor change.
//!
//! AES-256-GCM under a key of this process. A state is bound to run, server, method and item, and
//! expires. The state begins with the node's id in clear, so that any replica can find the owner
//! (D26).

use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use aes_gcm::{
    Aes256Gcm, KeyInit,
    aead::{Aead, Payload},
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use narthex_model::{Alias, RunId};
use narthex_policy::{Paid, SpentStates, StateId};

const NONCE_BYTES: usize = 12;

/// Longest time that a client has for one round.
pub(crate) const STATE_TTL: Duration = Duration::from_secs(60 * 60);

/// Seals and opens states.
pub(crate) struct Sealer {
    cipher: Aes256Gcm,
    node_id: String,
    /// The states whose grants are used up.
    pub(crate) spent: SpentStates,
}

impl std::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sealer(…)")
    }
}

impl Sealer {
    /// A sealer with a new key.
    ///
    /// # Errors
    /// When the operating system gives no random bytes.
    pub(crate) fn new(node_id: &str) -> Result<Self, getrandom::Error> {
        let mut key = [0_u8; 32];
        getrandom::fill(&mut key)?;
        let (cipher, spent) = (Aes256Gcm::new(&key.into()), SpentStates::new(STATE_TTL));
        Ok(Self { cipher, node_id: node_id.to_owned(), spent })
    }

    /// Seals `state` for a caller that shows the same `binding` again. `None` if the system gives
    /// no random bytes.
    pub(crate) fn seal(&self, state: &[u8], binding: &[u8]) -> Option<String> {
        let mut nonce = [0_u8; NONCE_BYTES];
        getrandom::fill(&mut nonce).ok()?;
        let expires = (now() + STATE_TTL.as_secs()).to_be_bytes();
        let clear = [&expires[..], state].concat();
        let payload = Payload { msg: &clear, aad: binding };
        let sealed = self.cipher.encrypt(&nonce.into(), payload).ok()?;
        let text = URL_SAFE_NO_PAD.encode([&nonce[..], &sealed].concat());
        Some(format!("{}.{text}", self.node_id))
    }

    /// Opens a state; `None` if this process did not seal it for `binding`, or it was changed or
    /// has expired.
    pub(crate) fn open(&self, text: &str, binding: &[u8]) -> Option<(StateId, Vec<u8>)> {
        let (node, text) = text.rsplit_once('.')?;
        if node != self.node_id {
            return None;
        }
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (nonce, sealed) = bytes.split_first_chunk::<NONCE_BYTES>()?;
        let payload = Payload { msg: sealed, aad: binding };
        let clear = self.cipher.decrypt(&(*nonce).into(), payload).ok()?;
        let (expires, state) = clear.split_first_chunk::<8>()?;
        (u64::from_be_bytes(*expires) >= now()).then(|| (*nonce, state.to_vec()))
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Seals a modern server's request state, so that the client can neither read nor change it.
#[derive(Debug)]
pub(crate) struct StateSeal {
    pub(crate) sealer: Arc<Sealer>,
    pub(crate) run: RunId,
    pub(crate) alias: Alias,
    /// The grants for a single call that the call has used up so far.
    pub(crate) paid: Paid,
}

/// The bytes that a sealed state is bound to: run, server, method and item.
pub(crate) fn state_binding(run: RunId, alias: &Alias, method: &str, item: &str) -> Vec<u8> {
    let run = run.to_text();
    [&run, alias.as_str(), method, item].map(str::as_bytes).join(&0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// D26: a state opens only in the process that sealed it, unchanged, and for its binding.
    #[test]
    fn a_sealed_state_opens_only_if_unchanged_and_with_its_binding() {
        let sealer = Sealer::new("n1").unwrap();
        let text = sealer.seal(b"\"state\"", b"run|git|tools/call").unwrap();
        assert_eq!(sealer.open(&text, b"run|git|tools/call").unwrap().1, b"\"state\"");
        assert!(sealer.open(&text, b"other|git|tools/call").is_none());
        assert!(Sealer::new("n1").unwrap().open(&text, b"run|git|tools/call").is_none());
        let mut changed = text.into_bytes();
        let at = changed.len() - 3;
        changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(changed).unwrap();
        assert!(sealer.open(&changed, b"run|git|tools/call").is_none());
        assert!(sealer.open("", b"").is_none() && sealer.open("n1.", b"").is_none());
    }
}

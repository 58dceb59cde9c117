//! The tokens that prove to belong to a run.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest, Sha256};

use crate::{RunId, Secret};

/// The prefix of every run token, so that secret scanners can find leaked ones.
const PREFIX: &str = "nxt_";
const ID_BYTES: usize = RunId::BYTES;
const RANDOM_BYTES: usize = 32;

/// A token that proves to act for one run. It carries the run's id and 256 random bits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunToken(Secret);

impl RunToken {
    /// A new token for a new run.
    ///
    /// # Errors
    /// When the operating system gives no random bytes.
    pub fn generate() -> Result<Self, getrandom::Error> {
        let mut id = [0; ID_BYTES];
        getrandom::fill(&mut id)?;
        Self::of_run(RunId::new(id))
    }

    /// A new token for a run that there is.
    ///
    /// # Errors
    /// When the operating system gives no random bytes.
    pub fn of_run(id: RunId) -> Result<Self, getrandom::Error> {
        let mut bytes = [0; ID_BYTES + RANDOM_BYTES];
        let (of, random) = bytes.split_at_mut(ID_BYTES);
        of.copy_from_slice(&id.bytes());
        getrandom::fill(random)?;
        Ok(Self(Secret::new(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes)))))
    }

    /// Reads a token as it was written to a file or sent by a client; `None` if it is none.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::id_in(text).map(|_| Self(Secret::new(text)))
    }

    /// The token as text, to be written to its file and nowhere else.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.0.expose()
    }

    /// The id of the run that the token names.
    #[must_use]
    pub fn run_id(&self) -> RunId {
        Self::id_in(self.0.expose()).unwrap_or(RunId::new([0; ID_BYTES]))
    }

    /// The stored form of the token: its SHA-256.
    #[must_use]
    pub fn hash(&self) -> [u8; 32] {
        Self::hash_of(self.0.expose())
    }

    /// The id in a token; `None` if the text is none.
    #[must_use]
    pub fn id_in(text: &str) -> Option<RunId> {
        let mut bytes = [0; ID_BYTES + RANDOM_BYTES];
        let length = URL_SAFE_NO_PAD.decode_slice(text.strip_prefix(PREFIX)?, &mut bytes).ok()?;
        let (id, _) = bytes.split_first_chunk()?;
        (length == bytes.len()).then(|| RunId::new(*id))
    }

    /// The stored form of a text that a caller presents as a token.
    #[must_use]
    pub fn hash_of(text: &str) -> [u8; 32] {
        Sha256::digest(text).into()
    }
}

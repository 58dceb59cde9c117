//! Families of tokens: all that came from one code, with one refresh token that counts.

use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::{
    answer::OAuthError,
    grant::Grant,
    time::StoredTime,
    token::{FamilyId, Token},
};
use crate::TokenHash;

/// Time for which a refresh token is valid, counted anew at each use.
pub const REFRESH_LIFE: Duration = Duration::from_hours(30 * 24);
/// Time for which a refresh token that was just used gives access tokens, since two processes of a
/// client may use it at once, and an answer may get lost.
pub const GRACE: Duration = Duration::from_secs(30);

/// A stored family. The refresh tokens of the family name it, so the caller finds it by
/// [`FamilyId::of_refresh_token`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Family {
    /// The id.
    pub id: FamilyId,
    /// The rights that the human gave.
    pub grant: Grant,
    /// Number of rotations. The caller stores a family only over the one of the number before; if
    /// another request was faster, it reads the family and decides again.
    pub generation: u64,
    /// Time of the first tokens.
    pub created_at: StoredTime,
    /// Time from which the refresh token is no longer valid.
    pub expires_at: StoredTime,
    /// Time of the end of all tokens of the family; `None` while they are valid.
    pub revoked_at: Option<StoredTime>,
    /// True if each use gives a new refresh token, as for public clients.
    pub(super) is_rotating: bool,
    current: TokenHash,
    previous: Option<UsedToken>,
}

/// The refresh token before the current one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct UsedToken {
    hash: TokenHash,
    used_at: StoredTime,
}

/// A family with its new refresh token.
#[derive(Debug)]
pub(super) struct NewRefresh {
    pub(super) family: Family,
    pub(super) token: Token,
}

/// The place of a refresh token in its family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// It counts.
    Current,
    /// It was used just now.
    JustUsed,
    /// It was used before, or never belonged to the family.
    Used,
    /// The family was revoked, or not used for too long.
    Ended,
}

impl Family {
    /// Begins a family.
    ///
    /// # Errors
    /// When the operating system gives no random bytes.
    pub(super) fn begin(
        grant: Grant,
        is_rotating: bool,
        now: SystemTime,
    ) -> Result<NewRefresh, OAuthError> {
        let random = |_error| OAuthError::NO_RANDOMNESS;
        let id = FamilyId::generate().map_err(random)?;
        let token = Token::refresh(&id).map_err(random)?;
        let now = StoredTime::of(now);
        let family = Self {
            id,
            grant,
            generation: 0,
            created_at: now,
            expires_at: now.plus(REFRESH_LIFE),
            revoked_at: None,
            is_rotating,
            current: token.hash(),
            previous: None,
        };
        Ok(NewRefresh { family, token })
    }

    /// The place of a presented refresh token, by hashes, so that the time of the comparison says
    /// nothing about stored tokens.
    pub(super) fn standing(&self, presented: &str, now: SystemTime) -> Standing {
        let now = StoredTime::of(now);
        let is_previous = |used: &UsedToken| used.hash.opens_for(presented);
        if !self.is_alive_at(now) {
            Standing::Ended
        } else if self.current.opens_for(presented) {
            Standing::Current
        } else {
            match &self.previous {
                Some(used) if is_previous(used) && now.since(used.used_at) <= GRACE => {
                    Standing::JustUsed
                }
                Some(_) | None => Standing::Used,
            }
        }
    }

    /// The family after a use of its current token, with a new one.
    ///
    /// # Errors
    /// When the operating system gives no random bytes.
    pub(super) fn rotated(&self, now: SystemTime) -> Result<NewRefresh, OAuthError> {
        let token = Token::refresh(&self.id).map_err(|_error| OAuthError::NO_RANDOMNESS)?;
        let used_at = StoredTime::of(now);
        let previous = Some(UsedToken { hash: self.current.clone(), used_at });
        let family = Self { current: token.hash(), previous, ..self.prolonged(now) };
        Ok(NewRefresh { family, token })
    }

    /// The family after a use of its current token, which stays.
    pub(super) fn prolonged(&self, now: SystemTime) -> Self {
        let expires_at = StoredTime::of(now).plus(REFRESH_LIFE);
        Self { generation: self.generation + 1, expires_at, ..self.clone() }
    }

    /// The family after its end. The caller also forgets its access tokens, and ends what they have
    /// opened.
    #[must_use]
    pub fn revoked(&self, now: SystemTime) -> Self {
        let revoked_at = Some(StoredTime::of(now));
        Self { generation: self.generation + 1, revoked_at, ..self.clone() }
    }

    /// True if the family was neither revoked nor unused for too long.
    #[must_use]
    pub fn is_alive(&self, now: SystemTime) -> bool {
        self.is_alive_at(StoredTime::of(now))
    }

    fn is_alive_at(&self, now: StoredTime) -> bool {
        self.revoked_at.is_none() && now < self.expires_at
    }
}

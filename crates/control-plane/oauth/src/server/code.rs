//! Authorization codes (RFC 6749, 4.1.2): valid for a minute, and once.

use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::{
    answer::OAuthError,
    grant::Grant,
    redirect::RedirectUri,
    time::StoredTime,
    token::{FamilyId, Token, TokenKind},
};
use crate::{TokenHash, pkce::CodeChallenge};

/// Time for which a code can be used.
pub const CODE_LIFE: Duration = Duration::from_mins(1);
/// Time for which the caller keeps a used code, to notice a second use.
pub const USED_CODE_LIFE: Duration = Duration::from_hours(24);

/// A stored code: its hash, and all that it is bound to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeRecord {
    /// The hash by which the caller finds the record.
    pub hash: TokenHash,
    /// The rights that the code gives.
    pub grant: Grant,
    /// The redirect URI of the request.
    pub redirect_uri: RedirectUri,
    /// The client's challenge.
    pub challenge: CodeChallenge,
    /// Time from which the code is no longer valid.
    pub expires_at: StoredTime,
    /// The use of the code. The caller changes it in one step with the check that it was unused.
    pub state: CodeState,
}

/// The use of a code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CodeState {
    /// It was not used.
    Unused,
    /// It gave the tokens of this family.
    Used(FamilyId),
    /// It was tried with a wrong proof, and gave nothing.
    Spent,
}

/// A new code: its text for the redirect, and its record for the store.
#[derive(Debug)]
pub(super) struct NewCode {
    pub(super) code: Token,
    pub(super) record: CodeRecord,
}

impl NewCode {
    /// Generates a code that is valid for a minute.
    ///
    /// # Errors
    /// When the operating system gives no random bytes.
    pub(super) fn generate(
        grant: Grant,
        redirect_uri: RedirectUri,
        challenge: CodeChallenge,
        now: SystemTime,
    ) -> Result<Self, OAuthError> {
        let random = |_error| OAuthError::NO_RANDOMNESS;
        let code = Token::generate(TokenKind::Code).map_err(random)?;
        let record = CodeRecord {
            hash: code.hash(),
            grant,
            redirect_uri,
            challenge,
            expires_at: StoredTime::of(now).plus(CODE_LIFE),
            state: CodeState::Unused,
        };
        Ok(Self { code, record })
    }
}

impl CodeRecord {
    /// The record after a use.
    #[must_use]
    pub(super) fn after(&self, state: CodeState) -> Self {
        Self { state, ..self.clone() }
    }

    /// True if the caller can forget the code.
    #[must_use]
    pub fn is_forgettable(&self, now: SystemTime) -> bool {
        StoredTime::of(now) >= self.expires_at.plus(USED_CODE_LIFE)
    }
}

//! Requests of programs for tokens, and the answers.

use std::sync::Arc;

use narthex_oauth::server::{
    Answer, AssertionRequest, CheckedAssertion, Client, ErrorCode, OAuthError,
};

use super::foreign_token::DoorForeign;
use crate::KnownClient;

/// The answer to a program, and its consequence.
#[derive(Debug)]
pub struct DoorAnswer {
    /// The answer.
    pub answer: Answer,
    /// The client whose run has to end, since tokens of it are revoked.
    pub ended: Option<Arc<KnownClient>>,
}

/// The outcome of a request for tokens.
#[derive(Debug)]
pub enum DoorToken {
    /// It is answered.
    Answered(DoorAnswer),
    /// It has a good assertion, for which a client is to be let in.
    Asserted(Box<DoorAsserted>),
}

/// A request with a good assertion, which may have been used before.
#[derive(Debug)]
pub struct DoorAsserted {
    /// The person of the assertion, with the client that acts for them.
    pub foreign: DoorForeign,
    pub(super) checked: CheckedAssertion,
    pub(super) request: AssertionRequest,
    pub(super) client: Client,
}

/// The body of a request of a program, with the headers that belong to it.
#[derive(Debug, Clone, Copy)]
pub struct DoorForm<'a> {
    /// The header `Authorization`.
    pub authorization: Option<&'a str>,
    /// The header `Content-Type`.
    pub content_type: Option<&'a str>,
    /// The body.
    pub body: &'a [u8],
}

impl DoorAnswer {
    pub(super) fn plain(answer: Answer) -> Self {
        Self { answer, ended: None }
    }

    /// The refusal of an assertion whose person may not let the client in.
    #[must_use]
    pub fn not_let_in() -> Self {
        let text = "the person of the assertion may not let this client in";
        OAuthError::new(ErrorCode::InvalidGrant, text).into()
    }

    /// The answer to a request that lost to others each time.
    pub(super) fn busy() -> Self {
        let text = "too many requests use this token at once; try again";
        OAuthError::new(ErrorCode::TemporarilyUnavailable, text).into()
    }
}

impl From<OAuthError> for DoorAnswer {
    fn from(error: OAuthError) -> Self {
        Self::plain(error.answer())
    }
}

impl From<OAuthError> for DoorToken {
    fn from(error: OAuthError) -> Self {
        Self::Answered(error.into())
    }
}

//! Faults of tokens.

/// A fault of a token or of the keys that should prove it. None of these shows the token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum JwtFault {
    /// The document is no set of keys.
    #[error("its keys cannot be read")]
    NotKeys,
    /// The text is no signed token.
    #[error("it is not a signed token")]
    Malformed,
    /// The algorithm is not allowed. One with a shared secret never is.
    #[error("it is signed by an algorithm that is not allowed")]
    ForbiddenAlgorithm,
    /// The token is signed with a key that is not in the set. The caller should fetch the keys once
    /// more.
    #[error("it is signed with a key that its issuer does not publish")]
    UnknownKey,
    /// Several keys could have signed the token.
    #[error("several keys could have signed it")]
    AmbiguousKey,
    /// The signature does not fit the token and the key.
    #[error("its signature is wrong")]
    BadSignature,
    /// The token is of another type, such as an ID token.
    #[error("it is of another type")]
    WrongType,
    /// The issuer is another.
    #[error("it has another issuer")]
    WrongIssuer,
    /// The token is for another audience.
    #[error("it is for another audience")]
    WrongAudience,
    /// The token is for another resource.
    #[error("it is for another resource")]
    WrongResource,
    /// The token is about another client, or was issued to another one.
    #[error("it belongs to another client")]
    WrongClient,
    /// The token has expired.
    #[error("it has expired")]
    Expired,
    /// The token is not valid yet.
    #[error("it is not valid yet")]
    TooEarly,
    /// The token is valid for longer than an assertion may be.
    #[error("it is valid for too long")]
    TooLong,
    /// A claim is missing, or has another type.
    #[error("it has no valid claim `{0}`")]
    BadClaim(&'static str),
}

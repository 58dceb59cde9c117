//! Kinds of addresses, and of proofs that clients give.

/// One kind of address that the fixture answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Endpoint {
    /// The metadata of the protected resource (RFC 9728), at any of its addresses.
    ResourceMetadata,
    /// The metadata of an authorization server (RFC 8414 and OpenID), at any of its addresses.
    ServerMetadata,
    /// Dynamic client registration (RFC 7591).
    Registration,
    /// The authorization endpoint, which the browser visits.
    Authorize,
    /// The token endpoint.
    Token,
    /// Token revocation (RFC 7009).
    Revocation,
    /// Device authorization (RFC 8628).
    Device,
    /// The keys of an authorization server.
    Keys,
    /// The protected MCP server.
    Mcp,
    /// Any other address.
    Unknown,
}

/// The proof that a client gives at the token endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthMethod {
    /// HTTP Basic with both parts form-encoded.
    Basic,
    /// Id and secret in the form.
    Post,
    /// An assertion signed by the client's key.
    KeyJwt,
    /// None: the client is public.
    None,
    /// The secret, by Basic or in the form.
    AnySecret,
}

impl AuthMethod {
    /// The name in metadata and registrations.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Basic => "client_secret_basic",
            Self::Post => "client_secret_post",
            Self::KeyJwt => "private_key_jwt",
            Self::None | Self::AnySecret => "none",
        }
    }

    /// The method of this name.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        let all = [Self::Basic, Self::Post, Self::KeyJwt, Self::None];
        all.into_iter().find(|method| method.name() == name)
    }

    /// True if the client has a secret.
    #[must_use]
    pub fn has_secret(self) -> bool {
        matches!(self, Self::Basic | Self::Post | Self::AnySecret)
    }
}

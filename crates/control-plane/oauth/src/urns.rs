//! Registered names of grants, token types and assertions.

/// The grant type of a signed assertion (RFC 7523, 2.1).
pub const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
/// The grant type of a token exchange (RFC 8693, 2.1).
pub const TOKEN_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
/// The type of a client's signed proof (RFC 7523, 2.2).
pub const JWT_BEARER_ASSERTION: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
/// The token type of an identity assertion authorization grant.
pub const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";
/// The token type of an ID token.
pub const ID_TOKEN: &str = "urn:ietf:params:oauth:token-type:id_token";
/// The token type of an access token (RFC 8693, 3).
pub const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";
/// The token type of a refresh token.
pub const REFRESH_TOKEN: &str = "urn:ietf:params:oauth:token-type:refresh_token";
/// The profile by which a server says that it takes identity assertions.
pub const ID_JAG_PROFILE: &str = "urn:ietf:params:oauth:grant-profile:id-jag";
/// The token type of a token that is a JWT (RFC 8693, 3).
pub const JWT: &str = "urn:ietf:params:oauth:token-type:jwt";

//! Misbehaviour of authorization servers and protected servers, one switch each.

use super::kinds::{AuthMethod, Endpoint};

/// All switches. The default is a server that follows the specifications.
#[derive(Debug, Clone, Default)]
pub struct Quirks {
    // --- Metadata ---
    /// The resource metadata names issuers with a slash at their end, and the metadata of the
    /// issuers does not.
    pub issuer_trailing_slash: bool,
    /// Issuers spell themselves with a slash at their end, in metadata, redirects back and tokens,
    /// and the resource metadata does not.
    pub metadata_trailing_slash: bool,
    /// Resource metadata and server metadata are at the roots of their origins only.
    pub metadata_only_at_root: bool,
    /// The first address of each kind of metadata answers 200 with HTML, as do well-known
    /// addresses without metadata.
    pub html_at_well_known: bool,
    /// The resource metadata is below the address of the MCP server only.
    pub resource_metadata_appended: bool,
    /// The resource metadata is only at an address that challenges name.
    pub resource_metadata_elsewhere: bool,
    /// Status of well-known addresses without metadata, instead of 404.
    pub miss_status: Option<u16>,
    /// There is no resource metadata, and challenges name none.
    pub no_resource_metadata: bool,
    /// There is no server metadata. The endpoints are at their usual paths all the same.
    pub no_server_metadata: bool,
    /// The server metadata names another issuer.
    pub wrong_issuer_in_metadata: bool,
    /// The resource metadata names another resource.
    pub wrong_resource: Option<WrongResource>,
    /// The server metadata has this text as its authorization endpoint.
    pub authorization_endpoint: Option<String>,
    /// The server metadata says nothing about S256. It is demanded all the same.
    pub no_s256_advertised: bool,
    /// The resource metadata has scopes that the authorization server refuses.
    pub unknown_scopes: bool,

    // --- Registration ---
    /// There is no registration, and the metadata names none.
    pub no_dcr: bool,
    /// Status and plain text of every registration's refusal.
    pub dcr_refuses: Option<u16>,
    /// Registration refuses redirect addresses that are not on loopback.
    pub dcr_refuses_without_loopback: bool,
    /// Registration refuses redirect addresses on loopback.
    pub dcr_refuses_loopback: bool,
    /// Registration refuses a body with `scope`.
    pub dcr_refuses_scope: bool,
    /// Registration refuses this `application_type`.
    pub dcr_refuses_application_type: Option<String>,
    /// Registration is for this `client_name` only; others get 403 with plain text.
    pub dcr_only_named: Option<String>,
    /// Registration answers with status 200.
    pub dcr_answers_200: bool,
    /// Registration answers with these redirect addresses, whatever was asked for.
    pub dcr_forces_redirects: Option<Vec<String>>,
    /// Registration answers with this authentication method, whatever was asked for.
    pub dcr_forces_method: Option<AuthMethod>,
    /// A client that asked for the method `none` gets a secret, and has to use it.
    pub returns_secret_for_none: bool,
    /// Number of seconds after which a secret of a registered client expires.
    pub secret_lives_s: Option<u64>,
    /// Number of seconds after which a registered client is forgotten.
    pub purged_clients: Option<u64>,
    /// Registered client ids have characters that must be encoded.
    pub odd_client_ids: bool,

    // --- Authorization ---
    /// The `iss` of the redirect back.
    pub wrong_iss_in_callback: CallbackIss,
    /// The port of a redirect address on loopback has to be the registered one.
    pub loopback_ports_matter: bool,
    /// The redirect back has another `state`.
    pub wrong_state_in_callback: bool,
    /// The error with which the person refuses, such as `access_denied`.
    pub denies: Option<String>,
    /// A `resource` together with a `scope` is refused at every endpoint; tokens are for
    /// every MCP server.
    pub refuses_resource_with_scope: bool,
    /// No `resource` is read; tokens are for every MCP server.
    pub ignores_resource: bool,
    /// Only these scopes are ever granted.
    pub grants_only: Option<Vec<String>>,
    /// A refresh token is for those only who asked for the scope `offline_access`.
    pub offline_access_needed: bool,

    // --- Tokens ---
    /// As Slack: no registration, errors with status 200 and `"ok": false`, tokens below
    /// `authed_user`, commas between scopes, and no `resource`.
    pub slack_like: bool,
    /// There is no refresh token.
    pub no_refresh_token: bool,
    /// A refresh keeps its refresh token, and answers without one.
    pub never_rotates: bool,
    /// Number of milliseconds in which a refresh token that was just used gives another access
    /// token, without a refresh token.
    pub rotates_with_grace: Option<u64>,
    /// A refresh token that comes again within its grace gives a refresh token, too.
    pub grace_rotates: bool,
    /// A refresh without `scope` gives a token with another scope.
    pub scope_needed_on_refresh: bool,
    /// A refresh with `scope` is refused.
    pub scope_refused_on_refresh: bool,
    /// A refresh without `resource` is refused.
    pub resource_needed_on_refresh: bool,
    /// The `expires_in` of token answers.
    pub expires_in: ExpiresIn,
    /// Access tokens are JWTs.
    pub jwt_access_tokens: bool,
    /// Answers of the token endpoint are forms.
    pub form_encoded_answers: bool,
    /// Errors of the token endpoint have status 200.
    pub errors_with_200: bool,
    /// Token answers have no `scope`.
    pub scope_missing: bool,
    /// Token answers have no `token_type`.
    pub token_type_missing: bool,
    /// Token answers have the `token_type` `bearer`.
    pub token_type_lower_case: bool,
    /// Number of next requests of the token endpoint that fail by `token_failure`; counts down.
    pub failing_token_requests: u32,
    /// The failure of these requests.
    pub token_failure: TokenFailure,
    /// Number of polls for a device that the server still answers with `slow_down`.
    pub slow_down_polls: u32,

    // --- The MCP server ---
    /// A missing or dead token is a tool error in an answer with status 200.
    pub hides_401_in_200: bool,
    /// Only calls of tools need a token.
    pub handshake_is_open: bool,
    /// Every token is refused as if it were dead.
    pub refuses_all_tokens: bool,
    /// The 401 has no challenge at all.
    pub no_challenge: bool,
    /// The 401 has other challenges before that of Bearer, with commas in quotes.
    pub several_challenges: bool,
    /// The 401 has no challenge of Bearer.
    pub no_bearer_challenge: bool,
    /// The challenge does not name the resource metadata.
    pub challenge_without_metadata: bool,
    /// The challenge of a 401 names no scope.
    pub challenge_without_scope: bool,
    /// The challenge of a 403 names only the scopes that are missing.
    pub challenge_names_missing_only: bool,

    // --- All endpoints ---
    /// Endpoints that redirect to another origin, by a 307. It answers as they would.
    pub redirects: Vec<Endpoint>,
    /// Endpoints that redirect to themselves, by a 307.
    pub redirects_to_itself: Vec<Endpoint>,
    /// Endpoints that answer 503 with HTML.
    pub unavailable: Vec<Endpoint>,
    /// Endpoints whose answers are a mebibyte larger.
    pub oversized: Vec<Endpoint>,
}

/// The `resource` of the metadata where it is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WrongResource {
    /// The same path at another origin.
    OtherOrigin,
    /// Another path at the same origin.
    OtherPath,
    /// The origin without a path, which a client accepts.
    Parent,
}

/// The `iss` of a redirect back, and the word of the metadata about it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CallbackIss {
    /// Announced, and right.
    #[default]
    Supported,
    /// Not announced, and missing.
    NotAdvertised,
    /// Announced, and missing.
    SupportedMissing,
    /// Announced, and another issuer.
    WrongIssuer,
    /// Not announced, and another issuer.
    Unexpected,
    /// Announced, and the same issuer only if both are normalised.
    Normalized,
}

impl CallbackIss {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Supported,
        Self::NotAdvertised,
        Self::SupportedMissing,
        Self::WrongIssuer,
        Self::Unexpected,
        Self::Normalized,
    ];

    /// True if the metadata announces the parameter.
    #[must_use]
    pub fn is_announced(self) -> bool {
        !matches!(self, Self::NotAdvertised | Self::Unexpected)
    }

    /// The parameter for this issuer.
    #[must_use]
    pub fn sent(self, issuer: &str) -> Option<String> {
        match self {
            Self::Supported => Some(issuer.to_owned()),
            Self::NotAdvertised | Self::SupportedMissing => None,
            Self::WrongIssuer | Self::Unexpected => Some("https://other.example".to_owned()),
            Self::Normalized => Some(issuer.replacen("http://", "HTTP://", 1) + "/"),
        }
    }
}

/// The `expires_in` of a token answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ExpiresIn {
    /// A number.
    #[default]
    Number,
    /// Digits in a text.
    Text,
    /// Zero.
    Zero,
    /// Null.
    Null,
    /// None.
    Missing,
    /// A text without digits.
    Junk,
}

/// The failure of a token endpoint.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TokenFailure {
    /// 503 with an error in JSON.
    #[default]
    Unavailable,
    /// 500 with HTML.
    Html,
    /// 200 with HTML.
    HtmlAsSuccess,
    /// 429 with `Retry-After: 7`.
    TooMany,
    /// 200 with JSON that breaks off.
    BrokenJson,
    /// The connection is closed without an answer.
    Hangup,
}

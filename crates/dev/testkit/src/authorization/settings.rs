//! The settings of the authorization fixture: who it knows, and how it behaves where it is well.

use serde_json::Value;

use super::{kinds::AuthMethod, quirks::Quirks};

/// An authorization server: its place among the fixture's origins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issuer {
    /// The number of the origin. The MCP server is at origin 0; equal numbers share an origin.
    pub origin: usize,
    /// The path of the issuer, such as `/tenant`; empty for an issuer without a path.
    pub path: String,
}

impl Issuer {
    /// An issuer at this origin, with this path.
    #[must_use]
    pub fn at(origin: usize, path: &str) -> Self {
        Self { origin, path: path.to_owned() }
    }
}

/// A client that was registered by hand.
#[derive(Debug, Clone)]
pub struct ClientSettings {
    /// The number of the issuer that knows the client.
    pub issuer: usize,
    /// The client id.
    pub id: String,
    /// The client's secret, if its method needs one.
    pub secret: Option<String>,
    /// The only way in which the client may authenticate itself.
    pub method: AuthMethod,
    /// The allowed redirect addresses.
    pub redirect_uris: Vec<String>,
    /// The allowed grant types.
    pub grant_types: Vec<String>,
    /// The client's public keys, as JWKs.
    pub keys: Vec<Value>,
}

impl ClientSettings {
    /// A public client of the first issuer, with these redirect addresses and every grant type of
    /// the fixture.
    #[must_use]
    pub fn public(id: &str, redirect_uris: &[&str]) -> Self {
        Self {
            issuer: 0,
            id: id.to_owned(),
            secret: None,
            method: AuthMethod::None,
            redirect_uris: redirect_uris.iter().map(|&uri| uri.to_owned()).collect(),
            grant_types: GRANT_TYPES.iter().map(|&name| name.to_owned()).collect(),
            keys: Vec::new(),
        }
    }

    /// The same with a secret, which the client sends by `method`.
    #[must_use]
    pub fn confidential(id: &str, secret: &str, method: AuthMethod) -> Self {
        Self { secret: Some(secret.to_owned()), method, ..Self::public(id, &[]) }
    }

    /// A client that signs assertions with one of these keys.
    #[must_use]
    pub fn with_keys(id: &str, keys: Vec<Value>) -> Self {
        Self { method: AuthMethod::KeyJwt, keys, ..Self::public(id, &[]) }
    }
}

/// The device grant.
pub const DEVICE_CODE: &str = "urn:ietf:params:oauth:grant-type:device_code";
/// Token exchange.
pub const TOKEN_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
/// An assertion as a grant.
pub const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/// All grant types of the fixture.
pub const GRANT_TYPES: [&str; 6] = [
    "authorization_code",
    "refresh_token",
    "client_credentials",
    DEVICE_CODE,
    TOKEN_EXCHANGE,
    JWT_BEARER,
];

/// All settings. They can be changed while the fixture runs, except for the origins.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The authorization servers. Each has its own key.
    pub issuers: Vec<Issuer>,
    /// Numbers of the issuers that the resource metadata names, in order.
    pub advertised: Vec<usize>,
    /// The path of the MCP server.
    pub mcp_path: String,
    /// Paths of further MCP servers at the same origin, each a resource of its own.
    pub other_mcp_paths: Vec<String>,
    /// The clients that were registered by hand.
    pub clients: Vec<ClientSettings>,
    /// Scopes that the authorization servers know.
    pub scopes: Vec<String>,
    /// Scopes that every request to the MCP server needs. A client that asks for no scope gets
    /// them.
    pub required_scopes: Vec<String>,
    /// Lifetime of an access token, in seconds.
    pub access_lives_s: u64,
    /// Lifetime of a refresh token since its issue, in seconds; without it, it never expires.
    pub refresh_lives_s: Option<u64>,
    /// Authentication methods that the metadata lists. The field is missing if there is none.
    pub auth_methods: Vec<String>,
    /// True if an address may be a client id: see [`Self::client_documents`].
    pub takes_client_documents: bool,
    /// Client id metadata documents. The fixture fetches none: a client whose address is the
    /// `client_id` of no document may use any redirect address.
    pub client_documents: Vec<Value>,
    /// Keys of further issuers whose assertions and subject tokens are believed, as JWKs.
    pub trusted_keys: Vec<Value>,
    /// The person at the browser, who approves everything.
    pub subject: String,
    /// The begin of the fixture's clock, in seconds since 1970; the time of the start if not set.
    pub now_s: Option<u64>,
    /// True if the fixture's clock is the machine's, for subjects in processes of their own. Else a
    /// test moves it.
    pub clock_runs: bool,
    /// True if the MCP server speaks the stateless revision only, otherwise the handshake
    /// revisions only.
    pub is_stateless: bool,
    /// The misbehaviour.
    pub quirks: Quirks,
}

impl Default for Settings {
    /// One authorization server at an origin of its own, without misbehaviour.
    fn default() -> Self {
        let methods = [AuthMethod::Basic, AuthMethod::Post, AuthMethod::KeyJwt, AuthMethod::None];
        Self {
            issuers: vec![Issuer::at(1, "")],
            advertised: vec![0],
            mcp_path: "/mcp".to_owned(),
            other_mcp_paths: Vec::new(),
            clients: Vec::new(),
            scopes: vec!["mcp".to_owned(), "admin".to_owned()],
            required_scopes: vec!["mcp".to_owned()],
            access_lives_s: 3600,
            refresh_lives_s: None,
            auth_methods: methods.map(|method| method.name().to_owned()).to_vec(),
            takes_client_documents: false,
            client_documents: Vec::new(),
            trusted_keys: Vec::new(),
            subject: "ada".to_owned(),
            now_s: None,
            clock_runs: false,
            is_stateless: false,
            quirks: Quirks::default(),
        }
    }
}

impl Settings {
    /// The default ones with these quirks.
    #[must_use]
    pub fn with(quirks: Quirks) -> Self {
        Self { quirks, ..Self::default() }
    }
}

//! A grant as the store has it: the tokens, and all that their renewal needs.

use http::HeaderValue;
use narthex_model::Secret;
use narthex_oauth::{
    client::{AuthMethod, ClientIdentity, Grant},
    metadata::ServerMetadata,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    SignInError,
    store::{GrantFacts, GrantRow},
};

/// The member that the stored grant has besides those of [`Grant::to_stored`].
const EXTRA: &str = "narthex";

/// A client of a grant or of an attempt.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    pub(crate) identity: ClientIdentity,
    pub(crate) kind: ClientKind,
    /// The redirect URI that the client uses.
    pub(crate) redirect_uri: String,
}

/// The origin of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ClientKind {
    /// The entry of the server.
    Preregistered,
    /// A shared client of the settings.
    Shared,
    /// The address of a metadata document.
    Document,
    /// A registration by narthex.
    Registered,
}

/// A client as JSON.
#[derive(Serialize, Deserialize)]
pub(crate) struct StoredClient {
    id: String,
    secret: Option<String>,
    method: String,
    kind: ClientKind,
    redirect_uri: String,
}

impl Client {
    pub(crate) fn is_registered(&self) -> bool {
        self.kind == ClientKind::Registered
    }

    pub(crate) fn to_stored(&self) -> StoredClient {
        let Self { identity, kind, redirect_uri } = self;
        StoredClient {
            id: identity.id.clone(),
            secret: identity.secret.as_ref().map(|secret| secret.expose().to_owned()),
            method: identity.method.name().to_owned(),
            kind: *kind,
            redirect_uri: redirect_uri.clone(),
        }
    }

    pub(crate) fn from_stored(stored: StoredClient) -> Self {
        let StoredClient { id, secret, method, kind, redirect_uri } = stored;
        let method = AuthMethod::read(&method).unwrap_or_default();
        let secret = secret.map(Secret::new);
        Self { identity: ClientIdentity { id, secret, key: None, method }, kind, redirect_uri }
    }
}

/// A grant with all that its renewal needs.
#[derive(Debug, Clone)]
pub(crate) struct GrantValue {
    pub(crate) grant: Grant,
    /// The address of the MCP server, without its query: tokens go to no other one.
    pub(crate) server: String,
    /// The metadata of the authorization server. Tokens of a configuration have none.
    pub(crate) metadata: Option<ServerMetadata>,
    /// The client, if narthex knows more of it than the settings say.
    pub(crate) client: Option<Client>,
}

#[derive(Serialize, Deserialize)]
struct Extra {
    server: String,
    metadata: Option<Value>,
    client: Option<StoredClient>,
}

#[derive(Deserialize)]
struct WithExtra {
    narthex: Extra,
}

impl GrantValue {
    /// The grant as a text for the store. [`Grant::from_stored`] reads it, too.
    pub(crate) fn to_stored(&self) -> Secret {
        let Self { grant, server, metadata, client } = self;
        let extra = Extra {
            server: server.clone(),
            metadata: metadata.as_ref().map(ServerMetadata::to_json),
            client: client.as_ref().map(Client::to_stored),
        };
        // Both texts are objects of texts and numbers.
        let mut members: Map<String, Value> =
            serde_json::from_str(grant.to_stored().expose()).unwrap_or_default();
        members.insert(EXTRA.to_owned(), serde_json::to_value(extra).unwrap_or_default());
        Secret::new(Value::Object(members).to_string())
    }

    /// Reads a text of [`Self::to_stored`]; `None` for others.
    pub(crate) fn from_stored(text: &Secret) -> Option<Self> {
        let grant = Grant::from_stored(text).ok()?;
        let WithExtra { narthex } = serde_json::from_str(text.expose()).ok()?;
        let Extra { server, metadata, client } = narthex;
        let metadata = metadata.as_ref().and_then(ServerMetadata::from_json);
        Some(Self { grant, server, metadata, client: client.map(Client::from_stored) })
    }

    /// The facts that are shown after a request that succeeded at this time.
    pub(crate) fn facts(&self, succeeded_at: Option<u64>) -> GrantFacts {
        let Grant { issuer, tokens, .. } = &self.grant;
        GrantFacts {
            issuer: issuer.clone(),
            scopes: tokens.scopes.to_string(),
            expires_at: (!tokens.is_expiry_guessed).then_some(tokens.expires_at),
            can_renew: self.grant.can_renew(),
            succeeded_at,
            failed_at: None,
            failure: None,
        }
    }
}

/// A grant in memory, as the store has it.
#[derive(Debug, Clone)]
pub(crate) struct Held {
    pub(crate) value: GrantValue,
    /// The generation of the row.
    pub(crate) generation: u64,
    pub(crate) facts: GrantFacts,
    /// The stored text, by which a row is recognized.
    stored: Secret,
    /// The value of `Authorization`.
    pub(crate) header: HeaderValue,
}

impl Held {
    /// Reads a row.
    pub(crate) fn of(row: &GrantRow, server: &str) -> Result<Self, SignInError> {
        let unreadable = || SignInError::Unreadable { server: server.to_owned() };
        let value = GrantValue::from_stored(&row.value).ok_or_else(unreadable)?;
        let header = header(&value.grant.tokens.access_token);
        let bad = || SignInError::BadToken { server: server.to_owned() };
        let header = header.ok_or_else(bad)?;
        let (generation, facts) = (row.generation, row.facts.clone());
        Ok(Self { value, generation, facts, stored: row.value.clone(), header })
    }

    /// True if this is the grant of a row.
    pub(crate) fn is_of(&self, row: &GrantRow) -> bool {
        self.generation == row.generation && self.stored == row.value
    }
}

/// The value of `Authorization` for an access token.
fn header(token: &Secret) -> Option<HeaderValue> {
    let text = Secret::new(format!("Bearer {}", token.expose()));
    let mut value = HeaderValue::from_str(text.expose()).ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests {
    use narthex_oauth::{
        client::{Asked, Reply, TokenGrant, Tokens},
        scopes::Scopes,
    };
    use url::Url;

    use super::*;

    fn value() -> GrantValue {
        let body = br#"{"access_token":"s3cret-a","refresh_token":"s3cret-r","expires_in":60}"#;
        let scopes = Scopes::parse("a b");
        let asked = Asked { grant: TokenGrant::Code, scopes: &scopes, now: 1000 };
        let grant = Grant {
            issuer: "https://as.example".to_owned(),
            client_id: "c".to_owned(),
            resource: Some("https://mcp.example".to_owned()),
            requested: scopes.clone(),
            origin: TokenGrant::Code,
            tokens: Tokens::read(&Reply::of(200, body), asked).unwrap(),
            generation: 0,
            key: None,
        };
        let metadata = ServerMetadata {
            issuer: "https://as.example".to_owned(),
            token_endpoint: Url::parse("https://as.example/token").ok(),
            ..ServerMetadata::default()
        };
        let client = Client {
            identity: ClientIdentity::new("c", Some(Secret::new("s3cret-c")), None),
            kind: ClientKind::Registered,
            redirect_uri: "http://127.0.0.1:1/oauth/callback/a".to_owned(),
        };
        let (server, metadata) = ("https://mcp.example/mcp".to_owned(), Some(metadata));
        GrantValue { grant, server, metadata, client: Some(client) }
    }

    #[test]
    fn oauth_c23_a_stored_grant_has_all_that_its_renewal_needs() {
        let value = value();
        let stored = value.to_stored();
        let read = GrantValue::from_stored(&stored).unwrap();
        assert_eq!((&read.grant, &read.metadata), (&value.grant, &value.metadata));
        let client = read.client.unwrap();
        assert_eq!(client.identity.secret.unwrap().expose(), "s3cret-c");
        assert_eq!(client.kind, ClientKind::Registered);
        assert_eq!(Grant::from_stored(&stored).unwrap(), value.grant);
        assert!(GrantValue::from_stored(&value.grant.to_stored()).is_none());
    }

    #[test]
    fn s27_a_grant_in_memory_prints_no_secret() {
        let value = value();
        let facts = value.facts(Some(7));
        assert_eq!((facts.expires_at, facts.can_renew), (Some(1060), true));
        let row = GrantRow { value: value.to_stored(), generation: 3, facts };
        let held = Held::of(&row, "a").unwrap();
        assert_eq!(held.header, "Bearer s3cret-a");
        assert!(held.is_of(&row) && !held.is_of(&GrantRow { generation: 4, ..row.clone() }));
        let shown = format!("{held:?} {row:?}");
        assert!(!shown.contains("s3cret"), "{shown}");
    }
}

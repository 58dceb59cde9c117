//! The two modes of OAuth of a server of the catalog.

mod exchange;

use narthex_model::{
    AuthErrorFault, AuthErrorPattern, KEY_ALGORITHMS, OAuthPkce, OAuthRegistration, OAuthResource,
    PRIVATE_KEY_JWT, SecretMethod,
};
use serde::Serialize;
use serde_json::Value;

pub use self::exchange::EntryExchange;
use super::text::{AuthText, credential_url, required, text, url};
use crate::{
    fault::FaultCode,
    reader::{Object, Reader},
    schema::word,
    template::{ConfigValue, Tree},
};

/// OAuth as a program of its own (O92).
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EntryClientCredentials {
    /// The token endpoint; `None` finds it through the server's metadata.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_url: Option<String>,
    /// The client's id.
    pub client_id: AuthText,
    /// The client's proof.
    #[serde(flatten)]
    pub proof: EntryProof,
    /// The requested OAuth scopes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// The audience of the tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audience: Option<String>,
    /// The resource of the tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// The issuer of the authorization server, instead of the one that the server names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authorization_server: Option<String>,
    /// The tool error that counts as a refused token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth_error: Option<AuthErrorPattern>,
}

/// The proof of a client that acts without a person.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub enum EntryProof {
    /// A secret.
    Secret {
        /// The secret.
        client_secret: AuthText,
        /// The place of the secret in requests.
        #[serde(skip_serializing_if = "Option::is_none")]
        token_endpoint_auth_method: Option<SecretMethod>,
    },
    /// A private key.
    Key {
        /// The key, in PEM.
        private_key: AuthText,
        /// The key's name in the published set of keys.
        #[serde(skip_serializing_if = "Option::is_none")]
        key_id: Option<String>,
        /// The algorithm of the signatures.
        #[serde(skip_serializing_if = "Option::is_none")]
        algorithm: Option<String>,
    },
}

/// OAuth as the human who drives the run (X-M13, X-M14).
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EntrySignIn {
    /// The requested OAuth scopes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// A client that was registered manually.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<AuthClient>,
    /// The redirect URI of the browser.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect_uri: Option<String>,
    /// The resource of the tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<OAuthResource>,
    /// The way to a client id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registration: Option<OAuthRegistration>,
    /// The rule for authorization servers that do not list S256.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pkce: Option<OAuthPkce>,
    /// True if refresh requests carry the scopes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refresh_scope: Option<bool>,
    /// The name of the client in registrations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_name: Option<String>,
    /// The issuer of the authorization server, instead of the one that the server names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authorization_server: Option<String>,
    /// True if a server without metadata is tried as of MCP 2025-03-26.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub legacy: bool,
    /// True if idle grants are renewed before their refresh token ends.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub keep_alive: bool,
    /// The exchange that gives the tokens, in place of a sign-in at the authorization server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exchange: Option<EntryExchange>,
    /// The tool error that counts as a refused token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth_error: Option<AuthErrorPattern>,
}

/// A client that was registered manually.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AuthClient {
    /// The client's id.
    pub client_id: AuthText,
    /// The client's secret; `None` for a public client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<AuthText>,
}

impl EntryClientCredentials {
    /// Its texts that may be secrets, each with its field.
    pub(super) fn texts(&self) -> Vec<(&'static str, &AuthText)> {
        let proof = match &self.proof {
            EntryProof::Secret { client_secret, .. } => ("clientSecret", client_secret),
            EntryProof::Key { private_key, .. } => ("privateKey", private_key),
        };
        vec![("clientId", &self.client_id), proof]
    }
}

impl EntrySignIn {
    /// Its texts that may be secrets, each with its field.
    pub(super) fn texts(&self) -> Vec<(&'static str, &AuthText)> {
        let client = self.client.iter().flat_map(|AuthClient { client_id, client_secret }| {
            let secret = client_secret.iter().map(|secret| ("clientSecret", secret));
            std::iter::once(("clientId", client_id)).chain(secret)
        });
        client.collect()
    }
}

/// The fields of client credentials in one of the two spellings.
struct Fields {
    kind: &'static str,
    token_url: &'static str,
    client_id: &'static str,
    client_secret: &'static str,
    private_key: &'static str,
    key_id: &'static str,
    method: &'static str,
    scopes: &'static str,
    authorization_server: &'static str,
    auth_error: &'static str,
}

const FIELDS: Fields = Fields {
    kind: "mode",
    token_url: "tokenUrl",
    client_id: "clientId",
    client_secret: "clientSecret",
    private_key: "privateKey",
    key_id: "keyId",
    method: "tokenEndpointAuthMethod",
    scopes: "scopes",
    authorization_server: "authorizationServer",
    auth_error: "authError",
};

/// The spelling with `type`.
const TYPED: Fields = Fields {
    kind: "type",
    token_url: "token_url",
    client_id: "client_id",
    client_secret: "client_secret",
    private_key: "private_key",
    key_id: "key_id",
    method: "token_endpoint_auth_method",
    scopes: "scope",
    authorization_server: "authorization_server",
    auth_error: "auth_error",
};

impl Fields {
    /// All keys, with those that are spelt alike.
    fn all(&self) -> [&'static str; 13] {
        let Self {
            kind,
            token_url,
            client_id,
            client_secret,
            private_key,
            key_id,
            method,
            scopes,
            authorization_server,
            auth_error,
        } = *self;
        let [algorithm, audience, resource] = ["algorithm", "audience", "resource"];
        [
            kind,
            token_url,
            client_id,
            client_secret,
            private_key,
            key_id,
            algorithm,
            method,
            scopes,
            audience,
            resource,
            authorization_server,
            auth_error,
        ]
    }
}

pub(super) fn client_credentials(
    reader: &mut Reader,
    auth: &Object<'_>,
) -> Option<EntryClientCredentials> {
    let is_typed = auth.get("type").is_some();
    let fields = if is_typed { &TYPED } else { &FIELDS };
    reader.only(auth, &fields.all());
    let token_url = credential_url(reader, auth, fields.token_url);
    let client_id = required(reader, auth, fields.client_id, "client id");
    let proof = proof(reader, auth, fields);
    let scopes = match is_typed {
        true => reader.owned(auth, fields.scopes).unwrap_or_default(),
        false => reader.texts(auth, fields.scopes).join(" "),
    };
    let audience = reader.owned(auth, "audience");
    let resource = url(reader, auth, "resource");
    let authorization_server = credential_url(reader, auth, fields.authorization_server);
    let auth_error = auth_error(reader, auth, fields.auth_error);
    Some(EntryClientCredentials {
        token_url,
        client_id: client_id?,
        proof: proof?,
        scopes: scopes.split_whitespace().map(str::to_owned).collect(),
        audience,
        resource,
        authorization_server,
        auth_error,
    })
}

/// Reads the secret or the private key of a client; `None` after a fault.
fn proof(reader: &mut Reader, auth: &Object<'_>, fields: &Fields) -> Option<EntryProof> {
    let secret = text(reader, auth, fields.client_secret);
    let private_key = private_key(reader, auth, fields.private_key);
    let key_id = reader.owned(auth, fields.key_id);
    let algorithms = KEY_ALGORITHMS.map(|name| (name, name));
    let algorithm = word(reader, auth, "algorithm", &algorithms).map(str::to_owned);
    let method = method(reader, auth, fields);
    match (secret, private_key) {
        (Some(_), Some(_)) => {
            let message = "a client has a secret or a private key, and not both";
            let at = auth.at.key(fields.private_key);
            reader.fault(&at, FaultCode::FieldsExclude, message, "keep one of them");
            None
        }
        (Some(client_secret), None) => {
            for key in [fields.key_id, "algorithm"] {
                if auth.get(key).is_some() {
                    let message = "this belongs to a private key, and the client has a secret";
                    let remedy = "remove it, or give a private key in place of the secret";
                    reader.fault(&auth.at.key(key), FaultCode::FieldsExclude, message, remedy);
                }
            }
            if method == Some(None) {
                unfit_method(reader, auth, fields, "a private key");
            }
            let token_endpoint_auth_method = method.flatten();
            Some(EntryProof::Secret { client_secret, token_endpoint_auth_method })
        }
        (None, Some(private_key)) => {
            if matches!(method, Some(Some(_))) {
                unfit_method(reader, auth, fields, "a client secret");
            }
            Some(EntryProof::Key { private_key, key_id, algorithm })
        }
        (None, None) => {
            if auth.get(fields.client_secret).is_none() && auth.get(fields.private_key).is_none() {
                let wanted = format!(
                    "the client secret as `{{\"$secret\": \"NAME\"}}`, or a private key as `{}`",
                    fields.private_key
                );
                reader.missing(auth, fields.client_secret, &wanted);
            }
            None
        }
    }
}

/// Reads the method of client authentication. A private key has the one without a place of a
/// secret.
fn method(reader: &mut Reader, auth: &Object<'_>, fields: &Fields) -> Option<Option<SecretMethod>> {
    let [basic, post] = SecretMethod::ALL.map(|method| (method.word(), Some(method)));
    word(reader, auth, fields.method, &[basic, post, (PRIVATE_KEY_JWT, None)])
}

fn unfit_method(reader: &mut Reader, auth: &Object<'_>, fields: &Fields, needs: &str) {
    let message = format!("this method needs {needs}, which the client does not have");
    let remedy = "choose another method, or remove it";
    reader.fault(&auth.at.key(fields.method), FaultCode::FieldsExclude, message, remedy);
}

fn private_key(reader: &mut Reader, auth: &Object<'_>, key: &str) -> Option<AuthText> {
    let found = text(reader, auth, key)?;
    if let ConfigValue::Tree(Tree::Plain(Value::String(pem))) = &found.0
        && !pem.contains("-----BEGIN ")
    {
        let message = "this is no private key in PEM";
        let remedy = "store a key that begins with `-----BEGIN PRIVATE KEY-----` as a secret, and \
                      refer to the secret";
        reader.invalid(&auth.at.key(key), message, remedy);
    }
    Some(found)
}

pub(super) fn sign_in(reader: &mut Reader, auth: &Object<'_>) -> Option<EntrySignIn> {
    let keys = [
        "mode",
        "scopes",
        "client",
        "redirectUri",
        "resource",
        "registration",
        "pkce",
        "refreshScope",
        "clientName",
        "authorizationServer",
        "legacy",
        "keepAlive",
        "exchange",
        "authError",
    ];
    reader.only(auth, &keys);
    let client = match reader.object(auth, "client") {
        Some(client) => Some(client_of(reader, &client)?),
        None => None,
    };
    let pkce = OAuthPkce::ALL.map(|rule| (rule.word(), rule));
    Some(EntrySignIn {
        scopes: reader.texts(auth, "scopes"),
        client,
        redirect_uri: url(reader, auth, "redirectUri"),
        resource: resource(reader, auth),
        registration: registration(reader, auth),
        pkce: word(reader, auth, "pkce", &pkce),
        refresh_scope: reader.flag(auth, "refreshScope"),
        client_name: reader.owned(auth, "clientName"),
        authorization_server: credential_url(reader, auth, "authorizationServer"),
        legacy: reader.flag(auth, "legacy").unwrap_or_default(),
        keep_alive: reader.flag(auth, "keepAlive").unwrap_or_default(),
        exchange: exchange::read(reader, auth),
        auth_error: auth_error(reader, auth, "authError"),
    })
}

fn client_of(reader: &mut Reader, client: &Object<'_>) -> Option<AuthClient> {
    reader.only(client, &["clientId", "clientSecret"]);
    let client_id = required(reader, client, "clientId", "client id");
    let client_secret = text(reader, client, "clientSecret");
    Some(AuthClient { client_id: client_id?, client_secret })
}

fn auth_error(reader: &mut Reader, auth: &Object<'_>, key: &str) -> Option<AuthErrorPattern> {
    match AuthErrorPattern::new(reader.text(auth, key)?) {
        Ok(pattern) => Some(pattern),
        Err(fault) => {
            let (message, remedy) = match fault {
                AuthErrorFault::Length => {
                    ("a pattern has 3 to 300 bytes", "write a text of the error")
                }
                AuthErrorFault::Path => (
                    "after `$.` come 1 to 8 names of members with dots between them",
                    "write a path such as `$.structuredContent.code=401`",
                ),
            };
            reader.invalid(&auth.at.key(key), message, remedy);
            None
        }
    }
}

fn resource(reader: &mut Reader, auth: &Object<'_>) -> Option<OAuthResource> {
    match reader.text(auth, "resource")? {
        OAuthResource::OMIT => Some(OAuthResource::Omit),
        _ => url(reader, auth, "resource").map(OAuthResource::Url),
    }
}

/// Reads the way to a client id, which must fit a client of the entry.
fn registration(reader: &mut Reader, auth: &Object<'_>) -> Option<OAuthRegistration> {
    let words = OAuthRegistration::ALL.map(|way| (way.word(), way));
    let way = word(reader, auth, "registration", &words)?;
    let has_client = auth.get("client").is_some();
    let unfit = match way {
        OAuthRegistration::Preregistered if !has_client => {
            Some(("this way needs a `client`, which is missing", "add `client`, or use `auto`"))
        }
        OAuthRegistration::Cimd | OAuthRegistration::Dcr if has_client => {
            Some(("this way does not use the `client`", "remove `client`, or use `preregistered`"))
        }
        OAuthRegistration::Auto
        | OAuthRegistration::Preregistered
        | OAuthRegistration::Cimd
        | OAuthRegistration::Dcr => None,
    };
    if let Some((message, remedy)) = unfit {
        reader.fault(&auth.at.key("registration"), FaultCode::FieldsExclude, message, remedy);
    }
    Some(way)
}

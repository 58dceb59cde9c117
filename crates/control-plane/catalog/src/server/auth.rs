//! The authentication of requests to a server of the catalog: as in files, but secrets by name.

use narthex_model::{
    header,
    json::{Node, Place},
};
use serde::Serialize;
use url::Url;

use super::Shape;
use crate::{
    fault::FaultCode,
    reader::{Object, Reader},
    schema::word,
    template::{ConfigValue, Source, Tree},
};

/// The authentication of requests. Each secret is a reference, or a variable of the daemon.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "mode", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum EntryAuth {
    /// No authentication.
    None,
    /// One header on every request.
    ApiKey {
        /// The header.
        header_name: String,
        /// Text before the key.
        #[serde(skip_serializing_if = "String::is_empty")]
        value_prefix: String,
        /// The key.
        key: AuthText,
    },
    /// OAuth as a program of its own (O92).
    ClientCredentials {
        /// The token endpoint.
        token_url: String,
        /// The client's id.
        client_id: AuthText,
        /// The client's secret.
        client_secret: AuthText,
        /// The requested OAuth scopes.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        scopes: Vec<String>,
        /// The audience of the tokens.
        #[serde(skip_serializing_if = "Option::is_none")]
        audience: Option<String>,
        /// The resource of the tokens.
        #[serde(skip_serializing_if = "Option::is_none")]
        resource: Option<String>,
    },
    /// OAuth as the human who drives the run (X-M13, X-M14).
    AuthorizationCode {
        /// The requested OAuth scopes.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        scopes: Vec<String>,
        /// A client that was registered manually.
        #[serde(skip_serializing_if = "Option::is_none")]
        client: Option<AuthClient>,
        /// The redirect URI of the browser.
        #[serde(skip_serializing_if = "Option::is_none")]
        redirect_uri: Option<String>,
        /// The resource of the tokens.
        #[serde(skip_serializing_if = "Option::is_none")]
        resource: Option<String>,
    },
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

/// A text of authentication: a secret's reference, or a text with variables of the daemon.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct AuthText(pub(crate) ConfigValue);

#[derive(Clone, Copy)]
enum Mode {
    None,
    ApiKey,
    ClientCredentials,
    AuthorizationCode,
}

const MODES: [(&str, Mode); 4] = [
    ("none", Mode::None),
    ("apiKey", Mode::ApiKey),
    ("clientCredentials", Mode::ClientCredentials),
    ("authorizationCode", Mode::AuthorizationCode),
];
const TYPES: [(&str, Mode); 1] = [("oauth2_client_credentials", Mode::ClientCredentials)];

impl EntryAuth {
    /// True if requests are not authenticated.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::None
    }

    /// True if each person signs in separately (X-M14).
    #[must_use]
    pub fn is_per_user(&self) -> bool {
        matches!(self, Self::AuthorizationCode { .. })
    }

    /// The mode's name.
    #[must_use]
    pub fn mode(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::ApiKey { .. } => "apiKey",
            Self::ClientCredentials { .. } => "clientCredentials",
            Self::AuthorizationCode { .. } => "authorizationCode",
        }
    }

    /// Its texts that may be secrets, each with its field.
    pub(crate) fn texts(&self) -> Vec<(&'static str, &AuthText)> {
        match self {
            Self::None => Vec::new(),
            Self::ApiKey { key, .. } => vec![("key", key)],
            Self::ClientCredentials { client_id, client_secret, .. } => {
                vec![("clientId", client_id), ("clientSecret", client_secret)]
            }
            Self::AuthorizationCode { client, .. } => {
                let client = client.iter().flat_map(|AuthClient { client_id, client_secret }| {
                    let secret = client_secret.iter().map(|secret| ("clientSecret", secret));
                    std::iter::once(("clientId", client_id)).chain(secret)
                });
                client.collect()
            }
        }
    }
}

/// Reads the block. `kind: "remote_oauth"` is the word for signing in as a human.
pub(super) fn read(
    reader: &mut Reader,
    object: &Object<'_>,
    shape: Option<&Shape>,
) -> Option<EntryAuth> {
    let is_remote_oauth =
        matches!(object.get("kind"), Some(Node::Text(kind)) if kind == "remote_oauth");
    if object.get("auth").is_none() {
        return Some(match is_remote_oauth {
            true => EntryAuth::AuthorizationCode {
                scopes: Vec::new(),
                client: None,
                redirect_uri: None,
                resource: None,
            },
            false => EntryAuth::None,
        });
    }
    let auth = reader.object(object, "auth")?;
    if shape.is_some_and(|shape| !shape.is_http()) {
        let message = "a server with a `command` gets no headers";
        let remedy = "give its keys in `default_config`";
        reader.fault(&auth.at, FaultCode::FieldsExclude, message, remedy);
    }
    reader.excluding(&auth, "mode", "type");
    let mode = match (auth.get("mode"), auth.get("type")) {
        (None, Some(_)) => word(reader, &auth, "type", &TYPES)?,
        (Some(_), _) => word(reader, &auth, "mode", &MODES)?,
        (None, None) => {
            reader.missing(&auth, "mode", "`\"mode\": \"apiKey\"` or another one");
            return None;
        }
    };
    match mode {
        Mode::None => {
            reader.only(&auth, &["mode"]);
            Some(EntryAuth::None)
        }
        Mode::ApiKey => api_key(reader, &auth),
        Mode::ClientCredentials => client_credentials(reader, &auth),
        Mode::AuthorizationCode => authorization_code(reader, &auth),
    }
}

fn api_key(reader: &mut Reader, auth: &Object<'_>) -> Option<EntryAuth> {
    reader.only(auth, &["mode", "key", "headerName", "valuePrefix"]);
    let header_name = reader.owned(auth, "headerName");
    let header_name = header_name.unwrap_or_else(|| "Authorization".to_owned());
    if !header::is_name(&header_name) || header::is_own(&header_name) {
        let message = "this header cannot carry a key";
        reader.invalid(&auth.at.key("headerName"), message, "use one such as `X-Api-Key`");
    }
    let value_prefix = reader.owned(auth, "valuePrefix").unwrap_or_default();
    if !header::is_value(&value_prefix) {
        let message = "the prefix cannot be sent in a header";
        reader.invalid(&auth.at.key("valuePrefix"), message, "use printable ASCII");
    }
    let key = required(reader, auth, "key", "key")?;
    Some(EntryAuth::ApiKey { header_name, value_prefix, key })
}

fn client_credentials(reader: &mut Reader, auth: &Object<'_>) -> Option<EntryAuth> {
    let is_typed = auth.get("type").is_some();
    let [token_url, client_id, client_secret, scopes] = match is_typed {
        true => ["token_url", "client_id", "client_secret", "scope"],
        false => ["tokenUrl", "clientId", "clientSecret", "scopes"],
    };
    let kind = if is_typed { "type" } else { "mode" };
    reader.only(auth, &[kind, token_url, client_id, client_secret, scopes, "audience", "resource"]);
    let url = url(reader, auth, token_url);
    if auth.get(token_url).is_none() {
        reader.missing(auth, token_url, "the URL at which tokens are issued");
    }
    let client_id = required(reader, auth, client_id, "client id");
    let client_secret = required(reader, auth, client_secret, "client secret");
    let scopes = match is_typed {
        true => reader.owned(auth, scopes).unwrap_or_default(),
        false => reader.texts(auth, scopes).join(" "),
    };
    let audience = reader.owned(auth, "audience");
    let resource = self::url(reader, auth, "resource");
    Some(EntryAuth::ClientCredentials {
        token_url: url?,
        client_id: client_id?,
        client_secret: client_secret?,
        scopes: scopes.split_whitespace().map(str::to_owned).collect(),
        audience,
        resource,
    })
}

fn authorization_code(reader: &mut Reader, auth: &Object<'_>) -> Option<EntryAuth> {
    reader.only(auth, &["mode", "scopes", "client", "redirectUri", "resource"]);
    let client = reader.object(auth, "client").map(|client| {
        reader.only(&client, &["clientId", "clientSecret"]);
        let client_id = required(reader, &client, "clientId", "client id");
        let client_secret = text(reader, &client, "clientSecret");
        client_id.map(|client_id| AuthClient { client_id, client_secret })
    });
    let scopes = reader.texts(auth, "scopes");
    let redirect_uri = url(reader, auth, "redirectUri");
    let resource = url(reader, auth, "resource");
    let client = match client {
        Some(client) => Some(client?),
        None => None,
    };
    Some(EntryAuth::AuthorizationCode { scopes, client, redirect_uri, resource })
}

fn required(reader: &mut Reader, object: &Object<'_>, key: &str, what: &str) -> Option<AuthText> {
    if object.get(key).is_none() {
        reader.missing(object, key, &format!("the {what} as `{{\"$secret\": \"NAME\"}}`"));
    }
    text(reader, object, key)
}

/// A secret's reference, or a text in which only the daemon's environment may be filled in.
fn text(reader: &mut Reader, object: &Object<'_>, key: &str) -> Option<AuthText> {
    let at = object.at.key(key);
    let node = object.get(key)?;
    let value = reader.config_value(node, &at)?;
    let tree = match &value {
        ConfigValue::Secret(_) => return Some(AuthText(value)),
        ConfigValue::Tree(tree @ (Tree::Text(_) | Tree::Plain(serde_json::Value::String(_)))) => {
            tree
        }
        ConfigValue::Tree(_) | ConfigValue::Removed => {
            reader.wrong_type(&at, node, "a string or `{\"$secret\": \"NAME\"}`");
            return None;
        }
    };
    for placeholder in tree.placeholders().iter().filter(|p| p.source != Source::Env) {
        let message = format!("`${{{placeholder}}}` is not possible in `auth`");
        let remedy = "refer to a secret, or set a header in `default_config`";
        reader.fault(&at, FaultCode::PlaceholderNotAllowed, message, remedy);
    }
    if key != "clientId" && key != "client_id" && matches!(tree, Tree::Plain(_)) {
        reader.warn(
            &at,
            "every reader of the server can see a literal credential; store it as a secret and \
             refer to the secret",
        );
    }
    Some(AuthText(value))
}

fn url(reader: &mut Reader, object: &Object<'_>, key: &str) -> Option<String> {
    let text = reader.text(object, key)?;
    absolute(reader, &object.at.key(key), text);
    Some(text.to_owned())
}

fn absolute(reader: &mut Reader, at: &Place, text: &str) {
    let is_fine = |url: Url| matches!(url.scheme(), "http" | "https") && url.has_host();
    if text.contains("${") || !Url::parse(text).is_ok_and(is_fine) {
        reader.invalid(at, "this is not an absolute URL", "write one starting with `https://`");
    }
}

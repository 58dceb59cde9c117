//! The authentication of requests to a server of the catalog: as in files, but secrets by name.

mod oauth;
mod text;

use narthex_model::{header, json::Node};
use serde::Serialize;

pub use self::{
    oauth::{AuthClient, EntryClientCredentials, EntryExchange, EntryProof, EntrySignIn},
    text::AuthText,
};
use super::{shape::Shape, url};
use crate::{
    fault::FaultCode,
    reader::{Object, Reader},
    schema::word,
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
    ClientCredentials(Box<EntryClientCredentials>),
    /// OAuth as the human who drives the run (X-M13, X-M14).
    AuthorizationCode(Box<EntrySignIn>),
}

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
        matches!(self, Self::AuthorizationCode(_))
    }

    /// True if the identity of each human leads to the tokens, and nothing else does: no person
    /// connects then.
    #[must_use]
    pub fn needs_no_human(&self) -> bool {
        self.exchange().is_some_and(|exchange| exchange.fallback.is_none())
    }

    /// The exchange of the identity of each human, if there is one.
    #[must_use]
    pub fn exchange(&self) -> Option<&EntryExchange> {
        match self {
            Self::None | Self::ApiKey { .. } | Self::ClientCredentials(_) => None,
            Self::AuthorizationCode(auth) => auth.exchange.as_ref(),
        }
    }

    /// The mode's name.
    #[must_use]
    pub fn mode(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::ApiKey { .. } => "apiKey",
            Self::ClientCredentials(_) => "clientCredentials",
            Self::AuthorizationCode(_) => "authorizationCode",
        }
    }

    /// Its texts that may be secrets, each with its field.
    pub(crate) fn texts(&self) -> Vec<(&'static str, &AuthText)> {
        match self {
            Self::None => Vec::new(),
            Self::ApiKey { key, .. } => vec![("key", key)],
            Self::ClientCredentials(auth) => auth.texts(),
            Self::AuthorizationCode(auth) => auth.texts(),
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
            true => EntryAuth::AuthorizationCode(Box::default()),
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
        Mode::ClientCredentials => {
            let auth = oauth::client_credentials(reader, &auth)?;
            Some(EntryAuth::ClientCredentials(Box::new(auth)))
        }
        Mode::AuthorizationCode => {
            let auth = oauth::sign_in(reader, &auth)?;
            Some(EntryAuth::AuthorizationCode(Box::new(auth)))
        }
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
    let key = text::required(reader, auth, "key", "key")?;
    Some(EntryAuth::ApiKey { header_name, value_prefix, key })
}

/// Checks the address of a server that people sign in to: it gets their tokens (X-E32).
pub(super) fn check(reader: &mut Reader, object: &Object<'_>, shape: &Shape, auth: &EntryAuth) {
    let (Shape::Http(http) | Shape::Sse(http)) = shape else { return };
    if auth.is_per_user() && !url::may_carry_tokens(&http.url) {
        let message = "people sign in to this server, and others could read their tokens";
        reader.invalid(&object.at.key("url"), message, "write one starting with `https://`");
    }
}

//! The `auth` block of an entry: four modes, each checked in full.

use std::time::Duration;

use narthex_model::{
    ApiKeyAuth, AuthSecret, AuthorizationCodeAuth, ClientCredentialsAuth, OAuth, OAuthClient,
    OAuthScopes, OAuthTokens, Secret, SecretPlace, ServerAuth, header,
};

use super::{
    node::{Node, Place, field, shortened},
    placeholder::{Dialect, Expanded},
    problem::EntryProblem,
    reader::{Fields, REFERENCES, Reader},
    secrets,
};

const CLIENT_CREDENTIALS: &str = "clientCredentials";
const AUTHORIZATION_CODE: &str = "authorizationCode";

/// Reads the block; an absent block means no authentication (E112). `None` after a fault.
pub(super) fn read(reader: &mut Reader<'_>, fields: &Fields, entry: &Place) -> Option<ServerAuth> {
    references(reader, fields, entry);
    let at = entry.key("auth");
    let auth = match field(fields, "auth") {
        None => return Some(ServerAuth::Unstated),
        Some(Node::Object(auth)) => auth,
        Some(node) => {
            reader.wrong_type(&at, node, "an object");
            return None;
        }
    };
    if reader.dialect == Dialect::Tolerant && field(auth, "mode").is_none() {
        reader.warn(&at, "ignored: another program's form; `auth` here starts with `mode`");
        return Some(ServerAuth::Unstated);
    }
    references(reader, auth, &at);
    // The mode decides who gets which credential. It is the word itself, as the transport is, so
    // that it is known before the file is approved (D27).
    let mode = match field(auth, "mode") {
        Some(Node::Text(mode)) if !mode.is_empty() => mode.as_str(),
        Some(Node::Text(_)) | None => {
            reader.fault(&at, EntryProblem::NoAuthMode);
            return None;
        }
        Some(node) => {
            reader.wrong_type(&at.key("mode"), node, "a string");
            return None;
        }
    };
    match mode {
        "none" => {
            reader.unknown_keys(auth, &at, &["mode"]);
            Some(ServerAuth::None)
        }
        "apiKey" => api_key(reader, auth, &at),
        CLIENT_CREDENTIALS => client_credentials(reader, auth, &at).map(not_yet),
        AUTHORIZATION_CODE => Some(not_yet(authorization_code(reader, auth, &at))),
        other => {
            let found = shortened(other);
            reader.fault(&at.key("mode"), EntryProblem::UnknownAuthMode { found });
            None
        }
    }
}

fn not_yet(oauth: OAuth) -> ServerAuth {
    ServerAuth::OAuth(Box::new(oauth))
}

/// A text as written in the file: a message must not contain filled-in values.
fn as_written(fields: &Fields, key: &str) -> String {
    match field(fields, key) {
        Some(Node::Text(text)) => shortened(text),
        Some(_) | None => String::new(),
    }
}

fn references(reader: &mut Reader<'_>, fields: &Fields, at: &Place) {
    for (key, instead) in REFERENCES {
        if fields.iter().any(|(name, _)| name == key) {
            reader.fault(&at.key(key), EntryProblem::Reference { key, instead });
        }
    }
}

fn api_key(reader: &mut Reader<'_>, auth: &Fields, at: &Place) -> Option<ServerAuth> {
    reader.unknown_keys(auth, at, &["mode", "key", "headerName", "valuePrefix"]);
    let header_name = reader.filled(auth, at, "headerName");
    let header_name = header_name.map_or_else(|| "Authorization".to_owned(), |name| name.value);
    if !header::is_name(&header_name) && !reader.is_open(&header_name) {
        let name = as_written(auth, "headerName");
        reader.fault(&at.key("headerName"), EntryProblem::BadHeaderName { name });
    }
    let prefix = reader.text(auth, at, "valuePrefix").map(|prefix| prefix.value);
    let prefix = reader.header_value(&at.key("valuePrefix"), prefix.unwrap_or_default());
    let key = match reader.auth_text(auth, at, AuthSecret::Key) {
        Some(key) => {
            let place = at.key("key");
            reader.header_from(&header_name, &place, &key);
            Some(reader.header_value(&place, key.value)?)
        }
        None => None,
    };
    Some(ServerAuth::ApiKey(ApiKeyAuth {
        header_name,
        value_prefix: prefix?,
        key: key.map(Secret::new),
    }))
}

fn client_credentials(reader: &mut Reader<'_>, auth: &Fields, at: &Place) -> Option<OAuth> {
    let known = ["mode", "tokenUrl", "clientId", "clientSecret", "scopes", "audience", "resource"];
    reader.unknown_keys(auth, at, &known);
    let token_url = reader
        .required(auth, at, "tokenUrl", CLIENT_CREDENTIALS)
        .and_then(|url| reader.url(&at.key("tokenUrl"), &url));
    let client_id = reader.required(auth, at, "clientId", CLIENT_CREDENTIALS);
    let client_secret =
        reader.required_secret(auth, at, AuthSecret::ClientSecret, CLIENT_CREDENTIALS);
    let resource = reader.optional_url(auth, at, "resource");
    let audience = reader.filled(auth, at, "audience").map(|audience| audience.value);
    let scopes = scopes(reader, auth, at);
    Some(OAuth::ClientCredentials(ClientCredentialsAuth {
        token_url: token_url?,
        client_id: client_id?,
        client_secret: client_secret?,
        scopes,
        audience,
        resource,
    }))
}

fn authorization_code(reader: &mut Reader<'_>, auth: &Fields, at: &Place) -> OAuth {
    let known = ["mode", "scopes", "client", "tokens", "redirectUri", "resource", "flow"];
    reader.unknown_keys(auth, at, &known);
    // A missing field is a fault of the entry, so the rest of the block is not used.
    let client = reader.object(auth, at, "client");
    let client = client.and_then(|(client, at)| read_client(reader, client, &at));
    let tokens = reader.object(auth, at, "tokens");
    let tokens = tokens.and_then(|(tokens, at)| read_tokens(reader, tokens, &at));
    let redirect_uri = reader.optional_url(auth, at, "redirectUri");
    let resource = reader.optional_url(auth, at, "resource");
    let scopes = scopes(reader, auth, at);
    let settings = AuthorizationCodeAuth { scopes, client, tokens, redirect_uri, resource };
    OAuth::AuthorizationCode(settings)
}

fn read_client(reader: &mut Reader<'_>, client: &Fields, at: &Place) -> Option<OAuthClient> {
    references(reader, client, at);
    let id = reader.required(client, at, "clientId", AUTHORIZATION_CODE);
    let secret = reader.auth_secret(client, at, AuthSecret::ClientSecret);
    Some(OAuthClient { id: id?, secret })
}

fn read_tokens(reader: &mut Reader<'_>, tokens: &Fields, at: &Place) -> Option<OAuthTokens> {
    let access_token =
        reader.required_secret(tokens, at, AuthSecret::AccessToken, AUTHORIZATION_CODE);
    let refresh_token = reader.auth_secret(tokens, at, AuthSecret::RefreshToken);
    let expires_at = field(tokens, "expiresAt").and_then(|node| {
        let seconds = seconds(node);
        if seconds.is_none() {
            reader.wrong_type(&at.key("expiresAt"), node, "a number of seconds since 1970");
        }
        seconds
    });
    Some(OAuthTokens { access_token: access_token?, refresh_token, expires_at })
}

fn seconds(node: &Node) -> Option<u64> {
    let Node::Number(number) = node else { return None };
    Some(Duration::try_from_secs_f64(number.as_f64()?).ok()?.as_secs())
}

fn scopes(reader: &mut Reader<'_>, auth: &Fields, at: &Place) -> OAuthScopes {
    let place = at.key("scopes");
    let mut scopes = OAuthScopes::new();
    match field(auth, "scopes") {
        None => {}
        Some(Node::List(nodes)) => {
            for (index, node) in nodes.iter().enumerate() {
                let place = place.index(index);
                match node {
                    Node::Text(text) => {
                        scopes.extend(reader.expand(&place, text).map(|text| text.value));
                    }
                    _ => reader.wrong_type(&place, node, "a string"),
                }
            }
        }
        Some(node) => reader.wrong_type(&place, node, "an array of strings"),
    }
    scopes
}

impl Reader<'_> {
    /// A field that should not have its value in the file.
    fn auth_secret(&mut self, fields: &Fields, at: &Place, key: AuthSecret) -> Option<Secret> {
        self.auth_text(fields, at, key).map(|text| Secret::new(text.value))
    }

    /// Reads the text of such a field with its source; warns if the value is in the file.
    fn auth_text(&mut self, fields: &Fields, at: &Place, key: AuthSecret) -> Option<Expanded> {
        let place = at.key(key.key());
        if let Some(named) = self.secret(field(fields, key.key())?, &place, SecretPlace::Auth(key))
        {
            return Some(named);
        }
        let text = self.filled(fields, at, key.key())?;
        if !text.is_from_elsewhere() {
            self.warn(&place, secrets::advice());
        }
        Some(text)
    }

    fn required(
        &mut self,
        fields: &Fields,
        at: &Place,
        key: &'static str,
        mode: &'static str,
    ) -> Option<String> {
        let text = self.filled(fields, at, key);
        if text.is_none() {
            self.absent(at, key, mode);
        }
        text.map(|text| text.value)
    }

    fn required_secret(
        &mut self,
        fields: &Fields,
        at: &Place,
        key: AuthSecret,
        mode: &'static str,
    ) -> Option<Secret> {
        let secret = self.auth_secret(fields, at, key);
        if secret.is_none() {
            self.absent(at, key.key(), mode);
        }
        secret
    }

    /// Reports a missing field, unless a fault at its place is already reported.
    fn absent(&mut self, at: &Place, key: &'static str, mode: &'static str) {
        if !self.has_fault_at(&at.key(key)) {
            self.fault(at, EntryProblem::NoAuthField { key, mode });
        }
    }

    fn optional_url(&mut self, fields: &Fields, at: &Place, key: &str) -> Option<String> {
        let text = self.filled(fields, at, key)?;
        self.url(&at.key(key), &text.value)
    }

    fn object<'n>(
        &mut self,
        fields: &'n Fields,
        at: &Place,
        key: &str,
    ) -> Option<(&'n Fields, Place)> {
        let place = at.key(key);
        match field(fields, key)? {
            Node::Object(fields) => Some((fields, place)),
            node => {
                self.wrong_type(&place, node, "an object");
                None
            }
        }
    }
}

//! The two modes of OAuth in an entry's `auth` block.
//!
//! Contradictory settings are faults: a sign-in that ignores one of two settings could send
//! credentials to a place that the operator has not meant.

mod exchange;
mod words;

use std::time::Duration;

use narthex_model::{
    AuthErrorPattern, AuthSecret, AuthorizationCodeAuth, ClientCredentialsAuth, ClientProof,
    KEY_ALGORITHMS, OAuth, OAuthClient, OAuthPkce, OAuthRegistration, OAuthResource, OAuthScopes,
    OAuthTokens, PRIVATE_KEY_JWT, Secret, SecretMethod, ServerAuth, check_credential_address,
};

pub(super) use self::words::AUTHORIZATION_CODE;
use self::words::word;
use super::super::{
    node::{Node, Place, field},
    problem::EntryProblem,
    reader::{Fields, Reader},
};

/// The mode without a person.
pub(super) const CLIENT_CREDENTIALS: &str = "clientCredentials";

/// The key of the method of client authentication.
const METHOD: &str = "tokenEndpointAuthMethod";

const CLIENT_CREDENTIALS_KEYS: [&str; 13] = [
    "mode",
    "tokenUrl",
    "clientId",
    "clientSecret",
    "privateKey",
    "keyId",
    "algorithm",
    METHOD,
    "scopes",
    "audience",
    "resource",
    "authorizationServer",
    "authError",
];

const AUTHORIZATION_CODE_KEYS: [&str; 16] = [
    "mode",
    "scopes",
    "client",
    "tokens",
    "redirectUri",
    "resource",
    "flow",
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

pub(super) fn client_credentials(
    reader: &mut Reader<'_>,
    auth: &Fields,
    at: &Place,
) -> Option<ServerAuth> {
    reader.unknown_keys(auth, at, &CLIENT_CREDENTIALS_KEYS);
    let token_url = reader.credential_url(auth, at, "tokenUrl");
    let client_id = reader.required(auth, at, "clientId", CLIENT_CREDENTIALS);
    let proof = proof(reader, auth, at);
    let resource = reader.optional_url(auth, at, "resource");
    let audience = reader.filled(auth, at, "audience").map(|audience| audience.value);
    let scopes = scopes(reader, auth, at);
    let authorization_server = reader.credential_url(auth, at, "authorizationServer");
    let auth_error = auth_error(reader, auth, at);
    let oauth = OAuth::ClientCredentials(ClientCredentialsAuth {
        token_url,
        client_id: client_id?,
        proof: proof?,
        scopes,
        audience,
        resource,
        authorization_server,
        auth_error,
        grant: None,
    });
    Some(ServerAuth::OAuth(Box::new(oauth)))
}

/// Reads the secret or the private key of a client; `None` after a fault.
fn proof(reader: &mut Reader<'_>, auth: &Fields, at: &Place) -> Option<ClientProof> {
    let secret = reader.auth_secret(auth, at, AuthSecret::ClientSecret);
    let pem = private_key(reader, auth, at);
    let key_id = reader.filled(auth, at, "keyId").map(|id| id.value);
    let algorithm = word(reader, auth, at, "algorithm", &KEY_ALGORITHMS.map(|name| (name, name)));
    let method = word(reader, auth, at, METHOD, &methods());
    match (secret, pem) {
        (Some(_), Some(_)) => {
            let (key, other) = ("clientSecret", "privateKey");
            reader.fault(at, EntryProblem::FieldsExclude { key, other });
            None
        }
        (Some(secret), None) => {
            for key in ["keyId", "algorithm"] {
                if field(auth, key).is_some() {
                    reader.fault(at, EntryProblem::FieldNeeds { key, needs: "privateKey" });
                }
            }
            if method == Some(None) {
                reader.fault(&at.key(METHOD), method_mismatch(PRIVATE_KEY_JWT, "privateKey"));
            }
            Some(ClientProof::Secret { secret, method: method.flatten() })
        }
        (None, Some(pem)) => {
            if let Some(Some(method)) = method {
                reader.fault(&at.key(METHOD), method_mismatch(method.word(), "clientSecret"));
            }
            Some(ClientProof::Key { pem, key_id, algorithm: algorithm.map(str::to_owned) })
        }
        (None, None) => {
            let keys = [AuthSecret::ClientSecret, AuthSecret::PrivateKey];
            if !keys.iter().any(|key| reader.has_fault_at(&at.key(key.key()))) {
                reader.fault(at, EntryProblem::NoClientProof);
            }
            None
        }
    }
}

/// The methods of client authentication; the one without a [`SecretMethod`] is that of a key.
fn methods() -> [(&'static str, Option<SecretMethod>); 3] {
    let [basic, post] = SecretMethod::ALL.map(|method| (method.word(), Some(method)));
    [basic, post, (PRIVATE_KEY_JWT, None)]
}

fn method_mismatch(method: &'static str, needs: &'static str) -> EntryProblem {
    EntryProblem::MethodNeeds { method, needs }
}

/// Reads a private key. A key that a secret or an open variable has is checked once it is known.
fn private_key(reader: &mut Reader<'_>, auth: &Fields, at: &Place) -> Option<Secret> {
    let text = reader.auth_text(auth, at, AuthSecret::PrivateKey)?;
    let is_known = text.secret.is_none() && !reader.is_open(&text.value);
    if is_known && !text.value.contains("-----BEGIN ") {
        reader.fault(&at.key(AuthSecret::PrivateKey.key()), EntryProblem::BadPrivateKey);
        return None;
    }
    Some(Secret::new(text.value))
}

/// Reads the settings of a sign-in. A missing field is a fault of the entry, so that the rest of
/// the block is not used.
pub(super) fn authorization_code(reader: &mut Reader<'_>, auth: &Fields, at: &Place) -> ServerAuth {
    reader.unknown_keys(auth, at, &AUTHORIZATION_CODE_KEYS);
    let has_client = field(auth, "client").is_some();
    let client = reader.object(auth, at, "client");
    let client = client.and_then(|(client, at)| read_client(reader, client, &at));
    let tokens = reader.object(auth, at, "tokens");
    let tokens = tokens.and_then(|(tokens, at)| read_tokens(reader, tokens, &at));
    let settings = AuthorizationCodeAuth {
        scopes: scopes(reader, auth, at),
        client,
        tokens,
        redirect_uri: reader.optional_url(auth, at, "redirectUri"),
        resource: resource(reader, auth, at),
        registration: registration(reader, auth, at, has_client),
        pkce: word(reader, auth, at, "pkce", &OAuthPkce::ALL.map(|rule| (rule.word(), rule))),
        refresh_scope: reader.flag(auth, at, "refreshScope"),
        client_name: reader.filled(auth, at, "clientName").map(|name| name.value),
        authorization_server: reader.credential_url(auth, at, "authorizationServer"),
        legacy: reader.flag(auth, at, "legacy").unwrap_or_default(),
        keep_alive: reader.flag(auth, at, "keepAlive").unwrap_or_default(),
        exchange: exchange::read(reader, auth, at),
        auth_error: auth_error(reader, auth, at),
        grant: None,
    };
    ServerAuth::OAuth(Box::new(OAuth::AuthorizationCode(settings)))
}

/// Reads the way to a client id, which must fit a client of the settings.
fn registration(
    reader: &mut Reader<'_>,
    auth: &Fields,
    at: &Place,
    has_client: bool,
) -> Option<OAuthRegistration> {
    let words = OAuthRegistration::ALL.map(|way| (way.word(), way));
    let way = word(reader, auth, at, "registration", &words)?;
    let place = at.key("registration");
    match way {
        OAuthRegistration::Preregistered if !has_client => {
            let (method, needs) = (way.word(), "client");
            reader.fault(&place, EntryProblem::MethodNeeds { method, needs });
        }
        OAuthRegistration::Cimd | OAuthRegistration::Dcr if has_client => {
            let (key, other) = (way.word(), "client");
            reader.fault(&place, EntryProblem::FieldsExclude { key, other });
        }
        OAuthRegistration::Auto
        | OAuthRegistration::Preregistered
        | OAuthRegistration::Cimd
        | OAuthRegistration::Dcr => {}
    }
    Some(way)
}

fn auth_error(reader: &mut Reader<'_>, auth: &Fields, at: &Place) -> Option<AuthErrorPattern> {
    let text = reader.filled(auth, at, "authError")?;
    match AuthErrorPattern::new(&text.value) {
        Ok(pattern) => Some(pattern),
        Err(fault) => {
            reader.fault(&at.key("authError"), EntryProblem::AuthError(fault));
            None
        }
    }
}

fn resource(reader: &mut Reader<'_>, auth: &Fields, at: &Place) -> Option<OAuthResource> {
    let text = reader.filled(auth, at, "resource")?;
    match text.value.as_str() {
        OAuthResource::OMIT => Some(OAuthResource::Omit),
        url => reader.url(&at.key("resource"), url).map(OAuthResource::Url),
    }
}

fn read_client(reader: &mut Reader<'_>, client: &Fields, at: &Place) -> Option<OAuthClient> {
    reader.references(client, at);
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

    /// An address that gets credentials: https, or http on this machine.
    fn credential_url(&mut self, fields: &Fields, at: &Place, key: &str) -> Option<String> {
        let text = self.filled(fields, at, key)?.value;
        if self.is_open(&text) {
            return Some(text);
        }
        match check_credential_address(&text) {
            Ok(()) => Some(text),
            Err(fault) => {
                self.fault(&at.key(key), fault);
                None
            }
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

//! Registration of clients by themselves (RFC 7591).

use std::time::SystemTime;

use serde_json::{Map, Value, json};

use super::{
    answer::{Answer, ErrorCode, OAuthError},
    client::{Client, ClientId, ClientOrigin, ClientProof},
    client_keys::ClientKeys,
    redirect::{RedirectError, RedirectRules, RedirectUri},
    text::{ClientName, client_link},
    time::StoredTime,
    token::{Token, TokenKind},
};
use crate::scopes::{OFFLINE_ACCESS, Scopes};

/// The largest registration, in bytes.
pub const REGISTRATION_MAX: usize = 64 * 1024;
/// Most redirect URIs of a client.
const REDIRECTS_MAX: usize = 50;
/// Grant types that a client may register; others are left out of its registration.
const GRANTS: [&str; 2] = ["authorization_code", "refresh_token"];
/// Fields that are sent back as they came.
const ECHOED: [&str; 12] = [
    "redirect_uris",
    "client_name",
    "client_uri",
    "logo_uri",
    "tos_uri",
    "policy_uri",
    "contacts",
    "application_type",
    "software_id",
    "software_version",
    "jwks",
    "jwks_uri",
];

/// The numbers of registrations that a server takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegistrationLimits {
    /// Most registered clients at a time.
    pub clients: usize,
    /// Most registrations of all strangers in an hour.
    pub hourly: usize,
    /// Most registrations from one address in an hour.
    pub hourly_from_one: usize,
}

/// The numbers of registrations so far, as the caller counts them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RegistrationCounts {
    /// Registered clients, without the abandoned ones.
    pub clients: usize,
    /// Registrations of all strangers in the last hour.
    pub in_last_hour: usize,
    /// Registrations from the address of the request in the last hour.
    pub in_last_hour_from_it: usize,
}

/// The rules of a server for registrations.
#[derive(Debug, Clone)]
pub struct RegistrationRules<'r> {
    /// Redirect URIs that clients may register.
    pub redirects: &'r RedirectRules,
    /// Scopes that the server supports.
    pub scopes: &'r Scopes,
    /// Numbers of registrations.
    pub limits: RegistrationLimits,
}

/// A registered client, to be stored, and the answer that contains its secret.
#[derive(Debug)]
pub struct Registered {
    /// The client.
    pub client: Client,
    /// The answer.
    pub answer: Answer,
}

impl Default for RegistrationLimits {
    fn default() -> Self {
        Self { clients: 1000, hourly: 200, hourly_from_one: 20 }
    }
}

impl RegistrationLimits {
    /// Checks that one more client may register, before its request is read.
    ///
    /// # Errors
    /// When a limit is reached.
    pub fn admit(&self, counts: RegistrationCounts) -> Result<(), OAuthError> {
        let is_full = counts.clients >= self.clients;
        let is_busy = counts.in_last_hour >= self.hourly
            || counts.in_last_hour_from_it >= self.hourly_from_one;
        let refuse = |description| Err(OAuthError::new(UNAVAILABLE, description));
        match (is_full, is_busy) {
            (true, _) => refuse("too many clients are registered; ask an operator"),
            (false, true) => refuse("too many clients have registered; try again in an hour"),
            (false, false) => Ok(()),
        }
    }
}

const UNAVAILABLE: ErrorCode = ErrorCode::TemporarilyUnavailable;

/// Registers a client (RFC 7591, 3).
///
/// Unknown fields are ignored. One redirect URI that is not allowed refuses the whole list. Scopes
/// are reduced to the supported ones, and the answer names the rest; `offline_access` is always
/// supported. All else comes back exactly as it was sent, since some clients store the answer.
///
/// # Errors
/// The error of the answer (RFC 7591, 3.2.2), when a limit is reached or a field is not allowed.
pub fn register(
    body: &[u8],
    rules: &RegistrationRules<'_>,
    counts: RegistrationCounts,
    now: SystemTime,
) -> Result<Registered, OAuthError> {
    rules.limits.admit(counts)?;
    let sent = Sent::read(body)?;
    let redirect_uris = sent.redirect_uris(rules.redirects)?;
    let grants = sent.grants()?;
    sent.check_response_types()?;
    let method = sent.method()?;
    let scopes = sent.scopes(rules.scopes)?;
    let random = |_error| OAuthError::NO_RANDOMNESS;
    let id = ClientId::generate().map_err(random)?;
    let secret = match method {
        "none" | "private_key_jwt" => None,
        _ => Some(Token::generate(TokenKind::ClientSecret).map_err(random)?),
    };
    let proof = match &secret {
        Some(secret) => ClientProof::Secret(secret.hash()),
        None if method == "none" => ClientProof::Public,
        None => ClientProof::Keys(sent.keys()?),
    };
    let client = Client {
        id,
        name: ClientName::of(sent.text("client_name")?.unwrap_or_default()),
        link: sent.text("client_uri")?.and_then(client_link),
        redirect_uris,
        proof,
        scopes,
        application_type: sent.text("application_type")?.map(str::to_owned),
        origin: ClientOrigin::Registration,
        created_at: StoredTime::of(now),
        used_at: None,
    };
    let mut answer = sent.echo();
    answer.insert("client_id".to_owned(), json!(client.id));
    answer.insert("client_id_issued_at".to_owned(), json!(client.created_at));
    answer.insert("token_endpoint_auth_method".to_owned(), json!(method));
    answer.insert("grant_types".to_owned(), json!(grants));
    answer.insert("response_types".to_owned(), json!(["code"]));
    if let Some(scopes) = &client.scopes {
        answer.insert("scope".to_owned(), json!(scopes.to_string()));
    }
    if let Some(secret) = &secret {
        answer.insert("client_secret".to_owned(), json!(secret.expose()));
        // A secret that never expires (RFC 7591, 3.2.1).
        answer.insert("client_secret_expires_at".to_owned(), json!(0));
    }
    Ok(Registered { client, answer: Answer::json(201, &Value::Object(answer)) })
}

/// The fields that a client sent.
struct Sent(Map<String, Value>);

fn bad(description: &'static str) -> OAuthError {
    OAuthError::new(ErrorCode::InvalidClientMetadata, description)
}

fn bad_uri(description: &'static str) -> OAuthError {
    OAuthError::new(ErrorCode::InvalidRedirectUri, description)
}

impl Sent {
    fn read(body: &[u8]) -> Result<Self, OAuthError> {
        if body.len() > REGISTRATION_MAX {
            return Err(bad("the registration is larger than 64 KiB"));
        }
        match serde_json::from_slice(body) {
            Ok(Value::Object(fields)) => Ok(Self(fields)),
            Ok(_) | Err(_) => Err(bad("the registration is no JSON object")),
        }
    }

    /// The text of a field; `None` without it.
    fn text(&self, name: &str) -> Result<Option<&str>, OAuthError> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(bad("a field that must be a text has another type")),
        }
    }

    /// The texts of a list; `None` without it.
    fn texts(&self, name: &str) -> Result<Option<Vec<&str>>, OAuthError> {
        let error = || bad("a field that must be a list of texts has another type");
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Array(all)) => {
                let texts = all.iter().map(Value::as_str).collect::<Option<_>>();
                texts.map(Some).ok_or_else(error)
            }
            Some(_) => Err(error()),
        }
    }

    fn redirect_uris(&self, rules: &RedirectRules) -> Result<Vec<RedirectUri>, OAuthError> {
        let uris = self.texts("redirect_uris")?.unwrap_or_default();
        if uris.is_empty() {
            return Err(bad_uri("the registration has no redirect URIs"));
        }
        if uris.len() > REDIRECTS_MAX {
            return Err(bad_uri("the registration has more than 50 redirect URIs"));
        }
        let admit = |uri| rules.admit(uri).map_err(|error| bad_uri(text_of(error)));
        uris.into_iter().map(admit).collect()
    }

    /// The grant types that the client gets.
    fn grants(&self) -> Result<Vec<&str>, OAuthError> {
        let Some(mut grants) = self.texts("grant_types")? else { return Ok(vec![GRANTS[0]]) };
        grants.retain(|grant| GRANTS.contains(grant));
        match grants.contains(&GRANTS[0]) {
            true => Ok(grants),
            false => Err(bad("the grant_types must contain authorization_code")),
        }
    }

    fn check_response_types(&self) -> Result<(), OAuthError> {
        match self.texts("response_types")? {
            Some(types) if !types.contains(&"code") => {
                Err(bad("the response_types must contain code"))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The method of the token endpoint; the one of RFC 7591, 2, if the client names none.
    fn method(&self) -> Result<&str, OAuthError> {
        let method = self.text("token_endpoint_auth_method")?.unwrap_or("client_secret_basic");
        match method {
            "none" | "client_secret_basic" | "client_secret_post" | "private_key_jwt" => Ok(method),
            _ => Err(bad("the token_endpoint_auth_method must be none, client_secret_basic, \
                 client_secret_post or private_key_jwt")),
        }
    }

    fn keys(&self) -> Result<ClientKeys, OAuthError> {
        let keys = ClientKeys::read(self.0.get("jwks"), self.text("jwks_uri")?);
        keys.ok_or(bad("private_key_jwt needs public keys: either jwks, or jwks_uri with https"))
    }

    fn scopes(&self, supported: &Scopes) -> Result<Option<Scopes>, OAuthError> {
        let Some(text) = self.text("scope")? else { return Ok(None) };
        let asked = Scopes::read(text).map_err(|_error| bad("the scope is malformed"))?;
        Ok(Some(supported.clone().with(OFFLINE_ACCESS).common(&asked)))
    }

    /// The known fields, exactly as they were sent.
    fn echo(&self) -> Map<String, Value> {
        let known = ECHOED.iter().filter_map(|name| self.0.get_key_value(*name));
        known.map(|(name, value)| (name.clone(), value.clone())).collect()
    }
}

fn text_of(error: RedirectError) -> &'static str {
    match error {
        RedirectError::NoUri => "a redirect URI is no absolute URI in its usual form",
        RedirectError::Fragment => "a redirect URI has a fragment",
        RedirectError::Wildcard => "a redirect URI has a wildcard",
        RedirectError::User => "a redirect URI has a user name or password",
        RedirectError::PlainHttp => "a redirect URI with http leads to another machine",
        RedirectError::Scheme => "a redirect URI has a scheme that is not allowed",
    }
}

#[cfg(test)]
mod tests;

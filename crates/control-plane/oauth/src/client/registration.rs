//! Dynamic client registration (RFC 7591), with the retries that real servers need.

#[cfg(test)]
mod tests;

use std::{collections::VecDeque, time::Duration};

use narthex_model::{ErrorKind, Secret};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use url::Url;

use super::{
    AuthMethod, ClientIdentity, JsonRequest, Reply, SETTING_CLIENT_ID, SETTING_CLIENT_NAME,
    device::GRANT as DEVICE_GRANT, shown_code, shown_url,
};
use crate::{address::is_loopback, metadata::ServerMetadata, scopes::Scopes};

/// Narthex as it registers itself.
#[derive(Debug, Clone)]
pub struct ClientProfile {
    /// The name that people see when they consent.
    pub name: String,
    /// The address of a page about narthex.
    pub uri: Option<Url>,
    /// The possible redirect URIs, the preferred one first. Only one is registered.
    pub redirect_uris: Vec<Url>,
    /// True if the client is for consents on other devices, too (RFC 8628).
    pub is_for_devices: bool,
}

/// A registration under way.
#[derive(Debug)]
pub struct Registering {
    endpoint: Url,
    issuer: String,
    auth_methods: Option<Vec<String>>,
    profile: ClientProfile,
    scopes: Scopes,
    /// The next variants.
    queue: VecDeque<Variant>,
    current: Variant,
}

/// One form of the request.
#[derive(Debug, Clone, PartialEq)]
struct Variant {
    redirect_uri: Url,
    is_native: bool,
    has_scope: bool,
}

/// The next step of a registration.
#[derive(Debug)]
pub enum RegistrationStep {
    /// The server has refused; send this request instead.
    Retry(JsonRequest),
    /// Narthex is registered.
    Registered(Box<RegisteredClient>),
    /// Narthex is not registered.
    Failed(RegistrationError),
}

/// The reason why a registration failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegistrationError {
    /// The server does not answer now.
    #[error("narthex cannot be registered as a client now: {endpoint} {}; try again later",
        status_text(*status))]
    Unavailable {
        /// The address, as it may be shown.
        endpoint: String,
        /// The HTTP status; none if there was no answer.
        status: Option<u16>,
        /// The delay that the server asks for.
        retry_after: Option<Duration>,
    },
    /// The server has refused all variants.
    #[error(
        "the authorization server does not register narthex: {endpoint} answers {status} ({code}); \
         register a client there by hand with the redirect URI {redirect_uri}, and set \
         {SETTING_CLIENT_ID}{}", name_hint(*status)
    )]
    Refused {
        /// The address, as it may be shown.
        endpoint: String,
        /// The HTTP status of the last answer.
        status: u16,
        /// The error code of the last answer, as it may be shown.
        code: String,
        /// The preferred redirect URI.
        redirect_uri: String,
    },
    /// The answer cannot be used.
    #[error("the registration at {endpoint} cannot be used: {reason}; set {SETTING_CLIENT_ID}")]
    BadAnswer {
        /// The address, as it may be shown.
        endpoint: String,
        /// The reason.
        reason: &'static str,
    },
}

impl RegistrationError {
    /// The error's kind.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Unavailable { .. } => ErrorKind::Unavailable,
            Self::Refused { .. } | Self::BadAnswer { .. } => ErrorKind::Invalid,
        }
    }
}

fn status_text(status: Option<u16>) -> String {
    status.map_or_else(|| "does not answer".to_owned(), |status| format!("answers {status}"))
}

/// Servers with a list of known names answer 403.
fn name_hint(status: u16) -> String {
    match status {
        403 => format!(
            " (some servers register known names only: {SETTING_CLIENT_NAME} changes narthex's)"
        ),
        _ => String::new(),
    }
}

impl Registering {
    /// Starts a registration; returns the first request. `None` if the profile has no redirect URI.
    #[must_use]
    pub fn begin(
        endpoint: &Url,
        metadata: &ServerMetadata,
        profile: &ClientProfile,
        scopes: &Scopes,
    ) -> Option<(Self, JsonRequest)> {
        let mut queue = variants(&profile.redirect_uris, !scopes.is_empty());
        let registering = Self {
            endpoint: endpoint.clone(),
            issuer: metadata.issuer.clone(),
            auth_methods: metadata.token_endpoint_auth_methods_supported.clone(),
            profile: profile.clone(),
            scopes: scopes.clone(),
            current: queue.pop_front()?,
            queue,
        };
        let request = registering.request();
        Some((registering, request))
    }

    fn request(&self) -> JsonRequest {
        let Variant { redirect_uri, is_native, has_scope } = &self.current;
        let method = AuthMethod::to_register(self.auth_methods.as_deref(), false);
        let mut body = json!({
            "client_name": self.profile.name,
            "application_type": if *is_native { "native" } else { "web" },
            "redirect_uris": [redirect_uri.as_str()],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": method.name(),
        });
        if let Some(uri) = &self.profile.uri {
            body["client_uri"] = uri.as_str().into();
        }
        if self.profile.is_for_devices {
            body["grant_types"] = json!([DEVICE_GRANT, "authorization_code", "refresh_token"]);
        }
        if *has_scope {
            body["scope"] = self.scopes.to_string().into();
        }
        JsonRequest { url: self.endpoint.clone(), body }
    }

    /// Takes the reply to the latest request; `now` in seconds since 1970.
    pub fn answer(&mut self, reply: &Reply<'_>, now: u64) -> RegistrationStep {
        let endpoint = shown_url(&self.endpoint);
        let status = match reply.status() {
            Some(status) if !reply.is_transient() => status,
            status => {
                let retry_after = reply.retry_after();
                let error = RegistrationError::Unavailable { endpoint, status, retry_after };
                return RegistrationStep::Failed(error);
            }
        };
        let members = reply.json().unwrap_or_default();
        let code = members.get("error").and_then(Value::as_str);
        if reply.is_success() && code.is_none() {
            return match self.read(&members, now) {
                Ok(client) => RegistrationStep::Registered(Box::new(client)),
                Err(reason) => {
                    RegistrationStep::Failed(RegistrationError::BadAnswer { endpoint, reason })
                }
            };
        }
        // Only a complaint about the request is a reason for another one.
        let is_about_request = !matches!(status, 401 | 404 | 405 | 410 | 501);
        if let Some(next) = self.queue.pop_front().filter(|_| is_about_request) {
            self.current = next;
            return RegistrationStep::Retry(self.request());
        }
        let code = code.map_or_else(|| "no error code".to_owned(), shown_code);
        let redirect_uri = self.profile.redirect_uris.first().map(Url::to_string);
        let redirect_uri = redirect_uri.unwrap_or_default();
        let error = RegistrationError::Refused { endpoint, status, code, redirect_uri };
        RegistrationStep::Failed(error)
    }

    /// Reads the client. The answer wins over the request.
    fn read(
        &self,
        members: &Map<String, Value>,
        now: u64,
    ) -> Result<RegisteredClient, &'static str> {
        let text =
            |name: &str| members.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        let id = text("client_id").ok_or("it has no client id")?;
        let secret = text("client_secret").map(Secret::new);
        let expiry = members.get("client_secret_expires_at").and_then(seconds);
        let secret_expires_at = expiry.filter(|expiry| *expiry > 0 && secret.is_some());
        let client = ClientIdentity::new(id, secret, self.auth_methods.as_deref());
        let method = text("token_endpoint_auth_method").and_then(AuthMethod::read);
        let client = match method {
            Some(method) => client.registered_as(method),
            None => client,
        };
        let requested = if self.current.has_scope { &self.scopes } else { &Scopes::default() };
        Ok(RegisteredClient {
            issuer: self.issuer.clone(),
            client,
            redirect_uri: self.redirect_uri(members)?,
            requested_scopes: requested.clone(),
            registered_at: now,
            secret_expires_at,
            management_uri: text("registration_client_uri").and_then(|uri| Url::parse(uri).ok()),
            management_token: text("registration_access_token").map(Secret::new),
        })
    }

    /// The redirect URI as the server has registered it.
    fn redirect_uri(&self, members: &Map<String, Value>) -> Result<String, &'static str> {
        let own = &self.current.redirect_uri;
        let Some(all) = members.get("redirect_uris").and_then(Value::as_array) else {
            return Ok(own.to_string());
        };
        let all = || all.iter().filter_map(Value::as_str);
        let same = all().find(|text| *text == own.as_str());
        let alike = || all().find(|text| Url::parse(text).is_ok_and(|url| url == *own));
        let found = same.or_else(alike);
        found.map(str::to_owned).ok_or("the server has registered other redirect URIs")
    }
}

/// The variants of the request: as it should be, with the other application type, without scope,
/// and with each of the other redirect URIs.
fn variants(redirect_uris: &[Url], has_scope: bool) -> VecDeque<Variant> {
    let of =
        |uri: &Url| Variant { redirect_uri: uri.clone(), is_native: is_native(uri), has_scope };
    let mut all = VecDeque::new();
    if let Some(first) = redirect_uris.first().map(of) {
        let other_type = Variant { is_native: !first.is_native, ..first.clone() };
        let no_scope = has_scope.then(|| Variant { has_scope: false, ..first.clone() });
        all.extend([first, other_type]);
        all.extend(no_scope);
    }
    all.extend(redirect_uris.iter().skip(1).map(of));
    all
}

/// True for a redirect URI of a native application: on loopback, or with a scheme of its own.
fn is_native(uri: &Url) -> bool {
    is_loopback(uri) || !matches!(uri.scheme(), "http" | "https")
}

/// A number of seconds that may be written as a text.
fn seconds(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.trim().parse().ok())
}

/// A client that narthex has registered itself, to be stored sealed by issuer, redirect URI and
/// requested scopes.
#[derive(Debug, Clone)]
pub struct RegisteredClient {
    /// The authorization server. The client is for no other one.
    pub issuer: String,
    /// The client's id and proof.
    pub client: ClientIdentity,
    /// The registered redirect URI, as the server has it.
    pub redirect_uri: String,
    /// The scopes that were named in the registration.
    pub requested_scopes: Scopes,
    /// The time of the registration, in seconds since 1970.
    pub registered_at: u64,
    /// The end of the client's secret, in seconds since 1970.
    pub secret_expires_at: Option<u64>,
    /// The address of the registration (RFC 7592).
    pub management_uri: Option<Url>,
    /// The token for that address.
    pub management_token: Option<Secret>,
}

/// Stored bytes are no client.
#[derive(Debug, thiserror::Error)]
#[error("the stored OAuth client cannot be read")]
pub struct StoredClientFault(#[source] serde_json::Error);

#[derive(Serialize, Deserialize)]
struct Stored {
    issuer: String,
    id: String,
    secret: Option<String>,
    method: String,
    redirect_uri: String,
    requested_scopes: Scopes,
    registered_at: u64,
    secret_expires_at: Option<u64>,
    management_uri: Option<String>,
    management_token: Option<String>,
}

impl RegisteredClient {
    /// True if the client's secret has ended, so that narthex must register anew.
    #[must_use]
    pub fn has_ended(&self, now: u64) -> bool {
        self.secret_expires_at.is_some_and(|end| now >= end)
    }

    /// The client as a text, to be sealed and stored by the caller.
    #[must_use]
    pub fn to_stored(&self) -> Secret {
        let text =
            |secret: &Option<Secret>| secret.as_ref().map(|secret| secret.expose().to_owned());
        let stored = Stored {
            issuer: self.issuer.clone(),
            id: self.client.id.clone(),
            secret: text(&self.client.secret),
            method: self.client.method.name().to_owned(),
            redirect_uri: self.redirect_uri.clone(),
            requested_scopes: self.requested_scopes.clone(),
            registered_at: self.registered_at,
            secret_expires_at: self.secret_expires_at,
            management_uri: self.management_uri.as_ref().map(Url::to_string),
            management_token: text(&self.management_token),
        };
        Secret::new(serde_json::to_string(&stored).expect("texts and numbers are JSON"))
    }

    /// Reads a text of [`Self::to_stored`].
    ///
    /// # Errors
    /// When the text is another one.
    pub fn from_stored(text: &Secret) -> Result<Self, StoredClientFault> {
        let stored: Stored = serde_json::from_str(text.expose()).map_err(StoredClientFault)?;
        let client = ClientIdentity {
            id: stored.id,
            secret: stored.secret.map(Secret::new),
            key: None,
            method: AuthMethod::read(&stored.method).unwrap_or_default(),
        };
        Ok(Self {
            issuer: stored.issuer,
            client,
            redirect_uri: stored.redirect_uri,
            requested_scopes: stored.requested_scopes,
            registered_at: stored.registered_at,
            secret_expires_at: stored.secret_expires_at,
            management_uri: stored.management_uri.and_then(|uri| Url::parse(&uri).ok()),
            management_token: stored.management_token.map(Secret::new),
        })
    }
}

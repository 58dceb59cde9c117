//! Answers of the token endpoint (RFC 6749, 5), in the forms that real servers give them.

#[cfg(test)]
mod tests;

use narthex_model::Secret;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use url::form_urlencoded;

use super::{Failure, Refusal, Reply};
use crate::{jwt, scopes::Scopes};

/// Lifetime of a token whose end is not known, in seconds.
const LIFE_UNKNOWN: u64 = 3600;
/// The same for client credentials, which are cheap to repeat.
const LIFE_UNKNOWN_OF_CLIENT: u64 = 300;
/// The longest token that is taken.
const TOKEN_MAX: usize = 64 * 1024;

/// The kind of request that an answer belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenGrant {
    /// A code of an authorization.
    Code,
    /// A refresh token.
    Refresh,
    /// Consent on another device.
    Device,
    /// The client's own credentials.
    ClientCredentials,
    /// An assertion or an exchanged token.
    Assertion,
}

impl TokenGrant {
    /// True if the same request can be repeated without a person and without a refresh token.
    #[must_use]
    pub fn is_repeatable(self) -> bool {
        match self {
            Self::ClientCredentials | Self::Assertion => true,
            Self::Code | Self::Refresh | Self::Device => false,
        }
    }
}

/// The request that an answer belongs to.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The kind of request.
    pub grant: TokenGrant,
    /// The requested scopes.
    pub scopes: &'a Scopes,
    /// The time of the request, in seconds since 1970.
    pub now: u64,
}

/// The tokens of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tokens {
    /// The access token. It is sent as `Bearer`, however the server writes its type.
    pub access_token: Secret,
    /// The refresh token, if there is one.
    pub refresh_token: Option<Secret>,
    /// The ID token, if there is one. It is not verified.
    pub id_token: Option<Secret>,
    /// The type of the access token, in lower case.
    pub token_type: String,
    /// The granted scopes: those of the answer, or else the requested ones.
    pub scopes: Scopes,
    /// The time of the request, in seconds since 1970.
    pub obtained_at: u64,
    /// The end of the access token, in seconds since 1970.
    pub expires_at: u64,
    /// True if the end is a guess, as neither the answer nor the token has it.
    pub is_expiry_guessed: bool,
}

impl Tokens {
    /// Reads the reply to a token request.
    ///
    /// # Errors
    /// When the server refused, whatever its status says, or the answer has no usable token.
    pub fn read(reply: &Reply<'_>, asked: Asked<'_>) -> Result<Self, Refusal> {
        let members = successful(reply)?;
        let unusable = |reason: &str| Refusal::unusable(reply, reason);
        let members = with_user_token(members);
        let access_token =
            secret(&members, "access_token").ok_or_else(|| unusable("no usable access token"))?;
        let token_type = text(&members, "token_type").unwrap_or("bearer").to_ascii_lowercase();
        if matches!(token_type.as_str(), "dpop" | "mac") {
            return Err(unusable("its tokens must be bound to a key, which is not supported"));
        }
        let life = lifetime(members.get("expires_in"));
        let claimed = jwt::unverified_expiry(access_token.expose());
        let known = life.map(|life| asked.now.saturating_add(life)).or(claimed);
        let guess = match asked.grant {
            TokenGrant::ClientCredentials => LIFE_UNKNOWN_OF_CLIENT,
            TokenGrant::Code | TokenGrant::Refresh | TokenGrant::Device | TokenGrant::Assertion => {
                LIFE_UNKNOWN
            }
        };
        let granted = members.get("scope").and_then(Scopes::from_json);
        Ok(Self {
            refresh_token: secret(&members, "refresh_token"),
            id_token: secret(&members, "id_token"),
            token_type: if is_word(&token_type) { token_type } else { "bearer".to_owned() },
            scopes: granted.filter(|set| !set.is_empty()).unwrap_or_else(|| asked.scopes.clone()),
            obtained_at: asked.now,
            expires_at: known.unwrap_or_else(|| asked.now.saturating_add(guess)),
            is_expiry_guessed: known.is_none(),
            access_token,
        })
    }
}

/// The members of an answer without an error.
pub(super) fn successful(reply: &Reply<'_>) -> Result<Map<String, Value>, Refusal> {
    let status = reply.status();
    let unavailable = |code: &str| Refusal {
        failure: Failure::Unavailable,
        code: code.to_owned(),
        status,
        retry_after: reply.retry_after(),
    };
    if status.is_none() {
        return Err(unavailable("no answer"));
    }
    // A fault of the server counts even with an error code, which may be a guess of the server's.
    if reply.is_transient() {
        return Err(unavailable("try again later"));
    }
    let Some(members) = members(reply) else {
        return Err(unavailable("the answer is not JSON"));
    };
    if let Some(code) = error_code(&members) {
        let mut refusal = Refusal::of_code(code, status);
        refusal.retry_after = reply.retry_after();
        return Err(refusal);
    }
    match reply.is_success() {
        true => Ok(members),
        false => Err(Refusal::unusable(reply, "no error code")),
    }
}

/// The members of an answer in JSON, or as a form (as old servers answer).
fn members(reply: &Reply<'_>) -> Option<Map<String, Value>> {
    reply.json().or_else(|| {
        let pairs = form_urlencoded::parse(reply.body());
        let members: Map<_, _> =
            pairs.map(|(name, value)| (name.into_owned(), value.into_owned().into())).collect();
        // A web page is a form too, with one odd name.
        let is_answer = members.contains_key("access_token") || members.contains_key("error");
        is_answer.then_some(members)
    })
}

/// The error code of an answer, which may come with the status 200.
fn error_code(members: &Map<String, Value>) -> Option<&str> {
    let code = match members.get("error") {
        Some(Value::String(code)) if !code.is_empty() => Some(code.as_str()),
        Some(Value::Object(inner)) => {
            let code = inner.get("code").or_else(|| inner.get("type")).and_then(Value::as_str);
            Some(code.unwrap_or("unknown"))
        }
        Some(_) | None => None,
    };
    let is_refused = members.get("ok") == Some(&Value::Bool(false));
    code.or_else(|| is_refused.then_some("unknown"))
}

/// The members with those of `authed_user`, in which Slack gives the tokens of a person.
fn with_user_token(mut members: Map<String, Value>) -> Map<String, Value> {
    if members.get("access_token").and_then(Value::as_str).is_none()
        && let Some(Value::Object(user)) = members.remove("authed_user")
    {
        members.extend(user);
    }
    members
}

/// A lifetime in seconds: a number, or a text of digits. Others are unknown.
fn lifetime(value: Option<&Value>) -> Option<u64> {
    match value? {
        Value::Number(number) => number.as_u64().or_else(|| {
            let text = number.to_string();
            match text.starts_with('-') {
                true => Some(0),
                // The whole part of a fraction.
                false => text.split('.').next()?.parse().ok(),
            }
        }),
        Value::String(text) => text.trim().parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn text<'m>(members: &'m Map<String, Value>, name: &str) -> Option<&'m str> {
    members.get(name)?.as_str().filter(|text| !text.is_empty())
}

/// A token that can be sent in a header.
fn secret(members: &Map<String, Value>, name: &str) -> Option<Secret> {
    let is_token =
        |text: &&str| text.len() <= TOKEN_MAX && text.bytes().all(|byte| byte.is_ascii_graphic());
    text(members, name).filter(is_token).map(Secret::new)
}

fn is_word(text: &str) -> bool {
    text.len() <= 64 && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b))
}

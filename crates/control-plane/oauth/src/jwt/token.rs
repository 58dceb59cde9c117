//! Signed tokens: their parts, and checks that all kinds share.

use std::{
    fmt,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jsonwebtoken::{DecodingKey, crypto};
use narthex_model::Secret;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{
    fault::JwtFault,
    keys::{Algorithms, Keys},
    ring_provider,
};

/// Largest difference between two clocks.
pub(crate) const LEEWAY: Duration = Duration::from_secs(60);
/// The longest token, in bytes. ID tokens with many groups of a person are long.
const TOKEN_MAX: usize = 64 * 1024;
/// A time that no clock reaches.
const NEVER: Duration = Duration::from_secs(u64::MAX);
/// The longest subject, by OpenID Connect Core 2.
const SUBJECT_MAX: usize = 255;

/// A token whose signature is not checked yet. It gives access to its holder, and is not printed.
#[derive(Clone)]
pub struct Jwt {
    header: Header,
    claims: Map<String, Value>,
    message: String,
    signature: String,
}

/// The required issuer and audience of a token.
#[derive(Debug, Clone, Copy)]
pub struct Expected<'a> {
    /// The value of `iss`, letter by letter.
    pub issuer: &'a str,
    /// The value of `aud`, or one of its values.
    pub audience: &'a str,
}

#[derive(Clone, Deserialize)]
struct Header {
    alg: String,
    #[serde(default)]
    kid: Option<String>,
    #[serde(default)]
    typ: Option<String>,
    /// Extensions that a reader has to understand. None is understood here.
    #[serde(default)]
    crit: Option<Value>,
}

impl Jwt {
    /// Reads a token, and believes nothing of it.
    ///
    /// # Errors
    /// When the text is no signed token, or demands extensions (RFC 7515, 4.1.11).
    pub fn parse(text: &str) -> Result<Self, JwtFault> {
        Self::parts(text).ok_or(JwtFault::Malformed)
    }

    fn parts(text: &str) -> Option<Self> {
        if text.len() > TOKEN_MAX {
            return None;
        }
        let (message, signature) = text.rsplit_once('.')?;
        let (header, claims) = message.split_once('.')?;
        let bytes = |part: &str| URL_SAFE_NO_PAD.decode(part).ok();
        let header: Header = serde_json::from_slice(&bytes(header)?).ok()?;
        let claims = serde_json::from_slice(&bytes(claims)?).ok()?;
        bytes(signature)?;
        let (message, signature) = (message.to_owned(), signature.to_owned());
        header.crit.is_none().then_some(Self { header, claims, message, signature })
    }

    /// The issuer that the token names, to choose the keys by. The signature may prove another.
    #[must_use]
    pub fn claimed_issuer(&self) -> Option<&str> {
        self.claims.get("iss").and_then(Value::as_str)
    }

    /// The id of the key that the token names, to look for it in the keys of the issuer.
    #[must_use]
    pub fn kid(&self) -> Option<&str> {
        self.header.kid.as_deref()
    }

    /// The type that the header names, in lower case and without `application/`.
    pub(crate) fn typ(&self) -> Option<String> {
        let typ = self.header.typ.as_ref()?.to_ascii_lowercase();
        Some(typ.strip_prefix("application/").map(str::to_owned).unwrap_or(typ))
    }

    /// Checks signature, issuer and times, and returns the claims.
    ///
    /// # Errors
    /// When a check fails.
    pub(crate) fn verified(
        self,
        issuer: &str,
        keys: &Keys,
        algorithms: &Algorithms,
        now: SystemTime,
    ) -> Result<Claims, JwtFault> {
        let claims = self.proved(issuer, keys, algorithms)?;
        claims.check_times(now)?;
        Ok(claims)
    }

    /// Checks signature and issuer, and returns the claims.
    fn proved(
        self,
        issuer: &str,
        keys: &Keys,
        algorithms: &Algorithms,
    ) -> Result<Claims, JwtFault> {
        ring_provider::install();
        let algorithm = algorithms.find(&self.header.alg).ok_or(JwtFault::ForbiddenAlgorithm)?;
        let key = keys.find(self.kid(), algorithm)?;
        let is_good = DecodingKey::from_jwk(key)
            .and_then(|key| {
                crypto::verify(&self.signature, self.message.as_bytes(), &key, algorithm)
            })
            .unwrap_or_default();
        if !is_good {
            return Err(JwtFault::BadSignature);
        }
        // Letter by letter, or one issuer could speak for another.
        match self.claimed_issuer() == Some(issuer) {
            true => Ok(Claims(self.claims)),
            false => Err(JwtFault::WrongIssuer),
        }
    }
}

impl fmt::Debug for Jwt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Jwt(…)")
    }
}

impl Keys {
    /// Checks the signature, issuer and audience of a token, and returns its claims. `exp`, `iss`,
    /// `aud` and `sub` are present; their times are not checked.
    ///
    /// # Errors
    /// When a check fails.
    pub fn verify(
        &self,
        token: &Secret,
        expected: Expected<'_>,
    ) -> Result<Map<String, Value>, JwtFault> {
        let token = Jwt::parse(token.expose())?;
        let claims = token.proved(expected.issuer, self, &Algorithms::default())?;
        if !claims.texts("aud")?.contains(&expected.audience) {
            return Err(JwtFault::WrongAudience);
        }
        if !claims.0.get("sub").is_some_and(Value::is_string) {
            return Err(JwtFault::BadClaim("sub"));
        }
        claims.time("exp")?.ok_or(JwtFault::BadClaim("exp"))?;
        Ok(claims.0)
    }
}

/// The claims of a token whose signature, issuer and times are good.
pub(crate) struct Claims(Map<String, Value>);

impl Claims {
    /// The text of a claim that must be there.
    pub(crate) fn required(&self, name: &'static str) -> Result<&str, JwtFault> {
        self.optional(name)?.ok_or(JwtFault::BadClaim(name))
    }

    /// The text of a claim; `None` without it.
    pub(crate) fn optional(&self, name: &'static str) -> Result<Option<&str>, JwtFault> {
        match self.0.get(name) {
            None => Ok(None),
            Some(Value::String(text)) if !text.is_empty() => Ok(Some(text)),
            Some(_) => Err(JwtFault::BadClaim(name)),
        }
    }

    /// The texts of a claim that is a text or a list of texts, such as `aud`. Empty without it.
    pub(crate) fn texts(&self, name: &'static str) -> Result<Vec<&str>, JwtFault> {
        match self.0.get(name) {
            None => Ok(Vec::new()),
            Some(Value::String(text)) => Ok(vec![text]),
            Some(Value::Array(all)) if all.iter().all(Value::is_string) => {
                Ok(all.iter().filter_map(Value::as_str).collect())
            }
            Some(_) => Err(JwtFault::BadClaim(name)),
        }
    }

    /// The person or service that the token is about.
    pub(crate) fn subject(&self) -> Result<&str, JwtFault> {
        let subject = self.required("sub")?;
        let is_short = subject.len() <= SUBJECT_MAX && !subject.contains('\0');
        if is_short { Ok(subject) } else { Err(JwtFault::BadClaim("sub")) }
    }

    /// A time, in seconds since 1970; `None` without it.
    pub(crate) fn time(&self, name: &'static str) -> Result<Option<f64>, JwtFault> {
        match self.0.get(name) {
            None => Ok(None),
            Some(value) => value.as_f64().map(Some).ok_or(JwtFault::BadClaim(name)),
        }
    }

    /// The time at which the token expires, since 1970. It must be there.
    pub(crate) fn expiry(&self) -> Result<Duration, JwtFault> {
        let seconds = self.time("exp")?.ok_or(JwtFault::BadClaim("exp"))?;
        // A time that is out of range is one that never comes.
        Ok(Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(NEVER))
    }

    fn check_times(&self, now: SystemTime) -> Result<(), JwtFault> {
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        let (late, early) = (now.saturating_sub(LEEWAY), now + LEEWAY);
        if self.time("exp")?.ok_or(JwtFault::BadClaim("exp"))? <= late.as_secs_f64() {
            return Err(JwtFault::Expired);
        }
        for name in ["nbf", "iat"] {
            if self.time(name)?.is_some_and(|from| from > early.as_secs_f64()) {
                return Err(JwtFault::TooEarly);
            }
        }
        Ok(())
    }
}

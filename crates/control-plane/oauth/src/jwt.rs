//! JSON web tokens (RFC 7519): signing with own keys, checking with the keys of an issuer.
//!
//! No clock: the caller passes the time.

mod fault;
mod keys;
mod ring_provider;
mod signing;
mod token;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Map, Value};

pub(crate) use self::token::{Claims, LEEWAY};
pub use self::{
    fault::JwtFault,
    keys::{Algorithms, Keys, UnknownAlgorithm},
    signing::{KeyFault, SigningFault, SigningKey},
    token::{Expected, Jwt},
};

/// The expiry of a token in seconds since 1970, if the token is a JWT. It is not verified: of use
/// only as a hint about the caller's own token.
#[must_use]
pub fn unverified_expiry(token: &str) -> Option<u64> {
    let mut parts = token.split('.');
    let (Some(_), Some(claims), Some(_), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return None;
    };
    let claims = URL_SAFE_NO_PAD.decode(claims.trim_end_matches('=')).ok()?;
    let claims: Map<String, Value> = serde_json::from_slice(&claims).ok()?;
    let expiry = claims.get("exp")?;
    // Some servers write a fraction.
    expiry.as_u64().or_else(|| expiry.to_string().split('.').next()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oauth_q15_the_expiry_of_a_jwt_is_a_hint() {
        let jwt = |claims: &str| format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(claims));
        assert_eq!(unverified_expiry(&jwt("{\"exp\":1700000000}")), Some(1_700_000_000));
        assert_eq!(unverified_expiry(&jwt("{\"exp\":1700000000.5}")), Some(1_700_000_000));
        for text in ["{}", "{\"exp\":\"soon\"}", "{\"exp\":-1}", "[]", "x"] {
            assert_eq!(unverified_expiry(&jwt(text)), None, "{text}");
        }
        for text in
            ["", "opaque", "a.b", "a.b.c.d", "..", "gho_16C7e42F292c6912E7710c838347Ae178B4a"]
        {
            assert_eq!(unverified_expiry(text), None, "{text}");
        }
    }
}

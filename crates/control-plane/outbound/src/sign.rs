//! Signatures of posts, by Standard Webhooks.

use base64::{Engine, engine::general_purpose::STANDARD};
use hmac::{Hmac, KeyInit as _, Mac as _};
use narthex_model::Secret;
use sha2::Sha256;

/// Prefix of keys that are written in base64.
const PREFIX: &str = "whsec_";

/// The value of `webhook-signature`: of this id, at this time in seconds since 1970.
pub(crate) fn signature(key: &Secret, id: &str, seconds: u64, body: &[u8]) -> String {
    let text = key.expose();
    let decoded = text.strip_prefix(PREFIX).and_then(|text| STANDARD.decode(text).ok());
    let key = decoded.unwrap_or_else(|| text.as_bytes().to_vec());
    let mac = Hmac::<Sha256>::new_from_slice(&key);
    let mut mac = mac.expect("HMAC takes keys of any length");
    mac.update(format!("{id}.{seconds}.").as_bytes());
    mac.update(body);
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// X-M3: the values are from another implementation (Python's hmac).
    #[test]
    fn signatures_match_another_implementation() {
        let body = br#"{"test": 2432232314}"#;
        for (key, expected) in [
            (
                "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
                "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
            ),
            ("a key of plain words", "v1,sqCIxishbvBLXV/rHmo5XGmVsDxVAsaZM+o8tTNE4fA="),
        ] {
            let key = Secret::new(key.to_owned());
            let signed = signature(&key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body);
            assert_eq!(signed, expected);
        }
    }
}

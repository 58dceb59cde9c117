//! Public keys by which clients prove themselves (RFC 7591, 2).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{address::Reach, jwt::Keys};

/// The public keys of a client, as it registered them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientKeys {
    /// The keys themselves, as a set of JSON web keys (RFC 7517).
    Set(Value),
    /// The https address of the keys, which the caller fetches within [`FETCH`](super::FETCH), with
    /// its guard against addresses inside of the network.
    At(String),
}

impl ClientKeys {
    /// Reads the members `jwks` and `jwks_uri` of a registration or document, of which one must be
    /// there. `None` if the client has no usable keys, or sent a private one.
    pub(super) fn read(set: Option<&Value>, address: Option<&str>) -> Option<Self> {
        match (set, address) {
            (Some(set), None) => {
                let keys = Keys::read(set.to_string().as_bytes()).ok()?;
                (keys.is_usable() && !has_private_part(set)).then(|| Self::Set(set.clone()))
            }
            (None, Some(address)) => {
                let url = Reach::PUBLIC.parse(address).ok()?;
                Some(Self::At(url.into()))
            }
            (Some(_), Some(_)) | (None, None) => None,
        }
    }

    /// The registered keys; `None` if the caller has to fetch them.
    #[must_use]
    pub fn set(&self) -> Option<Keys> {
        match self {
            Self::Set(set) => Keys::read(set.to_string().as_bytes()).ok(),
            Self::At(_) => None,
        }
    }
}

/// True if a key of a set has the part that its owner keeps secret (RFC 7518, 6.2.2 and 6.3.2).
fn has_private_part(set: &Value) -> bool {
    let keys = set.get("keys").and_then(Value::as_array);
    keys.into_iter().flatten().any(|key| key.get("d").is_some())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn door_a8_keys_are_a_usable_set_or_an_https_address() {
        let key = json!({"kty": "OKP", "crv": "Ed25519", "x": "AA", "kid": "k1"});
        let set = json!({ "keys": [key] });
        let found = ClientKeys::read(Some(&set), None).unwrap();
        assert!(found.set().unwrap().is_usable());
        let stored = serde_json::to_string(&found).unwrap();
        assert_eq!(serde_json::from_str::<ClientKeys>(&stored).unwrap(), found);
        let at = ClientKeys::read(None, Some("https://app.example/keys")).unwrap();
        assert_eq!(at, ClientKeys::At("https://app.example/keys".to_owned()));
        assert_eq!(at.set(), None);
        assert_eq!(ClientKeys::read(Some(&set), Some("https://app.example/keys")), None);
        assert_eq!(ClientKeys::read(None, None), None);
        let secret = json!({"keys": [{"kty": "oct", "k": "AA"}]});
        let mut private = set.clone();
        private["keys"][0]["d"] = json!("AA");
        for bad in [json!([]), json!({"keys": []}), json!("x"), secret, private] {
            assert_eq!(ClientKeys::read(Some(&bad), None), None, "{bad}");
        }
        for bad in ["", "/keys", "http://app.example/keys", "http://127.0.0.1/k", "file:///k"] {
            assert_eq!(ClientKeys::read(None, Some(bad)), None, "{bad}");
        }
    }
}

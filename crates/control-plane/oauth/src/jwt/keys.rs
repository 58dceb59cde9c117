//! An issuer's public keys, and the algorithms that they may sign by.

use std::str::FromStr;

use jsonwebtoken::{
    Algorithm, AlgorithmFamily,
    jwk::{AlgorithmParameters, EllipticCurve, Jwk, PublicKeyUse},
};
use serde::Deserialize;
use serde_json::Value;

use super::fault::JwtFault;

/// The public keys of an issuer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Keys(Vec<Jwk>);

/// Algorithms that prove a signature with a public key. `none` and shared secrets are never among
/// them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Algorithms(Vec<Algorithm>);

/// The name is none of a supported algorithm with public keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the algorithm is not supported: use RS256, PS256, ES256, EdDSA or a longer variant")]
pub struct UnknownAlgorithm;

impl Default for Algorithms {
    /// All supported algorithms.
    fn default() -> Self {
        Self(vec![
            Algorithm::RS256,
            Algorithm::RS384,
            Algorithm::RS512,
            Algorithm::PS256,
            Algorithm::PS384,
            Algorithm::PS512,
            Algorithm::ES256,
            Algorithm::ES384,
            Algorithm::EdDSA,
        ])
    }
}

impl Algorithms {
    /// The algorithms of these names, such as `RS256` (RFC 7518, 3.1).
    ///
    /// # Errors
    /// When a name is unknown, or of an algorithm with a shared secret.
    pub fn named<'n>(names: impl IntoIterator<Item = &'n str>) -> Result<Self, UnknownAlgorithm> {
        let all = Self::default();
        let read = |name| all.find(name).ok_or(UnknownAlgorithm);
        names.into_iter().map(read).collect::<Result<_, _>>().map(Self)
    }

    /// The names of the algorithms.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.0.iter().map(|algorithm| format!("{algorithm:?}")).collect()
    }

    pub(super) fn find(&self, name: &str) -> Option<Algorithm> {
        let named = Algorithm::from_str(name).ok()?;
        self.0.contains(&named).then_some(named)
    }
}

impl Keys {
    /// Reads a set of keys (RFC 7517, 5). Keys of unknown kinds are left out.
    ///
    /// # Errors
    /// When the text is no set of keys.
    pub fn read(body: &[u8]) -> Result<Self, JwtFault> {
        #[derive(Deserialize)]
        struct Set {
            keys: Vec<Value>,
        }
        let set: Set = serde_json::from_slice(body).map_err(|_error| JwtFault::NotKeys)?;
        let keys = set.keys.into_iter().filter_map(|key| serde_json::from_value(key).ok());
        Ok(Self(keys.collect()))
    }

    /// True if a key of the set can prove a signature.
    #[must_use]
    pub fn is_usable(&self) -> bool {
        let Algorithms(all) = Algorithms::default();
        self.0.iter().any(|key| all.iter().any(|algorithm| fits(key, *algorithm)))
    }

    /// The one key that a token can be signed with.
    pub(super) fn find(&self, kid: Option<&str>, algorithm: Algorithm) -> Result<&Jwk, JwtFault> {
        let is_named = |key: &&Jwk| kid.is_none() || key.common.key_id.as_deref() == kid;
        let mut fitting = self.0.iter().filter(is_named).filter(|key| fits(key, algorithm));
        match (fitting.next(), fitting.next()) {
            (Some(key), None) => Ok(key),
            (None, _) => Err(JwtFault::UnknownKey),
            (Some(_), Some(_)) => Err(JwtFault::AmbiguousKey),
        }
    }
}

/// True if a key is for signatures by an algorithm.
fn fits(key: &Jwk, algorithm: Algorithm) -> bool {
    let is_for_signing = match &key.common.public_key_use {
        None | Some(PublicKeyUse::Signature) => true,
        Some(PublicKeyUse::Encryption | PublicKeyUse::Other(_)) => false,
    };
    let named = key.common.key_algorithm.map(|named| named.to_string());
    let is_of_algorithm = named.is_none_or(|named| named == format!("{algorithm:?}"));
    let is_of_family = match (&key.algorithm, algorithm.family()) {
        (AlgorithmParameters::RSA(_), AlgorithmFamily::Rsa) => true,
        (AlgorithmParameters::EllipticCurve(curve), AlgorithmFamily::Ec) => matches!(
            (&curve.curve, algorithm),
            (EllipticCurve::P256, Algorithm::ES256) | (EllipticCurve::P384, Algorithm::ES384)
        ),
        (AlgorithmParameters::OctetKeyPair(pair), AlgorithmFamily::Ed) => {
            pair.curve == EllipticCurve::Ed25519
        }
        _ => false,
    };
    is_for_signing && is_of_algorithm && is_of_family
}

#[cfg(test)]
mod tests;

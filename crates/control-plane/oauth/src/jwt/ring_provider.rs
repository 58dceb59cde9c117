//! Makes and checks signatures of JSON web tokens with `ring`, which narthex also uses for TLS.
//!
//! `jsonwebtoken` has backends of its own, but each brings a second set of cryptography.

use std::sync::Once;

use jsonwebtoken::{
    Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind, EncodingKey,
    crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils},
    errors::{Error, ErrorKind},
    signature::{self, Signer, Verifier},
};
use ring::{
    rand::SystemRandom,
    signature::{
        ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED, ED25519,
        EcdsaKeyPair, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384,
        RSA_PKCS1_2048_8192_SHA512, RSA_PKCS1_SHA256, RSA_PSS_2048_8192_SHA256,
        RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaKeyPair, RsaParameters,
        RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
    },
};

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory,
    verifier_factory,
    // Only for making keys and thumbprints, which is not done here.
    key_utils: KeyUtils::new_unimplemented(),
};

/// Makes the library use `ring`.
pub(super) fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        PROVIDER.install_default().expect("no other code here uses this library");
    });
}

fn signer_factory(algorithm: &Algorithm, key: &EncodingKey) -> Result<Box<dyn JwtSigner>, Error> {
    if algorithm.family() != key.family() {
        return Err(ErrorKind::InvalidAlgorithm.into());
    }
    let signer = RingSigner::read(key.as_bytes()).ok_or(ErrorKind::InvalidKeyFormat)?;
    match signer.algorithm() == *algorithm {
        true => Ok(Box::new(signer)),
        false => Err(ErrorKind::UnsupportedAlgorithm.into()),
    }
}

/// A private key for RS256 or ES256.
pub(super) enum RingSigner {
    Rsa(RsaKeyPair),
    P256(EcdsaKeyPair),
}

impl RingSigner {
    /// Reads a key in PKCS #8, or an RSA key in PKCS #1. `None` for other keys.
    pub(super) fn read(der: &[u8]) -> Option<Self> {
        let p256 = || {
            let method = &ECDSA_P256_SHA256_FIXED_SIGNING;
            EcdsaKeyPair::from_pkcs8(method, der, &SystemRandom::new()).map(Self::P256)
        };
        let rsa = || RsaKeyPair::from_pkcs8(der).or_else(|_rejected| RsaKeyPair::from_der(der));
        p256().or_else(|_rejected| rsa().map(Self::Rsa)).ok()
    }

    pub(super) fn family(&self) -> AlgorithmFamily {
        self.algorithm().family()
    }
}

impl Signer<Vec<u8>> for RingSigner {
    fn try_sign(&self, message: &[u8]) -> Result<Vec<u8>, signature::Error> {
        let random = SystemRandom::new();
        let signed = match self {
            Self::Rsa(key) => {
                let mut signed = vec![0; key.public().modulus_len()];
                key.sign(&RSA_PKCS1_SHA256, &random, message, &mut signed).map(|()| signed)
            }
            Self::P256(key) => key.sign(&random, message).map(|signed| signed.as_ref().to_vec()),
        };
        signed.map_err(|_unspecified| signature::Error::new())
    }
}

impl JwtSigner for RingSigner {
    fn algorithm(&self) -> Algorithm {
        match self {
            Self::Rsa(_) => Algorithm::RS256,
            Self::P256(_) => Algorithm::ES256,
        }
    }
}

fn verifier_factory(
    algorithm: &Algorithm,
    key: &DecodingKey,
) -> Result<Box<dyn JwtVerifier>, Error> {
    if algorithm.family() != key.family() {
        return Err(ErrorKind::InvalidAlgorithm.into());
    }
    let key = match (method(*algorithm)?, key.kind()) {
        (Method::Rsa(parameters), DecodingKeyKind::RsaModulusExponent { n, e }) => {
            // Some providers write a leading zero, as signed numbers have it.
            let n = n.iter().position(|byte| *byte != 0).map(|start| n[start..].to_vec());
            let n = n.ok_or(ErrorKind::InvalidKeyFormat)?;
            Key::Rsa(parameters, RsaPublicKeyComponents { n, e: e.clone() })
        }
        (Method::Other(method), DecodingKeyKind::SecretOrDer(bytes)) => {
            Key::Other(UnparsedPublicKey::new(method, bytes.clone()))
        }
        (Method::Rsa(_), DecodingKeyKind::SecretOrDer(_))
        | (Method::Other(_), DecodingKeyKind::RsaModulusExponent { .. }) => {
            return Err(ErrorKind::InvalidKeyFormat.into());
        }
    };
    Ok(Box::new(RingVerifier { algorithm: *algorithm, key }))
}

enum Method {
    Rsa(&'static RsaParameters),
    Other(&'static dyn VerificationAlgorithm),
}

fn method(algorithm: Algorithm) -> Result<Method, Error> {
    Ok(match algorithm {
        Algorithm::RS256 => Method::Rsa(&RSA_PKCS1_2048_8192_SHA256),
        Algorithm::RS384 => Method::Rsa(&RSA_PKCS1_2048_8192_SHA384),
        Algorithm::RS512 => Method::Rsa(&RSA_PKCS1_2048_8192_SHA512),
        Algorithm::PS256 => Method::Rsa(&RSA_PSS_2048_8192_SHA256),
        Algorithm::PS384 => Method::Rsa(&RSA_PSS_2048_8192_SHA384),
        Algorithm::PS512 => Method::Rsa(&RSA_PSS_2048_8192_SHA512),
        Algorithm::ES256 => Method::Other(&ECDSA_P256_SHA256_FIXED),
        Algorithm::ES384 => Method::Other(&ECDSA_P384_SHA384_FIXED),
        Algorithm::EdDSA => Method::Other(&ED25519),
        // Shared secrets, and future algorithms of the library.
        _ => return Err(ErrorKind::UnsupportedAlgorithm.into()),
    })
}

enum Key {
    Rsa(&'static RsaParameters, RsaPublicKeyComponents<Vec<u8>>),
    Other(UnparsedPublicKey<Vec<u8>>),
}

struct RingVerifier {
    algorithm: Algorithm,
    key: Key,
}

impl Verifier<Vec<u8>> for RingVerifier {
    fn verify(&self, message: &[u8], signed: &Vec<u8>) -> Result<(), signature::Error> {
        let verified = match &self.key {
            Key::Rsa(parameters, key) => key.verify(parameters, message, signed),
            Key::Other(key) => key.verify(message, signed),
        };
        verified.map_err(|_unspecified| signature::Error::new())
    }
}

impl JwtVerifier for RingVerifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

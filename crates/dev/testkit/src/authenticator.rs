//! A passkey authenticator in software, with the browser's part of the ceremonies: it answers the
//! options that a page gets, honestly or as the test sets it.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair},
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

const USER_PRESENT: u8 = 0x01;
const USER_VERIFIED: u8 = 0x04;
const HAS_CREDENTIAL: u8 = 0x40;

/// An authenticator, and the page that it is used from.
#[derive(Debug)]
pub struct Authenticator {
    /// The origin that the browser sees, such as `http://localhost:7717`.
    pub origin: String,
    /// The relying party's id to use instead of the options' one.
    pub rp_id: Option<String>,
    /// True if the user shows a finger or types a PIN.
    pub is_user_verified: bool,
    /// The authenticator's passkeys.
    pub credentials: Vec<Credential>,
}

/// A passkey with its private half.
#[derive(Debug)]
pub struct Credential {
    /// The credential's id.
    pub id: Vec<u8>,
    /// The credential's user, as the relying party named them.
    pub user_handle: Vec<u8>,
    /// Number of signatures so far; always 0 if `is_counting` is not set.
    pub counter: u32,
    /// True if the counter counts, as in hardware.
    pub is_counting: bool,
    rp_id: String,
    key: EcdsaKeyPair,
}

impl Authenticator {
    /// An honest one without passkeys.
    #[must_use]
    pub fn new(origin: &str) -> Self {
        let origin = origin.to_owned();
        Self { origin, rp_id: None, is_user_verified: true, credentials: Vec::new() }
    }

    /// Makes a passkey by `navigator.credentials.create`; gives the answer as JSON.
    ///
    /// # Panics
    /// When the options are not what a browser takes.
    #[must_use]
    pub fn create(&mut self, options: &Value) -> Value {
        let options = &options["publicKey"];
        let rp_id = options["rp"]["id"].as_str().expect("an id of the relying party").to_owned();
        let mut id = vec![0; 32];
        getrandom::fill(&mut id).expect("the system has randomness");
        let user_handle = bytes(&options["user"]["id"]);
        let credential =
            Credential { id, user_handle, counter: 0, is_counting: true, rp_id, key: new_key() };
        let rp_id = self.rp_id.as_ref().unwrap_or(&credential.rp_id);
        let mut data = self.data(rp_id, HAS_CREDENTIAL, credential.counter);
        data.extend([0; 16]);
        data.extend(u16::try_from(credential.id.len()).expect("a short id").to_be_bytes());
        data.extend(&credential.id);
        data.extend(cose_key(credential.key.public_key().as_ref()));
        let answer = json!({
            "id": text(&credential.id),
            "rawId": text(&credential.id),
            "type": "public-key",
            "response": {
                "clientDataJSON": text(&self.client_data("webauthn.create", options)),
                "attestationObject": text(&attestation(&data)),
            },
            "clientExtensionResults": {},
        });
        self.credentials.push(credential);
        answer
    }

    /// Signs in with its newest passkey by `navigator.credentials.get`; gives the answer as JSON.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    pub fn get(&mut self, options: &Value) -> Value {
        let newest = self.credentials.len().checked_sub(1).expect("a passkey");
        let credential = &mut self.credentials[newest];
        if credential.is_counting {
            credential.counter += 1;
        }
        let credential = &self.credentials[newest];
        let client_data = self.client_data("webauthn.get", &options["publicKey"]);
        let rp_id = self.rp_id.as_ref().unwrap_or(&credential.rp_id);
        let data = self.data(rp_id, 0, credential.counter);
        let signed = [&data[..], &Sha256::digest(&client_data)].concat();
        let signature = credential.key.sign(&SystemRandom::new(), &signed).expect("a signature");
        json!({
            "id": text(&credential.id),
            "rawId": text(&credential.id),
            "type": "public-key",
            "response": {
                "clientDataJSON": text(&client_data),
                "authenticatorData": text(&data),
                "signature": text(signature.as_ref()),
                "userHandle": text(&credential.user_handle),
            },
            "clientExtensionResults": {},
        })
    }

    fn client_data(&self, kind: &str, options: &Value) -> Vec<u8> {
        let data = json!({
            "type": kind,
            "challenge": options["challenge"],
            "origin": self.origin,
            "crossOrigin": false,
        });
        data.to_string().into_bytes()
    }

    fn data(&self, rp_id: &str, flags: u8, counter: u32) -> Vec<u8> {
        let verified = if self.is_user_verified { USER_VERIFIED } else { 0 };
        let mut data = Sha256::digest(rp_id).to_vec();
        data.push(flags | USER_PRESENT | verified);
        data.extend(counter.to_be_bytes());
        data
    }
}

fn new_key() -> EcdsaKeyPair {
    let (method, random) = (&ECDSA_P256_SHA256_ASN1_SIGNING, SystemRandom::new());
    let made = EcdsaKeyPair::generate_pkcs8(method, &random).expect("a key");
    EcdsaKeyPair::from_pkcs8(method, made.as_ref(), &random).expect("a key that was just made")
}

/// ES256 as a COSE key, of an uncompressed point.
fn cose_key(point: &[u8]) -> Vec<u8> {
    let (x, y) = point[1..].split_at(32);
    let head = [0xa5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01, 0x21, 0x58, 0x20];
    [&head, x, &[0x22, 0x58, 0x20], y].concat()
}

/// An attestation object that attests nothing, in CBOR.
fn attestation(data: &[u8]) -> Vec<u8> {
    let length = u16::try_from(data.len()).expect("short data").to_be_bytes();
    [&b"\xa3\x63fmt\x64none\x67attStmt\xa0\x68authData\x59"[..], &length, data].concat()
}

fn text(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn bytes(value: &Value) -> Vec<u8> {
    URL_SAFE_NO_PAD.decode(value.as_str().expect("a text")).expect("base64url")
}

//! The ceremonies of passkeys, against an authenticator in software.

use std::sync::Mutex;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use narthex_login::{Passkey, PasskeyError, Passkeys, PublicOrigin, PublicOriginError, UserHandle};
use narthex_model::ErrorKind;
use narthex_testkit::{
    authenticator::Authenticator,
    shapes::{Grammar, survives},
};
use serde_json::Value;

const ORIGIN: &str = "http://localhost:7717";

fn passkeys() -> Passkeys {
    Passkeys::new(&PublicOrigin::parse(ORIGIN).unwrap()).unwrap()
}

fn ada() -> UserHandle {
    UserHandle::of("ada")
}

fn register(authenticator: &mut Authenticator, user: UserHandle) -> Result<Passkey, PasskeyError> {
    let (options, registration) = passkeys().begin_registration(user, "Ada", &[]).unwrap();
    let answer = authenticator.create(&options);
    passkeys().finish_registration(&registration, answer.to_string().as_bytes())
}

fn sign_in(authenticator: &mut Authenticator, found: &Passkey) -> Result<Passkey, PasskeyError> {
    sign_in_as(authenticator, found, ada(), |_answer| {})
}

fn sign_in_as(
    authenticator: &mut Authenticator,
    found: &Passkey,
    owner: UserHandle,
    change: impl FnOnce(&mut Value),
) -> Result<Passkey, PasskeyError> {
    let (options, begun) = passkeys().begin_sign_in().unwrap();
    let mut answer = authenticator.get(&options);
    change(&mut answer);
    let answer = answer.to_string();
    passkeys().finish_sign_in(begun, answer.as_bytes(), found, owner)
}

#[track_caller]
#[must_use = "a refusal has a reason, which the test compares"]
fn refused(result: Result<Passkey, PasskeyError>) -> PasskeyError {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unauthenticated, "{error:?}");
    error
}

/// Checks that an answer is refused for this reason of the library, such as `MismatchedChallenge`.
#[track_caller]
fn refused_as(reason: &str, result: Result<Passkey, PasskeyError>) {
    let error = refused(result);
    assert!(format!("{error:?}").starts_with(&format!("Refused({reason}")), "{error:?}");
}

#[test]
fn a_registered_passkey_is_stored_and_signs_in() {
    let mut authenticator = Authenticator::new(ORIGIN);
    let made = register(&mut authenticator, ada()).unwrap();
    let mut found = Passkey::from_stored(&made.to_stored().unwrap()).unwrap();
    for _ in 0..3 {
        let (options, begun) = passkeys().begin_sign_in().unwrap();
        assert_eq!(options["publicKey"]["userVerification"], "required");
        assert!(options.get("mediation").is_none(), "{options}");
        let answer = authenticator.get(&options).to_string();
        assert_eq!(Passkeys::answering(answer.as_bytes()).unwrap(), found.id());
        let used = passkeys().finish_sign_in(begun, answer.as_bytes(), &found, ada()).unwrap();
        assert_ne!(used.to_stored().unwrap(), found.to_stored().unwrap(), "it counts");
        found = used;
    }
}

#[test]
fn a_registration_requires_a_discoverable_verified_new_passkey() {
    let mut authenticator = Authenticator::new(ORIGIN);
    let made = register(&mut authenticator, ada()).unwrap();
    let (options, _) =
        passkeys().begin_registration(ada(), "Ada", std::slice::from_ref(&made)).unwrap();
    let options = &options["publicKey"];
    assert_eq!(options["rp"]["id"], "localhost");
    assert_eq!(options["authenticatorSelection"]["residentKey"], "required");
    assert_eq!(options["authenticatorSelection"]["userVerification"], "required");
    assert_eq!(options["attestation"], "none");
    assert_eq!(options["excludeCredentials"][0]["id"], made.id().as_str());
    assert!(!options["user"]["id"].to_string().contains("ada"));
}

/// Replay: an answer to one challenge answers no other.
#[test]
fn an_answer_is_valid_only_for_its_challenge() {
    let mut authenticator = Authenticator::new(ORIGIN);
    let made = register(&mut authenticator, ada()).unwrap();
    let (options, _first) = passkeys().begin_sign_in().unwrap();
    let answer = authenticator.get(&options).to_string();
    let (_, second) = passkeys().begin_sign_in().unwrap();
    refused_as(
        "MismatchedChallenge",
        passkeys().finish_sign_in(second, answer.as_bytes(), &made, ada()),
    );
    let (options, _first) = passkeys().begin_registration(ada(), "Ada", &[]).unwrap();
    let answer = authenticator.create(&options).to_string();
    let (_, second) = passkeys().begin_registration(ada(), "Ada", &[]).unwrap();
    refused_as("MismatchedChallenge", passkeys().finish_registration(&second, answer.as_bytes()));
}

#[test]
fn another_origin_or_relying_party_is_refused() {
    let wrong = ["http://localhost:7718", "https://localhost:7717", "http://localhost.evil:7717"];
    for origin in wrong {
        let mut authenticator = Authenticator::new(ORIGIN);
        let made = register(&mut authenticator, ada()).unwrap();
        authenticator.origin = origin.to_owned();
        refused_as("InvalidRPOrigin", sign_in(&mut authenticator, &made));
        refused_as("InvalidRPOrigin", register(&mut authenticator, ada()));
    }
    let mut authenticator = Authenticator::new(ORIGIN);
    let made = register(&mut authenticator, ada()).unwrap();
    authenticator.rp_id = Some("evil.example".to_owned());
    refused_as("InvalidRPIDHash", sign_in(&mut authenticator, &made));
    refused_as("InvalidRPIDHash", register(&mut authenticator, ada()));
}

#[test]
fn a_passkey_without_user_verification_is_refused() {
    let mut authenticator = Authenticator::new(ORIGIN);
    let made = register(&mut authenticator, ada()).unwrap();
    authenticator.is_user_verified = false;
    refused_as("UserNotVerified", sign_in(&mut authenticator, &made));
    refused_as("UserNotVerified", register(&mut authenticator, ada()));
}

#[test]
fn a_counter_that_does_not_increase_reveals_a_copied_passkey() {
    let mut authenticator = Authenticator::new(ORIGIN);
    let made = register(&mut authenticator, ada()).unwrap();
    authenticator.credentials[0].counter = 10;
    let used = sign_in(&mut authenticator, &made).unwrap();
    for counter in [10, 5, 0] {
        authenticator.credentials[0].counter = counter;
        let error = refused(sign_in(&mut authenticator, &used));
        assert!(matches!(error, PasskeyError::Copied), "{counter}: {error:?}");
    }
    authenticator.credentials[0].counter = 11;
    sign_in(&mut authenticator, &used).unwrap();
}

/// Passkeys that are synchronised between devices do not count.
#[test]
fn a_passkey_without_a_counter_signs_in_again_and_again() {
    let mut authenticator = Authenticator::new(ORIGIN);
    let mut found = register(&mut authenticator, ada()).unwrap();
    authenticator.credentials[0].is_counting = false;
    for _ in 0..3 {
        found = sign_in(&mut authenticator, &found).unwrap();
    }
}

#[test]
fn the_passkey_of_another_user_is_refused() {
    let (mut hers, mut his) = (Authenticator::new(ORIGIN), Authenticator::new(ORIGIN));
    let ada_s = register(&mut hers, ada()).unwrap();
    let bob_s = register(&mut his, UserHandle::of("bob")).unwrap();
    // Bob's answer, for the passkey that was found as Ada's.
    let error = refused(sign_in(&mut his, &ada_s));
    assert!(matches!(error, PasskeyError::WrongUser), "{error:?}");
    // Bob's answer under the id of Ada's passkey.
    let error = refused(sign_in_as(&mut his, &ada_s, ada(), |answer| {
        answer["id"] = ada_s.id().into();
        answer["rawId"] = ada_s.id().into();
    }));
    assert!(matches!(error, PasskeyError::WrongUser), "{error:?}");
    // Bob's own passkey, with Ada's handle.
    his.credentials[0].user_handle.clone_from(&hers.credentials[0].user_handle);
    let error = refused(sign_in_as(&mut his, &bob_s, UserHandle::of("bob"), |_answer| {}));
    assert!(matches!(error, PasskeyError::WrongUser), "{error:?}");
    // An answer without a user.
    let unnamed = sign_in_as(&mut hers, &ada_s, ada(), |answer| {
        answer["response"]["userHandle"] = Value::Null;
    });
    refused_as("InvalidUserUniqueId", unnamed);
}

#[test]
fn a_changed_answer_is_refused() {
    let mut authenticator = Authenticator::new(ORIGIN);
    let made = register(&mut authenticator, ada()).unwrap();
    for (part, reason) in [
        ("signature", "SignatureInvalid"),
        ("authenticatorData", "InvalidRPIDHash"),
        ("clientDataJSON", "ParseJSONFailure"),
    ] {
        let result = sign_in_as(&mut authenticator, &made, ada(), |answer| {
            let text = answer["response"][part].as_str().unwrap();
            let (first, rest) = text.split_at(1);
            let changed = if first == "A" { "B" } else { "A" };
            answer["response"][part] = format!("{changed}{rest}").into();
        });
        let error = format!("{:?}", result.unwrap_err());
        assert!(error.starts_with(&format!("Refused({reason}")), "{part}: {error}");
    }
    for text in ["", "{}", "[]", "null", "\u{0}", "{\"id\":1}"] {
        let (_, begun) = passkeys().begin_sign_in().unwrap();
        let error = passkeys().finish_sign_in(begun, text.as_bytes(), &made, ada()).unwrap_err();
        assert!(matches!(error, PasskeyError::Unreadable), "{text:?}: {error:?}");
    }
}

#[test]
fn passkeys_belong_to_secure_pages_with_a_name() {
    for good in ["https://narthex.example", "https://n.example:8443", "http://localhost:7717"] {
        let origin = PublicOrigin::parse(good).unwrap();
        assert_eq!(origin.as_str(), good);
        Passkeys::new(&origin).unwrap();
    }
    for numeric in ["http://127.0.0.1:7717", "http://[::1]:7717", "https://192.0.2.1"] {
        let origin = PublicOrigin::parse(numeric).unwrap();
        assert!(matches!(Passkeys::new(&origin), Err(PasskeyError::NoName)), "{numeric}");
    }
    let insecure = PublicOrigin::parse("http://narthex.example").unwrap_err();
    assert_eq!(insecure, PublicOriginError::NotSecure);
    for wrong in ["", "localhost", "ftp://a.example", "https://a.example/x", "https://u@a.example"]
    {
        assert_eq!(PublicOrigin::parse(wrong), Err(PublicOriginError::NoOrigin), "{wrong}");
    }
}

/// CBOR, a byte for each character below U+0100: arrays, maps, tags and texts within each other,
/// with a length or until their end.
const CBOR: Grammar = Grammar {
    brackets: &[
        ("\u{81}", ""),
        ("\u{9f}", "\u{ff}"),
        ("\u{a1}\u{61}a", ""),
        ("\u{a1}\u{81}", "\u{1}"),
        ("\u{bf}\u{61}a", "\u{ff}"),
        ("\u{5f}", "\u{ff}"),
        ("\u{7f}", "\u{ff}"),
    ],
    prefixes: &["\u{c0}", "\u{d9}\u{d9}\u{f7}", "\u{9b}\u{7f}"],
    infixes: &["\u{1}", "\u{82}\u{1}", "\u{a2}\u{1}\u{1}"],
    leaf: "\u{1}",
    around: ("", ""),
};

/// S31: a browser may send anything as an attestation object, as its statement, as the public key
/// in it, or as extensions of a sign-in. Each shape is read within the room of a thread, or
/// refused.
#[test]
fn s31_cbor_of_any_shape_leaves_the_process_alive() {
    let mut authenticator = Authenticator::new(ORIGIN);
    let found = register(&mut authenticator, ada()).unwrap();
    let (options, registration) = passkeys().begin_registration(ada(), "Ada", &[]).unwrap();
    let made = authenticator.create(&options);
    // The relying party, flags of a credential with extensions, a counter, and the credential's id.
    let signed = URL_SAFE_NO_PAD.decode(made["response"]["attestationObject"].as_str().unwrap());
    let signed = signed.unwrap();
    let data_at = signed.windows(8).position(|eight| eight == b"authData").unwrap() + 11;
    let (before_key, key_length) = (&signed[data_at..signed.len() - 77], 77);
    let with_key = before_key.to_vec();
    assert_eq!(with_key.len() + key_length, signed.len() - data_at);
    let authenticator = Mutex::new(authenticator);
    let test = "passkeys::s31_cbor_of_any_shape_leaves_the_process_alive";
    survives(test, &[CBOR], Vec::new, 100_000, move |text| {
        let bytes: Vec<u8> = text.chars().map(|one| u8::try_from(one).unwrap()).collect();
        let data = |data: &[u8]| {
            let length = u16::try_from(data.len()).unwrap_or(u16::MAX).to_be_bytes();
            let head = &b"\xa3\x63fmt\x64none\x67attStmt\xa0\x68authData\x59"[..];
            [head, &length, data].concat()
        };
        let statement =
            [b"\xa3\x63fmt\x66packed\x67attStmt", &bytes[..], b"\x68authData\x41\0"].concat();
        let key = data(&[&with_key[..], &bytes].concat());
        let mut extended = signed[data_at..].to_vec();
        extended[32] |= 0x80;
        let extended = data(&[&extended[..], &bytes].concat());
        for object in [bytes.clone(), statement, key, extended] {
            let mut answer = made.clone();
            answer["response"]["attestationObject"] = URL_SAFE_NO_PAD.encode(object).into();
            let answer = answer.to_string();
            drop(passkeys().finish_registration(&registration, answer.as_bytes()));
        }
        let refused = sign_in_as(&mut authenticator.lock().unwrap(), &found, ada(), |answer| {
            let data = answer["response"]["authenticatorData"].as_str().unwrap();
            let mut data = URL_SAFE_NO_PAD.decode(data).unwrap();
            data[32] |= 0x80;
            data.extend(&bytes);
            answer["response"]["authenticatorData"] = URL_SAFE_NO_PAD.encode(data).into();
        });
        assert!(refused.is_err(), "its signature is of other data");
    });
}

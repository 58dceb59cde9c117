//! Signatures of keys that tests do not make: RSA, and the longer curve. Both were made once by
//! another program, with claims that expire 300 seconds after the time of the tests.

use std::time::{Duration, UNIX_EPOCH};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::json;

use super::*;
use crate::jwt::Jwt;

const N: &str = "\
    tawFu1Ixg5XDOCArogxxfJRQmVr8jIp4BPrTzIReuwF9dJ7NwbtaVXCRJ6c96Cn5Y30Vb9bsy1-w3drD8n1K87XYCu\
    Q0S9CwoXkHmj4FFR6Jq1WQXc8z-oP0MwO0uiey5kY3xpRx-lHnJV154vFi6zuvtzr2dNt22MPQEiZvSead7lB9wLw0\
    6xLxwko1rAnJlsELUBr0HoeEyPVCBbZDvxEsO4xqw_yHIKoxn2qi740VvSvRlRLy_HGDhwf5NJY6kOW0rVTFDz_-ZT\
    d-u_KlyWMMw4YpdwoLsjys7_LbMGr1YncbF5U8pEhTTYgX7rHy3iVMsxOR4tuHn82VSPqt5Q";
const X: &str = "DpjfQ9szwPr9TCHT3RK-69Ewlv8Et-JbwsjDov6ufe6AhXCjXvhaFLEM23FoRoNk";
const Y: &str = "680lM_2_yLtAQOQs50IReqa-u5crkrTR0CglkvZyB03xlFg5bHyb3gS_PjUEHdH9";
const CLAIMS: &str = "\
    eyJpc3MiOiJodHRwczovL2lkLmV4YW1wbGUvdGVuYW50Iiwic3ViIjoidTEiLCJhdWQiOiJodHRwczovL25hcnRoZX\
    guZXhhbXBsZS9tY3AiLCJleHAiOjIwMDAwMDAzMDB9";
const RS256: &str = "\
    qsZkghR-Zhi50eOpD4FV6Yj1Gtl76p537FKa-5JMGafwA9z_SOH2vRa0VELctsLZ6BPMPH1hg9LJPZEFVXufSpoU-Z\
    liOKPS10ODvRZ_C-dt2fLNcbLGxBPhK9bZL4GNM_ROiPsiqOrNVYdyfxeU_BzJ28ILrsiso2w6asUWyvbEIGLfRLAI\
    MDhv1GBueZVRhzusULkSpV3EbyxLP2EDpzgE1gUZ0Tj574UwgLXTzxSkmyR3Y-3gKPr00qxz1Y5MYjQaVnK-BIV2PN\
    fjVdTZ4EDJ4U_sSbD38KWezCqQ3j-ozc0Ayau9iqde31bHYAw4ZC2KQaOqjQq4X4R1hF6uTQ";
const PS384: &str = "\
    BFZg0EW3t0x8iuNjGyElbX1gNXu8ncdT4XAzAJEKOz_osJ8cbbhUkEuHjx0kne5f7F1aKWi80K0ID3R4HI0UaBWCaK\
    hAus-GJ9hnxUBEkFApm9RTJ4Cn1PH6nahyRY_RFhxiHKbBdc7kvi3RrLaux32oXYwrcMhy64uyIZ_Cv7naM7E78MIZ\
    i1ZFgTKXSggTIxpD3Y6yBo-jcgK4b9kMmVVysXvOxop8L9tiKWqI7TOivVIhHpGLJA0uQfU9q8fEu-18qPrNVlfOtu\
    NIpR4ka3eFipd-tot4NQC8uVE__GVZs4NuWnT07UT8MZTUPZbkGVmS01PafDWedkZo__NHew";
const ES384: &str = "\
    wJ15F7-NQgsJODjRk0ZJQ347LwcatB6EWITGbuCMb_MtFdgAAq6S0j7Y9Jr8WSoGw-o1FC8rxDlqiOxSqL8ttnHI6z\
    j7TCGYQZimKJoymDYHRtksaMqlovh5VQgecrWV";

fn check(algorithm: &str, signature: &str, keys: &Keys) -> Result<(), JwtFault> {
    let header = json!({"alg": algorithm, "kid": "k1"}).to_string();
    let text = format!("{}.{CLAIMS}.{signature}", URL_SAFE_NO_PAD.encode(header));
    let now = UNIX_EPOCH + Duration::from_secs(2_000_000_000);
    let issuer = "https://id.example/tenant";
    Jwt::parse(&text).unwrap().verified(issuer, keys, &Algorithms::default(), now).map(drop)
}

fn key_set(keys: &[Value]) -> Keys {
    Keys::read(json!({ "keys": keys }).to_string().as_bytes()).unwrap()
}

fn rsa(n: &str) -> Value {
    json!({"kty": "RSA", "n": n, "e": "AQAB", "kid": "k1", "use": "sig"})
}

fn p384() -> Value {
    json!({"kty": "EC", "crv": "P-384", "x": X, "y": Y, "kid": "k1"})
}

#[test]
fn door_r5_rsa_keys_sign_in_both_ways() {
    let keys = key_set(&[rsa(N)]);
    assert_eq!(check("RS256", RS256, &keys), Ok(()));
    assert_eq!(check("PS384", PS384, &keys), Ok(()));
    let bad = Err(JwtFault::BadSignature);
    assert_eq!(check("PS256", RS256, &keys), bad);
    assert_eq!(check("RS384", RS256, &keys), bad);
    let zero = URL_SAFE_NO_PAD.encode([&[0], &*URL_SAFE_NO_PAD.decode(N).unwrap()].concat());
    assert_eq!(check("RS256", RS256, &key_set(&[rsa(&zero)])), Ok(()), "a leading zero");
    for n in ["", "AA", "?", &N[..100]] {
        assert_eq!(check("RS256", RS256, &key_set(&[rsa(n)])), bad, "{n}");
    }
}

#[test]
fn door_r5_a_key_signs_by_its_own_algorithm() {
    assert_eq!(check("ES384", ES384, &key_set(&[p384()])), Ok(()));
    let unknown = Err(JwtFault::UnknownKey);
    assert_eq!(check("ES256", ES384, &key_set(&[p384()])), unknown, "another curve");
    let with = |mut key: Value, name: &str, value: &str| {
        key[name] = value.into();
        key_set(&[key])
    };
    assert_eq!(check("RS256", RS256, &with(rsa(N), "alg", "PS256")), unknown);
    assert_eq!(check("RS256", RS256, &with(rsa(N), "use", "enc")), unknown);
    let short = with(p384(), "x", &X[..20]);
    assert_eq!(check("ES384", ES384, &short), Err(JwtFault::BadSignature));
    // The bytes of a public key as a shared secret, which anyone knows.
    let secret = json!({"kty": "oct", "k": N, "kid": "k1"});
    assert_eq!(check("RS256", RS256, &key_set(&[secret])), unknown);
}

#[test]
fn door_r5_keys_of_unknown_kinds_are_left_out() {
    let odd = json!({"kty": "unheard-of", "kid": 7});
    assert_eq!(check("RS256", RS256, &key_set(&[odd, rsa(N)])), Ok(()));
    for bad in ["", "[]", "{}", "{\"keys\": 1}"] {
        assert_eq!(Keys::read(bad.as_bytes()), Err(JwtFault::NotKeys), "{bad}");
    }
}

//! Tests that secrets are found, and that messages are otherwise unchanged.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

mod edges;
mod spellings;

fn redactor(values: &[&str]) -> Redactor {
    let secrets: Vec<Secret> = values.iter().map(|value| Secret::new(*value)).collect();
    Redactor::new(&secrets)
}

fn parse(text: &str) -> Message {
    Message::parse(Bytes::copy_from_slice(text.as_bytes()), &Limits::default()).unwrap()
}

#[test]
fn s27_every_spelling_of_a_secret_is_found_in_a_line() {
    let secret = "p@ss/w\"ör d+1";
    let redactor = redactor(&[secret]);
    let spellings = [
        secret.to_owned(),
        r#"p@ss/w\"ör d+1"#.to_owned(),
        r#"p@ss/w\"\u00f6r d+1"#.to_owned(),
        "p%40ss%2Fw%22%C3%B6r%20d%2B1".to_owned(),
        "p%40ss%2fw%22%c3%b6r%20d%2b1".to_owned(),
        "p%40ss%2Fw%22%C3%B6r+d%2B1".to_owned(),
        STANDARD.encode(secret),
    ];
    for spelling in spellings {
        let line = format!("key={spelling};");
        let clean = redactor.text(&line).into_owned();
        assert!(clean.starts_with("key=[redacted]") && clean.ends_with(';'), "{line}: {clean}");
    }
}

#[test]
fn s27_base64_with_something_before_and_after_is_found() {
    let redactor = redactor(&["hunter2-hunter2"]);
    for user in ["u", "me", "ada", "adal"] {
        let encoded = STANDARD.encode(format!("{user}:hunter2-hunter2:tail"));
        let clean = redactor.text(&encoded).into_owned();
        assert!(clean.contains(REDACTED), "{encoded}: {clean}");
    }
}

#[test]
fn s27_the_lines_of_a_private_key_are_found_one_by_one() {
    let redactor = redactor(&["-----BEGIN KEY-----\nMIIEpAIBAAKCAQEA\n-----END KEY-----\n"]);
    assert_eq!(redactor.text("read MIIEpAIBAAKCAQEA"), "read [redacted]");
}

#[test]
fn d22_short_values_and_small_numbers_are_left_alone() {
    let redactor = redactor(&["a", "12345", "128000", "true", ""]);
    assert!(redactor.is_empty());
    assert_eq!(redactor.text("128000 true a"), "128000 true a");
    assert!(Redactor::new(&[]).is_empty());
}

#[test]
fn d22_ids_and_routing_members_of_a_message_are_not_redacted() {
    let redactor = redactor(&["sk-12345", "nabcdef", "87654321", "result", "content"]);
    let text = r#"{"jsonrpc":"2.0","id":"sk-12345", "result":{ "content":[{"type":"text",
        "text":"a sk-12345\nb"}],"resultType":"complete","t":"\nabcdef","progressToken":87654321,
        "requestState":"sk-12345"} }"#;
    let clean = redactor.message(&parse(text)).unwrap();
    let expected = text.replace("a sk-12345", "a [redacted]");
    assert_eq!(std::str::from_utf8(clean.bytes()).unwrap(), expected);
}

/// S27, D22: a server that maps keys to accounts, or answers with a PIN as a number.
#[test]
fn s27_secrets_are_found_as_keys_and_as_numbers() {
    let redactor = redactor(&["sk-12345", "87654321", "0012345678.50"]);
    let before = concat!(
        r#"{"jsonrpc":"2.0","id":1,"result":{"sk-12345":87654321,"#,
        r#""a":{"k sk-12345":[-87654321,"#,
        "\n        ",
        r#"8.7654321E7,876543210,187654321,12345678.5],"\u0073k-12345":null},"87654321":1e400}}"#,
    );
    let after = concat!(
        r#"{"jsonrpc":"2.0","id":1,"result":{"[redacted]":"[redacted]","#,
        r#""a":{"[redacted] 2":["[redacted]","#,
        "\n        ",
        r#""[redacted]",876543210,187654321,"[redacted]"],"[redacted] 3":null},"#,
        r#""[redacted] 4":1e400}}"#,
    );
    let clean = redactor.message(&parse(before)).unwrap();
    assert_eq!(std::str::from_utf8(clean.bytes()).unwrap(), after);
    let error =
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":87654321,"message":"m","data":{"sk-12345":1}}}"#;
    let clean = redactor.message(&parse(error)).unwrap();
    assert_eq!(clean.get("data").unwrap().as_bytes(), br#"{"[redacted]":1}"#);
    assert_eq!(redactor.json(b"87654321").unwrap(), br#""[redacted]""#);
    assert_eq!(redactor.json(b"87654322"), None);
}

/// S27: two keys that are secrets, or a server that uses the replacement's word itself, make no
/// message unusable.
#[test]
fn s27_redacted_keys_stay_unique() {
    let redactor = redactor(&["sk-12345", "sk-67890"]);
    let text = r#"{"jsonrpc":"2.0","id":1,"result":{"sk-12345":1,"sk-67890":2,"[redacted]":3,
        "[redacted] 2":4}}"#;
    let clean = redactor.message(&parse(text)).unwrap();
    let clean = std::str::from_utf8(clean.bytes()).unwrap();
    assert!(!clean.contains("sk-") && clean.contains(r#""[redacted]":3"#), "{clean}");
    let clean: Value = serde_json::from_str(clean).unwrap();
    assert_eq!(clean["result"].as_object().unwrap().len(), 4);
}

/// S27: half a surrogate pair in a string hides nothing of the rest.
#[test]
fn s27_a_string_that_is_no_text_is_replaced_whole() {
    let redactor = redactor(&["sk-12345"]);
    let text = r#"{"jsonrpc":"2.0","id":1,"result":{"a":"\ud800 sk-12345","b":"\ud800 fine"}}"#;
    let clean = redactor.message(&parse(text)).unwrap();
    let expected = text.replace(r"\ud800 sk-12345", REDACTED);
    assert_eq!(std::str::from_utf8(clean.bytes()).unwrap(), expected);
}

#[test]
fn d22_numbers_that_may_be_settings_are_not_redacted() {
    let redactor = redactor(&["00000000", "00001234567", "port-8080"]);
    for text in ["0", "[0,1234567,8080]", "-0.0"] {
        assert_eq!(redactor.json(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn d22_json_inside_a_string_and_a_slash_with_a_backslash_are_cleaned() {
    let redactor = redactor(&["se\"cr/et"]);
    let inner = json!({"key": "se\"cr/et"}).to_string();
    let text = json!({"jsonrpc": "2.0", "id": 1, "result": {"text": inner}}).to_string();
    let clean = redactor.message(&parse(&text)).unwrap();
    assert_eq!(clean.get("text").unwrap().as_str().unwrap(), r#"{"key":"[redacted]"}"#);
    let text = r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"se\"cr\/et"}}"#;
    let clean = redactor.message(&parse(text)).unwrap();
    assert_eq!(clean.get("message").unwrap().as_str().unwrap(), REDACTED);
}

#[test]
fn d22_a_message_without_a_secret_is_not_copied() {
    let redactor = redactor(&["sk-12345"]);
    let text = r#"{"jsonrpc":"2.0","id":"sk-12345","method":"a","params":{"x":"y"}}"#;
    assert!(redactor.message(&parse(text)).is_none());
    assert!(matches!(redactor.text("nothing"), Cow::Borrowed(_)));
    assert!(!format!("{redactor:?}").contains("sk-12345"));
}

proptest! {
    /// D22: with any secret at any place, JSON stays JSON of the same shape.
    #[test]
    fn d22_redacted_json_keeps_its_shape(
        secret in "[ -~äß\n]{6,20}", before in ".{0,6}", after in ".{0,6}",
    ) {
        let value = json!({"a": format!("{before}{secret}{after}"), "b": [1, secret], "k": {},
            format!("k{secret}"): 1});
        let text = json!({"jsonrpc": "2.0", "id": 1, "result": value}).to_string();
        let redactor = redactor(&[&secret]);
        prop_assume!(!redactor.is_empty());
        let clean = redactor.message(&parse(&text)).unwrap();
        let clean: Value = serde_json::from_slice(clean.bytes()).unwrap();
        prop_assert!(clean["result"]["b"][1].as_str().unwrap().contains(REDACTED));
        prop_assert!(clean["result"]["a"].as_str().unwrap().contains(REDACTED));
        prop_assert_eq!(&clean["result"]["k"], &json!({}));
        prop_assert_eq!(clean["result"].as_object().unwrap().len(), 4);
    }
}

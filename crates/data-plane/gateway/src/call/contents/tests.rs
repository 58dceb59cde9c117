//! The parts of a text that are stored, and the parts that are removed.

use narthex_model::Secret;
use serde_json::{Value, json};

use super::*;

const SECRET: &str = "hunter2-hunter2-hunter2";

fn kept(text: &str) -> Value {
    let redactor = Redactor::new(&[Secret::new(SECRET)]);
    let (one, other) = text.as_bytes().split_at(text.len() / 2);
    excerpt(&redactor, &[one, other]).shown()
}

/// X-M64: a short text is stored as it is, in one piece.
#[test]
fn x_m64_a_short_text_is_stored_unchanged() {
    let text = r#"{"a":"ä","b":[1,null]}"#;
    assert_eq!(kept(text), json!({ "text": text, "bytes": text.len() }));
}

/// X-M64: known secrets and texts that look like narthex's tokens are removed, also from keys, and
/// also in base64.
#[test]
fn x_m64_known_secrets_and_tokens_are_removed_from_stored_texts() {
    let token = crate::RunToken::generate().unwrap();
    let base64 = "aHVudGVyMi1odW50ZXIyLWh1bnRlcjI=";
    let text = json!({ SECRET: base64, "token": token.expose(), "requestState": SECRET });
    let shown = kept(&text.to_string());
    let text = shown["text"].as_str().unwrap();
    assert_eq!(shown["redacted"], true, "{shown}");
    assert_eq!(text.matches(REDACTED).count(), 4, "{text}");
    for secret in [SECRET, base64, token.expose()] {
        assert!(!text.contains(&secret[..12]), "{text}");
    }
    // A text that only begins like a token is not removed.
    let text = r#"{"a":"nxt_0123 nxt_"}"#;
    assert_eq!(kept(text)["text"], text);
}

/// X-M64: at every position of a secret, no part of it is left before the cut. A text that had a
/// secret gets no digest.
#[test]
fn x_m64_no_part_of_a_secret_remains_before_the_cut_of_a_long_text() {
    let end = 20_000;
    for at in ((EXCERPT_BYTES - 200)..(EXCERPT_BYTES + 200)).step_by(7) {
        let text = format!("{}{SECRET}{}", "a".repeat(at), "b".repeat(end - at));
        let shown = kept(&text);
        let kept = shown["text"].as_str().unwrap();
        assert!(!kept.contains("hun"), "{at}: {}", &kept[kept.len() - 60..]);
        assert!(kept.len() <= EXCERPT_BYTES && kept.len() > EXCERPT_BYTES - 300, "{at}");
        assert_eq!((&shown["truncated"], shown.get("digest")), (&true.into(), None));
        assert_eq!(shown["bytes"], text.len());
    }
    let shown = kept(&"a".repeat(end));
    assert!(shown["digest"].as_str().unwrap().starts_with("sha256:"), "{shown}");
    assert_eq!(shown.get("redacted"), None);
}

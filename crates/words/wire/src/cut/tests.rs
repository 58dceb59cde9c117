//! Tests of the guarantees of cuts: their places, the remaining text, and the marker.

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn limits(tokens: u64, bytes: u64) -> OutputLimits {
    OutputLimits { tokens: NonZeroU64::new(tokens), bytes: NonZeroU64::new(bytes) }
}

fn message(text: &str) -> Message {
    Message::parse(Bytes::copy_from_slice(text.as_bytes()), &Limits::default()).unwrap()
}

fn result(result: &Value) -> Message {
    message(&json!({"jsonrpc": "2.0", "id": 1, "result": result}).to_string())
}

fn cut(message: &Message, limits: &OutputLimits) -> Option<Value> {
    let cut = cut_result(method::TOOLS_CALL, message, limits)?;
    Some(serde_json::from_slice(cut.message.bytes()).unwrap())
}

fn text_of(text: &str) -> Message {
    result(&json!({"content": [{"type": "text", "text": text}]}))
}

fn tokens(text: &str) -> u64 {
    let inner = serde_json::to_string(text).unwrap();
    size_of(&inner.as_bytes()[1..inner.len() - 1], Reading::Text).tokens()
}

/// D23: the quarter rule, for texts in several scripts, and the same for escaped ones.
#[test]
fn d23_tokens_are_estimated_by_the_quarter_rule() {
    for (text, estimate) in [
        ("", 0),
        ("a", 1),
        ("word word", 3),
        ("tab\tand\"quote", 4),
        ("привет", 3),
        ("漢字仮名", 4),
        ("😀", 2),
        ("a😀", 3),
    ] {
        assert_eq!(tokens(text), estimate, "{text}");
        let escaped: String = text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
        assert_eq!(size_of(escaped.as_bytes(), Reading::Text).tokens(), estimate, "{escaped}");
        assert_eq!(size_of(escaped.as_bytes(), Reading::Text).bytes, text.len() as u64);
    }
}

/// D23, R-E19: a result within its limits is not even copied.
#[test]
fn r_e19_results_within_their_limits_are_untouched() {
    let exact = text_of(&"x".repeat(400));
    for fits in [limits(100, 0), limits(0, 400), limits(0, 0), limits(100, 400)] {
        assert!(cut(&exact, &fits).is_none(), "{fits:?}");
    }
    assert!(cut(&exact, &limits(99, 0)).is_some());
    assert!(cut(&exact, &limits(0, 399)).is_some());
    for other in ["tools/list", "prompts/get", "vendor/x"] {
        assert!(cut_result(other, &exact, &limits(1, 1)).is_none(), "{other}");
    }
}

/// D23, R-M7: the marker gives the shown part, the whole size, and the limit.
#[test]
fn d23_the_marker_shows_the_sizes_and_the_limit() {
    let long = text_of(&"x".repeat(240_000));
    let shown = cut(&long, &limits(12_345, 0)).unwrap();
    let text = shown["result"]["content"][0]["text"].as_str().unwrap();
    let marker = "… [cut by narthex: 12,345 of 60,000 tokens shown; limit maxOutputTokens]";
    assert_eq!(text, format!("{}{marker}", "x".repeat(12_345 * 4)));
    let shown = cut(&long, &limits(50_000, 1_000)).unwrap();
    let text = shown["result"]["content"][0]["text"].as_str().unwrap();
    let marker = "… [cut by narthex: 1,000 of 240,000 bytes shown; limit maxOutputBytes]";
    assert_eq!(text, format!("{}{marker}", "x".repeat(1_000)));
}

/// D23, R-D6: a cut never falls into an escape, a pair of surrogates or a character.
#[test]
fn d23_no_cut_breaks_an_escape_a_surrogate_pair_or_a_character() {
    for piece in [r"\n", r"\u00e9", r"\ud83d\ude00", "é", "漢", "😀", r"\\", r#"\""#] {
        for pad in 0..8 {
            let text = format!("{}{}", "a".repeat(pad), piece.repeat(60));
            let content = format!(r#"[{{"type":"text","text":"{text}"}}]"#);
            let raw = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"content":{content}}}}}"#);
            let whole: String = serde_json::from_str(&format!("\"{text}\"")).unwrap();
            for limit in [limits(9, 0), limits(0, 31), limits(0, 32), limits(0, 33)] {
                let shown = cut(&message(&raw), &limit).unwrap();
                let shown = shown["result"]["content"][0]["text"].as_str().unwrap();
                let (kept, _marker) = shown.split_once('…').unwrap();
                assert!(whole.starts_with(kept), "{piece} {pad} {limit:?}: {shown}");
                assert!(!kept.contains('\u{fffd}'));
            }
        }
    }
}

/// D23: texts are kept from the first on; other content stays, also behind the cut.
#[test]
fn d23_only_texts_are_cut_and_other_content_is_unchanged() {
    let raw = format!(
        r#"{{ "jsonrpc":"2.0","result":{{"x-vendor" : 1.10,"content":[
        {{"type":"text","text":"first"}},
        {{"type":"resource","resource":{{"uri":"a:b","text":"{0}","x":1e400}}}},
        {{"type":"image","data":"{0}","mimeType":"image/png"}},
        {{"text":"{0}","type":"text"}},{{"type":"text","text":"ab"}}],
        "isError":false}},"id":"i"}}"#,
        "y".repeat(100)
    );
    let cut = cut_result(method::TOOLS_CALL, &message(&raw), &limits(0, 15)).unwrap();
    let marker = "[cut by narthex: 15 of 207 bytes shown; limit maxOutputBytes]";
    let expected = raw.replacen(&"y".repeat(100), &format!("{}… {marker}", "y".repeat(10)), 1);
    let behind = format!(r#"{{"text":"{}""#, "y".repeat(100));
    let expected = expected.replace(&behind, r#"{"text":"…""#);
    assert_eq!(std::str::from_utf8(cut.message.bytes()).unwrap(), expected);
    assert!(marker.contains(&cut.summary), "{}", cut.summary);
}

/// D23: a text that occurs twice in one content is cut twice, as readers may pick either.
#[test]
fn d23_a_duplicate_text_key_is_cut_too() {
    let long = "y".repeat(100);
    let content = format!(r#"[{{"text":"{long}","te\u0078t":"{long}"}}]"#);
    let raw = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"content":{content}}}}}"#);
    let cut = cut_result(method::TOOLS_CALL, &message(&raw), &limits(0, 20)).unwrap();
    assert!(!std::str::from_utf8(cut.message.bytes()).unwrap().contains(&"y".repeat(21)));
}

/// D23: the result inside a finished task has the same limits.
#[test]
fn d23_results_of_tasks_are_cut_too() {
    let long = json!({"content": [{"type": "text", "text": "y".repeat(500)}]});
    let task = result(&json!({"taskId": "t", "status": "completed", "result": long}));
    let cut = cut_result(method::TASKS_GET, &task, &limits(10, 0)).unwrap();
    let shown: Value = serde_json::from_slice(cut.message.bytes()).unwrap();
    let text = shown["result"]["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with(&format!("{}… [cut", "y".repeat(40))), "{text}");
    assert!(cut_result(method::TASKS_RESULT, &result(&long), &limits(10, 0)).is_some());
}

/// D23: structured content keeps its form; its longest strings get shorter.
#[test]
fn d23_structured_content_keeps_its_form_and_its_short_strings() {
    let content = json!({"rows": [
        {"id": "r1", "kind": "open", "count": 12, "body": "z".repeat(900)},
        {"id": "r2", "kind": "closed", "count": 13, "body": "\u{e9}\n".repeat(300)},
    ]});
    let shown =
        cut(&result(&json!({"content": [], "structuredContent": content})), &limits(150, 0));
    let shown = shown.unwrap()["result"]["structuredContent"].take();
    for (index, id) in ["r1", "r2"].into_iter().enumerate() {
        assert_eq!(shown["rows"][index]["id"], id, "{shown}");
        assert_eq!(shown["rows"][index]["kind"], content["rows"][index]["kind"]);
        assert_eq!(shown["rows"][index]["count"], content["rows"][index]["count"]);
        let body = shown["rows"][index]["body"].as_str().unwrap();
        assert!(body.contains('…') && body.len() > 100 && body.len() < 400, "{body}");
    }
    assert!(shown["rows"][0]["body"].as_str().unwrap().contains("limit maxOutputTokens]"));
    assert!(tokens(&shown.to_string()) < 150 + 40, "{shown}");
}

/// D23: where members and numbers alone are too much, the marker replaces all content.
#[test]
fn d23_structured_content_without_texts_to_cut_gives_way_to_the_marker() {
    let numbers: Vec<u32> = (0..1000).collect();
    let long = result(&json!({"content": [], "structuredContent": {"numbers": numbers}}));
    let shown = cut(&long, &limits(100, 0)).unwrap()["result"]["structuredContent"].take();
    let marker = shown["narthex"].as_str().unwrap();
    assert!(marker.starts_with("… [cut by narthex: 0 of 97"), "{marker}");
    assert_eq!(shown.as_object().unwrap().len(), 1);
}

/// D23: text and structured content are alike in most results; each has the limit by itself.
#[test]
fn d23_text_and_structured_content_have_the_limit_each() {
    let both = json!({"content": [{"type": "text", "text": "t".repeat(360)}],
        "structuredContent": {"result": "t".repeat(360)}});
    assert!(cut(&result(&both), &limits(100, 0)).is_none());
    let shown = cut(&result(&both), &limits(50, 0)).unwrap();
    for place in ["/result/content/0/text", "/result/structuredContent/result"] {
        let text = shown.pointer(place).and_then(Value::as_str).unwrap();
        assert!(text.contains("of 9"), "{text}");
    }
}

#[test]
fn numbers_are_grouped() {
    for (number, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
        assert_eq!(grouped(number), text);
    }
}

/// Texts with everything that strings may hold.
fn any_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("plain words ".to_owned()),
        Just("\"\\\n\u{1}".to_owned()),
        Just("漢😀é".to_owned()),
        any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

proptest! {
    /// D23, R-D6: whatever the content is, the shown part is a beginning of it, and not too long.
    #[test]
    fn d23_the_shown_text_is_a_prefix_within_the_limit(
        texts in prop::collection::vec(any_text(), 0..6),
        most in 1_u64..60,
        is_bytes in any::<bool>(),
    ) {
        let item = |text| json!({"type": "text", "text": text});
        let items: Vec<_> = texts.iter().map(item).collect();
        let limit = if is_bytes { limits(0, most) } else { limits(most, 0) };
        let whole = result(&json!({"content": items, "structuredContent": {"all": texts}}));
        let Some(shown) = cut(&whole, &limit) else { return Ok(()) };
        let shown = shown["result"]["content"].as_array().unwrap().clone();
        prop_assert_eq!(shown.len(), texts.len());
        let mut kept = String::new();
        for (shown, text) in shown.iter().zip(&texts) {
            let shown = shown["text"].as_str().unwrap();
            if shown == text {
                kept.push_str(text);
            } else {
                let marker = shown.rfind("… [cut by narthex").unwrap_or(shown.len());
                let beginning = shown[..marker].trim_end_matches('…');
                prop_assert!(text.starts_with(beginning), "{} {}", shown, text);
                kept.push_str(beginning);
            }
        }
        // Texts as short as their replacement are left as they are.
        let slack = 3 * texts.len() as u64;
        let length = if is_bytes { kept.len() as u64 } else { tokens(&kept) };
        prop_assert!(length <= most + slack, "{} > {}", length, most);
    }
}

/// D23: the estimate of a definition counts escapes as they are written.
#[test]
fn d23_definitions_are_estimated_as_they_are_written() {
    for (text, estimate) in [("", 0), ("1", 1), ("{\"a\":1}", 2), ("\"\\u0041\"", 2), ("文", 1)] {
        assert_eq!(estimated_tokens(text.as_bytes()), estimate, "{text}");
    }
}

//! The scanner against an independent reader and against the attack corpus.

use proptest::prelude::*;

use super::*;

fn scan(text: &[u8]) -> Result<Span, JsonError> {
    check_utf8(text)?;
    let mut scanner = Scanner::new(text, 0, 0);
    let span = scanner.value()?;
    scanner.finish()?;
    Ok(span)
}

fn json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<f64>().prop_map(|f| serde_json::Number::from_f64(f).map_or(0.into(), Into::into)),
        ".{0,24}".prop_map(Into::into),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
            prop::collection::btree_map(".{0,8}", inner, 0..6)
                .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    /// Valid documents, compact and pretty, are accepted whole.
    #[test]
    fn the_scanner_accepts_documents_of_serde_json(value in json()) {
        for text in
            [serde_json::to_vec(&value).unwrap(), serde_json::to_vec_pretty(&value).unwrap()]
        {
            let span = scan(&text).unwrap();
            prop_assert_eq!(span.of(&text), &text[..]);
        }
    }

    /// Near-JSON: one byte changed somewhere. Both readers must agree on whether it is JSON.
    #[test]
    fn the_scanner_agrees_with_serde_json(
        value in json(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut text = serde_json::to_vec(&value).unwrap();
        let at = at.index(text.len());
        text[at] = byte;
        let theirs = serde_json::from_slice::<&serde_json::value::RawValue>(&text).is_ok();
        prop_assert_eq!(scan(&text).is_ok(), theirs, "{}", String::from_utf8_lossy(&text));
    }

    /// Arbitrary bytes never panic, and JSON-like alphabets agree with serde_json.
    #[test]
    fn the_scanner_agrees_on_json_like_texts(text in r#"[\[\]{}",:0-9eE+.\-\\untrfalse ]{0,40}"#) {
        let theirs = serde_json::from_str::<&serde_json::value::RawValue>(&text).is_ok();
        prop_assert_eq!(scan(text.as_bytes()).is_ok(), theirs);
    }

    /// The checks that plain keys skip would change nothing.
    #[test]
    fn s12_plain_keys_are_judged_like_others(
        keys in prop::collection::vec(" ?[pP][aA]r[aA]m[sS]? ?|[tT]as[kK]|[a-zA-Z]{0,6}", 0..5),
    ) {
        let members: Vec<_> = keys.iter().map(|key| format!("\"{key}\":0")).collect();
        let text = format!("{{{}}}", members.join(","));
        if let Ok(object) = Scanner::new(text.as_bytes(), 0, 0).object() {
            let names = KnownNames::new(&["params", "task"]);
            let judge = |is_plain| object.check_deceptive(text.as_bytes(), &names, is_plain);
            prop_assert_eq!(judge(true), judge(false));
        }
    }

    #[test]
    fn strings_round_trip(text in ".{0,60}") {
        let quoted = encode_string(&text);
        prop_assert_eq!(decode_string(&quoted).unwrap(), text.as_str());
        prop_assert_eq!(scan(&quoted).unwrap().of(&quoted), &quoted[..]);
    }
}

/// S12: depth is refused before anything is built.
#[test]
fn s12_depth_is_limited() {
    let nest = |n: usize| [vec![b'['; n], vec![b']'; n]].concat();
    assert!(scan(&nest(DEPTH_MAX as usize)).is_ok());
    assert_eq!(scan(&nest(DEPTH_MAX as usize + 1)), Err(JsonError::TooDeep));
    assert_eq!(scan(&vec![b'['; 1_000_000]), Err(JsonError::TooDeep));
    let objects = [br#"{"a":"#.repeat(200), b"1".to_vec(), b"}".repeat(200)].concat();
    assert_eq!(scan(&objects), Err(JsonError::TooDeep));
}

/// S12: keys are compared decoded, so an escape hides no duplicate.
#[test]
fn s12_duplicate_keys_are_refused_also_when_escaped() {
    let object = |text: &str| Scanner::new(text.as_bytes(), 0, 0).object().map(|_| ());
    assert_eq!(object(r#"{"a":1,"b":2}"#), Ok(()));
    assert_eq!(object(r#"{"a":1,"a":2}"#), Err(JsonError::DuplicateKey { at: 7 }));
    assert_eq!(object(r#"{"a":1,"\u0061":2}"#), Err(JsonError::DuplicateKey { at: 7 }));
    assert_eq!(object(r#"{"a":1,"a\u0000":2}"#), Err(JsonError::DeceptiveKey { at: 7 }));
    let many: String = (0..40).map(|i| format!("\"k{i}\":1,")).collect();
    assert_eq!(object(&format!("{{{many}\"z\":0}}")), Ok(()));
    assert!(matches!(object(&format!("{{{many}\"k7\":0}}")), Err(JsonError::DuplicateKey { .. })));
}

/// S12: names in other case, or with letters that fold to ASCII, are refused where names count.
#[test]
fn s12_case_tricks_are_refused() {
    let check = |text: &str| {
        let object = Scanner::new(text.as_bytes(), 0, 0).object().unwrap();
        let is_plain = text.is_ascii() && !text.contains('\\');
        object.check_deceptive(text.as_bytes(), &KnownNames::new(&["params", "task"]), is_plain)
    };
    assert_eq!(check(r#"{"params":1,"other":2}"#), Ok(()));
    for bad in [
        r#"{"Params":1}"#,
        "{\"param\u{17f}\":1}",
        "{\"tas\u{212a}\":1}",
        r#"{"\u0050arams":1}"#,
        r#"{" params":1}"#,
        r#"{"task ":1}"#,
        r#"{"task\u0009":1}"#,
        r#"{"\u00a0Task":1}"#,
    ] {
        assert!(matches!(check(bad), Err(JsonError::DeceptiveKey { .. })), "{bad}");
    }
}

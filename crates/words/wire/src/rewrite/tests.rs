//! Tests that only the intended members change; all other bytes are the same.

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::Limits;

fn message(text: &str) -> Message {
    Message::parse(Bytes::copy_from_slice(text.as_bytes()), &Limits::default()).unwrap()
}

fn applied(text: &str, rewrite: &Rewrite<'_>) -> String {
    String::from_utf8(rewrite.apply(&message(text)).into_bytes().to_vec()).unwrap()
}

#[test]
fn d2_only_the_id_changes() {
    let text = r#"{ "id" : 7 ,"x":1.10,"jsonrpc":"2.0","result":{"n":12345678901234567890123} }"#;
    let rewrite = Rewrite { id: Some(b"\"abc\"".into()), ..Rewrite::default() };
    assert_eq!(applied(text, &rewrite), text.replace("7 ,", "\"abc\" ,"));
}

/// D2: blanks before a closing brace are bytes like others.
#[test]
fn d2_blanks_around_members_are_preserved() {
    let text = "{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":{\n\"_meta\":{ \"k\":1\r\n}\t}\n}";
    let mut rewrite = Rewrite::default();
    rewrite.meta.set("k", &b"2"[..]);
    assert_eq!(applied(text, &rewrite), text.replace(":1", ":2"));
    let mut nothing = Rewrite::default();
    nothing.meta.remove("absent");
    assert_eq!(applied(text, &nothing), text);
    let empty = "{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":{ \n}}";
    assert_eq!(applied(empty, &nothing), empty);
    assert!(applied(empty, &rewrite).ends_with("\"params\":{ \n\"_meta\":{\"k\":2}}}"));
}

#[test]
fn members_are_set_in_place_added_and_removed() {
    let text = r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{ "a":1, "b" : {"x":1}, "c":3 }}"#;
    let mut rewrite = Rewrite::default();
    rewrite.body.set("b", &b"2"[..]);
    rewrite.body.set("d", &b"4"[..]);
    let body = r#"{ "a":1, "b" : 2, "c":3 ,"d":4}"#;
    assert!(applied(text, &rewrite).contains(body), "{}", applied(text, &rewrite));
    rewrite.body.remove("a");
    assert!(applied(text, &rewrite).contains(r#"{"b" : 2,"c":3,"d":4}"#));
    rewrite.body.remove("b");
    rewrite.body.remove("c");
    assert!(applied(text, &rewrite).contains(r#""params":{"d":4}"#));
}

#[test]
fn missing_params_and_meta_are_created() {
    let mut rewrite = Rewrite::default();
    rewrite.meta.set("k", &b"1"[..]);
    let made = applied(r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#, &rewrite);
    assert_eq!(made, r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"k":1}}}"#);
    let made = applied(r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{}}"#, &rewrite);
    assert_eq!(made, r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"k":1}}}"#);
}

#[test]
fn an_empty_meta_is_removed() {
    let mut rewrite = Rewrite::default();
    rewrite.meta.remove("k");
    let text = r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1,"_meta":{"k":1}}}"#;
    assert!(applied(text, &rewrite).contains(r#""params":{"a":1}"#));
    let text = r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"k":1,"l":2}}}"#;
    assert!(applied(text, &rewrite).contains(r#""params":{"_meta":{"l":2}}"#));
}

fn small() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![any::<i32>().prop_map(Value::from), ".{0,6}".prop_map(Value::from)];
    leaf.prop_recursive(2, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[c-z]{1,3}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn members() -> impl Strategy<Value = Vec<(String, Value)>> {
    prop::collection::btree_map("[a-h]", small(), 0..6).prop_map(|map| map.into_iter().collect())
}

fn as_object(members: &[(String, Value)]) -> Value {
    Value::Object(members.iter().cloned().collect())
}

proptest! {
    /// D2: the outcome equals an edit of the parsed document, and untouched values stay verbatim.
    #[test]
    fn d2_rewrites_equal_edits_of_the_document(
        body in members(),
        meta in prop::option::of(members()),
        set in members(),
        remove in prop::collection::vec("[a-h]", 0..3),
        meta_set in members(),
        meta_remove in prop::collection::vec("[a-h]", 0..3),
        is_pretty in any::<bool>(),
    ) {
        let mut params = as_object(&body);
        if let Some(meta) = &meta {
            params["_meta"] = as_object(meta);
        }
        let document = json!({"jsonrpc": "2.0", "id": 1, "method": "m", "params": params});
        let text = if is_pretty {
            serde_json::to_string_pretty(&document).unwrap()
        } else {
            document.to_string()
        };
        let mut rewrite = Rewrite { id: Some(b"99".into()), ..Rewrite::default() };
        let mut wanted = document.clone();
        wanted["id"] = json!(99);
        let object = wanted["params"].as_object_mut().unwrap();
        for name in &remove {
            rewrite.body.remove(name.as_str());
            object.remove(name);
        }
        for (name, value) in set.iter().filter(|(name, _)| !remove.contains(name)) {
            rewrite.body.set(name.as_str(), value.to_string().into_bytes());
            object.insert(name.clone(), value.clone());
        }
        let had_members = meta.as_ref().is_some_and(|meta| !meta.is_empty());
        let inner = object.entry("_meta").or_insert_with(|| json!({})).as_object_mut().unwrap();
        for name in &meta_remove {
            rewrite.meta.remove(name.as_str());
            inner.remove(name);
        }
        for (name, value) in meta_set.iter().filter(|(name, _)| !meta_remove.contains(name)) {
            rewrite.meta.set(name.as_str(), value.to_string().into_bytes());
            inner.insert(name.clone(), value.clone());
        }
        if inner.is_empty() && (meta.is_none() || (had_members && !rewrite.meta.is_empty())) {
            object.remove("_meta");
        }
        let out = rewrite.apply(&message(&text));
        prop_assert_eq!(out.len(), out.clone().into_bytes().len());
        let got: Value = serde_json::from_slice(&out.into_bytes()).unwrap();
        prop_assert_eq!(got, wanted);
    }

    /// D2: with no change, or a change of the id alone, all other bytes are the same.
    #[test]
    fn d2_untouched_messages_are_byte_for_byte(value in small(), pad in "[ \t\n]{0,3}") {
        let text = format!(
            r#"{{{pad}"jsonrpc":"2.0",{pad}"id"{pad}:{pad}1,"result":{{"v":{value}}}{pad}}}"#
        );
        prop_assert_eq!(&applied(&text, &Rewrite::default()), &text);
        let rewrite = Rewrite { id: Some(b"1".into()), ..Rewrite::default() };
        prop_assert_eq!(&applied(&text, &rewrite), &text);
    }
}

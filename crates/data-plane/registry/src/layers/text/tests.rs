//! Each change leaves the rest byte for byte.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;

const TEXT: &str = "{
    // \"not\": \"here\"
}";

#[track_caller]
fn assert_set(text: &str, path: &[&str], value: &str, expected: &str) {
    assert_eq!(set(text, path, value).unwrap(), expected);
}

#[test]
fn e141_a_member_is_added_in_the_style_of_the_text() {
    assert_set("{}\n", &["a"], "1", "{\n  \"a\": 1\n}\n");
    assert_set("{\"a\":1}", &["b"], "2", "{\"a\":1, \"b\": 2}");
    assert_set("{\n\t\"a\" : 1\n}", &["b"], "2", "{\n\t\"a\" : 1,\n\t\"b\": 2\n}");
    assert_set(
        "{\r\n    \"a\": {}\r\n}\r\n",
        &["a", "b"],
        "{\n  \"c\": 1\n}",
        "{\r\n    \"a\": {\r\n        \"b\": {\r\n          \"c\": 1\r\n        }\r\n    }\r\n\
         }\r\n",
    );
    assert_set("{}", &["a", "b"], "1", "{\n  \"a\": {\n    \"b\": 1\n  }\n}");
    assert_set("{\"\\u0061\": 1}", &["a"], "2", "{\"\\u0061\": 2}");
    assert_set("{\"q\\\"}{\": \"}\\\"{,\"}", &["b"], "2", "{\"q\\\"}{\": \"}\\\"{,\", \"b\": 2}");
}

#[test]
fn e141_a_member_is_removed_with_its_comma() {
    let gone = |text, key| remove(text, &[key]).unwrap();
    assert_eq!(gone("{\"a\": 1, \"b\": 2, \"c\": 3}", "a").unwrap(), "{\"b\": 2, \"c\": 3}");
    assert_eq!(gone("{\"a\": 1, \"b\": 2, \"c\": 3}", "b").unwrap(), "{\"a\": 1, \"c\": 3}");
    assert_eq!(gone("{\n  \"a\": 1,\n  \"b\": 2\n}", "b").unwrap(), "{\n  \"a\": 1\n}");
    assert_eq!(gone("{\n  \"a\": 1\n}", "a").unwrap(), "{}");
    assert_eq!(gone("{\"a\": 1}", "b"), None);
}

#[test]
fn a_value_that_is_no_object_is_not_overwritten() {
    let error = set("{\"a\": [1]}", &["a", "b"], "1").unwrap_err();
    assert!(matches!(error, TextError::NotAnObject { at } if at == "a"));
    let error = set("{\"a\": }", &["a"], "1").unwrap_err();
    assert!(matches!(error, TextError::Syntax(_)), "{error}");
}

/// Comments and commas of the text's author stay, and hide nothing.
#[test]
fn e141_comments_of_the_file_are_preserved() {
    let text = "{ // it's \"a\": {\n  \"a\": 1, /* \"b\": 3 */\n  \"b\": 2, // two\n}\n";
    assert_eq!(keys(text, &[]).unwrap(), ["a", "b"]);
    assert_eq!(get(text, &["b"]).unwrap(), Some("2"));
    assert_set(text, &["b"], "7", &text.replace("\"b\": 2", "\"b\": 7"));
    assert_set(text, &["c"], "3", &text.replace("\"b\": 2", "\"b\": 2,\n  \"c\": 3"));
    let gone = remove(text, &["a"]).unwrap().unwrap();
    assert_eq!(gone, "{ // it's \"a\": {\n  \"b\": 2, // two\n}\n");
    let gone = remove(&gone, &["b"]).unwrap().unwrap();
    assert_eq!(keys(&gone, &[]).unwrap(), [""; 0]);
    assert_set(TEXT, &["a"], "1", "{\n    // \"not\": \"here\"\n    \"a\": 1\n}");
}

fn object() -> impl Strategy<Value = Map<String, Value>> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<i64>().prop_map(Value::from),
        "[ -~\"\\\\{},:]{0,6}".prop_map(Value::from)
    ];
    let value = leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[a-c\"\\\\]{0,2}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    });
    prop::collection::btree_map("[a-c\"\\\\]{0,2}", value, 0..4)
        .prop_map(|map| map.into_iter().collect())
}

fn written(value: &Value, is_pretty: bool) -> String {
    if is_pretty { serde_json::to_string_pretty(value).unwrap() } else { value.to_string() }
}

proptest! {
    /// E141: setting and removing change the text as they would change the tree.
    #[test]
    fn e141_a_change_of_the_text_is_that_change_of_the_tree(
        outer in object(), inner in object(), value in object(),
        key in "[a-c\"\\\\]{0,2}", is_pretty in any::<bool>(),
    ) {
        let mut tree = outer;
        tree.insert("in".to_owned(), Value::Object(inner));
        let text = written(&Value::Object(tree.clone()), is_pretty);
        let value = Value::Object(value);
        let path = ["in", key.as_str()];

        let changed = set(&text, &path, &written(&value, !is_pretty)).unwrap();
        let mut expected = Value::Object(tree.clone());
        expected["in"][&key] = value.clone();
        prop_assert_eq!(&serde_json::from_str::<Value>(&changed).unwrap(), &expected);
        let stored = get(&changed, &path).unwrap().unwrap();
        prop_assert_eq!(&serde_json::from_str::<Value>(stored).unwrap(), &value);

        let less = remove(&changed, &path).unwrap().unwrap();
        tree["in"].as_object_mut().unwrap().remove(&key);
        prop_assert_eq!(serde_json::from_str::<Value>(&less).unwrap(), Value::Object(tree));
    }

    /// E141: adding a member and removing it again leaves no trace.
    #[test]
    fn e141_adding_and_removing_a_member_restores_the_text(
        tree in object(), is_pretty in any::<bool>(),
    ) {
        prop_assume!(!tree.is_empty());
        let text = written(&Value::Object(tree), is_pretty);
        let more = set(&text, &["new"], "{}").unwrap();
        prop_assert_eq!(remove(&more, &["new"]).unwrap(), Some(text));
    }
}

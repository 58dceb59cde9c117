//! Differences as people see them.

use super::*;

fn between(old: &str, new: &str) -> Vec<(String, Option<String>, Option<String>)> {
    let read = |raw: &str| Definition::read("x", raw.as_bytes()).unwrap();
    let found = difference(&read(old), &read(new));
    assert_eq!(found.left_out, 0);
    assert_eq!(found.is_empty(), read(old).digest() == read(new).digest());
    found.changes.into_iter().map(|change| (change.place, change.old, change.new)).collect()
}

fn change(
    place: &str,
    old: Option<&str>,
    new: Option<&str>,
) -> (String, Option<String>, Option<String>) {
    (place.to_owned(), old.map(str::to_owned), new.map(str::to_owned))
}

#[test]
fn s23_each_changed_place_is_reported() {
    let old = r#"{"name":"add","description":"Adds two numbers","inputSchema":{"type":"object",
        "properties":{"a":{"type":"number"},"b":{"type":"number","default":1}},"required":["a"]},
        "annotations":{"readOnlyHint":true}}"#;
    let new = r#"{"annotations":{"readOnlyHint":false,"title":"Add"},
        "inputSchema":{"required":["a","note"],"type":"object",
        "properties":{"a":{"type":"number"},"b":{"type":"number","default":2},
        "note":{"type":"string"}}},"description":"Adds three numbers"}"#;
    let expected = [
        change("/annotations/readOnlyHint", Some("true"), Some("false")),
        change("/annotations/title", None, Some("\"Add\"")),
        change("/inputSchema/required", Some("[\"a\"]"), Some("[\"a\",\"note\"]")),
        change("/inputSchema/properties/b/default", Some("1"), Some("2")),
        change("/inputSchema/properties/note", None, Some("{\"type\":\"string\"}")),
        change("/description", Some("Adds two numbers"), Some("Adds three numbers")),
        change("/name", Some("\"add\""), None),
    ];
    assert_eq!(between(old, new), expected);
}

#[test]
fn s23_equal_definitions_have_no_difference() {
    let table = [
        (r#"{"a":1,"b":[{"c":2,"d":3}]}"#, r#"{ "b": [{"d":3,"c":2}], "a": 1 }"#),
        (r#"{"a":"é"}"#, r#"{"a":"\u00e9"}"#),
        (r#"{"a":{"k":1,"k":2,"b":0}}"#, r#"{"a":{"b":0,"k":1,"k":2}}"#),
    ];
    for (old, new) in table {
        assert_eq!(between(old, new), [], "{old} {new}");
    }
}

#[test]
fn s23_the_difference_of_long_texts_shows_the_changed_part() {
    let (before, after) = ("b".repeat(5000), "a".repeat(5000));
    let old = format!(r#"{{"a":"{before} old {after}"}}"#);
    let new = format!(r#"{{"a":"{before} \u202eevil\u0007 {after}"}}"#);
    let (b, a) = (&before[..AROUND - 1], &after[..AROUND - 1]);
    let expected = [change(
        "/a",
        Some(&format!("…{b} old {a}…")),
        Some(&format!("…{b} \\u{{202e}}evil\\u{{7}} {a}…")),
    )];
    assert_eq!(between(&old, &new), expected);
    // A text that is too long to be reported is counted.
    let long = format!(r#"{{"a":"{}"}}"#, "x".repeat(SHOWN_MAX + 10));
    let told = between(r#"{"a":""}"#, &long)[0].2.clone().unwrap();
    assert!(told.ends_with("x… (10 more characters)"), "{told}");
}

#[test]
fn s23_a_duplicate_key_is_a_difference() {
    let told = between(r#"{"a":{"k":"good"}}"#, r#"{"a":{"k":"good","k":"evil"}}"#);
    let both = r#"{"k":"good","k":"evil"}"#;
    assert_eq!(told, [change("/a", Some(r#"{"k":"good"}"#), Some(both))]);
}

#[test]
fn s23_places_beyond_the_most_are_counted() {
    let members = |value: u8| {
        let members = (0..CHANGES_MAX + 5).map(|at| format!("\"k{at}\":\"{value}\""));
        format!("{{{}}}", members.collect::<Vec<_>>().join(","))
    };
    let read = |raw: &str| Definition::read("x", raw.as_bytes()).unwrap();
    let found = difference(&read(&members(0)), &read(&members(1)));
    assert_eq!((found.changes.len(), found.left_out), (CHANGES_MAX, 5));
}

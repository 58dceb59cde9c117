//! Tests of edits: each format by examples, and the laws on random texts.

mod json;
pub(crate) mod laws;
mod toml;
mod yaml;

use serde_json::{Value, json};

use super::*;

/// The document of a text, which must be readable.
fn read(format: Format, text: &str) -> Document {
    Document::parse(format, text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn text_of(document: &Document) -> String {
    String::from_utf8(document.bytes()).unwrap()
}

/// An entry to insert, as `narthex` writes it.
fn server() -> Value {
    json!({ "url": "http://127.0.0.1:8080/mcp", "env": { "A": "1" } })
}

/// Checks the text after an insertion, and that a removal and an undo each lead back.
#[track_caller]
fn inserts(format: Format, parent: &Parent, before: &str, after: &str) {
    let mut document = read(format, before);
    let change = document.insert(parent, "narthex", &server()).unwrap();
    assert_eq!(text_of(&document), after);
    let mut removed = document.clone();
    removed.remove(parent, "narthex").unwrap();
    assert_eq!(text_of(&removed), before, "after a removal");
    undoes(&mut document, &change, before);
}

/// Checks the text after an insertion, and that an undo leads back.
#[track_caller]
fn inserts_anew(format: Format, parent: &Parent, before: &str, after: &str) {
    let mut document = read(format, before);
    let change = document.insert(parent, "narthex", &server()).unwrap();
    assert_eq!(text_of(&document), after);
    undoes(&mut document, &change, before);
}

#[track_caller]
fn undoes(document: &mut Document, change: &Change, before: &str) {
    // The record is stored between the edit and its undo.
    let stored = serde_json::to_string(change).unwrap();
    let change: Change = serde_json::from_str(&stored).unwrap();
    assert_eq!(document.undo(&change).unwrap(), Undone::Done);
    assert_eq!(text_of(document), before, "after an undo");
}

/// Checks the text after a removal, and that an undo leads back.
#[track_caller]
fn removes(format: Format, parent: &Parent, before: &str, after: &str) {
    let mut document = read(format, before);
    let change = document.remove(parent, "narthex").unwrap();
    assert_eq!(text_of(&document), after);
    undoes(&mut document, &change, before);
}

/// Checks the text after the value is replaced, and that an undo leads back.
#[track_caller]
fn replaces(format: Format, parent: &Parent, before: &str, value: &Value, after: &str) {
    let mut document = read(format, before);
    let change = document.replace(parent, "narthex", value).unwrap();
    assert_eq!(text_of(&document), after);
    undoes(&mut document, &change, before);
}

/// The message with which a text is refused.
#[track_caller]
fn fault(format: Format, text: &str) -> String {
    Document::parse(format, text.as_bytes()).unwrap_err().to_string()
}

/// Inserts, has another writer replace a part of the text, and undoes.
#[track_caller]
fn undoes_around(
    format: Format,
    parent: &Parent,
    before: &str,
    foreign: [&str; 2],
    expected: Result<&str, Undone>,
) {
    let mut document = read(format, before);
    let change = document.insert(parent, "narthex", &server()).unwrap();
    let text = text_of(&document);
    let edited = text.replacen(foreign[0], foreign[1], 1);
    assert_ne!(edited, text, "the other writer changed nothing");
    let mut document = read(format, &edited);
    let outcome = document.undo(&change).unwrap();
    match expected {
        Ok(expected) => {
            assert_eq!((outcome, text_of(&document).as_str()), (Undone::Done, expected));
        }
        Err(expected) => assert_eq!((outcome, text_of(&document)), (expected, edited)),
    }
}

#[test]
fn bytes_that_are_no_text_are_refused_with_their_line() {
    let error = Document::parse(Format::Json, b"{\n  \xff}").unwrap_err();
    assert!(error.to_string().starts_with("line 2, column 3: the bytes are not UTF-8"), "{error}");
}

#[test]
fn a_byte_order_mark_and_line_ends_are_kept() {
    let parent = Parent::map(["servers"]);
    for (format, before) in [
        (Format::Json, "\u{feff}{\r\n\t\"servers\": {\r\n\t\t\"a\": 1\r\n\t}\r\n}"),
        (Format::Yaml, "\u{feff}servers:\r\n  a: 1\r\nb: 2"),
        (Format::Toml, "\u{feff}[servers.a]\r\nb = 2"),
    ] {
        let mut document = read(format, before);
        let change = document.insert(&parent, "narthex", &server()).unwrap();
        let after = text_of(&document);
        assert!(after.starts_with('\u{feff}') && !after.ends_with('\n'), "{after:?}");
        assert_eq!(after.matches('\n').count(), after.matches("\r\n").count(), "{after:?}");
        undoes(&mut document, &change, before);
    }
}

#[test]
fn names_that_exist_or_do_not_are_errors() {
    let parent = Parent::map(["servers"]);
    let mut document = read(Format::Json, "{\n  \"servers\": { \"a\": 1 }\n}");
    let error = document.insert(&parent, "a", &json!(2)).unwrap_err();
    assert!(matches!(&error, EditError::Exists { line: 2, .. }), "{error}");
    assert!(matches!(document.remove(&parent, "b"), Err(EditError::Missing { .. })));
    assert!(matches!(document.replace(&parent, "b", &json!(1)), Err(EditError::Missing { .. })));
    let error = document.insert(&Parent::map(["servers", "a"]), "b", &json!(2)).unwrap_err();
    let expected = "line 2, column 21: `servers.a` is a single value, where a map of keys is \
                    needed; correct it in the file, then try again";
    assert_eq!(error.to_string(), expected);
    let error = document.insert(&Parent::list(["servers"], "name"), "b", &json!({})).unwrap_err();
    assert!(error.to_string().contains("a map of keys, where a list is needed"), "{error}");
    assert_eq!(text_of(&document), "{\n  \"servers\": { \"a\": 1 }\n}");
}

#[test]
fn a_change_belongs_to_its_format() {
    let parent = Parent::map(["servers"]);
    let change = read(Format::Yaml, "").insert(&parent, "narthex", &server()).unwrap();
    let error = read(Format::Json, "{}").undo(&change).unwrap_err();
    assert!(error.to_string().contains("the change is of a YAML file"), "{error}");
}

/// An undo twice, and an undo of what others have changed or removed.
#[test]
fn an_undo_says_what_it_found() {
    let parent = Parent::map(["servers"]);
    let mut document = read(Format::Json, "{}");
    let change = document.insert(&parent, "narthex", &server()).unwrap();
    let mut changed = document.clone();
    changed.replace(&parent, "narthex", &json!({})).unwrap();
    let text = text_of(&changed);
    assert_eq!(changed.undo(&change).unwrap(), Undone::Changed);
    assert_eq!(text_of(&changed), text);
    assert_eq!(document.undo(&change).unwrap(), Undone::Done);
    assert_eq!(document.undo(&change).unwrap(), Undone::Already);
    assert_eq!(text_of(&document), "{}");
}

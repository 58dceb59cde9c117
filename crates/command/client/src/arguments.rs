//! The arguments of a tool as a person types them: `key=value`, `key:=JSON`, `key=@file`.

use fs_err as fs;
use serde_json::{Map, Value};

use crate::{
    Failure,
    terminal::{inert_json, is_harmful},
};

/// Reads the words after the tool's name. `schema` is the tool's input schema, if it is known.
pub fn parse(words: &[String], schema: Option<&Value>) -> Result<Map<String, Value>, Failure> {
    let property = |key: &str| schema.and_then(|schema| schema.get("properties")?.get(key));
    parse_by(words, |key| property(key).is_some_and(wants_text))
}

/// Reads the words after a prompt's name; the arguments of prompts are texts.
pub fn parse_texts(words: &[String]) -> Result<Map<String, Value>, Failure> {
    parse_by(words, |_| true)
}

/// True if the meaning of a word depends on the tool's schema. Reads no file for this: some files,
/// such as pipes, can be read only once.
pub fn need_schema(words: &[String]) -> bool {
    if matches!(words, [only] if only.trim_start().starts_with('{')) {
        return false;
    }
    let pairs = words.iter().filter_map(|word| word.split_once('='));
    let mut plain_ones = pairs.filter(|(key, text)| !key.ends_with(':') && !text.starts_with('@'));
    plain_ones.any(|(_, text)| plain(text, true) != plain(text, false))
}

/// The words that [`parse`] reads as these arguments: `key=value` where it suffices, or else
/// `key:=JSON`.
///
/// One JSON object if a key has characters with a meaning. Characters that a terminal does not show
/// are escaped, so that the words can be copied from one.
pub fn words(arguments: &Map<String, Value>, schema: Option<&Value>) -> Vec<String> {
    let is_plain = |key: &String| {
        let starts_well = key.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        starts_well && !key.contains('=') && !key.ends_with(':') && !key.contains(is_escaped)
    };
    if !arguments.keys().all(is_plain) {
        return vec![escaped(&Value::Object(arguments.clone()))];
    }
    let property = |key: &str| schema.and_then(|schema| schema.get("properties")?.get(key));
    let word = |(key, value): (&String, &Value)| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let is_plain = !text.starts_with('@') && !text.contains(is_escaped);
        match is_plain && plain(&text, property(key).is_some_and(wants_text)) == *value {
            true => format!("{key}={text}"),
            false => format!("{key}:={}", escaped(value)),
        }
    };
    arguments.iter().map(word).collect()
}

/// True for a character that a printed command cannot have.
fn is_escaped(c: char) -> bool {
    c.is_control() || is_harmful(c)
}

/// The value as JSON without such characters.
fn escaped(value: &Value) -> String {
    inert_json(&value.to_string()).into_owned()
}

fn parse_by(
    words: &[String],
    wants_text: impl Fn(&str) -> bool,
) -> Result<Map<String, Value>, Failure> {
    if let [only] = words
        && only.trim_start().starts_with('{')
    {
        return whole(only);
    }
    let mut arguments = Map::new();
    for word in words {
        let (key, value) = pair(word, &wants_text)?;
        if arguments.insert(key.to_owned(), value).is_some() {
            return Err(Failure::usage(format!("the argument `{key}` is given twice")));
        }
    }
    Ok(arguments)
}

/// One JSON object. Duplicate keys are refused, since readers disagree on which one counts.
fn whole(text: &str) -> Result<Map<String, Value>, Failure> {
    let message = bytes::Bytes::copy_from_slice(text.as_bytes());
    let scanned = narthex_wire::json::Scanner::new(&message, 0, 0)
        .object()
        .and_then(|object| narthex_wire::json::check_keys(&message, &object.members));
    let parsed = serde_json::from_str(text);
    match (parsed, scanned) {
        (Ok(arguments), Ok(())) => Ok(arguments),
        (Ok(_), Err(error)) => Err(Failure::usage(format!("the arguments: {error}"))),
        (Err(error), _) => {
            Err(Failure::usage(format!("the arguments are not a valid JSON object: {error}")))
        }
    }
}

fn pair(word: &str, wants_text: impl Fn(&str) -> bool) -> Result<(&str, Value), Failure> {
    let Some((key, text)) = word.split_once('=').filter(|(key, _)| !matches!(*key, "" | ":"))
    else {
        return Err(Failure::usage(format!(
            "the argument `{word}` is neither key=value nor a JSON object"
        )));
    };
    if let Some(key) = key.strip_suffix(':') {
        let value = serde_json::from_str(text).map_err(|error| {
            Failure::usage(format!("the argument `{key}` is not valid JSON: {error}"))
        })?;
        return Ok((key, value));
    }
    if let Some(path) = text.strip_prefix('@') {
        return Ok((key, Value::String(fs::read_to_string(path)?)));
    }
    Ok((key, plain(text, wants_text(key))))
}

/// A value without quotes: JSON if it looks like it, unless the tool wants a text.
fn plain(text: &str, wants_text: bool) -> Value {
    if wants_text {
        return Value::String(text.to_owned());
    }
    match serde_json::from_str(text) {
        Ok(Value::String(_)) | Err(_) => Value::String(text.to_owned()),
        Ok(value) => value,
    }
}

fn wants_text(property: &Value) -> bool {
    match property.get("type") {
        Some(Value::String(one)) => one == "string",
        Some(Value::Array(several)) => several.iter().any(|one| one == "string"),
        _ => property
            .get("enum")
            .and_then(Value::as_array)
            .is_some_and(|values| !values.is_empty() && values.iter().all(Value::is_string)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|&word| word.to_owned()).collect()
    }

    fn parsed(list: &[&str], schema: &Value) -> Value {
        Value::Object(parse(&words(list), Some(schema)).unwrap())
    }

    #[test]
    fn the_schema_is_needed_only_if_a_value_could_be_text_or_json() {
        for (word, needed) in [
            ("a=text", false),
            ("a=1", true),
            ("a=null", true),
            ("a:=1", false),
            (r#"{"a":1}"#, false),
            ("a", false),
        ] {
            assert_eq!(need_schema(&words(&[word])), needed, "{word}");
        }
        assert!(need_schema(&words(&["a=text", "b=1"])));
        let texts = parse_texts(&words(&["a=5", "b:=5"])).unwrap();
        assert_eq!(Value::Object(texts), json!({"a": "5", "b": 5}));
    }

    #[test]
    fn values_are_json_unless_the_tool_wants_text() {
        let schema = json!({"properties": {
            "zip": {"type": "string"},
            "either": {"type": ["string", "null"]},
            "count": {"type": "integer"},
        }});
        for (word, expected) in [
            ("count=3", json!({"count": 3})),
            ("other=3.50", json!({"other": 3.5})),
            ("zip=01234", json!({"zip": "01234"})),
            ("zip=3", json!({"zip": "3"})),
            ("either=null", json!({"either": "null"})),
            ("x=null", json!({"x": null})),
            ("x=true", json!({"x": true})),
            ("x=[1,2]", json!({"x": [1, 2]})),
            ("x={\"a\":1}", json!({"x": {"a": 1}})),
            ("x=\"quoted\"", json!({"x": "\"quoted\""})),
            ("x=a=b", json!({"x": "a=b"})),
            ("x=", json!({"x": ""})),
            ("x=01", json!({"x": "01"})),
            ("zip:=3", json!({"zip": 3})),
            ("x:=\"3\"", json!({"x": "3"})),
        ] {
            assert_eq!(parsed(&[word], &schema), expected, "{word}");
        }
    }

    #[test]
    fn words_of_arguments_are_read_as_the_same_arguments() {
        let schema = json!({"properties": {
            "zip": {"type": "string"},
            "either": {"type": ["string", "null"]},
            "count": {"type": "integer"},
        }});
        for (arguments, expected) in [
            (json!({"zip": "01"}), &["zip=01"][..]),
            (json!({"count": 3, "zip": "a b"}), &["count=3", "zip=a b"]),
            (json!({"either": null}), &["either:=null"]),
            (json!({"x": "3"}), &["x:=\"3\""]),
            (json!({"x": [{"a": 1}]}), &["x=[{\"a\":1}]"]),
            (json!({"zip": "@home"}), &["zip:=\"@home\""]),
            (json!({"zip": "a\nb"}), &["zip:=\"a\\nb\""]),
            (json!({"zip": "a\u{202e}b"}), &["zip:=\"a\\u202eb\""]),
            (json!({"zip": "\u{7f}\u{9b}"}), &["zip:=\"\\u007f\\u009b\""]),
            (json!({"x": ["\u{2066}"]}), &["x:=[\"\\u2066\"]"]),
            (json!({"a\u{200f}": 1}), &["{\"a\\u200f\":1}"]),
            (json!({"a=b": 1}), &["{\"a=b\":1}"]),
            (json!({"--config": 1}), &["{\"--config\":1}"]),
            (json!({}), &[]),
        ] {
            let written = super::words(arguments.as_object().unwrap(), Some(&schema));
            assert_eq!(written, expected);
            assert_eq!(Value::Object(parse(&written, Some(&schema)).unwrap()), arguments);
        }
    }

    #[test]
    fn one_json_object_holds_all_arguments() {
        assert_eq!(parsed(&[" {\"a\": [1]}"], &Value::Null), json!({"a": [1]}));
        assert_eq!(parsed(&[], &Value::Null), json!({}));
    }

    #[test]
    fn ambiguous_arguments_are_refused() {
        for list in [
            &["a=1", "a=2"][..],
            &["a=1", "a:=2"],
            &["{\"a\":1,\"a\":2}"],
            &["{\"a\":1"],
            &["{}", "a=1"],
            &["a:=nonsense"],
            &["word"],
            &["=1"],
        ] {
            let failure = parse(&words(list), None).unwrap_err();
            assert_eq!(failure.kind, crate::FailureKind::Usage, "{list:?}");
        }
    }

    /// The check reads no file: a pipe can be read only once.
    #[test]
    fn deciding_whether_the_schema_is_needed_reads_no_file() {
        for (list, is_needed) in [
            (&["a=@/nowhere/at/all"][..], false),
            (&["a=text", "b:=1"], false),
            (&["a=@/nowhere/at/all", "b=1"], true),
            (&[" {\"a\": 1}"], false),
        ] {
            assert_eq!(need_schema(&words(list)), is_needed, "{list:?}");
        }
    }

    #[test]
    fn a_value_comes_from_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("text");
        fs::write(&path, "3\n").unwrap();
        let word = format!("body=@{}", path.display());
        assert_eq!(parsed(&[&word], &Value::Null), json!({"body": "3\n"}));
        let absent = parse(&words(&["body=@/nowhere/at/all"]), None).unwrap_err();
        assert!(absent.message.contains("/nowhere/at/all"), "{absent}");
    }
}

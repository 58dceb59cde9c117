//! Objects of the catalog in files: JSON or YAML, one or several, in a file, in a folder, or on
//! standard input.

use std::{
    io::{self, Read as _, stdin},
    path::{Path, PathBuf},
};

use fs_err as fs;
use narthex_model::json::Node;
use serde_json::Value;

use crate::DocumentError;

/// As much as the daemon takes at once.
const TEXT_MAX: u64 = 4 * 1024 * 1024;

/// One object, and where it stands, for messages.
#[derive(Debug)]
pub struct Document {
    /// The file, and which one of it.
    pub source: String,
    /// As it is written.
    pub value: Value,
}

/// The objects of a file, of the files of a folder in the order of their names, or of standard
/// input (`-`).
///
/// # Errors
/// When something cannot be read, or is no document.
pub fn read(path: &Path) -> Result<Vec<Document>, DocumentError> {
    if path == Path::new("-") {
        let text = text_of(path)?;
        let is_json = text.trim_start().starts_with(['{', '[']);
        return parse("standard input", &text, is_json);
    }
    if !fs::metadata(path)?.is_dir() {
        return file(path);
    }
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(path)? {
        let path = entry?.path();
        let is_known = |end| ["json", "yaml", "yml"].iter().any(|known| end == *known);
        if path.extension().is_some_and(is_known) {
            files.push(path);
        }
    }
    files.sort();
    if files.is_empty() {
        let text = format!("{} has no file that ends in .json, .yaml or .yml", path.display());
        return Err(DocumentError::Empty(text));
    }
    let mut all = Vec::new();
    for path in files {
        all.extend(file(&path)?);
    }
    Ok(all)
}

/// The text of a file, or of standard input (`-`) as much as the daemon takes, and a bit more.
///
/// # Errors
/// When it cannot be read.
pub fn text_of(path: &Path) -> io::Result<String> {
    if path != Path::new("-") {
        return fs::read_to_string(path);
    }
    let mut text = String::new();
    stdin().take(TEXT_MAX + 1).read_to_string(&mut text)?;
    Ok(text)
}

fn file(path: &Path) -> Result<Vec<Document>, DocumentError> {
    let text = fs::read_to_string(path)?;
    let is_json = path.extension().is_some_and(|end| end == "json");
    parse(&path.display().to_string(), &text, is_json)
}

fn parse(source: &str, text: &str, is_json: bool) -> Result<Vec<Document>, DocumentError> {
    let invalid = |why: String| DocumentError::Invalid(format!("{source}: {why}"));
    if text.len() as u64 > TEXT_MAX {
        return Err(invalid(format!("it is longer than {TEXT_MAX} bytes")));
    }
    if is_json {
        let node = Node::parse(text.as_bytes()).map_err(|error| invalid(error.to_string()))?;
        // Readers disagree on which of two would count.
        if let Some(place) = node.keys_given_twice().first() {
            return Err(invalid(format!("`{place}` is given twice; keep one")));
        }
        return Ok(vec![Document { source: source.to_owned(), value: node.to_value() }]);
    }
    let options = serde_saphyr::options! { strict_booleans: true, with_snippet: false };
    let values: Vec<Value> = serde_saphyr::from_multiple_with_options(text, options)
        .map_err(|error| invalid(told(&error.to_string())))?;
    if values.is_empty() {
        return Err(invalid("there is nothing in it".to_owned()));
    }
    let is_one = values.len() == 1;
    let document = |(index, value): (usize, Value)| Document {
        source: if is_one { source.to_owned() } else { format!("{source} ({})", index + 1) },
        value,
    };
    Ok(values.into_iter().enumerate().map(document).collect())
}

/// A document as YAML, which is read as the same again.
///
/// # Errors
/// When there is no such text.
pub fn yaml(value: &Value) -> Result<String, DocumentError> {
    let text = serde_saphyr::to_string(value)
        .map_err(|error| DocumentError::Unwritable(error.to_string()))?;
    let read = parse("the document", &text, false)?;
    match read.as_slice() {
        [only] if only.value == *value => Ok(text),
        _ => Err(DocumentError::Unwritable("it would be read differently".to_owned())),
    }
}

/// What the reader of YAML says, without words to those who program with it.
fn told(error: &str) -> String {
    match error.split_once("duplicate mapping key: ") {
        Some((before, rest)) => {
            let key = rest.split(", set DuplicateKeyPolicy").next().unwrap_or(rest);
            format!("{before}`{key}` is given twice; keep one")
        }
        None => format!("this is no YAML that can be used: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn values(text: &str) -> Vec<Value> {
        parse("x", text, false).unwrap().into_iter().map(|one| one.value).collect()
    }

    #[test]
    fn yaml_means_what_json_does() {
        let text =
            "name: a\nlist: [1, 2.5, true, no, ~]\ntext: |\n  b\n  c\nref: ${KEY}\n---\nx: 010\n";
        let wanted = json!({ "name": "a", "list": [1, 2.5, true, "no", null], "text": "b\nc\n",
                             "ref": "${KEY}" });
        let read = values(text);
        assert_eq!((read.len(), &read[0]), (2, &wanted));
        assert_eq!(values("{\"a\": \"${scope.x}\"}"), [json!({ "a": "${scope.x}" })]);
    }

    #[test]
    fn a_key_that_is_given_twice_is_told_with_what_to_do() {
        let error = parse("x", "name: a\nname: b\n", false).unwrap_err().to_string();
        assert!(error.contains("`name` is given twice; keep one"), "{error}");
        assert!(!error.contains("Policy"), "{error}");
    }

    /// S30: no text of a document becomes another thing on its way through YAML.
    #[test]
    fn o83_whatever_is_written_as_yaml_is_read_as_the_same() {
        let texts = [
            "",
            "no",
            "true",
            "null",
            "~",
            "1",
            "1e3",
            "0x1f",
            "010",
            "1_000",
            ".5",
            "-",
            "? a",
            "- a",
            "a: b",
            "a #b",
            "#a",
            "&a",
            "*a",
            "!a",
            "%a",
            "@a",
            "`a",
            "'a",
            "\"a",
            "{a",
            "[a",
            "a\nb",
            "\n a\n\n",
            " a ",
            "a\tb",
            "\u{1}",
            "\u{85}",
            "\u{2028}",
            "ä 🦀",
            "---",
            "...",
            "<<",
            "2026-11-22",
            "12:30:45",
            "${KEY}",
            "=",
            "y",
            "\u{feff}x",
            "a\r\nb",
            "\\n",
        ];
        for text in texts {
            let value = json!({ "k": text, text: [text, { text: text }] });
            yaml(&value).unwrap_or_else(|error| panic!("{text:?}: {error}"));
        }
        let value =
            json!({ "a": [], "b": {}, "c": [[], [{}], null, -1, 1.5, 9_007_199_254_740_993_u64] });
        yaml(&value).unwrap();
    }

    #[test]
    fn what_readers_could_differ_on_is_refused() {
        for (text, is_json) in [
            ("{\"a\": 1, \"a\": 2}", true),
            ("a: 1\na: 2\n", false),
            ("a: &x [1]\nb: {<<: 3\n", false),
            ("", false),
            ("{", true),
        ] {
            let error = parse("one.yaml", text, is_json).unwrap_err();
            assert!(error.to_string().starts_with("one.yaml: "), "{error}");
        }
        // Aliases that grow without end.
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..12 {
            let below = format!("*a{}", level - 1);
            let list = [below.as_str(); 9].join(", ");
            bomb.push_str(&format!("a{level}: &a{level} [{list}]\n"));
        }
        assert!(parse("x", &bomb, false).is_err());
    }
}

//! Objects of the catalog in files: JSON or YAML, one or several, in a file, in a folder, or on
//! standard input.

use std::{
    io::{self, Read as _, stdin},
    path::{Path, PathBuf},
};

use fs_err as fs;
use narthex_model::json::{Node, without_comments};
use serde_json::Value;

use crate::documents::{DocumentError, lines::Lines};

/// Largest text that the daemon takes at once.
const TEXT_MAX: u64 = 4 * 1024 * 1024;

/// One object and its source, for messages.
#[derive(Debug)]
pub struct Document {
    /// The file, and the position in it.
    pub source: String,
    /// The object as written.
    pub value: Value,
    pub(crate) lines: Lines,
}

impl Document {
    /// The line of a part in its file, from 1. `place` is the part's place, such as
    /// `mcp.servers.git.timeout`. For a missing part, the line of the part that should contain it.
    /// `None` if the line is not known, as for the whole document.
    #[must_use]
    pub fn line(&self, place: &str) -> Option<u64> {
        self.lines.of(place)
    }
}

/// Endings of files that are read.
const ENDINGS: [&str; 3] = ["json", "yaml", "yml"];

/// The objects of a file, of the files of a folder in the order of their names, or of standard
/// input (`-`).
///
/// # Errors
/// When a file cannot be read, or is no document.
pub fn read(path: &Path) -> Result<Vec<Document>, DocumentError> {
    if path == Path::new("-") {
        let text = text_of(path).map_err(|error| unreadable(path, error))?;
        return parse("standard input", &text, looks_like_json(&text));
    }
    let metadata = fs::metadata(path).map_err(|error| unreadable(path, error))?;
    if !metadata.is_dir() {
        return file(path);
    }
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(path)? {
        let path = entry?.path();
        if ending(&path).is_some_and(|end| ENDINGS.contains(&end.as_str())) {
            files.push(path);
        }
    }
    files.sort();
    if files.is_empty() {
        let text = format!("{} has no file that ends in .json, .yaml or .yml", path.display());
        return Err(DocumentError::NotThere(text));
    }
    let mut all = Vec::new();
    for path in files {
        all.extend(file(&path)?);
    }
    Ok(all)
}

/// The text of a file or of standard input (`-`). Reads little more than the daemon accepts.
///
/// # Errors
/// When the text cannot be read.
pub fn text_of(path: &Path) -> io::Result<String> {
    if path != Path::new("-") {
        return fs::read_to_string(path);
    }
    let mut text = String::new();
    stdin().take(TEXT_MAX + 1).read_to_string(&mut text)?;
    Ok(text)
}

/// The ending of a file, in small letters.
fn ending(path: &Path) -> Option<String> {
    path.extension().map(|end| end.to_string_lossy().to_ascii_lowercase())
}

fn looks_like_json(text: &str) -> bool {
    let plain = without_comments(text.as_bytes());
    plain.trim_ascii_start().starts_with(b"{") || plain.trim_ascii_start().starts_with(b"[")
}

/// The error for a file that is missing or no text, with its remedy.
fn unreadable(path: &Path, error: io::Error) -> DocumentError {
    let name = path.display();
    match error.kind() {
        io::ErrorKind::NotFound => DocumentError::NotThere(format!(
            "there is no file or folder `{name}`; correct the name, or give `-` to send the text \
             on standard input"
        )),
        io::ErrorKind::InvalidData => DocumentError::Invalid(format!(
            "{name}: this is not UTF-8 text; give a JSON or YAML file that is stored as UTF-8"
        )),
        _ => error.into(),
    }
}

fn file(path: &Path) -> Result<Vec<Document>, DocumentError> {
    let end = ending(path);
    if let Some(end) = end.as_deref().filter(|end| !ENDINGS.contains(end)) {
        let text = format!(
            "{}: files of .{end} are not read; write it as JSON or YAML, in a file that ends in \
             .json, .yaml or .yml",
            path.display()
        );
        return Err(DocumentError::Invalid(text));
    }
    let text = fs::read_to_string(path).map_err(|error| unreadable(path, error))?;
    // A file without an ending, such as that of `<(…)`, is read like standard input.
    let is_json = end.map_or_else(|| looks_like_json(&text), |end| end == "json");
    parse(&path.display().to_string(), &text, is_json)
}

pub(crate) fn parse(
    source: &str,
    text: &str,
    is_json: bool,
) -> Result<Vec<Document>, DocumentError> {
    let invalid = |why: String| DocumentError::Invalid(format!("{source}: {why}"));
    if text.len() as u64 > TEXT_MAX {
        return Err(invalid(format!("it is longer than {TEXT_MAX} bytes")));
    }
    if is_json {
        let node =
            Node::parse_written(text.as_bytes()).map_err(|error| invalid(error.to_string()))?;
        // Readers disagree on which of two would count.
        if let Some(place) = node.keys_given_twice().first() {
            return Err(invalid(format!("`{place}` is given twice; keep one")));
        }
        let plain = without_comments(text.as_bytes());
        let mut lines = lines(&String::from_utf8_lossy(&plain));
        let lines = if lines.len() == 1 { lines.remove(0) } else { Lines::default() };
        return Ok(vec![Document { source: source.to_owned(), value: node.to_value(), lines }]);
    }
    let options = serde_saphyr::options! { strict_booleans: true, with_snippet: false };
    let values: Vec<Value> = serde_saphyr::from_multiple_with_options(text, options)
        .map_err(|error| invalid(told(&error.to_string())))?;
    if values.is_empty() {
        return Err(invalid("it is empty; write a JSON or YAML document".to_owned()));
    }
    let is_one = values.len() == 1;
    let mut lines = lines(text).into_iter();
    let document = |(index, value): (usize, Value)| Document {
        source: if is_one { source.to_owned() } else { format!("{source} ({})", index + 1) },
        value,
        lines: lines.next().unwrap_or_default(),
    };
    Ok(values.into_iter().enumerate().map(document).collect())
}

/// The lines of the parts of each document. Empty, where they cannot be found: JSON is YAML but for
/// some rare texts.
fn lines(text: &str) -> Vec<Lines> {
    let options = serde_saphyr::options! { strict_booleans: true, with_snippet: false };
    serde_saphyr::from_multiple_with_options(text, options).unwrap_or_default()
}

/// A document as YAML, which reads as the same document again.
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

/// The message of the YAML reader, without words for its programmers.
fn told(error: &str) -> String {
    match error.split_once("duplicate mapping key: ") {
        Some((before, rest)) => {
            let key = rest.split(", set DuplicateKeyPolicy").next().unwrap_or(rest);
            format!("{before}`{key}` is given twice; keep one")
        }
        None if error.contains("budget breached") => {
            "this YAML nests too deep, or is too long to be read; use fewer levels, or write it in \
             several files"
                .to_owned()
        }
        None => format!("this is not usable YAML: {error}; correct the document there"),
    }
}

#[cfg(test)]
mod tests;

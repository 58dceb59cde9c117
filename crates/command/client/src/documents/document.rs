//! Objects of the catalog in files: JSON or YAML, one or several, in a file, in a folder, or on
//! standard input.

use std::{
    io::{self, Read as _, stdin},
    path::{Path, PathBuf},
};

use fs_err as fs;
use narthex_client_files::{
    catalog::OfClient,
    clients::{Client, Dialect},
    edit::{self, Lines},
    rewrite::parse as parse_of_client,
    servers::read_placed,
};
use narthex_model::json::{Node, without_comments};
use serde_json::Value;

use crate::{
    Failure, dialect,
    documents::{DocumentError, lines::ReadLines},
};

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
    /// The servers of a client's file, as the client writes them.
    pub(crate) of_client: Option<OfClient>,
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

/// Endings of files that are read, and after them those of clients alone.
const ENDINGS: [&str; 3] = ["json", "yaml", "yml"];
const ENDINGS_OF_CLIENTS: [&str; 5] = ["json", "yaml", "yml", "jsonc", "toml"];

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
    let mut all = Vec::new();
    for path in files(path, &ENDINGS)? {
        all.extend(file(&path)?);
    }
    Ok(all)
}

/// The servers of files, as of [`read`]. A file of a client is read as the client writes it: by
/// its path, or by `format`, the id of a client or `narthex`.
///
/// # Errors
/// As of [`read`], and when no client has the id, or several have their file at the path.
pub fn read_servers(path: &Path, format: Option<&str>) -> Result<Vec<Document>, Failure> {
    let endings = if format.is_some() { &ENDINGS_OF_CLIENTS[..] } else { &ENDINGS[..] };
    let paths = if path == Path::new("-") { vec![path.to_owned()] } else { files(path, endings)? };
    let mut all = Vec::new();
    for path in paths {
        match dialect::of(&path, format)? {
            Dialect::Own => all.extend(read(&path)?),
            Dialect::Of(file) => all.push(of_client(&path, file.client)?),
        }
    }
    Ok(all)
}

/// A file, or the files of a folder with these endings.
fn files(path: &Path, endings: &[&str]) -> Result<Vec<PathBuf>, DocumentError> {
    let metadata = fs::metadata(path).map_err(|error| unreadable(path, error))?;
    if !metadata.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(path)? {
        let path = entry?.path();
        if ending(&path).is_some_and(|end| endings.contains(&end.as_str())) {
            files.push(path);
        }
    }
    files.sort();
    if files.is_empty() {
        let text = format!("{} has no file that ends in .json, .yaml or .yml", path.display());
        return Err(DocumentError::NotThere(text));
    }
    Ok(files)
}

fn of_client(path: &Path, client: &'static Client) -> Result<Document, DocumentError> {
    let text = text_of(path).map_err(|error| unreadable(path, error))?;
    let source = match path == Path::new("-") {
        true => "standard input".to_owned(),
        false => path.display().to_string(),
    };
    parse_client(&source, &text, client)
}

/// Reads the text of a client's file.
pub(crate) fn parse_client(
    source: &str,
    text: &str,
    client: &'static Client,
) -> Result<Document, DocumentError> {
    if text.len() as u64 > TEXT_MAX {
        return Err(too_long(source));
    }
    let invalid = |error: edit::EditError| DocumentError::Invalid(format!("{source}: {error}"));
    let document = parse_of_client(client.format, text.as_bytes()).map_err(invalid)?;
    let servers = read_placed(client, &document, "").map_err(invalid)?;
    let lines = document.lines();
    let of_client = Some(OfClient { client, servers });
    Ok(Document { source: source.to_owned(), value: Value::Null, lines, of_client })
}

fn too_long(source: &str) -> DocumentError {
    DocumentError::Invalid(format!("{source}: it is longer than {TEXT_MAX} bytes"))
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
        return Err(too_long(source));
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
        let (source, value) = (source.to_owned(), node.to_value());
        return Ok(vec![Document { source, value, lines, of_client: None }]);
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
        of_client: None,
    };
    Ok(values.into_iter().enumerate().map(document).collect())
}

/// The lines of the parts of each document. Empty, where they cannot be found: JSON is YAML but for
/// some rare texts.
fn lines(text: &str) -> Vec<Lines> {
    let options = serde_saphyr::options! { strict_booleans: true, with_snippet: false };
    let read: Vec<ReadLines> =
        serde_saphyr::from_multiple_with_options(text, options).unwrap_or_default();
    read.into_iter().map(|one| one.0).collect()
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

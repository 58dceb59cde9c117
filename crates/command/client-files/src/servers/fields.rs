//! Fields of entries before they are read: older and nested spellings, entries that are no servers,
//! and servers that a file disables outside of their entry.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::clients::Shape;
use crate::edit::{Document, EditError};

/// Kinds of Goose's extensions that are no MCP servers.
const PARTS_OF_GOOSE: [&str; 4] = ["builtin", "platform", "frontend", "inline_python"];

/// Names of servers that the file disables outside of their entry.
pub(super) fn switched_off(
    shape: Shape,
    document: &Document,
) -> Result<BTreeSet<String>, EditError> {
    let names = match shape {
        Shape::Gemini | Shape::Qwen => document.value(&["mcp", "excluded"])?,
        _ => None,
    };
    let names = names.as_ref().and_then(Value::as_array).into_iter().flatten();
    Ok(names.filter_map(Value::as_str).map(str::to_owned).collect())
}

/// True if an entry is no server, and no part of one.
pub(super) fn is_no_server(shape: Shape, value: &Value) -> bool {
    match shape {
        Shape::Goose => value["type"].as_str().is_some_and(|kind| PARTS_OF_GOOSE.contains(&kind)),
        // The newer table, limits, and switches for servers of other files.
        Shape::Opencode => value["type"].is_null(),
        _ => false,
    }
}

/// The fields of an entry, with nested and older spellings as the usual ones.
pub(super) fn flattened(shape: Shape, fields: &Map<String, Value>) -> Map<String, Value> {
    let mut flat = fields.clone();
    match shape {
        Shape::Cline => {
            if let Some(Value::Object(inner)) = flat.get("transport").cloned() {
                flat.remove("transport");
                flat.extend(inner);
            }
            rename(&mut flat, "transportType", "type");
        }
        Shape::Zed => {
            if let Some(Value::Object(inner)) = flat.get("command").cloned() {
                flat.remove("command");
                flat.extend(inner);
                rename(&mut flat, "path", "command");
            }
        }
        Shape::Opencode => {
            if let Some(Value::Array(words)) = flat.get("command").cloned() {
                let mut words = words.into_iter();
                flat.remove("command");
                if let Some(command) = words.next() {
                    flat.insert("command".to_owned(), command);
                }
                flat.insert("args".to_owned(), words.collect());
            }
        }
        Shape::Codex => {
            if let Some(ms) = flat.get("startup_timeout_ms").and_then(Value::as_f64) {
                flat.remove("startup_timeout_ms");
                flat.entry("startup_timeout_sec").or_insert_with(|| (ms / 1000.0).into());
            }
        }
        _ => {}
    }
    flat
}

/// Gives a field another name, if there is none of that name.
fn rename(fields: &mut Map<String, Value>, old: &str, new: &str) {
    if !fields.contains_key(new)
        && let Some(value) = fields.remove(old)
    {
        fields.insert(new.to_owned(), value);
    }
}

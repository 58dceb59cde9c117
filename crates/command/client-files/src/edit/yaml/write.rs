//! Values as lines of YAML.

use serde_json::Value;

use super::scalar::{escaped, scalar_text};
use crate::edit::json;

/// The layout of new lines.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout<'a> {
    pub(super) newline: &'a str,
    /// Spaces of one step of indentation.
    pub(super) unit: usize,
    /// Spaces from a key to the dashes of its list.
    pub(super) dash: usize,
}

/// The lines of a key and its value, without the last line end.
pub(super) fn member_lines(key: &str, value: &Value, indent: usize, layout: Layout<'_>) -> String {
    let pad = " ".repeat(indent);
    let value = value_after_key(value, indent, layout);
    format!("{pad}{}:{value}", scalar_text(key))
}

/// The lines of an entry of a list whose dash is indented, without the last line end.
pub(super) fn entry_lines(value: &Value, indent: usize, layout: Layout<'_>) -> String {
    let pad = " ".repeat(indent);
    match value {
        Value::Object(map) if !map.is_empty() => {
            let members =
                map.iter().map(|(key, value)| member_lines(key, value, indent + 2, layout));
            let lines = members.collect::<Vec<_>>().join(layout.newline);
            format!("{pad}- {}", lines.trim_start_matches(' '))
        }
        value => format!("{pad}- {}", flow(value)),
    }
}

/// The text that follows the colon of a key: a scalar on the same line, or lines below.
pub(super) fn value_after_key(value: &Value, indent: usize, layout: Layout<'_>) -> String {
    let newline = layout.newline;
    let lines: Vec<_> = match value {
        Value::Object(map) if !map.is_empty() => map
            .iter()
            .map(|(key, value)| member_lines(key, value, indent + layout.unit, layout))
            .collect(),
        Value::Array(list) if !list.is_empty() => {
            list.iter().map(|value| entry_lines(value, indent + layout.dash, layout)).collect()
        }
        value => return format!(" {}", flow(value)),
    };
    format!("{newline}{}", lines.join(newline))
}

/// A value on one line.
pub(super) fn flow(value: &Value) -> String {
    match value {
        Value::String(text) => scalar_text(text),
        value => escaped(&json::inline(value)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_lines() {
        let value = json!({ "args": ["-y", { "a": 1, "b": [] }], "env": {}, "on": true });
        let layout = Layout { newline: "\n", unit: 2, dash: 2 };
        let lines = member_lines("x", &value, 2, layout);
        let expected = "  x:\n    args:\n      - \"-y\"\n      - a: 1\n        b: []\n    \
                        env: {}\n    \"on\": true";
        assert_eq!(lines, expected);
        let layout = Layout { dash: 0, ..layout };
        assert_eq!(member_lines("x", &json!(["a"]), 0, layout), "x:\n- a");
    }
}

//! Values as JSON text, on one line or on several.

use serde_json::Value;

/// The layout of a new value.
#[derive(Debug, Clone, Copy)]
pub(super) enum Layout<'a> {
    /// On one line, with spaces after colons and commas if they are wanted.
    Inline { is_spaced: bool },
    /// One member a line.
    Lines { newline: &'a str, unit: &'a str },
}

/// A value on one line, with spaces.
pub(in super::super) fn inline(value: &Value) -> String {
    value_text(value, Layout::Inline { is_spaced: true }, "")
}

/// A string with its quotes.
pub(super) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// A key and its value.
pub(super) fn member_text(key: &str, value: &Value, layout: Layout<'_>, indent: &str) -> String {
    let gap = if matches!(layout, Layout::Inline { is_spaced: false }) { "" } else { " " };
    format!("{}:{gap}{}", quoted(key), value_text(value, layout, indent))
}

/// A value whose first line is indented by `indent`.
pub(super) fn value_text(value: &Value, layout: Layout<'_>, indent: &str) -> String {
    let inner = match layout {
        Layout::Lines { unit, .. } => format!("{indent}{unit}"),
        Layout::Inline { .. } => String::new(),
    };
    let (items, open, close): (Vec<String>, _, _) = match value {
        Value::Object(map) => {
            let items = map.iter().map(|(key, value)| member_text(key, value, layout, &inner));
            (items.collect(), '{', '}')
        }
        Value::Array(list) => {
            let items = list.iter().map(|value| value_text(value, layout, &inner));
            (items.collect(), '[', ']')
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            return value.to_string();
        }
    };
    match layout {
        _ if items.is_empty() => format!("{open}{close}"),
        Layout::Inline { is_spaced } => {
            let comma = if is_spaced { ", " } else { "," };
            let pad = if is_spaced && open == '{' { " " } else { "" };
            format!("{open}{pad}{}{pad}{close}", items.join(comma))
        }
        Layout::Lines { newline, .. } => {
            let items = items.join(&format!(",{newline}{inner}"));
            format!("{open}{newline}{inner}{items}{newline}{indent}{close}")
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_laid_out() {
        let value = json!({ "a": [1, "b\""], "c": {}, "d": { "e": null } });
        assert_eq!(inline(&value), r#"{ "a": [1, "b\""], "c": {}, "d": { "e": null } }"#);
        let compact = Layout::Inline { is_spaced: false };
        assert_eq!(value_text(&value, compact, ""), value.to_string());
        let lines = Layout::Lines { newline: "\n", unit: "  " };
        assert_eq!(value_text(&value, lines, ""), serde_json::to_string_pretty(&value).unwrap());
    }
}

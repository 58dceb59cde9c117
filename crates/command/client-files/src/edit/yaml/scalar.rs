//! Plain scalars of YAML as values, and texts as scalars.

use serde_json::{Number, Value};

/// Words that some programs read as a truth value or as nothing, though YAML 1.2 does not.
const WORDS: [&str; 8] = ["y", "n", "yes", "no", "on", "off", "null", "~"];

/// The value of a scalar without quotes, by the core schema of YAML 1.2.
pub(super) fn resolve(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    number(text).map_or_else(|| Value::from(text), Value::Number)
}

fn number(text: &str) -> Option<Number> {
    let digits = text.trim_start_matches(['-', '+']);
    if text.len() > digits.len() + 1
        || !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.')
    {
        return None;
    }
    if let Some(hex) = text.strip_prefix("0x") {
        return u64::from_str_radix(hex, 16).ok().map(Number::from);
    }
    if let Some(octal) = text.strip_prefix("0o") {
        return u64::from_str_radix(octal, 8).ok().map(Number::from);
    }
    let is_decimal = |c: char| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-');
    if !digits.chars().all(is_decimal) || !digits.contains(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let plain = text.trim_start_matches('+');
    plain
        .parse::<i64>()
        .map(Number::from)
        .or_else(|_too_large| plain.parse::<u64>().map(Number::from))
        .ok()
        .or_else(|| plain.parse::<f64>().ok().and_then(Number::from_f64))
}

/// A text as a scalar, with quotes where a program could read something else.
pub(super) fn scalar_text(text: &str) -> String {
    if is_plain(text) { text.to_owned() } else { quoted(text) }
}

/// True if every program reads the text without quotes as this text.
fn is_plain(text: &str) -> bool {
    let first = text.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '/' | '_'));
    let all = text.chars().all(|c| {
        c.is_ascii_alphanumeric()
            || matches!(c, '_' | '-' | '.' | '/' | ':' | '@' | '+' | '=' | '$')
    });
    first
        && all
        && !text.ends_with(':')
        && resolve(text).is_string()
        && !WORDS.contains(&text.to_ascii_lowercase().as_str())
}

/// A text in double quotes.
fn quoted(text: &str) -> String {
    escaped(&Value::from(text).to_string())
}

/// JSON in which the characters that YAML does not allow, or takes for a line end, are escaped.
/// They can only stand in its texts.
pub(super) fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        let is_line = matches!(c, '\u{85}' | '\u{2028}' | '\u{2029}');
        let is_refused = matches!(c, '\u{7f}'..='\u{9f}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}');
        if is_line || is_refused {
            text.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            text.push(c);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn plain_scalars_have_types() {
        for (text, value) in [
            ("1", json!(1)),
            ("-7", json!(-7)),
            ("+7", json!(7)),
            ("0x10", json!(16)),
            ("0o17", json!(15)),
            ("1.5e3", json!(1500.0)),
            (".5", json!(0.5)),
            ("1.2.3", json!("1.2.3")),
            ("e5", json!("e5")),
            ("--1", json!("--1")),
            ("-", json!("-")),
            ("", json!(null)),
            ("True", json!(true)),
            ("yes", json!("yes")),
            (".inf", json!(".inf")),
        ] {
            assert_eq!(resolve(text), value, "{text}");
        }
    }

    #[test]
    fn only_clear_texts_have_no_quotes() {
        for text in ["stdio", "http://127.0.0.1:8080/mcp", "/usr/bin/npx", "a-b_c.d"] {
            assert_eq!(scalar_text(text), text);
        }
        for (text, scalar) in [
            ("yes", "\"yes\""),
            ("Null", "\"Null\""),
            ("", "\"\""),
            ("12", "\"12\""),
            ("-x", "\"-x\""),
            ("a: b", "\"a: b\""),
            ("a #b", "\"a #b\""),
            ("key:", "\"key:\""),
            ("a\nb", "\"a\\nb\""),
            ("\u{85}", "\"\\u0085\""),
        ] {
            assert_eq!(scalar_text(text), scalar);
        }
    }
}

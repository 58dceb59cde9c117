//! Values as TOML text.

use serde_json::{Map, Value};

/// A text as a key, in quotes where it needs them.
pub(super) fn key_text(key: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if !key.is_empty() && key.chars().all(is_bare) { key.to_owned() } else { quoted(key) }
}

/// Keys with dots between them.
pub(super) fn path_text(path: &[String]) -> String {
    path.iter().map(|key| key_text(key)).collect::<Vec<_>>().join(".")
}

/// A text in double quotes: the escapes of JSON are those of TOML, which also wants one for DEL.
fn quoted(text: &str) -> String {
    Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

/// A value on one line. `Err` has the reason for which TOML cannot express it.
pub(super) fn value_text(value: &Value) -> Result<String, &'static str> {
    Ok(match value {
        Value::Null => return Err("has a null, which TOML does not have"),
        Value::Number(number) if number.as_i64().is_none() && number.as_f64().is_none() => {
            return Err("has a number that TOML does not have");
        }
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => quoted(text),
        Value::Array(items) => {
            let items = items.iter().map(value_text).collect::<Result<Vec<_>, _>>()?;
            format!("[{}]", items.join(", "))
        }
        Value::Object(map) if map.is_empty() => "{}".to_owned(),
        Value::Object(map) => {
            let items = map.iter().map(|(key, value)| member_text(key, value));
            format!("{{ {} }}", items.collect::<Result<Vec<_>, _>>()?.join(", "))
        }
    })
}

/// A key with its value on one line.
pub(super) fn member_text(key: &str, value: &Value) -> Result<String, &'static str> {
    Ok(format!("{} = {}", key_text(key), value_text(value)?))
}

/// A header with the lines of its table, without the last line end.
pub(super) fn table_text(
    header: &str,
    map: &Map<String, Value>,
    newline: &str,
) -> Result<String, &'static str> {
    let mut text = header.to_owned();
    for (key, value) in map {
        text.push_str(newline);
        text.push_str(&member_text(key, value)?);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_read_as_they_were() {
        let value = json!({
            "a b": ["x\u{7f}\"\n", 1, 1.5, -3, true], "": {}, "ü": { "c-d": [] }, "e": 1e300
        });
        let text = member_text("value", &value).unwrap();
        let table: toml::Table = text.parse().unwrap();
        assert_eq!(serde_json::to_value(&table["value"]).unwrap(), value);
        assert_eq!(value_text(&json!([null])), Err("has a null, which TOML does not have"));
    }
}

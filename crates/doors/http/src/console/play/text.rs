//! The text of a field of the playground, from a value and back.

use serde_json::{Map, Number, Value};

use super::schema::{Kind, Part};

const NO_OPTION: &str = "this is none of the options";

/// The text of a part that has this value.
pub(super) fn written(part: &Part, value: Option<&Value>) -> String {
    let Some(value) = value else { return String::new() };
    match &part.kind {
        Kind::Text => scalar(value),
        Kind::Number(_) | Kind::Bool => value.to_string(),
        Kind::Options(options) => {
            let index = options.iter().position(|one| one == value);
            index.map(|index| index.to_string()).unwrap_or_default()
        }
        Kind::Lines(_) => match value {
            Value::Array(items) => items.iter().map(scalar).collect::<Vec<_>>().join("\n"),
            other => other.to_string(),
        },
        Kind::Shapes(shapes) => shapes.has.map(|index| index.to_string()).unwrap_or_default(),
        Kind::Json(_) => serde_json::to_string_pretty(value).unwrap_or_default(),
    }
}

/// The value of a part that has this text; `None` if it is left out.
pub(super) fn read(part: &Part, text: &str) -> Result<Option<Value>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    match &part.kind {
        Kind::Lines(item) => {
            let lines = text.lines().filter(|line| !line.is_empty());
            let items: Result<Vec<_>, _> = lines.map(|line| in_list(item, line)).collect();
            Ok(Some(Value::Array(items?)))
        }
        Kind::Shapes(shapes) => {
            let chosen = text.parse().ok().and_then(|index: usize| shapes.all.get(index));
            Ok(chosen.map(|(_, start)| start.clone()).filter(|start| !start.is_null()))
        }
        kind => one(kind, text).map(Some),
    }
}

/// The value of a text that is one scalar, or JSON.
fn one(kind: &Kind, text: &str) -> Result<Value, String> {
    match kind {
        Kind::Text => Ok(Value::String(text.to_owned())),
        Kind::Number(is_whole) => number(text.trim(), *is_whole),
        Kind::Bool => match text.trim() {
            "true" => Ok(Value::Bool(true)),
            "false" => Ok(Value::Bool(false)),
            _ => Err("this is neither true nor false".to_owned()),
        },
        Kind::Options(options) => {
            let found = text.parse().ok().and_then(|index: usize| options.get(index));
            found.cloned().ok_or_else(|| NO_OPTION.to_owned())
        }
        Kind::Lines(_) | Kind::Shapes(_) | Kind::Json(_) => {
            serde_json::from_str(text).map_err(|error| format!("this is not JSON: {error}"))
        }
    }
}

/// The value of a line of a list: an option stands there itself.
fn in_list(kind: &Kind, line: &str) -> Result<Value, String> {
    let Kind::Options(options) = kind else { return one(kind, line) };
    let found = options.iter().find(|option| scalar(option) == line);
    found.cloned().ok_or_else(|| NO_OPTION.to_owned())
}

fn number(text: &str, is_whole: bool) -> Result<Value, String> {
    let found: Result<Number, _> = serde_json::from_str(text);
    match found {
        Ok(number) if !is_whole || number.is_i64() || number.is_u64() => Ok(Value::Number(number)),
        Ok(_) => Err("this is not a whole number".to_owned()),
        Err(_no_number) => Err("this is not a number".to_owned()),
    }
}

/// A value as a person writes it: a text without quotes.
pub(super) fn scalar(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// An object, with its members in lines.
pub(super) fn pretty(value: &Value) -> String {
    match value {
        Value::Object(members) if members.is_empty() => "{}".to_owned(),
        other => serde_json::to_string_pretty(other).unwrap_or_default(),
    }
}

/// The object of a text.
pub(super) fn object(text: &str) -> Result<Value, String> {
    match serde_json::from_str(text) {
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(_) => Err("the arguments are one object, such as {}".to_owned()),
        Err(_) if text.trim().is_empty() => Ok(Value::Object(Map::new())),
        Err(error) => Err(format!("this is not JSON: {error}")),
    }
}

//! Faults in the arguments of a tool, worded for the caller: the argument, the type of the sent
//! value, and the accepted values. The sent values themselves are not repeated.

use jsonschema::{ValidationError, Validator, error::ValidationErrorKind};
use narthex_model::did_you_mean;
use serde_json::Value;

/// Maximum number of faults in one error.
const FAULTS_MAX: usize = 20;
/// Number of characters of an unknown argument's name that an error shows.
const NAME_SHOWN: usize = 100;

/// The faults of arguments, each with its place, up to [`FAULTS_MAX`]. The validator must have been
/// built from `schema`.
pub(crate) fn faults(
    schema: &Value,
    validator: &Validator,
    arguments: &Value,
) -> Vec<(String, String)> {
    let all = validator.iter_errors(arguments);
    all.flat_map(|error| of_error(schema, &error)).take(FAULTS_MAX).collect()
}

fn of_error(schema: &Value, error: &ValidationError<'_>) -> Vec<(String, String)> {
    let path = error.instance_path().to_string();
    let place = path.trim_start_matches('/').replace('/', ".");
    let schema = at(schema, &path);
    let within = |name: &str| match place.is_empty() {
        true => name.to_owned(),
        false => format!("{place}.{name}"),
    };
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            let wanted = expected(&schema["properties"][name]);
            vec![(within(name), format!("is missing; it takes {wanted}"))]
        }
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            let told = |name: &String| {
                let name: String = name.chars().take(NAME_SHOWN).collect();
                (within(&name), unknown(schema, &name))
            };
            unexpected.iter().map(told).collect()
        }
        ValidationErrorKind::OneOfNotValid { .. }
        | ValidationErrorKind::OneOfMultipleValid { .. } => {
            let message = format!("take one of these together: {}", alternatives(schema));
            vec![(if place.is_empty() { "arguments".to_owned() } else { place }, message)]
        }
        kind => {
            let given = given(error.instance());
            let message = match rule(kind) {
                Some(rule) => format!("{rule}; {given} was given"),
                None if is_known(schema) => {
                    format!("takes {}; {given} was given", expected(schema))
                }
                None => error.masked().to_string(),
            };
            vec![(if place.is_empty() { "arguments".to_owned() } else { place }, message)]
        }
    }
}

/// The permitted combinations, taken from the titles of a schema's alternatives.
fn alternatives(schema: &Value) -> String {
    let all = schema["oneOf"].as_array().into_iter().flatten();
    let titles = all.filter_map(|one| one["title"].as_str());
    titles.collect::<Vec<_>>().join("; or ")
}

/// The message for an unknown argument.
fn unknown(schema: &Value, name: &str) -> String {
    let members = schema["properties"].as_object();
    let known: Vec<_> =
        members.into_iter().flat_map(|all| all.keys().map(String::as_str)).collect();
    if known.is_empty() {
        return "is not known here, where there are no arguments".to_owned();
    }
    let all = quoted(known.iter().copied());
    match did_you_mean(name, known) {
        Some(meant) => format!("is not known here; {meant} There are {all}"),
        None => format!("is not known here; there are {all}"),
    }
}

/// The rule that a value of the right type violates.
fn rule(kind: &ValidationErrorKind) -> Option<String> {
    Some(match kind {
        ValidationErrorKind::MinLength { limit } => {
            format!("must have at least {limit} characters")
        }
        ValidationErrorKind::MaxLength { limit } => {
            format!("must have at most {limit} characters")
        }
        ValidationErrorKind::Minimum { limit } => format!("must be at least {limit}"),
        ValidationErrorKind::Maximum { limit } => format!("must be at most {limit}"),
        ValidationErrorKind::ExclusiveMinimum { limit } => format!("must be more than {limit}"),
        ValidationErrorKind::ExclusiveMaximum { limit } => format!("must be less than {limit}"),
        ValidationErrorKind::MinItems { limit } => format!("must have at least {limit} items"),
        ValidationErrorKind::MaxItems { limit } => format!("must have at most {limit} items"),
        ValidationErrorKind::UniqueItems => "must not have an item twice".to_owned(),
        ValidationErrorKind::Pattern { pattern } => {
            format!("must match the regular expression `{pattern}`")
        }
        _ => return None,
    })
}

/// The schema of the value at a path of arguments.
fn at<'s>(schema: &'s Value, path: &str) -> &'s Value {
    path.split('/').skip(1).fold(schema, |schema, step| match schema.get("items") {
        Some(items) if step.bytes().all(|byte| byte.is_ascii_digit()) => items,
        _ => &schema["properties"][step],
    })
}

fn is_known(schema: &Value) -> bool {
    ["enum", "const", "type"].iter().any(|key| schema.get(key).is_some())
}

/// The values that a schema accepts, in words.
fn expected(schema: &Value) -> String {
    if let Some(choices) = schema["enum"].as_array() {
        return format!("one of {}", quoted(choices.iter().map(written)));
    }
    if let Some(only) = schema.get("const") {
        return quoted([written(only)]);
    }
    match &schema["type"] {
        Value::String(name) => with_article(name).to_owned(),
        Value::Array(names) => {
            let names = names.iter().filter_map(Value::as_str).map(with_article);
            names.collect::<Vec<_>>().join(" or ")
        }
        _ => "a value".to_owned(),
    }
}

/// A choice without JSON quotes.
fn written(choice: &Value) -> String {
    choice.as_str().map_or_else(|| choice.to_string(), str::to_owned)
}

fn quoted<T: AsRef<str>>(names: impl IntoIterator<Item = T>) -> String {
    let names = names.into_iter().map(|name| format!("`{}`", name.as_ref()));
    names.collect::<Vec<_>>().join(", ")
}

/// The type and size of a sent value, but not its contents.
fn given(value: &Value) -> String {
    match value {
        Value::String(text) => format!("a string of {} characters", text.chars().count()),
        Value::Array(items) => format!("an array of {} items", items.len()),
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "a boolean".to_owned(),
        Value::Number(_) => "a number".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

fn with_article(name: &str) -> &str {
    match name {
        "string" => "a string",
        "number" => "a number",
        "integer" => "a whole number",
        "boolean" => "a boolean",
        "object" => "an object",
        "array" => "an array",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(arguments: &Value) -> Vec<(String, String)> {
        let schema = json!({
            "type": "object",
            "properties": {
                "status": {"type": "string", "enum": ["starting", "writing", "waiting", "done"]},
                "detail": {"type": "string", "maxLength": 4},
                "scopes": {"type": "array", "items": {"type": "string"}},
                "anchor": {"type": "object", "properties": {"line": {"type": "integer"}},
                    "additionalProperties": false},
            },
            "required": ["status"],
            "additionalProperties": false,
        });
        let validator = jsonschema::options().offline().build(&schema).unwrap();
        let mut told = faults(&schema, &validator, arguments);
        told.sort();
        told
    }

    fn one(arguments: &Value) -> (String, String) {
        let [fault]: [_; 1] = told(arguments).try_into().unwrap();
        fault
    }

    fn fault(place: &str, message: &str) -> (String, String) {
        (place.to_owned(), message.to_owned())
    }

    /// X-M2: a fault names the argument, the type of the sent value and the accepted values, but
    /// never the sent value.
    #[test]
    fn x_m2_a_fault_names_the_argument_and_its_accepted_values() {
        let choices = "one of `starting`, `writing`, `waiting`, `done`";
        let missing = format!("is missing; it takes {choices}");
        assert_eq!(one(&json!({})), fault("status", &missing));
        let wrong = format!("takes {choices}; a string of 6 characters was given");
        assert_eq!(one(&json!({"status": "secret"})), fault("status", &wrong));
        let done = |name: &str, value: Value| {
            let mut arguments = json!({"status": "done"});
            arguments[name] = value;
            one(&arguments)
        };
        let text = "takes a string; a number was given";
        assert_eq!(done("detail", json!(7)), fault("detail", text));
        assert_eq!(done("scopes", json!(["a", 7])), fault("scopes.1", text));
        let long = "must have at most 4 characters; a string of 6 characters was given";
        assert_eq!(done("detail", json!("secret")), fault("detail", long));
        let line = "takes a whole number; null was given";
        assert_eq!(done("anchor", json!({"line": null})), fault("anchor.line", line));
        let known = "`status`, `detail`, `scopes`, `anchor`";
        let (place, message) = done("detial", json!("secret"));
        assert_eq!(place, "detial");
        assert!(message.starts_with("is not known here; did you mean `detail`? There are "));
        assert!(known.split(", ").all(|name| message.contains(name)), "{message}");
        let inner = "is not known here; there are `line`";
        assert_eq!(done("anchor", json!({"column": 1})), fault("anchor.column", inner));
    }

    /// All faults are reported at once, including a number for an argument with fixed choices.
    #[test]
    fn all_faults_of_arguments_are_reported_together() {
        let told = told(&json!({"status": 7, "detail": true, "more": {}}));
        let places: Vec<_> = told.iter().map(|(place, _)| place.as_str()).collect();
        assert!(["detail", "more", "status"].iter().all(|place| places.contains(place)));
    }
}

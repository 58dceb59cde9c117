//! Arguments of calls as values that rules can compare.
//!
//! A whole number is a `Long`, also one that is written `1.0`. Every other number is its text, as
//! Cedar has no fractions. `null` counts as absent. An array is a set.

use cedar_policy::RestrictedExpression;
use narthex_model::json::Node;

/// The longest text of arguments that rules see, in bytes.
const BYTES_MAX: usize = 64 * 1024;
/// The most values in that text.
const VALUES_MAX: usize = 2_000;
/// The deepest nesting of the values.
const DEPTH_MAX: usize = 16;
/// The largest number up to which every whole one is its own float.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// Arguments as they are given. `None` if they are too large, or no JSON.
pub(crate) fn given(arguments: &[u8]) -> Option<Node> {
    if arguments.len() > BYTES_MAX {
        return None;
    }
    Node::parse(arguments).ok()
}

/// Arguments as a record. `None` if they are no object, too large, or have a key twice: then the
/// server's reading of them is unknown.
pub(crate) fn record(node: Node) -> Option<RestrictedExpression> {
    let is_object = matches!(node, Node::Object(_));
    let mut left = VALUES_MAX;
    if is_object { value(node, DEPTH_MAX, &mut left)? } else { None }
}

/// A value; the inner `None` is `null`, the outer one a value that rules cannot see.
fn value(node: Node, depth: usize, left: &mut usize) -> Option<Option<RestrictedExpression>> {
    *left = left.checked_sub(1)?;
    let depth = depth.checked_sub(1)?;
    Some(Some(match node {
        Node::Null => return Some(None),
        Node::Bool(value) => RestrictedExpression::new_bool(value),
        Node::Number(number) => match whole(&number) {
            Some(number) => RestrictedExpression::new_long(number),
            None => RestrictedExpression::new_string(number.to_string()),
        },
        Node::Text(text) => RestrictedExpression::new_string(text),
        Node::List(items) => {
            let mut values = Vec::with_capacity(items.len());
            for item in items {
                values.extend(value(item, depth, left)?);
            }
            RestrictedExpression::new_set(values)
        }
        Node::Object(fields) => {
            let mut members = Vec::with_capacity(fields.len());
            let mut seen = std::collections::HashSet::new();
            for (name, node) in fields {
                if !seen.insert(name.clone()) {
                    return None;
                }
                members.extend(value(node, depth, left)?.map(|value| (name, value)));
            }
            RestrictedExpression::new_record(members).ok()?
        }
    }))
}

/// A whole number as rules see it; `None` for any other number, which rules see as its text.
pub(crate) fn whole(number: &serde_json::Number) -> Option<i64> {
    if let Some(number) = number.as_i64() {
        return Some(number);
    }
    let float = number.as_f64().filter(|_| number.is_f64())?;
    let is_whole = float.fract() == 0.0 && float.abs() <= EXACT_MAX;
    // A whole number is read as one, once it is written without a fraction.
    is_whole.then(|| format!("{float:.0}").parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Option<RestrictedExpression> {
        record(given(text.as_bytes())?)
    }

    fn shown(text: &str) -> Option<String> {
        let context = [("arguments".to_owned(), told(text)?)];
        let context = cedar_policy::Context::from_pairs(context).unwrap();
        Some(context.get("arguments")?.to_string())
    }

    #[test]
    fn numbers_nulls_and_arrays_have_a_form() {
        let text = r#"{"a":1,"b":1.0,"c":0.5,"d":null,"e":[1,null,1],"f":{"g":true},"h":1e3}"#;
        let shown = shown(text).unwrap();
        for part in [r#""a": 1"#, r#""b": 1"#, r#""c": "0.5""#, r#""e": [1]"#, r#""h": 1000"#] {
            assert!(shown.contains(&part.replace(": ", ":")) || shown.contains(part), "{shown}");
        }
        assert!(!shown.contains("\"d\""), "{shown}");
        assert!(shown.contains("true"), "{shown}");
    }

    #[test]
    fn arguments_without_a_cedar_form_are_not_converted() {
        let deep = format!("{{\"a\":{}1{}}}", "[".repeat(20), "]".repeat(20));
        let many = format!("{{\"a\":[{}]}}", vec!["1"; 2_100].join(","));
        let long = format!("{{\"a\":\"{}\"}}", "x".repeat(BYTES_MAX));
        for text in ["[]", "1", "{", r#"{"a":1,"a":2}"#, &deep, &many, &long] {
            assert!(told(text).is_none(), "{text}");
        }
        assert!(told("{}").is_some());
    }
}

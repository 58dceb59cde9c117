//! JSON Merge Patch, RFC 7396: members replace members, and null takes one out.

use narthex_model::json::Node;
use narthex_resolve::FaultCode;
use serde_json::{Map, Value};

use super::error::{FieldCode, FieldError};

/// Reads a patch. A member that is given twice is refused: readers disagree on which counts.
pub(super) fn parse(text: &[u8]) -> Result<Value, Vec<FieldError>> {
    let node = Node::parse(text).map_err(|problem| {
        let code = FieldCode::Fault(FaultCode::TextInvalid);
        vec![FieldError::new("", code, problem.to_string(), "send one JSON object")]
    })?;
    let twice: Vec<_> = node
        .keys_given_twice()
        .iter()
        .map(|place| {
            let code = FieldCode::Fault(FaultCode::DuplicateKey);
            FieldError::new(&place.to_string(), code, "the key is given twice", "keep one")
        })
        .collect();
    if twice.is_empty() { Ok(node.to_value()) } else { Err(twice) }
}

/// What becomes of a document.
pub(super) fn apply(target: Value, patch: Value) -> Value {
    let Value::Object(patch) = patch else { return patch };
    let mut fields = match target {
        Value::Object(fields) => fields,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Map::new()
        }
    };
    for (key, change) in patch {
        if change.is_null() {
            fields.remove(&key);
        } else {
            let before = fields.remove(&key).unwrap_or_default();
            fields.insert(key, apply(before, change));
        }
    }
    Value::Object(fields)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The examples of RFC 7396, appendix A.
    #[test]
    fn o36_the_examples_of_the_rfc() {
        let table = [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
            (json!({"a": "b"}), json!({"a": null}), json!({})),
            (json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"})),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]})),
            (
                json!({"a": {"b": "c"}}),
                json!({"a": {"b": "d", "c": null}}),
                json!({"a": {"b": "d"}}),
            ),
            (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
            (json!(["a", "b"]), json!(["c", "d"]), json!(["c", "d"])),
            (json!({"a": "b"}), json!(["c"]), json!(["c"])),
            (json!({"a": "foo"}), json!(null), json!(null)),
            (json!({"a": "foo"}), json!("bar"), json!("bar")),
            (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
            (json!([1, 2]), json!({"a": "b", "c": null}), json!({"a": "b"})),
            (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
        ];
        for (target, patch, result) in table {
            assert_eq!(apply(target.clone(), patch.clone()), result, "{target} {patch}");
        }
    }

    #[test]
    fn a_patch_that_readers_could_differ_on_is_refused() {
        let twice = parse(br#"{"a": {"b": 1, "b": 2}}"#).unwrap_err();
        assert_eq!((twice.len(), twice[0].field.as_str()), (1, "a.b"));
        assert_eq!(parse(b"{").unwrap_err().len(), 1);
        assert_eq!(parse(br#"{"a": null}"#).unwrap(), json!({"a": null}));
    }
}

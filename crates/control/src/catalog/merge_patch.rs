//! JSON Merge Patch, RFC 7396, as it is read; what comes of it is [`narthex_model::json::merged`].

use narthex_model::json::Node;
use narthex_resolve::FaultCode;
use serde_json::Value;

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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_patch_that_readers_could_differ_on_is_refused() {
        let twice = parse(br#"{"a": {"b": 1, "b": 2}}"#).unwrap_err();
        assert_eq!((twice.len(), twice[0].field.as_str()), (1, "a.b"));
        assert_eq!(parse(b"{").unwrap_err().len(), 1);
        assert_eq!(parse(br#"{"a": null}"#).unwrap(), json!({"a": null}));
    }
}

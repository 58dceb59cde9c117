//! The canonical form of a line, from which its hash is computed: RFC 8785.
//!
//! Only the numbers that the audit writes are accepted: whole numbers that a double holds exactly,
//! and decimals without an exponent.

use std::collections::HashSet;

use narthex_model::json::Node;
use sha2::{Digest, Sha256};

/// The member that holds the hash of the others.
const HASH: &str = "hash";
/// Whole numbers beyond this are not the same to all readers.
const WHOLE_MAX: u64 = 1 << 53;
/// From this number on, RFC 8785 writes an exponent.
const DECIMAL_MAX: f64 = 1e21;
/// And below this.
const DECIMAL_MIN: f64 = 1e-6;

/// The reason why a text has no canonical form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotCanonical {
    /// The text is no JSON object.
    #[error("it is not a JSON object")]
    NoObject,
    /// A member is given twice, so that two readers could read different values.
    #[error("it has a member twice")]
    Twice,
    /// The text has a number that no line of the audit has.
    #[error("it has a number that is too large or too precise")]
    Number,
}

/// The canonical form of a JSON value.
///
/// # Errors
/// When an object has a member twice, or a number is not of the accepted kind.
pub fn canonical(value: &Node) -> Result<String, NotCanonical> {
    check(value)?;
    // Numbers that were checked are finite, which is all that the library refuses.
    serde_json_canonicalizer::to_string(&value.to_value())
        .map_err(|_unwritable| NotCanonical::Number)
}

/// The SHA-256, in hexadecimal, of the canonical form of a line without its member `hash`; and that
/// member, if there is one.
///
/// # Errors
/// When the text is no JSON object or has no canonical form.
pub fn line_hash(text: &str) -> Result<(String, Option<String>), NotCanonical> {
    let parsed = Node::parse(text.as_bytes()).map_err(|_no_json| NotCanonical::NoObject)?;
    let Node::Object(mut members) = parsed else { return Err(NotCanonical::NoObject) };
    let at = members.iter().position(|(key, _)| key == HASH);
    let stated = at.map(|at| members.remove(at).1);
    if members.iter().any(|(key, _)| key == HASH) {
        return Err(NotCanonical::Twice);
    }
    let stated = match stated {
        Some(Node::Text(text)) => Some(text),
        _ => None,
    };
    Ok((digest(canonical(&Node::Object(members))?.as_bytes()), stated))
}

/// A SHA-256 in hexadecimal digits.
pub(crate) fn digest(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text
}

/// Refuses values that two readers could read differently.
fn check(value: &Node) -> Result<(), NotCanonical> {
    match value {
        Node::Null | Node::Bool(_) | Node::Text(_) => Ok(()),
        Node::Number(number) => check_number(number),
        Node::List(items) => items.iter().try_for_each(check),
        Node::Object(members) => {
            let mut keys = HashSet::with_capacity(members.len());
            members.iter().try_for_each(|(key, value)| match keys.insert(key) {
                true => check(value),
                false => Err(NotCanonical::Twice),
            })
        }
    }
}

fn check_number(number: &serde_json::Number) -> Result<(), NotCanonical> {
    let is_fine = match (number.as_i64(), number.as_f64()) {
        (Some(whole), _) => whole.unsigned_abs() <= WHOLE_MAX,
        (None, Some(decimal)) if !number.is_u64() => {
            decimal == 0.0 || (DECIMAL_MIN..DECIMAL_MAX).contains(&decimal.abs())
        }
        _ => false,
    };
    if is_fine { Ok(()) } else { Err(NotCanonical::Number) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(text: &str) -> Result<String, NotCanonical> {
        canonical(&Node::parse(text.as_bytes()).unwrap())
    }

    /// The examples of RFC 8785, as far as the audit has such values.
    #[test]
    fn values_have_the_form_of_rfc_8785() {
        let table = [
            (r#"{ "b": 1, "a": [ true, null ] }"#, r#"{"a":[true,null],"b":1}"#),
            (r#"{"time":12.250,"zero":0.0,"whole":4.0}"#, r#"{"time":12.25,"whole":4,"zero":0}"#),
            (r#""\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/""#, r#""€$\u000f\nA'B\"\\\\\"/""#),
            // In UTF-16, the character beyond the basic plane comes first.
            ("{\"\u{fb33}\":1,\"\u{1f600}\":2}", "{\"\u{1f600}\":2,\"\u{fb33}\":1}"),
            ("-9007199254740992", "-9007199254740992"),
            ("0.001", "0.001"),
            ("0.000001", "0.000001"),
            ("999999999999999900000.5", "999999999999999900000"),
            ("-0.0", "0"),
            // Two texts of one length are equally near: the even one counts.
            ("662720303940402.25", "662720303940402.2"),
        ];
        for (text, expected) in table {
            assert_eq!(form(text).unwrap(), expected, "{text}");
        }
        for text in ["9007199254740993", "1e21", "1e-7", "18446744073709551615"] {
            assert_eq!(form(text), Err(NotCanonical::Number), "{text}");
        }
        assert_eq!(form(r#"{"a":1,"a":1}"#), Err(NotCanonical::Twice));
    }

    #[test]
    fn the_hash_of_a_line_covers_all_other_members() {
        let (bare, none) = line_hash(r#"{"b":2,"a":1}"#).unwrap();
        assert_eq!((bare.as_str(), none), (digest(br#"{"a":1,"b":2}"#).as_str(), None));
        let (same, stated) = line_hash(r#"{"a":1,"hash":"x","b":2}"#).unwrap();
        assert_eq!((same, stated.as_deref()), (bare, Some("x")));
        assert_eq!(line_hash(r#"{"hash":"x","hash":"y"}"#), Err(NotCanonical::Twice));
        assert_eq!(line_hash("[]"), Err(NotCanonical::NoObject));
        assert_eq!(
            digest(b"abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }
}

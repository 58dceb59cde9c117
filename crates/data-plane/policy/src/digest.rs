//! Digests of arguments.

use narthex_model::{ArgumentsDigest, json::Node};
use narthex_wire::Raw;
use sha2::{Digest, Sha256};

/// The largest whole number that every reader of JSON takes for itself (RFC 7493 §2.2).
const EXACT_MAX: u64 = 1 << 53;
/// Number of digits of a number that every JSON reader preserves.
const DIGITS_MAX: usize = 15;

/// The digest of arguments in the canonical form of RFC 8785; absent arguments are `{}`.
///
/// `None` if the arguments have a number that readers round, or a key twice: different arguments
/// would then share one digest.
#[must_use]
pub fn digest_of(arguments: Option<Raw<'_>>) -> Option<ArgumentsDigest> {
    canonical(arguments).map(|text| ArgumentsDigest::new(Sha256::digest(text).into()))
}

/// The canonical text that [`digest_of`] digests, without blanks; `None` as there.
#[must_use]
pub fn canonical(arguments: Option<Raw<'_>>) -> Option<Vec<u8>> {
    let text = arguments.map_or(&b"{}"[..], Raw::as_bytes);
    if !has_exact_numbers(text) {
        return None;
    }
    let node = Node::parse(text).ok().filter(|node| node.keys_given_twice().is_empty())?;
    serde_json_canonicalizer::to_vec(&node.to_value()).ok()
}

/// True if all numbers of a JSON text have the same value for all readers.
fn has_exact_numbers(text: &[u8]) -> bool {
    let mut rest = text;
    while let Some((&first, after)) = rest.split_first() {
        rest = match first {
            b'"' => after_string(after),
            b'-' | b'0'..=b'9' => {
                let is_part = |b: &u8| matches!(b, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-');
                let end = rest.iter().position(|b| !is_part(b)).unwrap_or(rest.len());
                let (number, after) = rest.split_at(end);
                if !is_exact(number) {
                    return false;
                }
                after
            }
            _ => after,
        };
    }
    true
}

/// The text after a string whose first quote is already read.
fn after_string(mut rest: &[u8]) -> &[u8] {
    loop {
        match rest {
            [] => return rest,
            [b'"', after @ ..] => return after,
            [b'\\', _, after @ ..] | [_, after @ ..] => rest = after,
        }
    }
}

fn is_exact(number: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(number) else { return false };
    let is_whole = text.bytes().all(|b| b == b'-' || b.is_ascii_digit());
    if is_whole {
        let digits = text.trim_start_matches('-');
        return digits.parse::<u64>().is_ok_and(|value| value <= EXACT_MAX);
    }
    let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
    let digits = mantissa.bytes().filter(u8::is_ascii_digit);
    let significant = digits.skip_while(|b| *b == b'0').count();
    significant <= DIGITS_MAX
        && text.parse::<f64>().is_ok_and(|value| {
            // A number that underflows to zero is rounded as well.
            value.is_finite() && (value != 0.0 || significant == 0)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(text: &str) -> Option<String> {
        digest_of(Some(Raw::new(text.as_bytes()))).map(|digest| digest.to_string())
    }

    /// D14, RFC 8785: what means the same has one digest, and what does not has another.
    #[test]
    fn d14_digests_are_of_meaning() {
        let same = [
            r#"{"a":1,"b":[true,null,"\u00e9"]}"#,
            "{ \"b\" : [ true , null, \"é\" ] ,\n \"a\" : 1.0 }",
            r#"{"a":1e0,"b":[true,null,"\u00E9"]}"#,
        ];
        let digests: Vec<_> = same.into_iter().map(|text| digest(text).unwrap()).collect();
        assert!(digests.iter().all(|digest| *digest == digests[0]), "{digests:?}");
        for other in [r#"{"a":2,"b":[true,null,"é"]}"#, r#"{"a":"1","b":[true,null,"é"]}"#, "{}"]
        {
            assert_ne!(digest(other).unwrap(), digests[0], "{other}");
        }
        // The digest of an empty object: echo -n '{}' | sha256sum.
        let empty = "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";
        assert_eq!(digest("{}").unwrap(), empty);
        assert_eq!(digest_of(None).unwrap().to_string(), empty);
    }

    /// S14: two arguments that a reader may take for different ones never share a digest.
    #[test]
    fn s14_rounded_numbers_have_no_digest() {
        for exact in ["9007199254740992", "-9007199254740992", "0.1", "1e300", "0.0", "0e99999"] {
            assert!(digest(&format!("[{exact}]")).is_some(), "{exact}");
        }
        for rounded in [
            "9007199254740993",
            "-9007199254740993",
            "123456789012345678901234567890",
            "0.10000000000000001",
            "1e999",
            "1e-999",
        ] {
            assert!(digest(&format!("{{\"a\":[{rounded}]}}")).is_none(), "{rounded}");
        }
        // Digits inside a string are no number.
        assert!(digest(r#"["9007199254740993 \" 1e999"]"#).is_some());
        assert!(digest(r#"{"a":{"b":1,"\u0062":2}}"#).is_none(), "readers differ on which counts");
        for broken in ["{", "[1,]", "\"\\ud800\"", "nul"] {
            assert!(digest(broken).is_none(), "{broken}");
        }
    }
}

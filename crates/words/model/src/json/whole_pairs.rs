//! JSON texts with half a pair of surrogates, which servers send and no Rust string can hold.

use std::borrow::Cow;

/// The replacement of a half, as in the decoding of text that is no UTF-8.
const REPLACEMENT: &[u8; 6] = b"\\ufffd";
/// The length of `\uXXXX`.
const ESCAPE: usize = 6;

/// Puts the replacement character for each half of a surrogate pair, such as `"\ud800"`.
///
/// The result can be read for display. All else stays byte for byte, and a text without such halves
/// is given back as it is.
#[must_use]
pub fn with_whole_pairs(text: &[u8]) -> Cow<'_, [u8]> {
    let mut mended: Option<Vec<u8>> = None;
    let mut at = 0;
    while at < text.len() {
        if text[at] != b'\\' {
            at += 1;
            continue;
        }
        match unit(text, at) {
            None => at += 2,
            Some(0xd800..=0xdbff) if matches!(unit(text, at + ESCAPE), Some(0xdc00..=0xdfff)) => {
                at += 2 * ESCAPE;
            }
            Some(0xd800..=0xdfff) => {
                // The same length, so that offsets do not change.
                let whole = mended.get_or_insert_with(|| text.to_vec());
                whole[at..at + ESCAPE].copy_from_slice(REPLACEMENT);
                at += ESCAPE;
            }
            Some(_) => at += ESCAPE,
        }
    }
    mended.map_or(Cow::Borrowed(text), Cow::Owned)
}

/// The code unit of the escape `\uXXXX` at a place.
fn unit(text: &[u8], at: usize) -> Option<u16> {
    let digits = text.get(at..at + ESCAPE)?.strip_prefix(b"\\u")?;
    let digits = std::str::from_utf8(digits).ok()?;
    // A sign is no digit.
    let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    u16::from_str_radix(digits, 16).ok().filter(|_| is_hex)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn read(text: &str) -> Value {
        serde_json::from_slice(&with_whole_pairs(text.as_bytes())).unwrap()
    }

    /// Halves are replaced, and pairs, other escapes and escaped backslashes are left alone.
    #[test]
    fn halves_of_surrogate_pairs_are_replaced() {
        for (text, expected) in [
            (r#""a\ud800b""#, "a\u{fffd}b"),
            (r#""\uDC00\uD800""#, "\u{fffd}\u{fffd}"),
            (r#""\ud83d\ude00 \ud83d""#, "😀 \u{fffd}"),
            (r#""\ud800\ud83d\ude00""#, "\u{fffd}😀"),
            (r#""\\ud800""#, "\\ud800"),
            (r#""\\\ud800""#, "\\\u{fffd}"),
            (r#""\n\u00e9""#, "\né"),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
        assert_eq!(read(r#"{"\ud800": ["\udfff"]}"#)["\u{fffd}"][0], "\u{fffd}");
        assert!(matches!(with_whole_pairs(br#""\ud83d\ude00""#), Cow::Borrowed(_)));
        for broken in [&b"\\"[..], b"\\u", b"\\ud8", b"\\u+123", b"\\ud800\\u"] {
            assert_eq!(with_whole_pairs(broken).len(), broken.len());
        }
    }

    proptest! {
        /// Any row of code units becomes what its decoding with replacements gives.
        #[test]
        fn any_code_units_can_be_read(units in prop::collection::vec(any::<u16>(), 0..20)) {
            let escaped: String = units.iter().map(|unit| format!("\\u{unit:04x}")).collect();
            let expected = String::from_utf16_lossy(&units);
            prop_assert_eq!(read(&format!("\"{escaped}\"")), Value::from(expected));
        }
    }
}

//! JSON as people write it in files: with comments, and with a comma behind the last element.

use std::borrow::Cow;

/// Blanks comments (`// …` and `/* … */`) and commas behind the last element.
///
/// The result has the same length and the same lines, so that each place in it, such as that of an
/// error, is the place in the text of the file. Faults stay, such as a comment without its end.
#[must_use]
pub fn without_comments(text: &[u8]) -> Cow<'_, [u8]> {
    // Neither can be in a text without these.
    if !text.contains(&b'/') && !has_last_comma(text) {
        return Cow::Borrowed(text);
    }
    let mut plain = text.to_vec();
    let (mut at, mut comma, mut before) = (0, None, b'{');
    while let Some(&byte) = text.get(at) {
        let end = match (byte, text.get(at + 1)) {
            (b'"', _) => end_of_string(text, at),
            (b'/', Some(b'/')) => {
                let rest = text[at..].iter().position(|byte| matches!(byte, b'\n' | b'\r'));
                blank(&mut plain, at, rest.map_or(text.len(), |length| at + length))
            }
            (b'/', Some(b'*')) => {
                let rest = text[at + 2..].windows(2).position(|pair| pair == b"*/");
                let Some(length) = rest else { return Cow::Owned(plain) };
                blank(&mut plain, at, at + length + 4)
            }
            _ => at + 1,
        };
        let is_comment = byte == b'/' && end > at + 1;
        if !is_comment && !byte.is_ascii_whitespace() {
            if let (Some(comma), b'}' | b']') = (comma.take(), byte) {
                plain[comma] = b' ';
            }
            // Only behind an element: `[,]` has none.
            comma = (byte == b',' && !matches!(before, b',' | b'{' | b'[' | b':')).then_some(at);
            before = byte;
        }
        at = end;
    }
    Cow::Owned(plain)
}

/// True if a comma may follow the last element, also where it is text in quotes.
fn has_last_comma(text: &[u8]) -> bool {
    let mut is_behind_comma = false;
    text.iter().any(|byte| match byte {
        b',' => {
            is_behind_comma = true;
            false
        }
        b'}' | b']' => is_behind_comma,
        byte => {
            is_behind_comma &= byte.is_ascii_whitespace();
            false
        }
    })
}

/// The place behind a string that begins at a place.
fn end_of_string(text: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = text.get(at) {
        at += match byte {
            b'"' => return at + 1,
            b'\\' => 2,
            _ => 1,
        };
    }
    text.len()
}

/// Makes blanks of a part, but for the ends of its lines; gives the part's end.
fn blank(text: &mut [u8], start: usize, end: usize) -> usize {
    for byte in &mut text[start..end] {
        if !matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> String {
        let plain = without_comments(text.as_bytes());
        assert_eq!(plain.len(), text.len());
        String::from_utf8(plain.into_owned()).unwrap()
    }

    #[test]
    fn comments_and_last_commas_are_blanks() {
        for (text, expected) in [
            ("{\"a\": 1, // one\n \"b\": 2,}", "{\"a\": 1,       \n \"b\": 2 }"),
            ("[1, /* two,\n lines */ 2]", "[1,        \n          2]"),
            ("[1, 2, /* no more */ // at all\r\n ]", "[1, 2                         \r\n ]"),
            ("{\"a\": [{},],}", "{\"a\": [{} ] }"),
            ("// only at the\u{e4} beginning\n{}", "                          \n{}"),
        ] {
            assert_eq!(plain(text), expected);
        }
    }

    /// RFC 8259 has neither, so what is JSON by it means the same.
    #[test]
    fn plain_json_is_not_changed() {
        for text in [
            r#"{"url": "http://localhost/mcp", "x": "/* no */", "y": "a\"//b", "z": [1, 2]}"#,
            r#"{"a": ",}", "b": ",]", "c": "\\"}"#,
            "[]",
        ] {
            assert_eq!(plain(text), text);
        }
    }

    #[test]
    fn invalid_json_stays_invalid_without_comments() {
        for text in [
            "[,]",
            "{,}",
            "[1,,]",
            "[1,2,,]",
            "{\"a\":,}",
            "[1 /* open",
            "[1] /",
            "# no\n[]",
            "[1 2]",
            "{\"a\": \"open // ,]",
            "[1, // ]",
        ] {
            let plain = without_comments(text.as_bytes());
            assert!(serde_json::from_slice::<serde_json::Value>(&plain).is_err(), "{text}");
        }
    }
}

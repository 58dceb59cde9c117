//! Tests whether the bytes written to a file are a whole request, a JSON object.

use serde_json::value::RawValue;

/// The progress through a text that is an object, in pieces of any size. The content of the object
/// is not judged: its reader does that.
#[derive(Debug, Default)]
pub(crate) struct ObjectReader {
    /// Number of bytes read.
    seen: usize,
    place: Place,
    /// Number of open objects and lists.
    depth: usize,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Place {
    #[default]
    Before,
    Inside,
    Text,
    /// Behind a backslash in a text.
    Escaped,
    Behind,
    /// The text is no object, or more than one.
    Other,
}

impl ObjectReader {
    /// Looks at what has come to a text since the last time, which is at its end. `true` if it is
    /// one object from begin to end.
    pub(crate) fn is_whole(&mut self, text: &[u8]) -> bool {
        for byte in text.get(self.seen..).unwrap_or_default() {
            self.place = self.behind(*byte);
            if self.place == Place::Other {
                break;
            }
        }
        self.seen = text.len();
        self.place == Place::Behind
    }

    /// True if the text so far is no object, and becomes none.
    pub(crate) fn is_none(&self) -> bool {
        self.place == Place::Other
    }

    fn behind(&mut self, byte: u8) -> Place {
        match (self.place, byte) {
            (Place::Before | Place::Behind, byte) if is_space(byte) => self.place,
            (Place::Before, b'{') | (Place::Inside, b'{' | b'[') => {
                self.depth += 1;
                Place::Inside
            }
            (Place::Before | Place::Behind | Place::Other, _) => Place::Other,
            (Place::Inside, b'}' | b']') => {
                self.depth -= 1;
                if self.depth == 0 { Place::Behind } else { Place::Inside }
            }
            (Place::Inside, b'"') | (Place::Escaped, _) => Place::Text,
            (Place::Text, b'\\') => Place::Escaped,
            (Place::Text, b'"') | (Place::Inside, _) => Place::Inside,
            (Place::Text, _) => Place::Text,
        }
    }
}

/// True if a text is JSON's white space alone, and so no request.
pub(crate) fn is_blank(request: &[u8]) -> bool {
    request.iter().copied().all(is_space)
}

/// True if a request lacks its end. False for a text that no end can make a request.
pub(crate) fn is_incomplete(request: &[u8]) -> bool {
    serde_json::from_slice::<&RawValue>(request).is_err_and(|error| error.is_eof())
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each text, and how many of its bytes have come when it is whole.
    const TEXTS: [(&str, Option<usize>); 12] = [
        ("{}", Some(2)),
        (" \n{\"a\":[1,{\"b\":2}]}\n", Some(19)),
        (r#"{"a":"}"}"#, Some(9)),
        (r#"{"a":"\"}"}"#, Some(11)),
        (r#"{"a":"\\"}"#, Some(10)),
        (r#"{"a":"\u007d"}"#, Some(14)),
        (r#"{"a":{"b":"#, None),
        (r#"{"a":"b}"#, None),
        ("[{}]", None),
        ("12 {}", None),
        ("\"{}\"", None),
        (" ", None),
    ];

    #[test]
    fn an_object_is_whole_with_its_last_brace_in_pieces_of_any_size() {
        for (text, end) in TEXTS {
            for size in 1..=text.len() {
                let mut object = ObjectReader::default();
                let ends = (size..text.len() + size).step_by(size).map(|to| to.min(text.len()));
                for to in ends {
                    let is_whole = object.is_whole(&text.as_bytes()[..to]);
                    assert_eq!(is_whole, end.is_some_and(|end| to >= end), "{text} {size} {to}");
                }
            }
        }
    }

    #[test]
    fn text_behind_an_object_makes_the_request_invalid() {
        let mut object = ObjectReader::default();
        assert!(object.is_whole(b"{} ") && !object.is_none());
        assert!(!object.is_whole(b"{} x") && object.is_none());
        assert!(!object.is_whole(b"{} x{}"));
        assert!(!ObjectReader::default().is_whole(b"{}{}"));
    }

    /// A text that a JSON reader accepts as an object is whole, and no shorter prefix of it is.
    #[test]
    fn a_text_is_whole_exactly_when_a_json_reader_accepts_an_object() {
        bolero::check!().with_type::<Vec<(String, Vec<String>)>>().for_each(|entries| {
            let value: serde_json::Map<_, _> =
                entries.iter().map(|(key, texts)| (key.clone(), texts.clone().into())).collect();
            let text = serde_json::Value::from(value).to_string();
            let mut object = ObjectReader::default();
            for to in 1..text.len() {
                assert!(!object.is_whole(&text.as_bytes()[..to]), "{text} {to}");
            }
            assert!(object.is_whole(text.as_bytes()), "{text}");
        });
    }
}

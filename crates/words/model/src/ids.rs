//! Ids that are short enough to be typed: random bytes, with what they are of in front.

/// An id: its type, what it is of, what it is written with in front, and how many bytes it has.
macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal, $bytes:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name([u8; $bytes]);

        impl $name {
            /// Number of bytes of an id, half the number of its digits.
            pub const BYTES: usize = $bytes;

            /// The id of these bytes.
            #[must_use]
            pub fn new(bytes: [u8; $bytes]) -> Self {
                Self(bytes)
            }

            /// The id's bytes.
            #[must_use]
            pub fn bytes(self) -> [u8; $bytes] {
                self.0
            }

            /// Reads an id as it is written; `None` if the text is none.
            #[must_use]
            pub fn parse(text: &str) -> Option<Self> {
                $crate::ids::unhex(text.strip_prefix($prefix)?).map(Self)
            }

            /// The id as text.
            #[must_use]
            pub fn to_text(self) -> String {
                self.to_string()
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let mut text = [0; $prefix.len() + 2 * $bytes];
                let (prefix, digits) = text.split_at_mut($prefix.len());
                prefix.copy_from_slice($prefix.as_bytes());
                $crate::ids::hex(&self.0, digits);
                let Ok(text) = std::str::from_utf8(&text) else { return Err(std::fmt::Error) };
                f.write_str(text)
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self)
            }
        }
    };
}

pub(crate) use id;

/// Writes bytes as lowercase hexadecimal digits, two for each. Each call is recorded with ids, so
/// this goes without the machinery of formats.
pub(crate) fn hex(bytes: &[u8], digits: &mut [u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for (byte, pair) in bytes.iter().zip(digits.chunks_exact_mut(2)) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
}

/// The bytes of lowercase hexadecimal digits; `None` for any other text.
pub(crate) fn unhex<const BYTES: usize>(text: &str) -> Option<[u8; BYTES]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let pairs = text.as_bytes().chunks_exact(2);
    let mut bytes = [0; BYTES];
    if text.len() != 2 * BYTES {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(pairs) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

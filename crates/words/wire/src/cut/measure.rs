//! The length of a text inside a JSON string, by the quarter rule and in bytes, without decoding
//! it.

use std::iter::Sum;

use narthex_model::OutputLimits;

/// The length of a text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Size {
    /// Quarters of tokens.
    pub(super) quarters: u64,
    /// Bytes of UTF-8.
    pub(super) bytes: u64,
}

/// The way in which a string's inside will be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// The decoded text: an escape counts as its character.
    Text,
    /// The JSON text: an escape counts as the characters that spell it.
    Json,
}

impl Size {
    const WITHOUT_LIMIT: u64 = u64::MAX;

    /// The most that limits leave room for.
    pub(super) fn most(limits: &OutputLimits) -> Self {
        let quarters = limits.tokens.map(|tokens| tokens.get().saturating_mul(4));
        Self {
            quarters: quarters.unwrap_or(Self::WITHOUT_LIMIT),
            bytes: limits.bytes.map_or(Self::WITHOUT_LIMIT, u64::from),
        }
    }

    pub(super) fn tokens(self) -> u64 {
        self.quarters.div_ceil(4)
    }

    pub(super) fn minus(self, other: Self) -> Self {
        Self {
            quarters: self.quarters.saturating_sub(other.quarters),
            bytes: self.bytes.saturating_sub(other.bytes),
        }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self { quarters: self.quarters + other.quarters, bytes: self.bytes + other.bytes }
    }

    pub(super) fn fits(self, most: Self) -> bool {
        self.quarters <= most.quarters && self.bytes <= most.bytes
    }
}

impl Sum for Size {
    fn sum<I: Iterator<Item = Self>>(sizes: I) -> Self {
        sizes.fold(Self::default(), Self::plus)
    }
}

/// The size of a whole text.
pub(super) fn size_of(inner: &[u8], reading: Reading) -> Size {
    let without_limit = Size { quarters: Size::WITHOUT_LIMIT, bytes: Size::WITHOUT_LIMIT };
    prefix(inner, without_limit, reading).1
}

/// Number of bytes of a string's inside that make a text of at most this size, and the size of that
/// text. Never ends within a character, an escape or a pair of surrogates.
pub(super) fn prefix(inner: &[u8], most: Size, reading: Reading) -> (usize, Size) {
    let (mut at, mut size) = (0, Size::default());
    while let Some(&first) = inner.get(at) {
        let (length, one) = match first {
            b'\\' => escape(&inner[at..], reading),
            first => plain(first),
        };
        let more = size.plus(one);
        if !more.fits(most) {
            break;
        }
        size = more;
        at += length;
    }
    (at.min(inner.len()), size)
}

/// The length and size of a character by its first byte.
fn plain(first: u8) -> (usize, Size) {
    let (length, quarters) = match first {
        0..0xc0 => (1, 1),
        0xc0..0xe0 => (2, 2),
        0xe0..0xf0 => (3, 4),
        0xf0.. => (4, 8),
    };
    (length, Size { quarters, bytes: length as u64 })
}

/// The length and size of an escape, or of two escapes that are one character.
fn escape(text: &[u8], reading: Reading) -> (usize, Size) {
    let (length, decoded) = match unit(text) {
        None => (2, Size { quarters: 1, bytes: 1 }),
        Some(0xd800..0xdc00) if matches!(unit(&text[6..]), Some(0xdc00..0xe000)) => {
            (12, Size { quarters: 8, bytes: 4 })
        }
        Some(0..0x80) => (6, Size { quarters: 1, bytes: 1 }),
        Some(0x80..0x800) => (6, Size { quarters: 2, bytes: 2 }),
        Some(_) => (6, Size { quarters: 4, bytes: 3 }),
    };
    match reading {
        Reading::Text => (length, decoded),
        Reading::Json => (length, Size { quarters: length as u64, bytes: length as u64 }),
    }
}

/// The number of an escape `\uXXXX` at the start of a text.
fn unit(text: &[u8]) -> Option<u16> {
    let digits = text.strip_prefix(b"\\u")?.get(..4)?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

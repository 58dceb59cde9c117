//! Values of mirrored headers: their base64 wrapping, and their comparison with the body.

use std::borrow::Cow;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::HeaderValue;

use crate::{Raw, json::Scanner};

const PREFIX: &str = "=?base64?";
const SUFFIX: &str = "?=";

/// The reason why a header's value cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ValueFault {
    /// The value has bytes other than visible ASCII, spaces and tabs.
    #[error("it has characters other than visible ASCII; wrap it as =?base64?...?=")]
    Characters,
    /// The value has the base64 marker, but no strict base64 with padding.
    #[error("the text in =?base64?...?= is not base64 with padding")]
    Base64,
    /// The base64 decodes to bytes that are not UTF-8.
    #[error("the text in =?base64?...?= is not UTF-8")]
    Utf8,
}

/// Writes a text as the value of `Mcp-Name` or a parameter's header, wrapped if need be.
#[must_use]
pub fn encode_value(text: &str) -> HeaderValue {
    let looks_wrapped = text.starts_with(PREFIX) && text.ends_with(SUFFIX);
    let has_outer_blank = text.starts_with(' ') || text.ends_with(' ');
    let is_printable = text.bytes().all(|b| matches!(b, b' '..=b'~'));
    let is_plain = is_printable && !has_outer_blank && !looks_wrapped;
    let value = if is_plain {
        HeaderValue::from_str(text)
    } else {
        HeaderValue::try_from(format!("{PREFIX}{}{SUFFIX}", STANDARD.encode(text)))
    };
    value.expect("printable ASCII is a valid header value")
}

/// Reads the value of `Mcp-Name` or a parameter's header. Blanks around the value do not count.
///
/// # Errors
/// When the value has bytes that the protocol forbids, or wrong base64.
pub fn decode_value(value: &HeaderValue) -> Result<Cow<'_, str>, ValueFault> {
    let plain = plain_value(value)?;
    let wrapped = plain.strip_prefix(PREFIX).and_then(|rest| rest.strip_suffix(SUFFIX));
    let Some(wrapped) = wrapped else { return Ok(plain) };
    let Ok(bytes) = STANDARD.decode(wrapped) else { return Err(ValueFault::Base64) };
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text.into()),
        Err(_) => Err(ValueFault::Utf8),
    }
}

/// Reads a value that is never wrapped. Blanks around it do not count.
pub(super) fn plain_value(value: &HeaderValue) -> Result<Cow<'_, str>, ValueFault> {
    // Printable ASCII, blanks and tabs.
    let Ok(text) = value.to_str() else { return Err(ValueFault::Characters) };
    Ok(text.trim_matches([' ', '\t']).into())
}

/// A value of the body as a header can mirror it.
#[derive(Debug)]
pub(super) enum Mirrored<'a> {
    /// The value is absent or null: there is no header.
    Absent,
    /// A string or a boolean.
    Text(Cow<'a, str>),
    /// A number as written.
    Number(&'a str),
    /// A composite or an undecodable value, or a value that readers could find in two ways.
    Impossible,
}

impl<'a> Mirrored<'a> {
    pub(super) fn of(raw: Raw<'a>) -> Self {
        let bytes = raw.as_bytes();
        match bytes.first() {
            Some(b'n') => Self::Absent,
            Some(b'"') => raw.as_str().map_or(Self::Impossible, Self::Text),
            Some(b't') => Self::Text("true".into()),
            Some(b'f') => Self::Text("false".into()),
            Some(b'-' | b'0'..=b'9') => {
                std::str::from_utf8(bytes).map_or(Self::Impossible, Self::Number)
            }
            _ => Self::Impossible,
        }
    }

    /// True if a header's decoded value equals this value. Numbers are compared as numbers.
    pub(super) fn equals(&self, header: &str) -> bool {
        match self {
            Self::Absent | Self::Impossible => false,
            Self::Text(text) => text == header,
            Self::Number(number) => {
                *number == header
                    || (is_number(header)
                        && decimal(header).is_some_and(|d| Some(d) == decimal(number)))
            }
        }
    }

    /// The header's value; `None` if there is none.
    pub(super) fn to_header(&self) -> Option<HeaderValue> {
        match self {
            Self::Absent | Self::Impossible => None,
            Self::Text(text) => Some(encode_value(text)),
            Self::Number(number) => Some(encode_value(&integer_text(number))),
        }
    }

    /// The value for a person.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Absent | Self::Impossible => "absent".into(),
            Self::Text(text) => format!("{:?}", shortened(text)),
            Self::Number(number) => shortened(number),
        }
    }
}

/// The start of a text, short enough for an error message.
pub(super) fn shortened(text: &str) -> String {
    const MOST: usize = 64;
    match text.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

fn is_number(text: &str) -> bool {
    let mut scanner = Scanner::new(text.as_bytes(), 0, 0);
    matches!(text.as_bytes().first(), Some(b'-' | b'0'..=b'9'))
        && scanner.value().is_ok()
        && scanner.position() == text.len()
}

/// A JSON number's sign, its digits without outer zeros, and the power of ten they are times.
fn decimal(number: &str) -> Option<(bool, String, i64)> {
    let unsigned = number.strip_prefix('-').unwrap_or(number);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse().ok()?),
        None => (unsigned, 0_i64),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_end_matches('0');
    let zeros = i64::try_from(digits.len() - significant.len()).ok()?;
    let fraction = i64::try_from(fraction.len()).ok()?;
    let significant = significant.trim_start_matches('0');
    if significant.is_empty() {
        return Some((false, String::new(), 0));
    }
    let power = exponent.checked_sub(fraction)?.checked_add(zeros)?;
    Some((unsigned.len() < number.len(), significant.to_owned(), power))
}

/// A number as plain decimal digits if it is an integer that every reader can hold.
fn integer_text(number: &str) -> Cow<'_, str> {
    const SAFE: i64 = (1 << 53) - 1;
    let Some((is_negative, digits, power)) = decimal(number) else { return number.into() };
    let integer = usize::try_from(power)
        .ok()
        .filter(|power| *power <= 16)
        .and_then(|power| format!("{digits}{}", "0".repeat(power)).parse::<i64>().ok())
        .filter(|integer| *integer <= SAFE);
    match integer {
        Some(integer) if is_negative => (-integer).to_string().into(),
        Some(integer) => integer.to_string().into(),
        None if digits.is_empty() => "0".into(),
        None => number.into(),
    }
}

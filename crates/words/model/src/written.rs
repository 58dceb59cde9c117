//! The notations of values that people write: durations with their unit, names of variables; and
//! of faults that people read.

use std::{fmt::Display, time::Duration};

/// True for a text of decimal digits, at least one.
#[must_use]
pub fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Reads a duration that is written as a number and its unit, such as `500ms` or `30s`.
///
/// Units are `ms`, `s`, `m` and `h`, with nothing before them. `None` for any other text, and for
/// more milliseconds than 64 bits have.
#[must_use]
pub fn duration(text: &str) -> Option<Duration> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let unit_ms = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(unit_ms).map(Duration::from_millis)
}

/// True if a text is the name of a variable of an environment (POSIX.1-2024, 8.1).
///
/// Such a name has letters of ASCII, digits and `_`, of which the first is no digit.
#[must_use]
pub fn is_variable_name(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(|c: char| c.is_ascii_digit())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Faults behind a heading: one in its line, several in a line each.
///
/// ```
/// # use narthex_model::written::faults;
/// assert_eq!(faults("nothing was stored", &["a"]), "nothing was stored: a");
/// assert_eq!(faults("nothing was stored", &["a", "b"]), "nothing was stored:\na\nb");
/// ```
#[must_use]
pub fn faults(heading: &str, faults: &[impl Display]) -> String {
    let separator = if faults.len() == 1 { ' ' } else { '\n' };
    let lines = faults.iter().map(|fault| format!("{separator}{fault}"));
    format!("{heading}:{}", lines.collect::<String>())
}

/// A place of the document, and below it one of the object at that place.
#[must_use]
pub fn inside(place: &str, field: &str) -> String {
    match field.chars().next() {
        None => place.to_owned(),
        Some('[') => format!("{place}{field}"),
        Some(_)
            if ["servers.", "capabilities.", "agents."].iter().any(|o| field.starts_with(o)) =>
        {
            field.to_owned() // Of another object.
        }
        Some(_) => format!("{place}.{field}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_a_number_with_its_unit() {
        for (text, ms) in
            [("500ms", 500), ("30s", 30_000), ("2m", 120_000), ("1h", 3_600_000), ("0s", 0)]
        {
            assert_eq!(duration(text), Some(Duration::from_millis(ms)), "{text}");
        }
        for wrong in
            ["", "5", "s", "5 s", "-5s", "+5s", "1.5s", "5sec", "5S", "1d", "99999999999999999h"]
        {
            assert_eq!(duration(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_variable_has_a_name_that_shells_take() {
        for name in ["HOME", "a", "_", "A1_b"] {
            assert!(is_variable_name(name), "{name}");
        }
        for other in ["", "1A", "A-B", "A.B", "A B", "Ä", "A}"] {
            assert!(!is_variable_name(other), "{other}");
        }
    }
}

//! The forms of values at the command line.

use std::time::{Duration, SystemTime};

use narthex_model::{Timestamp, written};

/// Parses a duration.
pub fn duration(text: &str) -> Result<Duration, String> {
    let units = "a number with its unit, such as 500ms, 30s or 5m";
    parse(text).ok_or_else(|| match written::duration(text) {
        Some(_none) => format!("a time must be above zero; write {units}"),
        None => format!("write {units}"),
    })
}

/// Reads a duration of the command line, which may be 0.
///
/// # Errors
/// When it is no duration.
pub(crate) fn duration_or_zero(text: &str) -> Result<Duration, String> {
    if text == "0" { Ok(Duration::ZERO) } else { duration(text) }
}

/// Parses a point in time and returns it in the form of the API. The text is a day, a time, or the
/// duration that has passed since.
pub fn moment(text: &str) -> Result<String, String> {
    let days = |text: &str| text.strip_suffix('d')?.parse::<u64>().ok()?.checked_mul(86_400);
    let ago = days(text).map(Duration::from_secs).or_else(|| parse(text));
    if let Some(ago) = ago {
        let then = SystemTime::now().checked_sub(ago).unwrap_or(SystemTime::UNIX_EPOCH);
        return Ok(Timestamp::new(then).to_string());
    }
    // The daemon decides whether the day exists.
    let is_date = text.len() >= 10 && text.bytes().all(|byte| b"0123456789-T:.Z".contains(&byte));
    is_date.then(|| text.to_owned()).ok_or_else(|| {
        "write a UTC day or time as in RFC 3339, such as 2026-11-22 or 2026-11-22T13:00:00Z, or \
         how long ago, such as 30m, 2h or 7d"
            .to_owned()
    })
}

/// Reads a whole number from `LEAST` to `MOST`, or to the greatest of `T` if that is less.
///
/// # Errors
/// When it is none, or outside of the range. A number of a range is refused with the range.
pub(crate) fn whole<T: TryFrom<u64>, const LEAST: u64, const MOST: u64>(
    text: &str,
) -> Result<T, String> {
    let most = MOST.min(greatest::<T>());
    let number = text.parse().ok().filter(|number| (LEAST..=most).contains(number));
    let is_number = written::is_digits(text);
    number.and_then(|number| T::try_from(number).ok()).ok_or_else(|| match (LEAST, most) {
        (0, u64::MAX) if !is_number => "write a whole number".to_owned(),
        (least, most) => format!("write a whole number from {least} to {most}"),
    })
}

/// Reads any whole number.
///
/// # Errors
/// When it is none, or greater than the greatest of `T`, which the message names.
pub(crate) fn count<T: TryFrom<u64>>(text: &str) -> Result<T, String> {
    whole::<T, 0, { u64::MAX }>(text)
}

/// The greatest number of an integer type.
fn greatest<T: TryFrom<u64>>() -> u64 {
    let mut all = (0..u64::BITS).map(|bits| u64::MAX >> bits);
    all.find(|number| T::try_from(*number).is_ok()).unwrap_or(0)
}

/// Reads a duration with its unit. Zero gives `None`.
fn parse(text: &str) -> Option<Duration> {
    written::duration(text).filter(|duration| !duration.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_must_be_above_zero_and_have_a_unit() {
        assert_eq!(duration("2h"), Ok(Duration::from_secs(7200)));
        assert!(duration("0s").unwrap_err().contains("above zero"));
        assert!(duration("5").unwrap_err().starts_with("write a number with its unit"));
    }

    #[test]
    fn a_number_is_whole_and_in_its_range() {
        assert_eq!(whole::<u64, 1, 60>("60"), Ok(60));
        for wrong in ["1.5", "x", "0", "61", "-1", ""] {
            let expected = Err("write a whole number from 1 to 60".to_owned());
            assert_eq!(whole::<u64, 1, 60>(wrong), expected, "{wrong}");
        }
        assert_eq!(count::<u64>("0"), Ok(0));
        for wrong in ["x", "1.5", "-1", ""] {
            assert_eq!(count::<u64>(wrong), Err("write a whole number".to_owned()), "{wrong}");
        }
    }

    #[test]
    fn a_number_that_is_too_large_is_refused_with_the_greatest() {
        assert_eq!(count::<u32>("4294967295"), Ok(u32::MAX));
        let expected = "write a whole number from 0 to 4294967295";
        for wrong in ["x", "4294967296", "99999999999999999999"] {
            assert_eq!(count::<u32>(wrong), Err(expected.to_owned()), "{wrong}");
        }
        assert_eq!(count::<u64>("18446744073709551615"), Ok(u64::MAX));
        let expected = "write a whole number from 0 to 18446744073709551615";
        assert_eq!(count::<u64>("18446744073709551616"), Err(expected.to_owned()));
        // The type may hold less than the range.
        let expected = "write a whole number from 1 to 255";
        assert_eq!(whole::<u8, 1, 3650>("256"), Err(expected.to_owned()));
    }

    #[test]
    fn a_moment_is_a_day_a_time_or_an_age() {
        for text in ["2026-11-22", "2026-11-22T13:00:00Z", "2026-11-22T13:00:00.123Z"] {
            assert_eq!(moment(text).as_deref(), Ok(text));
        }
        for (text, seconds) in [("2h", 7200), ("7d", 7 * 86_400), ("30m", 1800)] {
            let before = SystemTime::now() - Duration::from_secs(seconds + 1);
            let read = Timestamp::read(&moment(text).unwrap()).unwrap();
            let after = SystemTime::now() - Duration::from_secs(seconds);
            assert!(before < read && read <= after, "{text}");
        }
        // The time is before the first that can be represented.
        assert_eq!(moment("99999999d").as_deref(), Ok("1970-01-01T00:00:00.000Z"));
        for text in ["yesterday", "", "7", "d", "-1d", "2 h", "2026", "99999999999999999999d"] {
            assert!(moment(text).unwrap_err().contains("RFC 3339"), "{text}");
        }
    }
}

//! Points in time as text.

use std::{
    fmt,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use jiff::{
    SignedDuration,
    civil::{DateTime, date},
    tz::Offset,
};

/// Number of characters of a time to the second, without its zone.
const WHOLE: usize = "2027-01-31T12:00:00".len();
const EPOCH: DateTime = date(1970, 1, 1).at(0, 0, 0, 0);

/// A point in time, in UTC and to the millisecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timestamp(DateTime);

impl Timestamp {
    /// Times before 1970 count as its beginning, and those after 9999 as its last millisecond.
    #[must_use]
    pub fn new(time: SystemTime) -> Self {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        let millis = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
        Self(match jiff::Timestamp::from_millisecond(millis) {
            Ok(time) => Offset::UTC.to_datetime(time),
            // The last day of 9999 exists in UTC alone.
            Err(_late) => EPOCH.saturating_add(SignedDuration::from_millis(millis)),
        })
    }

    /// Reads what [`Timestamp`] prints; `None` for any other text.
    #[must_use]
    pub fn read(text: &str) -> Option<SystemTime> {
        let time: DateTime = text.strip_suffix('Z')?.parse().ok()?;
        let since = Duration::try_from(time.duration_since(EPOCH)).ok()?;
        // The parser also takes other spellings, which print differently.
        (Self(time).to_string() == text).then(|| UNIX_EPOCH + since)
    }

    /// Reads a time as people and programs write it (RFC 3339): with or without a fraction, of
    /// which what is finer than a millisecond does not count, and with any offset.
    #[must_use]
    pub fn parse(text: &str) -> Option<SystemTime> {
        let (whole, mut rest) = text.split_at_checked(WHOLE)?;
        let mut millis = "000".to_owned();
        if let Some(after) = rest.strip_prefix('.') {
            let count = after.bytes().take_while(u8::is_ascii_digit).count();
            let (digits, end) = after.split_at_checked(count)?;
            if !(1..=9).contains(&count) {
                return None;
            }
            millis = format!("{digits:0<3}");
            millis.truncate(3);
            rest = end;
        }
        let local = Self::read(&format!("{whole}.{millis}Z"))?;
        if rest == "Z" {
            return Some(local);
        }
        let (is_ahead, clock) = match rest.split_at_checked(1)? {
            ("+", clock) => (true, clock),
            ("-", clock) => (false, clock),
            _ => return None,
        };
        let (hours, minutes) = clock.split_once(':')?;
        let number = |text: &str, end: u64| -> Option<u64> {
            let is_pair = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
            is_pair.then(|| text.parse().ok())?.filter(|number| *number < end)
        };
        let offset = number(hours, 24)? * 3600 + number(minutes, 60)? * 60;
        let offset = Duration::from_secs(offset);
        if is_ahead { local.checked_sub(offset) } else { local.checked_add(offset) }
    }
}

impl fmt::Display for Timestamp {
    /// RFC 3339. Each call is recorded with its time, so digits are written without the machinery
    /// of formats.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (date, time) = (self.0.date(), self.0.time());
        let mut text = *b"0000-00-00T00:00:00.000Z";
        for (place, number) in [
            (0..4, date.year()),
            (5..7, date.month().into()),
            (8..10, date.day().into()),
            (11..13, time.hour().into()),
            (14..16, time.minute().into()),
            (17..19, time.second().into()),
            (20..23, time.millisecond()),
        ] {
            write_digits(&mut text[place], number);
        }
        let Ok(text) = std::str::from_utf8(&text) else { return Err(fmt::Error) };
        f.write_str(text)
    }
}

/// Writes the last digits of a number, as many as there are places.
fn write_digits(places: &mut [u8], mut number: i16) {
    for place in places.iter_mut().rev() {
        *place = b"0123456789"[usize::try_from(number % 10).unwrap_or_default()];
        number /= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_moments() {
        let table = [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_709_251_199_001, "2024-02-29T23:59:59.001Z"),
            (1_798_761_599_500, "2026-12-31T23:59:59.500Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
        ];
        for (millis, text) in table {
            let time = Timestamp::new(UNIX_EPOCH + Duration::from_millis(millis));
            assert_eq!(time.to_string(), text);
            assert_eq!(Timestamp::read(text), Some(UNIX_EPOCH + Duration::from_millis(millis)));
        }
    }

    /// Times outside of the years 1970 to 9999 have no text of their own.
    #[test]
    fn times_outside_of_the_range_are_clamped() {
        let print = |time: SystemTime| Timestamp::new(time).to_string();
        let early = UNIX_EPOCH - Duration::from_secs(1);
        assert_eq!(print(early), "1970-01-01T00:00:00.000Z");
        for millis in [253_402_300_800_000, 1 << 55] {
            let late = UNIX_EPOCH + Duration::from_millis(millis);
            assert_eq!(print(late), "9999-12-31T23:59:59.999Z");
        }
    }

    #[test]
    fn only_the_printed_form_of_a_time_is_read() {
        let bad = [
            "",
            "2026-02-29T00:00:00.000Z",
            "2026-13-01T00:00:00.000Z",
            "2026-00-01T00:00:00.000Z",
            "2026-01-00T00:00:00.000Z",
            "2026-01-01T24:00:00.000Z",
            "2026-01-01T00:00:00Z",
            "2026-01-01 00:00:00.000Z",
            "2026-01-01T00:00:00.000+00:00",
            "1969-12-31T23:59:59.999Z",
            "+026-01-01T00:00:00.000Z",
            "２026-01-01T00:00:00.000Z",
            "2026-01-01T00:00:60.000Z",
            "2026-01-01t00:00:00.000Z",
            "2026-01-01T00:00:00,000Z",
            "2026-01-01T00:00:00.0000Z",
            "2026-01-01T00:00:00.000[UTC]",
        ];
        for text in bad {
            assert_eq!(Timestamp::read(text), None, "{text}");
        }
    }

    /// RFC 3339, section 5.6.
    #[test]
    fn rfc_3339_times_are_parsed() {
        let noon = Timestamp::read("2027-01-31T12:00:00.000Z");
        assert!(noon.is_some());
        for text in [
            "2027-01-31T12:00:00Z",
            "2027-01-31T12:00:00.0Z",
            "2027-01-31T12:00:00.000999999Z",
            "2027-01-31T13:30:00+01:30",
            "2027-01-31T02:00:00.00-10:00",
            "2027-01-31T12:00:00-00:00",
        ] {
            assert_eq!(Timestamp::parse(text), noon, "{text}");
        }
        let tenth = Timestamp::parse("2027-01-31T12:00:00.1Z");
        assert_eq!(tenth, Timestamp::read("2027-01-31T12:00:00.100Z"));
        for text in [
            "",
            "2027-01-31",
            "2027-01-31T12:00:00",
            "2027-01-31T12:00:00.Z",
            "2027-01-31T12:00:00.0000000000Z",
            "2027-02-30T12:00:00Z",
            "2027-01-31T12:00:00+1:30",
            "2027-01-31T12:00:00+24:00",
            "2027-01-31T12:00:00+0100",
            "2027-01-31T12:00:00 Z",
            "2027-01-31T12:00:0ä",
        ] {
            assert_eq!(Timestamp::parse(text), None, "{text}");
        }
    }
}

//! Points in time as text.

use std::{
    fmt,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// So many characters has a time to the second, without its zone.
const WHOLE: usize = "2027-01-31T12:00:00".len();
const DAY_SECONDS: u64 = 86_400;
/// From the first of March of the year 0 to 1970.
const DAYS_BEFORE_1970: u64 = 719_468;
const ERA_DAYS: u64 = 146_097;

/// A point in time, in UTC and to the millisecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timestamp {
    year: u64,
    month: u64,
    day: u64,
    second_of_day: u64,
    millis: u32,
}

impl Timestamp {
    /// Times before 1970 count as its beginning.
    #[must_use]
    pub fn new(time: SystemTime) -> Self {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        // Years that begin in March end with the leap day; 400 of them are an era of fixed length.
        let days = since.as_secs() / DAY_SECONDS + DAYS_BEFORE_1970;
        let (era, of_era) = (days / ERA_DAYS, days % ERA_DAYS);
        let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let march_month = (5 * of_year + 2) / 153;
        let day = of_year - (153 * march_month + 2) / 5;
        let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
        let year = year_of_era + era * 400 + u64::from(month <= 2);
        let second_of_day = since.as_secs() % DAY_SECONDS;
        Self { year, month, day: day + 1, second_of_day, millis: since.subsec_millis() }
    }

    /// Reads what [`Timestamp`] prints; `None` for any other text.
    #[must_use]
    pub fn read(text: &str) -> Option<SystemTime> {
        let number = |range| -> Option<u64> {
            let digits: &str = text.get(range)?;
            digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
        };
        let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
        let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
        let march_year = year.checked_sub(u64::from(month <= 2))?;
        let march_month = if month > 2 { month - 3 } else { month + 9 };
        let of_year = (153 * march_month + 2) / 5 + day.checked_sub(1)?;
        let leap_days = march_year / 4 - march_year / 100 + march_year / 400;
        let days = (march_year * 365 + leap_days + of_year).checked_sub(DAYS_BEFORE_1970)?;
        let seconds = days * DAY_SECONDS + hour * 3600 + minute * 60 + second;
        let time = UNIX_EPOCH + Duration::from_millis(seconds * 1000 + number(20..23)?);
        // Whatever is no day of the calendar, or written in another way, prints differently.
        (Self::new(time).to_string() == text).then_some(time)
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

    fn clock(self) -> (u64, u64, u64) {
        let second = self.second_of_day;
        (second / 3600, second / 60 % 60, second % 60)
    }

    /// A form that sorts by time and is safe in a file's name.
    #[must_use]
    pub fn for_file_name(self) -> String {
        let Self { year, month, day, millis, .. } = self;
        let (hour, minute, second) = self.clock();
        format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}.{millis:03}Z")
    }
}

impl fmt::Display for Timestamp {
    /// RFC 3339. Each call is recorded with its time, so digits are written without the machinery
    /// of formats; years of five digits, which that standard does not have, are written by it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { year, month, day, millis, .. } = *self;
        let (hour, minute, second) = self.clock();
        if year > 9999 {
            return write!(
                f,
                "{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z"
            );
        }
        let mut text = *b"0000-00-00T00:00:00.000Z";
        for (place, number) in [
            (0..4, year),
            (5..7, month),
            (8..10, day),
            (11..13, hour),
            (14..16, minute),
            (17..19, second),
            (20..23, u64::from(millis)),
        ] {
            write_digits(&mut text[place], number);
        }
        let Ok(text) = std::str::from_utf8(&text) else { return Err(fmt::Error) };
        f.write_str(text)
    }
}

/// Writes the last digits of a number, as many as there are places.
fn write_digits(places: &mut [u8], mut number: u64) {
    for place in places.iter_mut().rev() {
        *place = b"0123456789"[usize::try_from(number % 10).unwrap_or_default()];
        number /= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_leap(year: u64) -> bool {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    }

    fn month_days(year: u64, month: u64) -> u64 {
        match month {
            2 if is_leap(year) => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        }
    }

    /// Each day of 800 years follows the one before it, by the rules of the calendar.
    #[test]
    fn days_follow_each_other() {
        let at = |day: u64| Timestamp::new(UNIX_EPOCH + Duration::from_secs(day * DAY_SECONDS));
        for day in 0..292_000 {
            let (one, next) = (at(day), at(day + 1));
            let wanted = if one.day < month_days(one.year, one.month) {
                (one.year, one.month, one.day + 1)
            } else if one.month < 12 {
                (one.year, one.month + 1, 1)
            } else {
                (one.year + 1, 1, 1)
            };
            assert_eq!((next.year, next.month, next.day), wanted);
        }
    }

    #[test]
    fn known_moments() {
        let table = [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_709_251_199_001, "2024-02-29T23:59:59.001Z"),
            (1_798_761_599_500, "2026-12-31T23:59:59.500Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ];
        for (millis, text) in table {
            let time = Timestamp::new(UNIX_EPOCH + Duration::from_millis(millis));
            assert_eq!(time.to_string(), text);
            assert_eq!(Timestamp::read(text), Some(UNIX_EPOCH + Duration::from_millis(millis)));
            let digits = |text: &str| text.replace(['-', ':'], "");
            assert_eq!(time.for_file_name(), digits(text));
        }
    }
    #[test]
    fn only_what_is_printed_is_read() {
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
        ];
        for text in bad {
            assert_eq!(Timestamp::read(text), None, "{text}");
        }
    }

    /// RFC 3339, section 5.6.
    #[test]
    fn times_are_read_as_they_are_written() {
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

//! The time after which a server takes requests again (`Retry-After`).

use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};

use http::{HeaderMap, header};

/// Maximum number of stored characters of a value.
const TEXT_MAX: usize = 64;

/// The value of `Retry-After`: seconds, or a date.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryAfter {
    text: Arc<str>,
    wait: Option<Duration>,
}

impl RetryAfter {
    /// Reads the headers of an answer that has just arrived.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        let value = headers.get(header::RETRY_AFTER)?.to_str().ok()?;
        Some(Self::read(value.trim(), SystemTime::now()))
    }

    /// Reads a value that arrived at this time. A date in the past means no wait.
    fn read(value: &str, now: SystemTime) -> Self {
        let date = || httpdate::parse_http_date(value).ok();
        let until = |date: SystemTime| date.duration_since(now).unwrap_or_default();
        let seconds = value.parse().ok().map(Duration::from_secs);
        let wait = seconds.or_else(|| date().map(until));
        Self { text: value.chars().take(TEXT_MAX).collect::<String>().into(), wait }
    }

    /// The time to wait from the arrival of the answer on; `None` if the value cannot be read.
    #[must_use]
    pub fn wait(&self) -> Option<Duration> {
        self.wait
    }

    /// The same wait with a changed text.
    pub(crate) fn map(self, change: impl FnOnce(&str) -> String) -> Self {
        Self { text: change(&self.text).into(), ..self }
    }
}

impl fmt::Display for RetryAfter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        let is_seconds = self.wait.is_some() && self.text.bytes().all(|byte| byte.is_ascii_digit());
        if is_seconds { f.write_str(" s") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// E48: seconds and HTTP dates are times; any other text is reported as it is.
    #[test]
    fn e48_seconds_and_dates_are_read() {
        let now = httpdate::parse_http_date("Thu, 26 Nov 2026 23:59:00 GMT").unwrap();
        for (value, wait, shown) in [
            ("7", Some(7), "7 s"),
            ("0", Some(0), "0 s"),
            ("Thu, 26 Nov 2026 23:59:59 GMT", Some(59), "Thu, 26 Nov 2026 23:59:59 GMT"),
            ("Thursday, 26-Nov-26 23:59:59 GMT", Some(59), "Thursday, 26-Nov-26 23:59:59 GMT"),
            ("Thu, 26 Nov 2026 00:00:00 GMT", Some(0), "Thu, 26 Nov 2026 00:00:00 GMT"),
            ("soon", None, "soon"),
            ("-1", None, "-1"),
        ] {
            let read = RetryAfter::read(value, now);
            assert_eq!((read.wait().map(|wait| wait.as_secs()), &*read.to_string()), (wait, shown));
        }
        assert_eq!(RetryAfter::read(&"9".repeat(99), now).to_string().len(), TEXT_MAX);
    }
}

//! Times in stored values: whole seconds since 1970.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// A time in a stored value. Fractions of a second are left out.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct StoredTime(u64);

impl StoredTime {
    /// The stored form of a time. Times before 1970 count as its beginning.
    #[must_use]
    pub fn of(time: SystemTime) -> Self {
        Self(time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs())
    }

    /// Seconds since 1970, as OAuth writes times in `exp`, `iat` and `client_id_issued_at`.
    #[must_use]
    pub fn seconds(self) -> u64 {
        self.0
    }

    /// The time that is later by `life`.
    #[must_use]
    pub fn plus(self, life: Duration) -> Self {
        Self(self.0.saturating_add(life.as_secs()))
    }

    /// Time since an earlier time; zero if that time is later, as after a clock was set back.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_secs(self.0.saturating_sub(earlier.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_times_have_whole_seconds() {
        let time = UNIX_EPOCH + Duration::from_millis(90_500);
        let stored = StoredTime::of(time);
        assert_eq!(stored.seconds(), 90);
        assert_eq!(stored.plus(Duration::from_secs(5)).since(stored), Duration::from_secs(5));
        assert_eq!(stored.since(stored.plus(Duration::from_secs(5))), Duration::ZERO);
        assert_eq!(serde_json::to_string(&stored).unwrap(), "90");
        assert_eq!(StoredTime::of(UNIX_EPOCH - Duration::from_secs(1)).seconds(), 0);
        assert_eq!(StoredTime(u64::MAX).plus(Duration::from_secs(5)), StoredTime(u64::MAX));
    }
}

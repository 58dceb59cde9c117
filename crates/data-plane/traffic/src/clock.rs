//! The clock of limits: tokio's clock, and the day of the system's clock.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::UNIX_EPOCH,
};

use tokio::time::Instant;

use crate::WallClock;

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

pub(crate) struct Clock {
    base: Instant,
    /// Time of `base`, in milliseconds since 1970.
    base_ms: AtomicU64,
    wall: WallClock,
}

/// A point in time for limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment {
    /// Nanoseconds since the clock was made; never decreases.
    pub(crate) ns: u64,
    /// Days since 1970, in UTC.
    pub(crate) day: u32,
    pub(crate) day_left_ms: u64,
}

impl Clock {
    pub(crate) fn new(wall: WallClock) -> Self {
        let clock = Self { base: Instant::now(), base_ms: AtomicU64::new(0), wall };
        clock.set();
        clock
    }

    pub(crate) fn set(&self) {
        let since = (self.wall)().duration_since(UNIX_EPOCH).unwrap_or_default();
        let ms = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        self.base_ms.store(ms.saturating_sub(self.ns() / 1_000_000), Ordering::Relaxed);
    }

    pub(crate) fn now(&self) -> Moment {
        let ns = self.ns();
        let ms = self.base_ms.load(Ordering::Relaxed).saturating_add(ns / 1_000_000);
        let day = u32::try_from(ms / DAY_MS).unwrap_or(u32::MAX);
        Moment { ns, day, day_left_ms: DAY_MS - ms % DAY_MS }
    }

    fn ns(&self) -> u64 {
        // More than 500 years.
        u64::try_from(self.base.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

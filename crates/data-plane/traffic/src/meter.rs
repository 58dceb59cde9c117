//! One meter: a rate, the open calls and the calls of a day, each an atomic.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicU32, AtomicU64, Ordering},
};

use arc_swap::ArcSwapOption;
use narthex_model::{CallRate, TrafficLimits};

use crate::{DayCount, MeterKey, admission::LimitKind, clock::Moment};

/// Number of bits of a day's counter that are the count; the rest is the day.
const COUNT_BITS: u32 = 40;
const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;

/// Counts the calls of one workspace, agent or server. Its counts stay when its limits change.
#[derive(Debug)]
pub struct Meter {
    key: MeterKey,
    /// The limits; `None` without any.
    limits: ArcSwapOption<TrafficLimits>,
    /// The time until which the calls so far have taken up their share (GCRA), in nanoseconds of
    /// the clock.
    busy_until: AtomicU64,
    open: AtomicU32,
    /// The counts of today and yesterday, by the day's parity. Each holds the day and its count in
    /// one number.
    days: [AtomicU64; 2],
    /// The stored part of these counts; only the writer locks it.
    stored: Mutex<[DayCount; 2]>,
}

/// The time until which a rate was busy, before one call and after it.
pub(crate) type TakenTime = [u64; 2];

/// The reason for which a meter admits no further call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Excess {
    pub(crate) kind: LimitKind,
    /// After how many milliseconds there may be room again.
    pub(crate) retry_after_ms: u64,
}

/// Time to the next attempt after too many open calls, whose ends are unknown: soon enough for a
/// person and not too often for a program.
const OPEN_RETRY_MS: u64 = 1000;

impl Meter {
    /// A meter without limits.
    #[must_use]
    pub fn new(key: MeterKey) -> Self {
        Self {
            key,
            limits: ArcSwapOption::empty(),
            busy_until: AtomicU64::new(0),
            open: AtomicU32::new(0),
            days: [AtomicU64::new(0), AtomicU64::new(0)],
            stored: Mutex::new([DayCount { day: 0, calls: 0 }; 2]),
        }
    }

    /// The workspace, agent or server whose calls the meter counts.
    #[must_use]
    pub fn key(&self) -> &MeterKey {
        &self.key
    }

    /// The meter's limits.
    #[must_use]
    pub fn limits(&self) -> TrafficLimits {
        self.limits.load().as_deref().copied().unwrap_or_default()
    }

    /// The meter's own limits, or without any, the `configured` ones.
    pub fn limits_or(&self, configured: impl FnOnce() -> TrafficLimits) -> TrafficLimits {
        self.limits.load().as_deref().copied().unwrap_or_else(configured)
    }

    /// Replaces the limits, for every call from now on.
    pub fn set_limits(&self, limits: TrafficLimits) {
        if self.limits() != limits {
            self.limits.store((!limits.is_none()).then(|| Arc::new(limits)));
        }
    }

    /// Number of open calls.
    #[must_use]
    pub fn open(&self) -> u32 {
        self.open.load(Ordering::Relaxed)
    }

    /// Number of calls counted on a day; 0 for any day but today and yesterday.
    #[must_use]
    pub fn calls(&self, day: u32) -> u64 {
        let counted = unpack(self.slot(day).load(Ordering::Relaxed));
        if counted.day == day { counted.calls } else { 0 }
    }

    /// Counts that are not stored yet, by day. May be negative: a call that was not sent gives its
    /// count back.
    #[must_use]
    pub fn unstored(&self) -> Vec<(DayCount, i64)> {
        let stored = self.stored.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found = Vec::new();
        for (slot, stored) in self.days.iter().zip(stored.iter()) {
            let now = unpack(slot.load(Ordering::Relaxed));
            let before = if stored.day == now.day { stored.calls } else { 0 };
            let more = now.calls.cast_signed() - before.cast_signed();
            if more != 0 {
                found.push((now, more));
            }
        }
        found
    }

    /// Notes that a count is stored. `total` includes the counts of other daemons, which count here
    /// from now on.
    pub fn note_stored(&self, counted: DayCount, total: u64) {
        let mut stored = self.stored.lock().unwrap_or_else(PoisonError::into_inner);
        let others = total.saturating_sub(counted.calls);
        let slot = self.slot(counted.day);
        let add = |now: u64| {
            let DayCount { day, calls } = unpack(now);
            let calls = calls.saturating_add(others).min(COUNT_MASK);
            (day == counted.day).then(|| pack(DayCount { day, calls }))
        };
        // The update fails only where the day is over, and then no caller asks for its count any
        // more.
        if slot.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok() {
            let calls = counted.calls + others;
            stored[usize::from(counted.day % 2 == 1)] = DayCount { day: counted.day, calls };
        }
    }

    /// Starts with the stored count of a day, if the meter has counted nothing on that day.
    pub fn restore(&self, kept: DayCount) {
        let mut stored = self.stored.lock().unwrap_or_else(PoisonError::into_inner);
        let begin = |now: u64| (unpack(now).day < kept.day).then(|| pack(kept));
        let slot = self.slot(kept.day);
        if slot.fetch_update(Ordering::Relaxed, Ordering::Relaxed, begin).is_ok() {
            stored[usize::from(kept.day % 2 == 1)] = kept;
        }
    }

    /// True if it has counted a call since yesterday began.
    pub(crate) fn is_recent(&self, today: u32) -> bool {
        let days = self.days.iter().map(|slot| unpack(slot.load(Ordering::Relaxed)));
        self.open() > 0 || days.into_iter().any(|one| one.calls > 0 && one.day + 1 >= today)
    }

    /// The reason why no further call would be admitted now; counts nothing. Of several reasons,
    /// the one that lasts longest.
    pub(crate) fn excess(&self, limits: &TrafficLimits, now: Moment) -> Option<Excess> {
        let is_full = limits.concurrent_calls.is_some_and(|most| self.open() >= most.get());
        let is_over = limits.calls_per_day.is_some_and(|most| self.calls(now.day) >= most.get());
        let wait = limits.rate().and_then(|rate| next_busy(self.owed(rate, now), now, rate).err());
        let all =
            [is_full.then(Excess::open), wait.map(Excess::rate), is_over.then(|| Excess::day(now))];
        all.into_iter().flatten().max_by_key(|excess| excess.retry_after_ms)
    }

    /// The time until which the calls so far have taken up their share at this rate. Calls at a
    /// slower rate before count for no more than a full burst, from the first call of this on.
    fn owed(&self, rate: CallRate, now: Moment) -> u64 {
        let busy_until = self.busy_until.load(Ordering::Relaxed);
        let most = now.ns.saturating_add(rate.burst_ns());
        if busy_until <= most {
            return busy_until;
        }
        let (set, failed) = (Ordering::Relaxed, Ordering::Relaxed);
        self.busy_until
            .compare_exchange(busy_until, most, set, failed)
            .map_or_else(|other| other.min(most), |_before| most)
    }

    /// Counts a call. If one limit is reached, the counts before it are given back.
    pub(crate) fn take(
        &self,
        limits: &TrafficLimits,
        now: Moment,
        has_place: bool,
    ) -> Result<Option<TakenTime>, Excess> {
        if has_place {
            self.take_place(limits)?;
        }
        let taken = limits.rate().map(|rate| self.take_time(rate, now)).transpose();
        let taken = taken.inspect_err(|_reached| self.end(has_place))?;
        self.take_day(limits, now).inspect_err(|_reached| {
            self.end(has_place);
            self.give_time_back(taken);
        })?;
        Ok(taken)
    }

    /// Ends a call that was counted, and had a place or none.
    pub(crate) fn end(&self, has_place: bool) {
        if has_place {
            self.open.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Gives back the time of a rate that a call has taken. Where others came after it, it stays
    /// taken: it may be used up already.
    pub(crate) fn give_time_back(&self, taken: Option<TakenTime>) {
        if let Some([before, after]) = taken {
            let (set, failed) = (Ordering::Relaxed, Ordering::Relaxed);
            self.busy_until.compare_exchange(after, before, set, failed).ok();
        }
    }

    /// Takes a call out of a day's count.
    pub(crate) fn uncount(&self, day: u32) {
        let one_less = |counted: u64| {
            let counted = unpack(counted);
            let calls = counted.calls.checked_sub(1)?;
            (counted.day == day).then(|| pack(DayCount { day, calls }))
        };
        self.slot(day).fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).ok();
    }

    fn take_place(&self, limits: &TrafficLimits) -> Result<(), Excess> {
        let Some(most) = limits.concurrent_calls else {
            self.open.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        };
        let one_more = |open: u32| (open < most.get()).then(|| open + 1);
        let done = self.open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
        done.map(drop).map_err(|_full| Excess::open())
    }

    fn take_time(&self, rate: CallRate, now: Moment) -> Result<TakenTime, Excess> {
        let mut before = self.owed(rate, now);
        loop {
            let after = next_busy(before, now, rate).map_err(Excess::rate)?;
            let swapped = self.busy_until.compare_exchange_weak(
                before,
                after,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            match swapped {
                Ok(_) => return Ok([before, after]),
                Err(other) => before = other,
            }
        }
    }

    fn take_day(&self, limits: &TrafficLimits, now: Moment) -> Result<(), Excess> {
        let most = limits.calls_per_day.map_or(COUNT_MASK, |most| most.get().min(COUNT_MASK));
        let one_more = |counted: u64| {
            let counted = unpack(counted);
            let calls = if counted.day == now.day { counted.calls } else { 0 };
            (calls < most).then(|| pack(DayCount { day: now.day, calls: calls + 1 }))
        };
        let slot = self.slot(now.day);
        let done = slot.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
        done.map(drop).map_err(|_full| Excess::day(now))
    }

    fn slot(&self, day: u32) -> &AtomicU64 {
        &self.days[usize::from(day % 2 == 1)]
    }
}

/// The time until which a rate is busy after one more call, or the nanoseconds until there is room.
fn next_busy(busy_until: u64, now: Moment, rate: CallRate) -> Result<u64, u64> {
    let owed = busy_until.saturating_sub(now.ns);
    let room = rate.burst_ns() - rate.interval_ns;
    if owed > room {
        return Err(owed - room);
    }
    Ok(now.ns + owed + rate.interval_ns)
}

fn pack(counted: DayCount) -> u64 {
    (u64::from(counted.day) << COUNT_BITS) | (counted.calls & COUNT_MASK)
}

fn unpack(packed: u64) -> DayCount {
    let day = u32::try_from(packed >> COUNT_BITS).unwrap_or(u32::MAX);
    DayCount { day, calls: packed & COUNT_MASK }
}

impl Excess {
    fn open() -> Self {
        Self { kind: LimitKind::Concurrency, retry_after_ms: OPEN_RETRY_MS }
    }

    fn rate(wait_ns: u64) -> Self {
        Self { kind: LimitKind::Rate, retry_after_ms: wait_ns.div_ceil(1_000_000) }
    }

    fn day(now: Moment) -> Self {
        Self { kind: LimitKind::Daily, retry_after_ms: now.day_left_ms }
    }
}

//! The admission of a call by the meters that count it.

use std::{fmt, sync::Arc};

use narthex_model::TrafficLimits;

use crate::{Meter, Meters, clock::Moment, meter::Excess};

/// The kind of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LimitKind {
    /// The rate of calls.
    Rate,
    /// The number of open calls.
    Concurrency,
    /// The number of calls on one day.
    Daily,
}

/// The scope of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LimitScope {
    /// All calls of a workspace.
    Workspace,
    /// All calls of an agent's runs.
    Agent,
    /// All calls to a server.
    Server,
}

/// An admitted call.
///
/// Dropping it, for whatever reason, frees its places among the open calls. If the call was not
/// sent, it does not count for the day. The time of a rate that it took stays taken.
#[derive(Debug)]
#[must_use = "dropping it ends the call"]
pub struct Admission {
    meters: [Option<Arc<Meter>>; 3],
    day: u32,
    has_place: bool,
    is_sent: bool,
}

/// A meter that counts a call, with its limits.
pub type Counted<'a> = (&'a Arc<Meter>, TrafficLimits);

/// A limit that is reached.
#[derive(Debug)]
pub struct Exceeded {
    /// The meter whose limit is reached.
    pub meter: Arc<Meter>,
    /// The meter's limits.
    pub limits: TrafficLimits,
    /// The kind of the reached limit.
    pub kind: LimitKind,
    /// Number of milliseconds after which a try may succeed.
    pub retry_after_ms: u64,
}

impl Meters {
    /// Counts a call by all of these meters or by none. `has_place` is true if the call counts as
    /// an open one: a stream does not.
    ///
    /// # Errors
    /// When a limit is reached; of several limits, the one that lasts longest.
    pub fn admit(
        &self,
        all: [Option<Counted<'_>>; 3],
        has_place: bool,
    ) -> Result<Admission, Exceeded> {
        take_all(all, self.shared.clock.now(), has_place)
    }
}

impl Exceeded {
    fn new(meter: &Arc<Meter>, limits: TrafficLimits, excess: Excess) -> Self {
        let Excess { kind, retry_after_ms } = excess;
        Self { meter: meter.clone(), limits, kind, retry_after_ms }
    }

    /// The scope of the reached limit.
    #[must_use]
    pub fn scope(&self) -> LimitScope {
        self.meter.key().kind.scope()
    }

    /// The reached limit, as a text.
    #[must_use]
    pub fn most(&self) -> String {
        match self.kind {
            LimitKind::Rate => self.limits.rate().map_or_else(String::new, |rate| {
                let calls = calls(rate.calls.get().into());
                format!("{calls} a {} in bursts of {}", rate.period, rate.burst)
            }),
            LimitKind::Concurrency => {
                let most = self.limits.concurrent_calls.map_or(0, std::num::NonZeroU32::get);
                format!("{} at one time", calls(most.into()))
            }
            LimitKind::Daily => {
                let most = self.limits.calls_per_day.map_or(0, std::num::NonZeroU64::get);
                format!("{} a day, until midnight in UTC", calls(most))
            }
        }
    }
}

fn calls(count: u64) -> String {
    if count == 1 { "1 call".to_owned() } else { format!("{count} calls") }
}

/// Has all meters count a call, or none.
fn take_all(
    all: [Option<Counted<'_>>; 3],
    now: Moment,
    has_place: bool,
) -> Result<Admission, Exceeded> {
    // First without counting: a call that one meter refuses must not take time from the others.
    let limited = all.iter().flatten().filter(|(_, limits)| !limits.is_none());
    let excess = limited
        .filter_map(|&(meter, limits)| {
            let excess = meter.excess(&limits, now)?;
            // A stream takes no place, so it needs none.
            (has_place || excess.kind != LimitKind::Concurrency).then_some((meter, limits, excess))
        })
        .max_by_key(|(_, _, excess)| excess.retry_after_ms);
    if let Some((meter, limits, excess)) = excess {
        return Err(Exceeded::new(meter, limits, excess));
    }
    let mut admission =
        Admission { meters: [const { None }; 3], day: now.day, has_place, is_sent: false };
    let mut times = [None; 3];
    for (index, (meter, limits)) in
        all.into_iter().enumerate().filter_map(|(index, counted)| Some((index, counted?)))
    {
        match meter.take(&limits, now, has_place) {
            Ok(time) => {
                times[index] = time;
                admission.meters[index] = Some(meter.clone());
            }
            Err(excess) => {
                // The others are done with it when the admission is dropped, but for their time.
                for (counted, time) in all.iter().zip(times) {
                    counted.iter().for_each(|(meter, _)| meter.give_time_back(time));
                }
                return Err(Exceeded::new(meter, limits, excess));
            }
        }
    }
    Ok(admission)
}

impl Admission {
    /// Sets whether the call has been sent, or may have been: a sent call counts for the day.
    pub fn set_sent(&mut self, is_sent: bool) {
        self.is_sent = is_sent;
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        for meter in self.meters.iter().flatten() {
            meter.end(self.has_place);
            if !self.is_sent {
                meter.uncount(self.day);
            }
        }
    }
}

impl LimitKind {
    /// The name in JSON and metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::Concurrency => "concurrency",
            Self::Daily => "daily",
        }
    }
}

impl LimitScope {
    /// The name in JSON and metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Workspace => "workspace",
            Self::Agent => "agent",
            Self::Server => "server",
        }
    }
}

impl fmt::Display for LimitKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for LimitScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

//! The outcome of a measurement.

use std::ops::Range;
use std::time::Duration;

use serde::Serialize;
use tokio::time::Instant;

use super::watch::{Watch, as_f64};

/// One connection's part, or all of them together.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Latencies of the right answers within the window.
    pub(super) latencies_ns: Vec<u64>,
    pub(super) sent: u64,
    pub(super) right: u64,
    pub(super) failed: u64,
    pub(super) wrong: u64,
    pub(super) doubled: u64,
    pub(super) reconnected: u64,
    pub(super) first_problem: Option<String>,
}

/// A measurement. Counts are of the whole run, warm-up included; rates are of the window.
#[derive(Debug, Serialize)]
pub struct Outcome {
    /// Right answers within the window.
    pub timed: u64,
    pub per_second: f64,
    pub p50_us: f64,
    pub p99_us: f64,
    /// Processor time of the watched processes for each timed call.
    pub cpu_us_per_call: f64,
    pub memory_bytes: u64,
    pub sent: u64,
    pub right: u64,
    /// No answer, or an HTTP error.
    pub failed: u64,
    /// An answer with another id or content.
    pub wrong: u64,
    /// Answers beyond the first.
    pub doubled: u64,
    /// Connections that the other side closed between two calls.
    pub reconnected: u64,
    /// Calls that arrived at the fixtures, where that was asked for.
    pub received: Option<u64>,
    pub first_problem: Option<String>,
}

impl Tally {
    pub(super) fn add(&mut self, other: Self) {
        self.latencies_ns.extend(other.latencies_ns);
        self.sent += other.sent;
        self.right += other.right;
        self.failed += other.failed;
        self.wrong += other.wrong;
        self.doubled += other.doubled;
        self.reconnected += other.reconnected;
        self.first_problem = self.first_problem.take().or(other.first_problem);
    }

    /// Counts a right answer; its latency only if it came within the window.
    pub(super) fn note_right(&mut self, call: Range<Instant>, window: Range<Instant>) {
        self.right += 1;
        if window.contains(&call.end) {
            let took = call.end.duration_since(call.start).as_nanos();
            self.latencies_ns.push(u64::try_from(took).unwrap_or(u64::MAX));
        }
    }

    pub(super) fn into_outcome(
        mut self,
        window: Duration,
        first: &Watch,
        last: &Watch,
        memory_bytes: u64,
    ) -> Outcome {
        self.latencies_ns.sort_unstable();
        let timed = self.latencies_ns.len() as u64;
        let per_second = as_f64(timed) / window.as_secs_f64();
        let cpu_us_per_second = last.rate_since(first) * 1e6;
        Outcome {
            timed,
            per_second,
            p50_us: percentile_us(&self.latencies_ns, 50),
            p99_us: percentile_us(&self.latencies_ns, 99),
            cpu_us_per_call: if timed == 0 { 0.0 } else { cpu_us_per_second / per_second },
            memory_bytes,
            sent: self.sent,
            right: self.right,
            failed: self.failed,
            wrong: self.wrong,
            doubled: self.doubled,
            reconnected: self.reconnected,
            received: None,
            first_problem: self.first_problem,
        }
    }
}

/// The smallest value that so many per cent do not exceed.
pub(super) fn percentile_us(sorted_ns: &[u64], percent: usize) -> f64 {
    let rank = (sorted_ns.len() * percent).div_ceil(100).max(1);
    sorted_ns.get(rank - 1).map_or(0.0, |ns| as_f64(*ns) / 1e3)
}

#[cfg(test)]
mod tests {
    use super::percentile_us;

    #[test]
    fn percentiles_are_values_that_occurred() {
        let hundred: Vec<u64> = (1..=100).map(|n| n * 1000).collect();
        assert_eq!(percentile_us(&hundred, 50).to_bits(), 50.0_f64.to_bits());
        assert_eq!(percentile_us(&hundred, 99).to_bits(), 99.0_f64.to_bits());
        assert_eq!(percentile_us(&[7000], 99).to_bits(), 7.0_f64.to_bits());
        assert_eq!(percentile_us(&[], 50).to_bits(), 0.0_f64.to_bits());
    }
}

//! A closed-loop load generator for MCP over HTTP, and over the pipes of a child for comparison.
//!
//! Each connection sends its next request when the answer to the last one was read and checked.
//! Every answer counts: a missing, wrong or doubled one is counted apart from a right one, and the
//! fixtures behind report how many calls they have seen. Before the measured window there is a
//! warm-up, whose answers are checked but not timed.

mod check;
mod connection;
mod idle;
mod outcome;
mod runs;
mod script;
mod sse;
mod stdio;
#[cfg(test)]
mod tests;
mod watch;
mod worker;

use std::time::Duration;

use anyhow::{Context as _, ensure};
use http::{HeaderValue, Uri};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

pub use self::idle::{IdleOutcome, IdlePlan};
pub use self::outcome::Outcome;
use self::outcome::Tally;
pub use self::runs::{RunsOutcome, RunsPlan};
pub use self::script::{Era, Work};
pub use self::stdio::StdioPlan;
use self::watch::Watch;
use self::worker::Worker;

/// The address of the requests, and the caller's token.
#[derive(Debug, Clone)]
pub struct Target {
    pub url: Uri,
    /// The whole value of `Authorization`.
    pub authorization: Option<HeaderValue>,
    pub era: Era,
}

impl Target {
    /// Number of tools on the first page of the list.
    ///
    /// # Errors
    ///
    /// If there is no list.
    pub async fn count_tools(&self) -> anyhow::Result<usize> {
        worker::count_tools(self).await
    }
}

/// One measurement.
#[derive(Debug, Clone)]
pub struct Plan {
    pub target: Target,
    pub work: Work,
    /// The prefixes of the names of tools; calls take them in turn.
    pub prefixes: Vec<String>,
    pub connections: usize,
    pub warm_up: Duration,
    pub window: Duration,
    /// Processes whose processor time and memory are of interest.
    pub watched: Vec<u32>,
    /// The fixtures that the calls must arrive at.
    pub fixtures: Vec<Uri>,
}

impl Plan {
    /// Measures once.
    ///
    /// # Errors
    ///
    /// If the target cannot be reached or shakes no hands. Calls that fail later are counted.
    pub async fn run(&self) -> anyhow::Result<Outcome> {
        ensure!(!self.prefixes.is_empty(), "at least one prefix is needed, if only an empty one");
        let before = self.calls_seen().await?;
        let mut workers = Vec::new();
        for number in 0..self.connections {
            let worker = Worker::open(&self.target, self.work, &self.prefixes, number).await;
            workers.push(worker.with_context(|| format!("cannot open connection {number}"))?);
        }
        let mut outcome = self.measure(workers).await?;
        if self.work.is_call() && !self.fixtures.is_empty() {
            // Each fixture has also counted the call that asked it the second time.
            let own = self.fixtures.len() as u64;
            outcome.received = Some(self.calls_seen().await?.saturating_sub(before + own));
        }
        Ok(outcome)
    }

    async fn measure(&self, workers: Vec<Worker>) -> anyhow::Result<Outcome> {
        let begin = Instant::now() + self.warm_up;
        let end = begin + self.window;
        let mut running = JoinSet::new();
        for worker in workers {
            running.spawn(worker.run(begin, end));
        }
        sleep_until(begin).await;
        let first = Watch::look(&self.watched)?;
        sleep_until(end).await;
        let last = Watch::look(&self.watched)?;
        let mut tally = Tally::default();
        let mut workers = Vec::new();
        while let Some(done) = running.join_next().await {
            let (worker, part) = done.context("a connection's task panicked")?;
            tally.add(part);
            workers.push(worker);
        }
        let memory_bytes = watch::memory(&self.watched)?;
        for worker in workers {
            worker.close().await;
        }
        Ok(tally.into_outcome(self.window, &first, &last, memory_bytes))
    }

    /// Number of calls that the fixtures have seen so far.
    async fn calls_seen(&self) -> anyhow::Result<u64> {
        let mut seen = 0;
        for url in &self.fixtures {
            let target = Target { url: url.clone(), authorization: None, era: self.target.era };
            seen += worker::calls_seen(&target).await?;
        }
        Ok(seen)
    }
}

//! The time limit for a child's answers, without the time of a download.
//!
//! A package runner starts the server as its child when the download is complete. Where the system
//! shows the children of a process, the download ends when the child starts: from then on, the
//! silence is the server's.

use std::{path::PathBuf, time::Duration};

use tokio::time::{Instant, sleep, timeout};

use crate::{Phase, connect::Setup};

/// Interval between two checks of a package runner's children.
const POLL: Duration = Duration::from_millis(200);

/// The error of a program that did not answer in time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Late {
    /// The limit that passed.
    pub(super) after: Duration,
}

/// Measures the time of one program's handshake against the limits.
pub(super) struct Patience<'a> {
    setup: &'a Setup<'a>,
    /// Process id of the package runner; `None` if the program is the server itself.
    runner: Option<u32>,
    started: Instant,
    /// The used part of the total limit: all time but that of a download.
    spent: Duration,
    /// The time since which the runner has had a child.
    running_since: Option<Instant>,
}

impl<'a> Patience<'a> {
    pub(super) fn new(setup: &'a Setup<'a>) -> Self {
        let (started, spent) = (Instant::now(), Duration::ZERO);
        Self { setup, runner: None, started, spent, running_since: None }
    }

    /// The time that the program took so far, without a download.
    pub(super) fn spent(&self) -> Duration {
        self.spent
    }

    /// Notes a start of the program, the first one or a repeated one.
    pub(super) fn started(&mut self, runner: Option<u32>) {
        self.runner = runner;
        self.running_since = None;
    }

    /// Waits for a start, during which nothing is downloaded.
    pub(super) async fn start<T>(
        &mut self,
        starting: impl Future<Output = T>,
        limit: Duration,
    ) -> Result<T, Late> {
        let (left, late) = self.left(limit);
        let began = Instant::now();
        let started = timeout(left, starting).await;
        self.spent += began.elapsed();
        started.map_err(|_elapsed| late)
    }

    /// The time that is left for a step, and the limit to report when no time is left.
    fn left(&self, limit: Duration) -> (Duration, Late) {
        let deadlines = &self.setup.context.deadlines;
        let left = deadlines.left(limit, self.spent);
        let after = deadlines.mount.filter(|_| left < limit).unwrap_or(limit);
        (left, Late { after })
    }

    /// Waits for `work` at most `limit`, not counting a download.
    pub(super) async fn wait<T>(
        &mut self,
        work: impl Future<Output = T>,
        limit: Duration,
    ) -> Result<T, Late> {
        let Some(runner) = self.runner else { return self.start(work, limit).await };
        let (left, late) = self.left(limit);
        let began = Instant::now();
        tokio::pin!(work);
        let waited = loop {
            tokio::select! {
                biased;
                done = &mut work => break Ok(done),
                () = sleep(POLL) => {}
            }
            self.look(runner);
            let install = self.setup.context.deadlines.install;
            match self.running_since {
                Some(since) if since.max(began).elapsed() >= left => break Err(late),
                Some(_) => {}
                None if self.started.elapsed() >= install.max(limit) => {
                    break Err(Late { after: install });
                }
                None => {}
            }
        };
        self.spent += self.running_since.map_or(Duration::ZERO, |at| at.max(began).elapsed());
        waited
    }

    /// Checks if the server runs. If the runner's child ends and the runner has no other child, the
    /// child was part of the installation.
    fn look(&mut self, runner: u32) {
        match (has_children(runner), self.running_since) {
            (true, None) => {
                self.running_since = Some(Instant::now());
                self.setup.phase(Phase::Connecting);
            }
            (false, Some(_)) => {
                self.running_since = None;
                self.setup.phase(Phase::Installing);
            }
            (true, Some(_)) | (false, None) => {}
        }
    }
}

/// True if a process has children; `false` where the system does not show children.
fn has_children(process_id: u32) -> bool {
    let threads = PathBuf::from(format!("/proc/{process_id}/task"));
    let Ok(threads) = fs_err::read_dir(threads) else { return false };
    threads.flatten().any(|thread| {
        let children = fs_err::read_to_string(thread.path().join("children"));
        children.is_ok_and(|children| !children.trim().is_empty())
    })
}

//! Refusals at the folder that never reach the daemon: the daemon gets a report for the run's
//! observers.

use std::convert::Infallible;

use narthex_vfs::{Done, Observer, Report};
use tokio::sync::mpsc::{Receiver, Sender, channel, error::TrySendError};

use crate::mounter::Daemon;

/// Most reports that may wait for the daemon: a program that looks for many absent names must not
/// wait for it.
const QUEUE: usize = 1024;

/// The path and the report of a refusal.
type Refused = (String, Report<'static>);

/// Takes reports of refusals, and never waits.
#[derive(Debug)]
pub(crate) struct Reports {
    queue: Sender<Refused>,
}

/// The queued reports, not sent yet.
#[derive(Debug)]
pub(crate) struct Untold {
    queue: Receiver<Refused>,
}

impl Reports {
    /// A queue for reports, with its receiver.
    pub(crate) fn new() -> (Self, Untold) {
        let (sender, receiver) = channel(QUEUE);
        (Self { queue: sender }, Untold { queue: receiver })
    }
}

impl Observer for Reports {
    fn ended(&self, done: Done<'_>) {
        let Some(report) = Report::of(&done) else { return };
        match self.queue.try_send((done.path.to_owned(), report)) {
            Ok(()) | Err(TrySendError::Closed(_)) => {}
            Err(TrySendError::Full((path, _))) => {
                tracing::debug!(path, "too many refusals: this one is not reported");
            }
        }
    }

    /// Only what has failed counts.
    fn is_watched(&self) -> bool {
        false
    }
}

impl Untold {
    /// Sends each report to the daemon, in order, for as long as it is polled.
    pub(crate) async fn tell(&mut self, daemon: &Daemon) -> Infallible {
        while let Some((path, report)) = self.queue.recv().await {
            daemon.tell(&path, &report).await;
        }
        // The sender is gone: no refusal follows.
        std::future::pending().await
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use narthex_model::Pid;
    use narthex_vfs::{Code, Operation};

    use super::*;

    /// A failure that the daemon answered is not reported, as the daemon has reported it itself. A
    /// report that does not fit is dropped, and delays no operation.
    #[tokio::test]
    async fn only_failures_unknown_to_the_daemon_are_reported() {
        let (reports, mut untold) = Reports::new();
        let done = Done {
            pid: Pid::new(1),
            operation: Operation::Write,
            path: "/mnt/mcp/1-a/tools/x",
            fd: Some(3),
            size: Some(7),
            result: Err(Code::Invalid),
            is_tool_error: false,
            is_told: true,
            duration: Duration::from_micros(90),
        };
        reports.ended(done);
        reports.ended(Done { result: Ok(7), is_told: false, ..done });
        for _ in 0..=QUEUE {
            reports.ended(Done { is_told: false, ..done });
        }
        let (path, report) = untold.queue.recv().await.expect("it was refused here");
        assert_eq!((path.as_str(), &*report.code), (done.path, "INVALID"));
        assert_eq!(untold.queue.len(), QUEUE - 1);
    }
}

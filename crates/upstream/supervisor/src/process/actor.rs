//! The one task that owns a child: waits for its end, runs the stop ladder, and clears its tree.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::{ExitInfo, ProcessState, Shared};
use crate::spawner::HoldOwner;
use crate::watch::{Order, Watch};

/// Time in which a killed tree vanishes. Longer only when the kernel holds it (a dead network
/// disk); then the child is given up, and reaped whenever it ends.
const KILL_WAIT: Duration = Duration::from_secs(5);

/// Time in which stderr may stay open after the tree is gone, held by a process that left a group.
const STDERR_WAIT: Duration = Duration::from_millis(200);

pub(super) struct Actor {
    pub(super) shared: Arc<Shared>,
    pub(super) grace: Duration,
    pub(super) reading: JoinHandle<()>,
    /// Set at the regular end.
    pub(super) exit: Option<ExitInfo>,
}

impl Actor {
    pub(super) async fn run(mut self, owner: HoldOwner, mut watch: Watch) {
        tokio::select! {
            () = watch.leader_ended() => {}
            () = self.shared.stop_requested.cancelled() => {}
        }
        let forced = self.empty(&mut watch).await;
        let exit = self.exit_info(&mut watch, forced);
        // Afterwards the system may give these ids to other processes.
        self.shared.hold.close();
        drop(owner);
        if timeout(STDERR_WAIT, &mut self.reading).await.is_err() {
            self.reading.abort();
        }
        self.exit = Some(exit);
    }

    /// The ladder. Says whether it went to its end.
    async fn empty(&self, watch: &mut Watch) -> bool {
        let hold = &self.shared.hold;
        if watch.is_empty(hold) {
            // No process is left but, perhaps, a shim on its way out.
            return timeout(KILL_WAIT, watch.gone(hold, Order::Kill)).await.is_err();
        }
        self.shared.state.send_replace(ProcessState::Stopping);
        hold.terminate();
        if timeout(self.grace, watch.gone(hold, Order::Terminate)).await.is_ok() {
            return watch.is_lost();
        }
        hold.kill();
        if timeout(KILL_WAIT, watch.gone(hold, Order::Kill)).await.is_err() {
            tracing::error!(process.id = hold.id(), "a killed process has not ended yet");
        }
        true
    }

    fn exit_info(&self, watch: &mut Watch, forced: bool) -> ExitInfo {
        let status = watch.status();
        ExitInfo {
            code: status.as_ref().and_then(ExitStatus::code),
            signal: status.as_ref().and_then(ExitStatusExt::signal),
            forced: forced || self.shared.was_killed.load(Ordering::Acquire),
        }
    }
}

impl Drop for Actor {
    /// Publishes the end also when the actor is dropped half-way, as a runtime does on shutdown: no
    /// caller waits for a lost actor.
    fn drop(&mut self) {
        let lost = ExitInfo { forced: true, ..ExitInfo::default() };
        let exit = self.exit.unwrap_or(lost);
        tracing::debug!(
            process.id = self.shared.hold.id(),
            process.code = exit.code,
            process.signal = exit.signal,
            process.forced = exit.forced,
            "a process ended"
        );
        self.shared.state.send_replace(ProcessState::Exited(exit));
    }
}

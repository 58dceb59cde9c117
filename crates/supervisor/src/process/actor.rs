//! The one task that owns a child: waits for its end, runs the stop ladder, empties the group.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rustix::process::Signal;
use tokio::process::Child;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::{ExitInfo, ProcessState, Shared};
use crate::group::Group;
use crate::spawner::Started;

/// How long a killed group may take to vanish. Longer only when the kernel holds it (a dead
/// network disk); then the child is given up, and reaped whenever it ends.
const KILL_WAIT: Duration = Duration::from_secs(5);

/// How long stderr may stay open after the group is gone, held by someone who left the group.
const STDERR_WAIT: Duration = Duration::from_millis(200);

/// The first pause between looks at a group without its leader: the kernel reports no end of a
/// group. It doubles from look to look, since each may have to read all processes of the machine.
const GROUP_PAUSE_MIN: Duration = Duration::from_millis(10);
const GROUP_PAUSE_MAX: Duration = Duration::from_millis(160);

pub(super) struct Actor {
    pub(super) shared: Arc<Shared>,
    pub(super) grace: Duration,
    pub(super) reading: JoinHandle<()>,
    /// Set at the regular end.
    pub(super) exit: Option<ExitInfo>,
}

impl Actor {
    pub(super) async fn run(mut self, started: Started) {
        // In this order, so that the owner is dropped first: see `Started`.
        let Started { mut child, owner } = started;
        tokio::select! {
            _status = child.wait() => {}
            () = self.shared.stop_requested.cancelled() => {}
        }
        let forced = self.empty_group(&mut child).await;
        // From here on the number may be given to strangers.
        self.shared.group.close();
        drop(owner);
        if timeout(STDERR_WAIT, &mut self.reading).await.is_err() {
            self.reading.abort();
        }
        self.exit = Some(self.exit_info(&mut child, forced));
    }

    /// The ladder. Says whether it went to its end.
    async fn empty_group(&self, child: &mut Child) -> bool {
        let group = &self.shared.group;
        let has_exited = matches!(child.try_wait(), Ok(Some(_)));
        if has_exited && !group.has_members() {
            return false;
        }
        self.shared.state.send_replace(ProcessState::Stopping);
        if !has_exited {
            group.signal(Signal::TERM);
        }
        if timeout(self.grace, gone(child, group, Signal::TERM)).await.is_ok() {
            return false;
        }
        group.signal(Signal::KILL);
        if timeout(KILL_WAIT, gone(child, group, Signal::KILL)).await.is_err() {
            tracing::error!(process.id = group.id(), "a killed process group does not end");
        }
        true
    }

    fn exit_info(&self, child: &mut Child, forced: bool) -> ExitInfo {
        let status = child.try_wait().ok().flatten();
        ExitInfo {
            code: status.as_ref().and_then(ExitStatus::code),
            signal: status.as_ref().and_then(ExitStatusExt::signal),
            forced: forced || self.shared.was_killed.load(Ordering::Acquire),
        }
    }
}

/// Waits until neither the leader nor any other member lives.
///
/// Those whom the leader leaves behind get `signal` again and again, ever more rarely: a shell's
/// child that is not yet past its exec loses a signal to the handler it had from its parent.
async fn gone(child: &mut Child, group: &Group, signal: Signal) {
    // An error means that the status is lost, hence that the leader is gone.
    drop(child.wait().await);
    let mut looks: u32 = 0;
    let mut pause = GROUP_PAUSE_MIN;
    while group.has_members() {
        looks = looks.saturating_add(1);
        if pause < GROUP_PAUSE_MAX || looks.is_power_of_two() {
            group.signal(signal);
        }
        sleep(pause).await;
        pause = (pause * 2).min(GROUP_PAUSE_MAX);
    }
}

impl Drop for Actor {
    /// Publishes the end also when the actor is dropped half-way, as a runtime does on shutdown:
    /// nobody waits for a lost actor.
    fn drop(&mut self) {
        let lost = ExitInfo { forced: true, ..ExitInfo::default() };
        let exit = self.exit.unwrap_or(lost);
        tracing::debug!(
            process.id = self.shared.group.id(),
            process.code = exit.code,
            process.signal = exit.signal,
            process.forced = exit.forced,
            "a process ended"
        );
        self.shared.state.send_replace(ProcessState::Exited(exit));
    }
}

//! The daemon's view of a child: the leader's end, and the remaining processes.

use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use tokio::process::Child;
use tokio::time::sleep;

use crate::hold::Hold;
#[cfg(target_os = "linux")]
use crate::shimmed::Shimmed;

/// The first pause between looks at a group without its leader: the kernel reports no end of a
/// group. It doubles from look to look, since each may have to read all processes of the machine.
const GROUP_PAUSE_MIN: Duration = Duration::from_millis(10);
const GROUP_PAUSE_MAX: Duration = Duration::from_millis(160);

/// The watch on one child.
#[derive(Debug)]
pub(crate) enum Watch {
    /// The leader is the daemon's own child.
    Child(Child),
    /// The child's shim reports.
    #[cfg(target_os = "linux")]
    Shim(Box<Shimmed>),
}

/// The signal for processes that are left behind in a group.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Order {
    Terminate,
    Kill,
}

impl Watch {
    /// Waits for the leader's end.
    pub(crate) async fn leader_ended(&mut self) {
        match self {
            // An error means that the status is lost, hence that the leader is gone.
            Self::Child(child) => drop(child.wait().await),
            #[cfg(target_os = "linux")]
            Self::Shim(shimmed) => shimmed.leader_ended().await,
        }
    }

    /// True if the leader has ended and no process is left.
    pub(crate) fn is_empty(&mut self, hold: &Hold) -> bool {
        match (self, hold) {
            (Self::Child(child), Hold::Group(group)) => {
                matches!(child.try_wait(), Ok(Some(_))) && !group.has_members()
            }
            #[cfg(target_os = "linux")]
            (Self::Shim(shimmed), _) => shimmed.is_empty(),
            #[cfg(target_os = "linux")]
            (Self::Child(_), Hold::Shim(_)) => unreachable!("a shim's child is not watched itself"),
        }
    }

    /// Waits until no process is left.
    pub(crate) async fn gone(&mut self, hold: &Arc<Hold>, order: Order) {
        match self {
            Self::Child(child) => {
                drop(child.wait().await);
                empty(hold, order).await;
            }
            #[cfg(target_os = "linux")]
            Self::Shim(shimmed) => shimmed.gone().await,
        }
    }

    /// True if the shim was killed, so that a gentle end became a forced one.
    pub(crate) fn is_lost(&self) -> bool {
        match self {
            Self::Child(_) => false,
            #[cfg(target_os = "linux")]
            Self::Shim(shimmed) => shimmed.is_lost(),
        }
    }

    /// The leader's exit status.
    pub(crate) fn status(&mut self) -> Option<ExitStatus> {
        match self {
            Self::Child(child) => child.try_wait().ok().flatten(),
            #[cfg(target_os = "linux")]
            Self::Shim(shimmed) => shimmed.status(),
        }
    }
}

/// Waits for the members of a group without its leader.
///
/// They get the signal repeatedly, with growing pauses: a shell's child that is not yet past its
/// exec loses a signal to the handler of its parent.
async fn empty(hold: &Hold, order: Order) {
    let has_members = || matches!(hold, Hold::Group(group) if group.has_members());
    let mut looks: u32 = 0;
    let mut pause = GROUP_PAUSE_MIN;
    while has_members() {
        looks = looks.saturating_add(1);
        if pause < GROUP_PAUSE_MAX || looks.is_power_of_two() {
            match order {
                Order::Terminate => hold.terminate(),
                Order::Kill => hold.kill(),
            }
        }
        sleep(pause).await;
        pause = (pause * 2).min(GROUP_PAUSE_MAX);
    }
}

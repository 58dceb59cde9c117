//! The daemon's handle for signals to a child and its whole tree.

use rustix::process::Signal;

use crate::group::Group;
#[cfg(target_os = "linux")]
use crate::shimmed::Orders;

/// The hold on one child and all processes that it started.
#[derive(Debug)]
pub(crate) enum Hold {
    /// The child's process group.
    Group(Group),
    /// The child's shim.
    #[cfg(target_os = "linux")]
    Shim(Orders),
}

impl Hold {
    /// The leader's process id.
    pub(crate) fn id(&self) -> u32 {
        match self {
            Self::Group(group) => group.id(),
            #[cfg(target_os = "linux")]
            Self::Shim(orders) => orders.leader(),
        }
    }

    /// Asks all to end.
    pub(crate) fn terminate(&self) {
        match self {
            Self::Group(group) => group.signal(Signal::TERM),
            #[cfg(target_os = "linux")]
            Self::Shim(orders) => orders.terminate(),
        }
    }

    /// Kills all, without waiting.
    pub(crate) fn kill(&self) {
        match self {
            Self::Group(group) => group.signal(Signal::KILL),
            #[cfg(target_os = "linux")]
            Self::Shim(orders) => orders.kill(),
        }
    }

    /// Lets go of a child that is gone: its numbers may belong to strangers from now on.
    pub(crate) fn close(&self) {
        match self {
            Self::Group(group) => group.close(),
            #[cfg(target_os = "linux")]
            Self::Shim(orders) => orders.close(),
        }
    }
}

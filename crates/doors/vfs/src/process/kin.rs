//! The mounts that a process may open, and those that it may know of.

use std::collections::{BTreeMap, BTreeSet};

use narthex_model::Pid;

use super::Process;
use crate::MountName;

/// The mounts that a process may open, and the other mounts that it may know of.
#[derive(Debug, Clone, Default)]
pub(crate) struct Kin {
    pub(super) allowed: BTreeSet<MountName>,
    /// Paths that mean another mount: those of the earlier process that this one continues.
    pub(super) also: BTreeMap<MountName, MountName>,
    /// The process itself and its ancestors: it may know that their mounts exist.
    pub(super) known: BTreeSet<Pid>,
    /// Mounts of the ancestors in another namespace, as reported by that namespace.
    pub(super) closed: BTreeSet<MountName>,
}

impl Kin {
    pub(crate) fn below(parent: Option<&Process>, pid: Pid, inherited: &[MountName]) -> Self {
        let mut kin = Self::default();
        if let Some(parent) = parent {
            let above = &parent.state().kin;
            kin.known.clone_from(&above.known);
            let of_parent = inherited.iter().filter(|name| above.allowed.contains(name));
            kin.allowed = of_parent.cloned().collect();
        }
        kin.known.insert(pid);
        kin
    }
}

impl Process {
    /// From here on it may open a mount.
    pub(crate) fn allow(&self, name: MountName) {
        self.state().kin.allowed.insert(name);
    }

    /// From here on a path that the process may have known means another mount: that of an earlier
    /// process which this one continues (R-D1).
    pub fn also(&self, old: MountName, now: MountName) {
        self.state().kin.also.insert(old, now);
    }

    /// The paths that mean another mount to it, each with what it means, in order.
    #[must_use]
    pub fn synonyms(&self) -> Vec<(MountName, MountName)> {
        let state = self.state();
        state.kin.also.iter().map(|(old, now)| (old.clone(), now.clone())).collect()
    }

    /// From here on it may know what is mounted for a process above it.
    pub fn know(&self, above: Pid) {
        self.state().kin.known.insert(above);
    }

    /// From here on these mounts exist and the process may not open them, and no others outside its
    /// namespace exist. The namespace that has these mounts reported them.
    pub fn close_off(&self, closed: BTreeSet<MountName>) {
        self.state().kin.closed = closed;
    }

    /// The mounts of those above it that are there, and that it may not open, in order.
    #[must_use]
    pub fn closed(&self) -> Vec<MountName> {
        let state = self.state();
        let Kin { allowed, also, known, .. } = state.kin.clone();
        drop(state);
        let is_closed = |name: &MountName| {
            known.contains(&name.pid) && !allowed.contains(name) && !also.contains_key(name)
        };
        self.shared.names().into_iter().filter(is_closed).collect()
    }
}

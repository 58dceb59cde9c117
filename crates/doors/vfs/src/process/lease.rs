//! A lease on a mount, which a frontend keeps for a file that the process has opened.

use std::sync::Arc;

use super::Process;
use crate::{
    Failure, MountName, Node, Operation, VfsError,
    file::{over, revoked, unmounted},
    mounted::Mount,
};

/// A server as it was mounted when one of its files was opened. A holder can check by it, for any
/// time, if earlier answers of the server may still be read.
#[derive(Debug, Clone)]
pub struct Lease {
    mount: Arc<Mount>,
    turn: u64,
}

impl Lease {
    /// The name of the server's mount, which may differ from the name by which it was opened.
    #[must_use]
    pub fn name(&self) -> &MountName {
        &self.mount.name
    }

    /// The canonical path of a node there, the same for each path by which it can be opened.
    #[must_use]
    pub fn path(&self, node: &Node) -> String {
        format!("{}{}", self.name().path(), node.sub_path())
    }

    /// True if the server of the lease is gone for every process.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.mount.gone.is_cancelled() || self.mount.turn() != self.turn
    }
}

impl Process {
    /// Takes a lease of what a path leads to. No server is asked.
    ///
    /// # Errors
    /// As [`Process::open`], but for how many it has open.
    pub fn lease(&self, path: &str) -> Result<Lease, VfsError> {
        let began = tokio::time::Instant::now();
        let found = self.find(path);
        let result = found.as_ref().map(|_| 0);
        self.observe((Operation::Open, path), (None, None), result, began);
        let (mount, _) = found.map_err(|error| VfsError::new(Operation::Open, path, error))?;
        let turn = mount.turn();
        Ok(Lease { mount, turn })
    }

    /// Checks that an opened file is still of use. Reports to no observer.
    ///
    /// # Errors
    /// As a descriptor fails that was opened then (S29): `DEVICE_DISCONNECTED` when the server is
    /// not mounted any more, another one is there, or the process has ended; `PERMISSION` when it
    /// may not use the mount any more.
    pub fn check(&self, lease: &Lease) -> Result<(), Failure> {
        let state = self.state();
        match () {
            () if state.has_ended => Err(over()),
            () if !state.kin.allowed.contains(lease.name()) => Err(revoked()),
            () if lease.is_over() => Err(unmounted()),
            () => Ok(()),
        }
    }
}

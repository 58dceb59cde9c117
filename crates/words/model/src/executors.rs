//! The executors of a daemon, which carry out runs.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crate::{ExecutorName, WorkspaceId};

/// The executors of a daemon, and for which workspaces each is. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct KnownExecutors {
    of: Arc<BTreeMap<ExecutorName, BTreeSet<WorkspaceId>>>,
}

impl KnownExecutors {
    /// The executors for these workspaces.
    #[must_use]
    pub fn new(of: BTreeMap<ExecutorName, BTreeSet<WorkspaceId>>) -> Self {
        Self { of: Arc::new(of) }
    }

    /// True if an executor of this name is for a workspace.
    #[must_use]
    pub fn has(&self, name: &ExecutorName, workspace: &WorkspaceId) -> bool {
        self.of.get(name).is_some_and(|workspaces| workspaces.contains(workspace))
    }

    /// The names of those that a workspace has.
    #[must_use]
    pub fn of_workspace(&self, workspace: &WorkspaceId) -> BTreeSet<ExecutorName> {
        let has = |(_, workspaces): &(_, &BTreeSet<WorkspaceId>)| workspaces.contains(workspace);
        self.of.iter().filter(has).map(|(name, _)| name.clone()).collect()
    }
}

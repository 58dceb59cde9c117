//! One value for each workspace, shared with the workspace's runs.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use narthex_model::WorkspaceId;

/// One value per workspace, created when it is first needed.
#[derive(Debug)]
pub(crate) struct ByWorkspace<T>(Mutex<HashMap<WorkspaceId, Arc<T>>>);

impl<T: Default> ByWorkspace<T> {
    /// A map that contains the value of one workspace.
    pub(crate) fn with(workspace: WorkspaceId, its: Arc<T>) -> Self {
        Self(Mutex::new(HashMap::from([(workspace, its)])))
    }

    /// The value of a workspace.
    pub(crate) fn of(&self, workspace: &WorkspaceId) -> Arc<T> {
        self.lock().entry(workspace.clone()).or_default().clone()
    }

    /// Removes the value of a workspace, and returns it so that the caller can empty it.
    pub(crate) fn remove(&self, workspace: &WorkspaceId) -> Option<Arc<T>> {
        self.lock().remove(workspace)
    }

    /// The values of all workspaces.
    pub(crate) fn all(&self) -> Vec<Arc<T>> {
        self.lock().values().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<WorkspaceId, Arc<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

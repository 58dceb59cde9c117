//! Copies that no share has any more.

use std::{collections::HashSet, time::Duration};

use narthex_control::ControlError;
use narthex_model::WorkspaceId;
use narthex_shares::ContentHash;
use tokio::time::sleep;

use super::{SharingError, blocking};
use crate::{RunError, Runs};

/// Pause between two sweeps of all workspaces.
const EVERY: Duration = Duration::from_secs(24 * 60 * 60);

impl Runs {
    /// Deletes copies that no share has, in all workspaces, for as long as the future is polled.
    /// Such copies are unfinished ones of a process that ended, and leftovers of another daemon's
    /// deletions.
    pub(crate) async fn sweep_daily(&self) {
        loop {
            if let Err(error) = self.sweep_all().await {
                tracing::warn!("copies without a share could not be removed yet: {error}");
            }
            sleep(EVERY).await;
        }
    }

    async fn sweep_all(&self) -> Result<(), RunError> {
        let depot = self.depot()?.depot.clone();
        let workspaces = blocking(move || depot.workspaces()).await?;
        for workspace in workspaces.map_err(SharingError::Files)? {
            self.sweep(&workspace).await?;
        }
        Ok(())
    }

    /// Deletes copies of a workspace that no share has, in the background.
    pub(super) fn sweep_later(&self, workspace: &WorkspaceId) {
        let (runs, workspace) = (self.clone(), workspace.clone());
        self.control().spawn(async move {
            if let Err(error) = runs.sweep(&workspace).await {
                tracing::warn!("copies without a share could not be removed yet: {error}");
            }
        });
    }

    async fn sweep(&self, workspace: &WorkspaceId) -> Result<u64, RunError> {
        let (depot, place) = (self.depot()?.depot.clone(), workspace.clone());
        let sweep = blocking(move || depot.sweep(&place)).await?.map_err(SharingError::Files)?;
        let hashes = self.store()?.shares().hashes(workspace).await.map_err(ControlError::Store)?;
        let stored: HashSet<_> =
            hashes.iter().filter_map(|hash| ContentHash::parse(hash)).collect();
        Ok(blocking(move || sweep.end(&stored)).await?.map_err(SharingError::Files)?)
    }

    /// Deletes all copies of a workspace that is deleted.
    pub(crate) async fn forget_shares(&self, workspace: &WorkspaceId) {
        let Ok(options) = self.depot() else { return };
        let (depot, place) = (options.depot.clone(), workspace.clone());
        let forgotten = blocking(move || depot.forget(&place)).await;
        // No share has the copies any more, so the next sweep finds them.
        match forgotten {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!("copies of a deleted workspace could not be removed yet: {error}");
            }
            Err(error) => {
                tracing::warn!("copies of a deleted workspace could not be removed yet: {error}");
            }
        }
    }
}

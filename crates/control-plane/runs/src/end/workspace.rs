//! Deletion of a workspace with all of its contents.

use narthex_control::{AccessError, By, ControlError};
use narthex_model::{RunEnd, WorkspaceId};

use crate::{RunError, RunFilter, Runs};

/// Number of rounds that end runs which began during the round before.
const ROUNDS: usize = 5;

impl Runs {
    /// Ends all active runs of a workspace, one after the other, and deletes the workspace with all
    /// of its contents. If the deletion fails, the runs have ended nevertheless.
    ///
    /// # Errors
    /// When the workspace is `default`, whose runs then stay active; when new runs begin in each
    /// round; when there is no such workspace or no store; or when the store fails.
    pub async fn workspace_delete(&self, id: &WorkspaceId, by: &By) -> Result<(), RunError> {
        let control = self.control();
        for _ in 0..ROUNDS {
            if *id != WorkspaceId::default() {
                self.end_all(id, by).await?;
            }
            match control.workspace_delete(id, true, by).await {
                // Of all contents, only active runs prevent the deletion.
                Err(ControlError::Access(AccessError::Living { .. })) => {}
                done => {
                    done?;
                    self.forget_shares(id).await;
                    return Ok(());
                }
            }
        }
        Err(ControlError::from(AccessError::RunsBegin(id.clone())).into())
    }

    async fn end_all(&self, workspace: &WorkspaceId, by: &By) -> Result<(), RunError> {
        let store = self.control().catalog_store(workspace).await?;
        let living = RunFilter { status: Some(None), ..RunFilter::default() };
        for run in store.runs().all(workspace, living).await.map_err(ControlError::Store)? {
            // A run that ends meanwhile needs nothing more.
            self.end_stored(workspace, run.id, RunEnd::Ended, by.clone(), None).await?;
        }
        Ok(())
    }
}

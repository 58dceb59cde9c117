//! The sessions' own folders: the daemon removes them some time after the end of the session.

use std::{
    io,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use narthex_control::ControlError;
use narthex_model::{SessionId, WorkspaceId};
use narthex_shares::Folder;
use tokio::{
    fs,
    time::{MissedTickBehavior, interval},
};

use crate::{RunError, Runs};

/// Time for which people may look at the folder of an ended session.
const KEPT: Duration = Duration::from_secs(24 * 60 * 60);
/// Pause between two searches for unused folders.
const EVERY: Duration = Duration::from_secs(60 * 60);

impl Runs {
    /// Removes unused folders, for as long as the future is polled.
    pub(crate) async fn sweep_folders(&self) {
        let mut ticks = interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if let Err(error) = self.remove_folders(SystemTime::now()).await {
                tracing::warn!("folders of sessions cannot be read: {error}");
            }
        }
    }

    /// Removes the folders of sessions that ended a day before this time, or that do not exist. In
    /// other folders, removes the unfinished copies of a killed daemon.
    ///
    /// # Errors
    /// When the store fails, or a folder cannot be read.
    pub async fn remove_folders(&self, now: SystemTime) -> Result<(), RunError> {
        let root = &self.shared.options.folders;
        for of_workspace in names(root).await? {
            let Ok(workspace) = WorkspaceId::new(&of_workspace) else { continue };
            let place = root.join(&of_workspace);
            for name in names(&place).await? {
                let Some(session) = SessionId::parse(&name) else { continue };
                let path = place.join(&name);
                if self.is_needed(&workspace, session, &path, now).await? {
                    remove_leftovers(path, session).await;
                } else if let Err(error) = fs::remove_dir_all(&path).await {
                    tracing::warn!(session.id = %session, "a folder cannot be removed: {error}");
                }
            }
        }
        Ok(())
    }

    async fn is_needed(
        &self,
        workspace: &WorkspaceId,
        session: SessionId,
        path: &Path,
        now: SystemTime,
    ) -> Result<bool, RunError> {
        let found = self.store()?.sessions().find(workspace, session).await;
        let since = match found.map_err(ControlError::Store)? {
            Some(session) => match session.ended_at {
                Some(ended) => ended,
                None => return Ok(true),
            },
            // The folder's session may be about to be stored.
            None => match fs::metadata(path).await.and_then(|found| found.modified()) {
                Ok(modified) => modified,
                Err(error) => return Err(fault(path, error)),
            },
        };
        Ok(now.duration_since(since).unwrap_or_default() < KEPT)
    }
}

/// Removes copies that no process finishes any more. A failure is logged, and the next search tries
/// again.
async fn remove_leftovers(path: PathBuf, session: SessionId) {
    let removing = move || Folder::open(&path).and_then(|folder| folder.remove_leftovers());
    match tokio::task::spawn_blocking(removing).await {
        Ok(Ok(0)) => {}
        Ok(Ok(removed)) => {
            tracing::info!(
                session.id = %session, removed,
                "leftovers of interrupted copies were removed"
            );
        }
        Ok(Err(error)) => {
            tracing::warn!(
                session.id = %session,
                "leftovers of interrupted copies could not be removed: {error}"
            );
        }
        Err(error) => {
            tracing::warn!(
                session.id = %session,
                "leftovers of interrupted copies could not be removed: {error}"
            );
        }
    }
}

/// The names of the folders in a folder; empty if that folder does not exist.
async fn names(place: &Path) -> Result<Vec<String>, RunError> {
    let mut found = Vec::new();
    let mut reading = match fs::read_dir(place).await {
        Ok(reading) => reading,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
        Err(error) => return Err(fault(place, error)),
    };
    while let Some(entry) = reading.next_entry().await.map_err(|error| fault(place, error))? {
        let is_folder = entry.file_type().await.is_ok_and(|kind| kind.is_dir());
        if let (true, Ok(name)) = (is_folder, entry.file_name().into_string()) {
            found.push(name);
        }
    }
    Ok(found)
}

fn fault(path: &Path, source: io::Error) -> RunError {
    RunError::Folder { path: path.to_owned(), source }
}

//! Shares of files from runs' folders: copied, stored, read and deleted.
//!
//! A share belongs to its session, and its whole workspace sees it. The files of a share are copies
//! ([`narthex_shares`]), which are deleted when no share has them any more.

mod comments;
mod copying;
mod error;
mod handing;
mod rows;
mod upkeep;

use std::{
    fs::File,
    path::{Path, PathBuf},
    sync::Arc,
};

pub(crate) use self::copying::Copying;
use self::rows::{file_row, new_row};
pub use self::{
    comments::{CommentOn, Commenter, SeenThread, ThreadPage},
    error::SharingError,
    handing::Handed,
};
use crate::{RunError, Runs};
use narthex_audit::{AuditEvent, kind};
use narthex_control::{By, ControlError};
use narthex_events::EventKind;
use narthex_gateway::RunView;
use narthex_model::{ErrorKind, RunId, SessionId, ShareId, WorkspaceId, with_causes};
use narthex_shares::{ContentHash, Depot, Folder, Limits, ShareError, Snapshot, Taken};
use narthex_store::{RunRow, ShareBounds, ShareRow, SharedFileRow};
use serde_json::json;

/// The most shares and files of a session and a workspace: each row costs, also one of an empty
/// file.
const BOUNDS: ShareBounds =
    ShareBounds { of_session: 1000, of_workspace: 10_000, files_of_workspace: 200_000 };

/// The store of copies, and its limit in bytes.
#[derive(Debug, Clone)]
pub struct ShareOptions {
    /// The copies.
    pub(crate) depot: Arc<Depot>,
    /// The most bytes of one workspace.
    pub(crate) quota: u64,
}

/// A run's request to share.
#[derive(Debug, Clone)]
pub struct NewShare {
    /// The path of a file or folder in the run's folder.
    pub path: String,
    /// The title for people; without one, the name of the file or folder.
    pub title: Option<String>,
    /// The share whose files the new files replace.
    pub share: Option<String>,
}

/// A share with its files.
#[derive(Debug, Clone)]
pub struct SeenShare {
    /// The stored share.
    pub row: ShareRow,
    /// The files, in the order of their paths.
    pub files: Vec<SharedFileRow>,
}

/// One page of a workspace's shares.
#[derive(Debug)]
pub struct SharePage {
    /// The shares, in the order of their ids.
    pub items: Vec<ShareRow>,
    /// The id after which the next page begins; `None` if there is no next page.
    pub next: Option<ShareId>,
}

/// The run that shares.
struct Sharer {
    workspace: WorkspaceId,
    run: RunId,
    session: SessionId,
}

impl ShareOptions {
    /// Opens the store of copies in a folder that has no other contents. It holds at most `quota`
    /// bytes for each workspace.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn open(folder: &Path, quota: u64) -> Result<Self, SharingError> {
        let depot = Depot::open(folder, Limits::default()).map_err(SharingError::Files)?;
        Ok(Self { depot: Arc::new(depot), quota })
    }
}

impl Runs {
    /// Shares a file or folder of a run's folder with its workspace (X-E94 to X-E96). The snapshot
    /// names the parts of a folder that are not in the share.
    ///
    /// # Errors
    /// When the run has no folder or no session, the path leads out of the folder or to nothing
    /// that can be shared, a limit is reached, copying takes longer than 90 s, the share to replace
    /// does not exist or belongs to another session, or the disk or the store fails. Then nothing
    /// is shared.
    pub async fn share(
        &self,
        run: &RunView,
        asked: NewShare,
    ) -> Result<(SeenShare, Snapshot), RunError> {
        let session = self.session_of(run).ok_or(SharingError::NoSession)?;
        let sharer = Sharer { workspace: run.workspace.clone(), run: run.id, session };
        let earlier = match &asked.share {
            Some(id) => Some(self.own_share(&sharer, id).await?),
            None => None,
        };
        self.depot()?;
        let folder = self.folder_of(run).await?.ok_or(SharingError::NoFolder)?;
        let runs = self.clone();
        let sharing = async move { runs.take_in(sharer, asked, folder, earlier).await };
        // The task completes also if the caller disconnects: the whole share is made, or nothing of
        // it.
        let done = self.control().spawn(sharing).await;
        done.unwrap_or_else(|error| Err(ControlError::Bug(error).into()))
    }

    async fn take_in(
        &self,
        sharer: Sharer,
        asked: NewShare,
        folder: PathBuf,
        earlier: Option<ShareRow>,
    ) -> Result<(SeenShare, Snapshot), RunError> {
        let workspace = &sharer.workspace;
        // `taken` is held until the share is stored, so that no sweep deletes the copies.
        let taken = self.copies(workspace.clone(), asked.path, folder).await?;
        let snapshot = taken.snapshot.clone();
        let row = new_row(&sharer, asked.title, earlier.as_ref(), &snapshot)?;
        let files: Vec<_> = snapshot.files.iter().map(file_row).collect();
        let kind = if earlier.is_some() { kind::SHARE_REPLACED } else { kind::SHARE_CREATED };
        let event = AuditEvent::new(kind, by_run(sharer.run)).in_workspace(workspace);
        let event = event.of_run(sharer.run.to_text()).of_session(sharer.session.to_text());
        let noted = self.control().note(event.on("share", row.id.to_text())).await?;
        let store = self.store()?.shares();
        let is_kept = match &earlier {
            Some(_) => store.replace(&row, &files, BOUNDS).await,
            None => store.create(&row, &files, BOUNDS).await,
        };
        if !is_kept.map_err(ControlError::Store)? {
            return Err(self.not_stored(&row, earlier.is_some()).await?.into());
        }
        drop(taken);
        noted.done().await;
        let share = self.seen_share(workspace, row.id).await?;
        let payload = json!({
            "share_id": share.row.id.to_text(),
            "share_type": share.row.kind,
            "title": share.row.title,
            "file_count": share.files.len(),
            "total_size": share.row.total_size,
            "entry_point": share.row.entry_point,
            "revision": share.row.revision,
        });
        let told = (EventKind::AgentShare, payload);
        self.tell(workspace, sharer.session, Some(sharer.run), told).await;
        if earlier.is_some() {
            self.sweep_later(workspace);
        }
        Ok((share, snapshot))
    }

    /// The reason why a share was not stored.
    async fn not_stored(&self, row: &ShareRow, is_earlier: bool) -> Result<SharingError, RunError> {
        let store = self.store()?.shares();
        let counts = store.counts(&row.workspace, row.session).await;
        let counts = counts.map_err(ControlError::Store)?;
        let is_there = store.find(&row.workspace, row.id).await.map_err(ControlError::Store)?;
        Ok(match is_earlier {
            true if is_there.is_none() => SharingError::NoShare(row.id.to_text()),
            false if counts.of_session >= BOUNDS.of_session => {
                SharingError::TooMany("session", BOUNDS.of_session)
            }
            false if counts.of_workspace >= BOUNDS.of_workspace => {
                SharingError::TooMany("workspace", BOUNDS.of_workspace)
            }
            _ => SharingError::TooManyFiles(BOUNDS.files_of_workspace),
        })
    }

    async fn copies(
        &self,
        workspace: WorkspaceId,
        path: String,
        folder: PathBuf,
    ) -> Result<Taken, RunError> {
        let ShareOptions { depot, quota } = self.depot()?.clone();
        let place = workspace.clone();
        let taken = self.shared.copying.copied(move |stop| {
            let folder = Folder::open(&folder).map_err(|error| {
                tracing::warn!("files could not be shared: {}", with_causes(&error));
                SharingError::FolderGone(error)
            })?;
            depot.take(&workspace, &folder, &path, quota, stop).map_err(of_files)
        });
        let taken = taken.await;
        if matches!(&taken, Err(RunError::Sharing(SharingError::Files(ShareError::Stopped)))) {
            // Some of the copies may be stored already.
            self.sweep_later(&place);
        }
        taken
    }

    /// The first `limit` shares of a workspace whose ids come after `after`.
    ///
    /// # Errors
    /// When there is no store or no such workspace, or the store fails.
    pub async fn shares(
        &self,
        workspace: &WorkspaceId,
        after: &str,
        limit: u32,
    ) -> Result<SharePage, RunError> {
        let store = self.control().catalog_store(workspace).await?;
        let after = ShareId::parse(after);
        let page = store.shares().page(workspace, after, limit.saturating_add(1)).await;
        let mut items = page.map_err(ControlError::Store)?;
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let has_more = items.len() > limit;
        items.truncate(limit);
        let next = items.last().filter(|_| has_more).map(|row| row.id);
        Ok(SharePage { items, next })
    }

    /// One share of a workspace.
    ///
    /// # Errors
    /// When there is no share with this id, or the store fails.
    pub async fn share_get(
        &self,
        workspace: &WorkspaceId,
        id: &str,
    ) -> Result<SeenShare, RunError> {
        self.control().catalog_store(workspace).await?;
        self.seen_share(workspace, read_id(id)?).await
    }

    /// One file of a share, opened at its beginning: the one at `path`, or the share's entry point.
    ///
    /// # Errors
    /// When the share or the file does not exist, the caller names no file of several, or the store
    /// or the disk fails.
    pub async fn share_file(
        &self,
        workspace: &WorkspaceId,
        id: &str,
        path: Option<&str>,
    ) -> Result<(SeenShare, SharedFileRow, File), RunError> {
        let share = self.share_get(workspace, id).await?;
        let path = path.or(share.row.entry_point.as_deref()).ok_or(SharingError::WhichFile)?;
        let found = share.files.iter().find(|file| file.path == path).cloned();
        let file = found.ok_or_else(|| SharingError::NoFile(path.chars().take(200).collect()))?;
        let gone = || RunError::from(SharingError::Files(ShareError::CopyGone));
        let hash = ContentHash::parse(&file.hash).ok_or_else(gone)?;
        let (depot, workspace) = (self.depot()?.depot.clone(), workspace.clone());
        let opened = blocking(move || depot.read(&workspace, hash)).await?;
        Ok((share, file, opened.map_err(of_files)?))
    }

    /// Deletes a share with its comments.
    ///
    /// # Errors
    /// When there is no share with this id, or the store fails.
    pub async fn share_delete(
        &self,
        workspace: &WorkspaceId,
        id: &str,
        by: &By,
    ) -> Result<(), RunError> {
        let share = self.share_get(workspace, id).await?.row;
        let (runs, workspace) = (self.clone(), workspace.clone());
        let event = AuditEvent::new(kind::SHARE_DELETED, by.clone()).in_workspace(&workspace);
        let event = event.of_session(share.session.to_text()).on("share", share.id.to_text());
        let deleting = self.control().to_the_end(async move |control| {
            let noted = control.note(event).await?;
            let store = control.catalog_store(&workspace).await?;
            let is_removed = store.shares().remove(&workspace, share.id).await;
            if is_removed.map_err(ControlError::Store)? {
                noted.done().await;
                runs.sweep_later(&workspace);
            }
            Ok(())
        });
        Ok(deleting.await?)
    }

    /// The folder that a run was given; the run of the process itself has none.
    async fn folder_of(&self, run: &RunView) -> Result<Option<PathBuf>, RunError> {
        match self.stored(&run.workspace, run.id).await? {
            Some(row) => self.folder_of_row(&row).await,
            None => Ok(None),
        }
    }

    async fn folder_of_row(&self, row: &RunRow) -> Result<Option<PathBuf>, RunError> {
        let frozen = self.frozen(row).await?;
        let folder = frozen.of.agent().and_then(|agent| agent.inputs.project_dir.clone());
        // A relative path would mean a folder below the one in which the daemon was started.
        Ok(folder.map(PathBuf::from).filter(|folder| folder.is_absolute()))
    }

    async fn own_share(&self, sharer: &Sharer, id: &str) -> Result<ShareRow, RunError> {
        let share = self.share_row(&sharer.workspace, read_id(id)?).await?;
        match share.session == sharer.session {
            true => Ok(share),
            false => Err(SharingError::OthersShare(share.id).into()),
        }
    }

    async fn share_row(&self, workspace: &WorkspaceId, id: ShareId) -> Result<ShareRow, RunError> {
        let found = self.store()?.shares().find(workspace, id).await;
        let found = found.map_err(ControlError::Store)?;
        Ok(found.ok_or_else(|| SharingError::NoShare(id.to_text()))?)
    }

    async fn seen_share(
        &self,
        workspace: &WorkspaceId,
        id: ShareId,
    ) -> Result<SeenShare, RunError> {
        let row = self.share_row(workspace, id).await?;
        let files = self.store()?.shares().files(workspace, id).await;
        Ok(SeenShare { row, files: files.map_err(ControlError::Store)? })
    }

    fn depot(&self) -> Result<&ShareOptions, RunError> {
        Ok(self.shared.options.shares.as_ref().ok_or(SharingError::NoDepot)?)
    }
}

/// The cause of a disk failure belongs into the log only: it may reveal how this host is set up.
fn of_files(error: ShareError) -> SharingError {
    if error.kind() == ErrorKind::Unavailable {
        tracing::warn!("a share failed: {}", with_causes(&error));
    }
    SharingError::Files(error)
}

/// Runs work that waits for the disk, on a thread for blocking work.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, RunError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| ControlError::Bug(error).into())
}

fn read_id(id: &str) -> Result<ShareId, SharingError> {
    let unknown = || SharingError::NoShare(id.chars().take(100).collect());
    ShareId::parse(id).ok_or_else(unknown)
}

fn by_run(run: RunId) -> By {
    By::new(narthex_audit::ActorKind::Run, run.to_text())
}

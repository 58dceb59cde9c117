//! Files that a session hands to its children, and fetches from them, as copies (X-M3).

use std::{io, path::PathBuf};

use narthex_gateway::RunView;
use narthex_shares::{Destination, Folder, Limits, ShareError, Transferred};
use tokio::fs;

use super::{SharingError, of_files};
use crate::{Child, RunError, Runs};

/// The most bytes that are copied at once.
const HANDED_MAX: u64 = 50 * 1024 * 1024;

/// The result of a copy from one folder to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handed {
    /// The copy's id in the log.
    pub stage: String,
    /// The path in the target folder below which the files are.
    pub path: String,
    /// Number of files.
    pub files: usize,
    /// Number of bytes of all files.
    pub bytes: u64,
    /// Number of entries passed over, such as links and hidden files.
    pub skipped: usize,
}

/// A copy to make, from one folder to another.
struct Handing {
    from: PathBuf,
    paths: Vec<String>,
    to: PathBuf,
    below: String,
    /// True if the copy replaces all files that were fetched before.
    is_fetched: bool,
}

impl Runs {
    /// Copies a file or folder of a run's folder into the folder of an active child: below `to`, or
    /// below `from-caller` without it.
    ///
    /// # Errors
    /// When the session is no child or has ended, one of the two has no folder or both have the
    /// same, a path leads out of its folder, to nothing or to hidden files, a limit is reached,
    /// copying takes longer than 90 s, or the disk or the store fails. Then the copy leaves no new
    /// files.
    pub async fn hand_to_child(
        &self,
        run: &RunView,
        child: &str,
        path: String,
        to: Option<String>,
    ) -> Result<Handed, RunError> {
        let child = self.live_child(run, child).await?;
        let (own, theirs) = self.both_folders(run, &child, SharingError::NoFolder).await?;
        let below = to.unwrap_or_else(|| "from-caller".to_owned());
        let (from, to) = (own, theirs);
        self.handed(Handing { from, paths: vec![path], to, below, is_fetched: false }).await
    }

    /// Copies files and folders of a child's folder into the run's folder: below `children/` and
    /// the child's session, in place of files fetched before. Without paths, copies the whole
    /// folder.
    ///
    /// # Errors
    /// As [`hand_to_child`](Self::hand_to_child); but the child may have ended.
    pub async fn fetch_from_child(
        &self,
        run: &RunView,
        child: &str,
        mut paths: Vec<String>,
    ) -> Result<Handed, RunError> {
        let child = self.child(run, child).await?;
        let (own, theirs) = self.both_folders(run, &child, SharingError::NoOwnFolder).await?;
        if paths.is_empty() {
            paths.push(".".to_owned());
        }
        let below = format!("children/{}", child.session.id);
        self.handed(Handing { from: theirs, paths, to: own, below, is_fetched: true }).await
    }

    /// The folders of a run and of its child, which are not the same.
    async fn both_folders(
        &self,
        run: &RunView,
        child: &Child,
        without: SharingError,
    ) -> Result<(PathBuf, PathBuf), RunError> {
        self.depot()?;
        let own = self.folder_of(run).await?.ok_or(without)?;
        let theirs = self.folder_of_child(child).await?.ok_or(SharingError::NoChildFolder)?;
        match own == theirs {
            true => Err(SharingError::SameFolder.into()),
            false => Ok((own, theirs)),
        }
    }

    /// The folder of a child. The store forgets the frozen configuration of a child's runs at their
    /// end; the session's own folder exists for a while after that.
    async fn folder_of_child(&self, child: &Child) -> Result<Option<PathBuf>, RunError> {
        if let Some(row) = child.run.as_ref().filter(|row| row.ended.is_none()) {
            return self.folder_of_row(row).await;
        }
        let own = self.own_folder(&child.session.workspace, child.session.id);
        match fs::metadata(&own).await {
            Ok(found) => Ok(found.is_dir().then_some(own)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(RunError::Folder { path: own, source }),
        }
    }

    async fn handed(&self, handing: Handing) -> Result<Handed, RunError> {
        let depot = self.depot()?.depot.clone();
        let limits =
            Limits { file_bytes: HANDED_MAX, share_bytes: HANDED_MAX, ..Limits::default() };
        let mut bytes = [0; 6];
        getrandom::fill(&mut bytes).map_err(RunError::Randomness)?;
        let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let stage = format!("stg_{digits}");
        let (path, is_fetched) = (handing.below.clone(), handing.is_fetched);
        let copying = self.shared.copying.copied(move |stop| {
            let Handing { from, paths, to, below, is_fetched } = handing;
            let own = |path: PathBuf| Folder::open(&path).map_err(SharingError::FolderGone);
            let childs =
                |path: PathBuf| Folder::open(&path).map_err(|_gone| SharingError::NoChildFolder);
            let (from, folder) = match is_fetched {
                true => (childs(from)?, own(to)?),
                false => (own(from)?, childs(to)?),
            };
            // Leftovers of an earlier daemon do no harm, so a failure to remove them is only
            // logged.
            match folder.remove_leftovers() {
                Ok(0) => {}
                Ok(removed) => {
                    tracing::info!(removed, "leftovers of interrupted copies were removed");
                }
                Err(error) => {
                    tracing::warn!("leftovers of interrupted copies could not be removed: {error}");
                }
            }
            let paths: Vec<_> = paths.iter().map(String::as_str).collect();
            let to = Destination {
                folder: &folder,
                path: &below,
                is_emptied: is_fetched,
                keeps_paths: is_fetched,
            };
            let copied = depot.transfer(&from, &paths, to, &limits, stop);
            copied.map_err(|error| refused(error, is_fetched))
        });
        let Transferred { files, bytes, skipped } = copying.await?;
        tracing::info!(stage.id = stage, is_fetched, files, bytes, "files were copied for a run");
        Ok(Handed { stage, path, files, bytes, skipped })
    }
}

/// Converts the error of a copy. A fetch that is too large has an error of its own.
fn refused(error: ShareError, is_fetched: bool) -> SharingError {
    match error {
        ShareError::FileTooLarge { .. } | ShareError::ShareTooLarge { .. } if is_fetched => {
            SharingError::TooMuchToFetch(HANDED_MAX)
        }
        error => of_files(error),
    }
}

//! Stored copies: each content once per workspace, within a quota.

use std::collections::{HashMap, HashSet, hash_map::Entry};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fs_err as fs;
use narthex_model::WorkspaceId;

use crate::error::io_error;
use crate::snapshot::{Copying, FileCopy, copy_out};
use crate::transfer::{Destination, Transferred, transfer};
use crate::{ContentHash, Folder, Limits, ShareError, Snapshot, Stop};

/// Copies of shared files, in a folder that only one depot of one process uses.
#[derive(Debug)]
pub struct Depot {
    workspaces: PathBuf,
    temporary: PathBuf,
    limits: Limits,
    shelves: Mutex<HashMap<WorkspaceId, Arc<Mutex<Shelf>>>>,
}

/// A share's copies in the depot. They stay as long as this value lives, and then as long as the
/// store names them to sweeps. Hold the value until the share is stored.
#[derive(Debug)]
#[must_use = "copies that are neither held nor stored are swept"]
pub struct Taken {
    /// The copied files.
    pub snapshot: Snapshot,
    hashes: Vec<ContentHash>,
    shelf: Arc<Mutex<Shelf>>,
}

/// A running sweep: it deletes copies that no [`Taken`] held at its start and that are not stored.
/// Read the store only after the start of the sweep.
#[derive(Debug)]
#[must_use = "nothing is swept before it ends"]
pub struct Sweep {
    shelf: Arc<Mutex<Shelf>>,
    number: u64,
}

/// The copies of one workspace.
#[derive(Debug)]
struct Shelf {
    folder: PathBuf,
    copies: HashMap<ContentHash, Kept>,
    used: u64,
    sweeps: u64,
    is_gone: bool,
}

#[derive(Debug)]
struct Kept {
    size: u64,
    /// Number of [`Taken`] that hold the copy.
    holders: usize,
    /// The last sweep that found the copy without a holder; a new holder resets this.
    seen_by: Option<u64>,
}

impl Depot {
    /// Opens the depot in `folder`, which is created if it is missing, and removes unfinished
    /// copies of an ended process.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn open(folder: &Path, limits: Limits) -> Result<Self, ShareError> {
        let (workspaces, temporary) = (folder.join("workspaces"), folder.join("temporary"));
        match fs::remove_dir_all(&temporary) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(io_error("clear the depot of shares")(error));
            }
            _ => {}
        }
        make_private(folder)?;
        make_private(&workspaces)?;
        make_private(&temporary)?;
        Ok(Self { workspaces, temporary, limits, shelves: Mutex::default() })
    }

    /// Copies the file or folder at `path` of a run's folder, and stores the copies within the
    /// workspace's `quota` of bytes.
    ///
    /// # Errors
    /// When the path leads out of the folder or to nothing that can be shared, a limit is reached,
    /// `stop` is used or the disk fails. Then no copy is stored.
    pub fn take(
        &self,
        workspace: &WorkspaceId,
        folder: &Folder,
        path: &str,
        quota: u64,
        stop: &Stop,
    ) -> Result<Taken, ShareError> {
        let shelf = self.shelf(workspace)?;
        let copying = Copying { limits: &self.limits, temporary: &self.temporary, stop };
        let (snapshot, copies) = copy_out(folder, path, copying)?;
        let hashes = lock(&shelf).keep(copies, quota, stop)?;
        Ok(Taken { snapshot, hashes, shelf })
    }

    /// Copies files and folders of one run's folder into another's, within `limits` in total; the
    /// depot stores none of them. Hidden files are skipped.
    ///
    /// # Errors
    /// When a path leads out of its folder or to nothing, all of it is hidden, a limit is reached,
    /// `stop` is used or the disk fails. Then nothing is changed, except if the disk fails while
    /// files are moved into place.
    pub fn transfer(
        &self,
        from: &Folder,
        paths: &[&str],
        to: Destination<'_>,
        limits: &Limits,
        stop: &Stop,
    ) -> Result<Transferred, ShareError> {
        transfer(from, paths, to, Copying { limits, temporary: &self.temporary, stop })
    }

    /// Opens the copy of a content, at its start.
    ///
    /// # Errors
    /// When the workspace does not store the copy, or the disk fails.
    pub fn read(&self, workspace: &WorkspaceId, hash: ContentHash) -> Result<File, ShareError> {
        let path = self.workspaces.join(workspace.as_str()).join(hash.to_string());
        match fs::File::open(path) {
            Ok(file) => Ok(file.into_parts().0),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(ShareError::CopyGone),
            Err(error) => Err(io_error("read a shared file")(error)),
        }
    }

    /// Number of bytes that a workspace stores.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn used(&self, workspace: &WorkspaceId) -> Result<u64, ShareError> {
        Ok(lock(&*self.shelf(workspace)?).used)
    }

    /// The workspaces that may have copies.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn workspaces(&self) -> Result<Vec<WorkspaceId>, ShareError> {
        let reading = "read the depot of shares";
        let mut workspaces = Vec::new();
        for entry in fs::read_dir(&self.workspaces).map_err(io_error(reading))? {
            let name = entry.map_err(io_error(reading))?.file_name();
            workspaces.extend(name.to_str().and_then(|name| WorkspaceId::new(name).ok()));
        }
        Ok(workspaces)
    }

    /// Starts a search for copies that no share has.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn sweep(&self, workspace: &WorkspaceId) -> Result<Sweep, ShareError> {
        let shelf = self.shelf(workspace)?;
        let mut held = lock(&shelf);
        held.sweeps += 1;
        let number = held.sweeps;
        for kept in held.copies.values_mut().filter(|kept| kept.holders == 0) {
            kept.seen_by = Some(number);
        }
        drop(held);
        Ok(Sweep { shelf, number })
    }

    /// Deletes all copies of a deleted workspace. Copies that are being made for it are discarded.
    ///
    /// # Errors
    /// When the disk fails; then the call can be repeated.
    pub fn forget(&self, workspace: &WorkspaceId) -> Result<(), ShareError> {
        let mut shelves = lock(&self.shelves);
        if let Some(shelf) = shelves.remove(workspace) {
            lock(&shelf).is_gone = true;
        }
        match fs::remove_dir_all(self.workspaces.join(workspace.as_str())) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done.map_err(io_error("delete the shares of a workspace")),
        }
    }

    fn shelf(&self, workspace: &WorkspaceId) -> Result<Arc<Mutex<Shelf>>, ShareError> {
        let mut shelves = lock(&self.shelves);
        Ok(match shelves.entry(workspace.clone()) {
            Entry::Occupied(shelf) => shelf.get().clone(),
            Entry::Vacant(vacant) => {
                let shelf = Shelf::open(self.workspaces.join(workspace.as_str()))?;
                vacant.insert(Arc::new(Mutex::new(shelf))).clone()
            }
        })
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        lock(&self.shelf).let_go(&self.hashes);
    }
}

impl Sweep {
    /// Deletes copies that had no holder since the start of the sweep and are not in `stored`;
    /// returns the number of freed bytes.
    ///
    /// # Errors
    /// When the disk fails; the next sweep finds copies that were not deleted.
    pub fn end(self, stored: &HashSet<ContentHash>) -> Result<u64, ShareError> {
        let mut shelf = lock(&self.shelf);
        let is_over = |(hash, kept): (&ContentHash, &Kept)| {
            let is_seen = kept.seen_by == Some(self.number);
            (is_seen && !stored.contains(hash)).then_some(*hash)
        };
        let over: Vec<_> = shelf.copies.iter().filter_map(is_over).collect();
        let mut freed = 0;
        for hash in over {
            freed += shelf.delete(hash)?;
        }
        Ok(freed)
    }
}

impl Shelf {
    fn open(folder: PathBuf) -> Result<Self, ShareError> {
        make_private(&folder)?;
        let reading = "read the depot of shares";
        let mut copies = HashMap::new();
        let mut used = 0;
        for entry in fs::read_dir(&folder).map_err(io_error(reading))? {
            let entry = entry.map_err(io_error(reading))?;
            let hash = entry.file_name().to_str().and_then(ContentHash::parse);
            let Some(hash) = hash else { continue };
            let size = entry.metadata().map_err(io_error(reading))?.len();
            used += size;
            copies.insert(hash, Kept { size, holders: 0, seen_by: None });
        }
        Ok(Self { folder, copies, used, sweeps: 0, is_gone: false })
    }

    /// Keeps copies, all or none of them, and holds each.
    fn keep(
        &mut self,
        copies: Vec<FileCopy>,
        quota: u64,
        stop: &Stop,
    ) -> Result<Vec<ContentHash>, ShareError> {
        if self.is_gone {
            return Err(ShareError::WorkspaceGone);
        }
        let mut new = HashMap::new();
        let mut hashes = Vec::new();
        for copy in copies {
            hashes.push(copy.hash);
            if !self.copies.contains_key(&copy.hash) {
                new.insert(copy.hash, copy);
            }
        }
        let asked: u64 = new.values().map(|copy| copy.size).sum();
        if asked > 0 && self.used.saturating_add(asked) > quota {
            return Err(ShareError::Quota { used: self.used, asked, max: quota });
        }
        let is_new = !new.is_empty();
        // Copies that are put down before a failure have no holder: the next sweep finds them.
        for copy in new.into_values() {
            stop.check()?;
            self.put(copy)?;
        }
        if is_new {
            self.sync()?;
        }
        for hash in &hashes {
            if let Some(kept) = self.copies.get_mut(hash) {
                kept.holders += 1;
                kept.seen_by = None;
            }
        }
        Ok(hashes)
    }

    fn put(&mut self, copy: FileCopy) -> Result<(), ShareError> {
        let path = self.folder.join(copy.hash.to_string());
        let written = fs::File::open(&copy.at).and_then(|file| file.sync_data());
        written.map_err(io_error("keep a shared file"))?;
        copy.at.persist(path).map_err(|error| io_error("keep a shared file")(error.error))?;
        self.used += copy.size;
        self.copies.insert(copy.hash, Kept { size: copy.size, holders: 0, seen_by: None });
        Ok(())
    }

    fn delete(&mut self, hash: ContentHash) -> Result<u64, ShareError> {
        match fs::remove_file(self.folder.join(hash.to_string())) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(io_error("delete a copy that no share has")(error));
            }
            _ => {}
        }
        let size = self.copies.remove(&hash).map_or(0, |kept| kept.size);
        self.used -= size;
        Ok(size)
    }

    fn let_go(&mut self, hashes: &[ContentHash]) {
        for hash in hashes {
            if let Some(kept) = self.copies.get_mut(hash) {
                kept.holders = kept.holders.saturating_sub(1);
            }
        }
    }

    /// Makes the names of new copies survive a loss of power.
    fn sync(&self) -> Result<(), ShareError> {
        let folder = fs::File::open(&self.folder);
        folder.and_then(|folder| folder.sync_all()).map_err(io_error("keep a shared file"))
    }
}

/// Makes a folder that only this user may look into.
fn make_private(folder: &Path) -> Result<(), ShareError> {
    use std::os::unix::fs::DirBuilderExt;

    let mut builder = std::fs::DirBuilder::new();
    let made = builder.recursive(true).mode(0o700).create(folder);
    made.map_err(io_error("make the depot of shares"))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

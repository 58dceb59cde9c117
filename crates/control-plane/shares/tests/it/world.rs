//! A folder of a run with files outside of it, and a depot.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use narthex_model::WorkspaceId;
use narthex_shares::{ContentHash, Depot, Folder, Limits, ShareError, Snapshot, Stop, Taken};
use tempfile::TempDir;

pub(crate) const INSIDE: &str = "inside";
pub(crate) const CANARY: &str = "canary-4711";

pub(crate) struct World {
    /// Goes away with the world.
    pub(crate) dir: TempDir,
    pub(crate) depot: Depot,
    pub(crate) workspace: WorkspaceId,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(Limits::default())
    }

    pub(crate) fn with(limits: Limits) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let depot = Depot::open(&dir.path().join("depot"), limits).unwrap();
        let world = Self { dir, depot, workspace: WorkspaceId::default() };
        fs_err::create_dir(world.project()).unwrap();
        fs_err::create_dir(world.dir.path().join("outside")).unwrap();
        world.file("../outside/x", CANARY);
        world
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.dir.path().join("project")
    }

    pub(crate) fn folder(&self) -> Folder {
        Folder::open(&self.project()).unwrap()
    }

    /// Writes a file of the run's folder, and the folders on the way to it.
    pub(crate) fn file(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.project().join(path);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, content).unwrap();
    }

    pub(crate) fn link(&self, path: &str, to: impl AsRef<Path>) {
        std::os::unix::fs::symlink(to, self.project().join(path)).unwrap();
    }

    pub(crate) fn take(&self, path: &str) -> Result<Taken, ShareError> {
        self.depot.take(&self.workspace, &self.folder(), path, u64::MAX, &Stop::default())
    }

    pub(crate) fn content(&self, hash: ContentHash) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut file = self.depot.read(&self.workspace, hash).unwrap();
        file.read_to_end(&mut bytes).unwrap();
        bytes
    }

    /// The contents of the copied files, by path.
    pub(crate) fn contents(&self, snapshot: &Snapshot) -> BTreeMap<String, Vec<u8>> {
        let files = snapshot.files.iter();
        files.map(|file| (file.path.clone(), self.content(file.hash))).collect()
    }
}

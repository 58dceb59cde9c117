//! The data directory: tokens, the daemon's state, and a lock for its single daemon.

mod holder;
mod marker;
mod port;
mod remove;
mod token;

use std::{
    fs::TryLockError,
    io::{self, Read},
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::DirBuilderExt,
    },
    path::{Path, PathBuf},
};

use fs_err as fs;
use narthex_model::{ErrorKind, Fingerprint, command::narthex};
use narthex_private::PrivateError;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use sha2::{Digest, Sha256};

pub use holder::Holder;
pub use remove::{Left, Removal};
pub use token::{read_admin_token, read_client_token};

use crate::Failure;

/// The log of a daemon in the background.
pub const DAEMON_LOG: &str = "daemon.log";
/// More than `daemon.json` ever has.
const STATE_MAX: u64 = 1 << 20;
/// Folders in the data folder: records, copies of the data that runs share, the folders in which
/// runs and executors work, the record of a set-up, the servers that came as bundles, and the
/// folder of a backup at work.
const FOLDERS: [&str; 7] = ["audit", "shares", "folders", "executors", SETUP, BUNDLES, BACKUP];

/// The folder of the record of a set-up.
const SETUP: &str = "setup";

/// The folder of the files of servers that came as bundles.
const BUNDLES: &str = "bundles";
/// The folder in which a backup copies the store.
const BACKUP: &str = "backup";

/// Files in the data folder that are opened by their names, so that a link would be followed. Files
/// that are always replaced whole, such as `daemon.json`, are not among them.
const FILES: [&str; 11] = [
    "daemon.lock",
    "admin.token",
    "client.token",
    "master.key",
    "self-signed.crt",
    "self-signed.pem",
    "store.db",
    "store.db-wal",
    "store.db-shm",
    "store.db-journal",
    DAEMON_LOG,
];

/// The directory of data that outlive the daemon.
#[derive(Debug, Clone)]
pub struct DataDir {
    path: PathBuf,
}

/// The lock of the directory's daemon, held for as long as this value lives.
#[derive(Debug)]
pub struct DaemonLock {
    file: fs::File,
}

impl DaemonLock {
    /// Another handle of the same lock, which holds it as well.
    ///
    /// # Errors
    /// When the system has no more handles.
    pub fn share(&self) -> Result<OwnedFd, Failure> {
        Ok(self.file.file().as_fd().try_clone_to_owned()?)
    }
}

/// The address of the running daemon: `daemon.json`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonState {
    pub pid: u32,
    /// The base URL, without a path.
    pub url: String,
    /// The folder of the Unix sockets, if there is one.
    pub socket_dir: Option<PathBuf>,
    pub config: PathBuf,
    /// The store's file, or the host, port and name of its database.
    #[serde(default)]
    pub store: Option<String>,
    /// The certificate of an encrypted daemon, and after a renewal the one before it. Commands with
    /// this data directory accept these and no others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fingerprints: Vec<Fingerprint>,
    /// True if the daemon hands its listener over on SIGUSR2, which ends an older one, and one that
    /// starts or hands over just now.
    #[serde(default)]
    pub can_restart: bool,
    /// A random word for each start. A program that takes over has the process of the one before
    /// it, and another word.
    #[serde(default)]
    pub generation: String,
    /// The version of the program; `None` for an older program, which does not publish it.
    #[serde(default)]
    pub version: Option<String>,
    /// The last restart that this daemon refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<RefusedRestart>,
}

/// A restart that would have ended the daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedRestart {
    /// The number of refused restarts so far.
    pub number: u32,
    /// The reason for which the next program does not start.
    pub reason: String,
}

impl DataDir {
    /// Opens the directory, and creates it for its owner alone if it does not exist. A new or empty
    /// one gets the marker of narthex's own directories.
    ///
    /// # Errors
    /// When the directory cannot be created, or another user may write to it.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        let created = std::fs::DirBuilder::new().mode(0o700).create(path);
        match created {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                let text = format!(
                    "cannot create the data directory {}: {error}; name another directory with \
                     --data",
                    path.display()
                );
                Err(Failure::new(ErrorKind::Unavailable, text))
            }
            Ok(()) | Err(_) => {
                let path = fs::canonicalize(path)?;
                narthex_private::check_folder(&path)?;
                marker::mark_if_empty(&path).map_err(|error| unwritable(&path, error))?;
                check_content(&path)?;
                Ok(Self { path })
            }
        }
    }

    /// Checks a directory as [`Self::open`] does, and changes nothing. One that does not exist
    /// would be created.
    ///
    /// # Errors
    /// When another user may write to it or to one of its files.
    pub fn check(path: &Path) -> Result<(), Failure> {
        if !path.try_exists()? {
            return Ok(());
        }
        let path = fs::canonicalize(path)?;
        narthex_private::check_folder(&path)?;
        check_content(&path)
    }

    /// The failure of a write in the directory, with its remedy if the system refuses it.
    pub fn unwritable(&self, error: PrivateError) -> Failure {
        unwritable(&self.path, error)
    }

    /// The directory in its present state, even if it does not exist. Its files are read only if no
    /// other user may write to it.
    pub fn at(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn client_token_file(&self) -> PathBuf {
        self.path.join("client.token")
    }

    pub fn admin_token_file(&self) -> PathBuf {
        self.path.join("admin.token")
    }

    pub fn master_key_file(&self) -> PathBuf {
        self.path.join("master.key")
    }

    pub fn audit_dir(&self) -> PathBuf {
        self.path.join("audit")
    }

    /// The folder for copies of files that runs share.
    pub fn shares_dir(&self) -> PathBuf {
        self.path.join("shares")
    }

    /// The folder with the record of a set-up, and the files as they were before.
    pub fn setup_dir(&self) -> PathBuf {
        self.path.join(SETUP)
    }

    /// The folder with a folder for each server that came as a bundle.
    pub fn bundles_dir(&self) -> PathBuf {
        self.path.join(BUNDLES)
    }

    /// The folder in which a backup copies the store, while it works.
    pub fn backup_dir(&self) -> PathBuf {
        self.path.join(BACKUP)
    }

    /// The lock that a set-up holds.
    pub fn setup_lock_file(&self) -> PathBuf {
        self.path.join("setup.lock")
    }

    /// The file of the store, unless the store is in a database at a URL.
    pub fn store_file(&self) -> PathBuf {
        self.path.join("store.db")
    }

    /// Possible folders of the Unix sockets. Socket addresses must be short, so a long path needs
    /// another folder, with a different one for each data directory: below the user's folder for
    /// sockets, if there is one, or the folder for temporary files.
    #[must_use]
    pub fn socket_dirs(&self, of_user: Option<PathBuf>) -> Vec<PathBuf> {
        let hash = Sha256::digest(self.path.as_os_str().as_encoded_bytes());
        let name = format!("narthex-{}", hex::encode(&hash[..6]));
        let elsewhere = [of_user, Some(std::env::temp_dir())].into_iter().flatten();
        let mut dirs = vec![self.path.join("run")];
        dirs.extend(elsewhere.filter(|dir| dir.is_absolute()).map(|dir| dir.join(&name)));
        dirs
    }

    fn lock_file(&self) -> PathBuf {
        self.path.join("daemon.lock")
    }

    fn state_file(&self) -> PathBuf {
        self.path.join("daemon.json")
    }

    /// Makes this process the directory's daemon.
    pub fn lock(&self) -> Result<DaemonLock, Failure> {
        self.lock_with(std::thread::yield_now)
    }

    /// Calls `pause` each time that another process only checks just now for a running daemon.
    fn lock_with(&self, pause: impl FnMut()) -> Result<DaemonLock, Failure> {
        let file = self.locked_file(pause)?;
        // Left by a daemon that was killed: another program may listen there by now, and would
        // receive tokens.
        unless_absent(fs::remove_file(self.state_file()))?;
        let lock = DaemonLock { file };
        lock.sign()?;
        Ok(lock)
    }

    /// The lock file that the path names, locked for this process.
    fn locked_file(&self, mut pause: impl FnMut()) -> Result<fs::File, Failure> {
        let path = self.lock_file();
        let failed = |error| {
            let text = format!("cannot lock {}: {error}", path.display());
            Failure::new(ErrorKind::Unavailable, text)
        };
        loop {
            narthex_private::check_folder(&self.path)?;
            let opened = narthex_private::open_or_create(&path);
            let mut file = opened.map_err(|error| self.unwritable(error))?;
            match file.file().try_lock() {
                // A removal deletes the file while it holds the lock: then this is no file of the
                // directory any more, and keeps no other daemon away.
                Ok(()) if narthex_private::is_at(&file, &path)? => return Ok(file),
                Ok(()) => continue,
                Err(TryLockError::Error(error)) => return Err(failed(error)),
                Err(TryLockError::WouldBlock) => {}
            }
            // A check shares the lock for a moment, and a daemon shares it with no other process.
            match file.file().try_lock_shared() {
                Ok(()) => file.file().unlock().map_err(failed)?,
                Err(TryLockError::Error(error)) => return Err(failed(error)),
                Err(TryLockError::WouldBlock) => return Err(self.taken(&mut file)),
            }
            pause();
        }
    }

    /// The lock that the same process has held before it executed the program anew.
    pub fn handed_lock(&self, lock: OwnedFd) -> DaemonLock {
        DaemonLock { file: fs::File::from_parts(lock.into(), self.lock_file()) }
    }

    fn taken(&self, file: &mut fs::File) -> Failure {
        let mut text = String::new();
        let named =
            file.read_to_string(&mut text).ok().and_then(|_| text.split_whitespace().next());
        let holder = match named {
            Some(pid) => format!("the process {pid}"),
            None => "another process".to_owned(),
        };
        let (status, stop) = (narthex("status", &[]), narthex("daemon stop", &[]));
        let text = format!(
            "{holder} is the daemon of {}; `{status}` shows it, and `{stop}` stops it; or choose \
             another folder with --data",
            self.path.display()
        );
        Failure::new(ErrorKind::Conflict, text)
    }

    /// True if a daemon holds the directory's lock now.
    pub fn is_locked(&self) -> Result<bool, Failure> {
        let unseen = |error: PrivateError| {
            let failure = Failure::from(error);
            let text = format!(
                "cannot find out if a daemon runs with {}: {}; or use another folder with --data",
                self.path.display(),
                failure.message
            );
            Failure { message: text, ..failure }
        };
        let looked = narthex_private::check_folder(&self.path)
            .and_then(|()| narthex_private::open(&self.lock_file()));
        let file = match looked {
            Ok(file) => file,
            Err(error) if error.is_absent() => return Ok(false),
            Err(error) => return Err(unseen(error)),
        };
        match file.file().try_lock_shared() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(error)) => Err(unseen(error.into())),
        }
    }

    /// Publishes the address of this daemon to other processes.
    pub fn publish(&self, state: &DaemonState) -> Result<(), Failure> {
        Ok(narthex_private::replace(&self.state_file(), &to_json(state))?)
    }

    /// Removes the state file of the running daemon.
    pub fn retract(&self) {
        if let Err(error) = fs::remove_file(self.state_file()) {
            tracing::debug!(%error, "could not remove the state file");
        }
    }

    /// The state of the running daemon.
    pub fn daemon(&self) -> Result<DaemonState, Failure> {
        self.running()?.ok_or_else(|| {
            Failure::daemon_down(format!(
                "no daemon runs with the data directory {}; start one with `{}`, name another \
                 directory with --data, or add --config FILE to work without a daemon",
                self.path.display(),
                narthex("up --detach", &[])
            ))
        })
    }

    /// The state of the running daemon; `None` if none runs that can be reached.
    pub fn running(&self) -> Result<Option<DaemonState>, Failure> {
        if self.is_locked()? { read_json(&self.state_file()) } else { Ok(None) }
    }
}

/// The failure of a write in a data directory, with its remedy if the system refuses it.
fn unwritable(folder: &Path, error: PrivateError) -> Failure {
    let refusals = [io::ErrorKind::PermissionDenied, io::ErrorKind::ReadOnlyFilesystem];
    let is_refused = matches!(&error, PrivateError::Io(error) if refusals.contains(&error.kind()));
    let failure = Failure::from(error);
    if !is_refused {
        return failure;
    }
    let message = format!(
        "cannot write in the data directory {}: {}; make it writable for this user, or name \
         another directory with --data",
        folder.display(),
        failure.message
    );
    Failure { message, ..failure }
}

/// Checks the folders and files of a data folder: none is a link, and no other user owns one.
fn check_content(folder: &Path) -> Result<(), Failure> {
    for inner in FOLDERS.map(|name| folder.join(name)) {
        unless_absent(narthex_private::check_inner_folder(&inner))?;
    }
    check_files(folder)
}

/// Checks that the files of a data folder are no links and belong to this user: while the folder
/// was open to other users, one of them may have placed a file there.
fn check_files(folder: &Path) -> Result<(), Failure> {
    for file in FILES.map(|name| folder.join(name)) {
        unless_absent(narthex_private::check_inner_file(&file))?;
    }
    let records = match fs::read_dir(folder.join("audit")) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    for entry in records {
        let entry = entry?;
        if !entry.file_type()?.is_dir() {
            // A daemon that runs may move one away just now.
            unless_absent(narthex_private::check_inner_file(&entry.path()))?;
        }
    }
    Ok(())
}

/// Succeeds also if there was nothing to check or remove.
pub(crate) fn unless_absent(done: Result<(), impl Into<PrivateError>>) -> Result<(), Failure> {
    match done.map_err(Into::into) {
        Err(error) if !error.is_absent() => Err(error.into()),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn to_json(value: &impl Serialize) -> Vec<u8> {
    let mut text = serde_json::to_vec_pretty(value).unwrap_or_default();
    text.push(b'\n');
    text
}

/// Reads a file that narthex wrote; `None` if there is none.
fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, Failure> {
    let text = match narthex_private::read(path, STATE_MAX) {
        Ok(text) => text,
        Err(error) if error.is_absent() => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    serde_json::from_slice(&text).map(Some).map_err(|error| {
        let text = format!("{} is damaged ({error}); delete it", path.display());
        Failure::new(ErrorKind::Invalid, text)
    })
}

#[cfg(test)]
mod tests;

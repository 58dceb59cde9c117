//! The data directory: tokens, the store, the daemon's state, and a lock so that it has one daemon.

mod token;

use std::{
    fs::TryLockError,
    io::{Read, Seek, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use fs_err as fs;
use narthex_model::ErrorKind;
use narthex_store::Store;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use sha2::{Digest, Sha256};

use crate::{config, failure::Failure};

pub(crate) use token::{read_admin_token, read_client_token};

/// Where a daemon keeps what outlives it.
#[derive(Debug, Clone)]
pub(crate) struct DataDir {
    path: PathBuf,
}

/// Held as long as this process is the directory's daemon.
#[derive(Debug)]
pub(crate) struct DaemonLock {
    _file: fs::File,
}

/// How to reach the running daemon: `daemon.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DaemonState {
    pub(crate) pid: u32,
    /// Without a path.
    pub(crate) url: String,
    /// The folder of the Unix sockets, if there is one.
    pub(crate) socket_dir: Option<PathBuf>,
    pub(crate) config: PathBuf,
}

impl DataDir {
    /// Opens the directory, and creates it for its owner alone if need be.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        let created = std::fs::DirBuilder::new().mode(0o700).create(path);
        match created {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                let text = format!("cannot create the data directory {}: {error}", path.display());
                Err(Failure::new(ErrorKind::Unavailable, text))
            }
            Ok(()) | Err(_) => Ok(Self { path: fs::canonicalize(path)? }),
        }
    }

    /// The directory as it is, even if it does not exist.
    pub(crate) fn at(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn client_token_file(&self) -> PathBuf {
        self.path.join("client.token")
    }

    pub(crate) fn admin_token_file(&self) -> PathBuf {
        self.path.join("admin.token")
    }

    pub(crate) fn master_key_file(&self) -> PathBuf {
        self.path.join("master.key")
    }

    pub(crate) fn audit_dir(&self) -> PathBuf {
        self.path.join("audit")
    }

    /// Whether there is a store already.
    pub(crate) fn has_store(&self) -> bool {
        self.path.join("store.db").exists()
    }

    /// Opens the store, which any number of processes may do at a time, beside a daemon too.
    pub(crate) async fn store(&self) -> Result<Store, Failure> {
        Ok(Store::open(&self.path.join("store.db")).await?)
    }

    /// The file that changes with every change of the store.
    pub(crate) fn store_journal(&self) -> PathBuf {
        self.path.join("store.db-wal")
    }

    /// Where the Unix sockets may be. Their addresses are short by nature, so a long path needs
    /// another place, which must still differ from one data directory to the next.
    pub(crate) fn socket_dirs(&self) -> Vec<PathBuf> {
        let hash = Sha256::digest(self.path.as_os_str().as_encoded_bytes());
        let short: String = hash.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
        let name = format!("narthex-{short}");
        let elsewhere = config::variable("XDG_RUNTIME_DIR").map(PathBuf::from);
        let elsewhere = [elsewhere, Some(std::env::temp_dir())].into_iter().flatten();
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
    pub(crate) fn lock(&self) -> Result<DaemonLock, Failure> {
        let path = self.lock_file();
        let mut options = fs::OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        OpenOptionsExt::mode(options.options_mut(), 0o600);
        let mut file = options.open(&path)?;
        match file.file().try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(self.taken(&mut file)),
            Err(TryLockError::Error(error)) => {
                let text = format!("cannot lock {}: {error}", path.display());
                return Err(Failure::new(ErrorKind::Unavailable, text));
            }
        }
        file.set_len(0)?;
        file.rewind()?;
        write!(file, "{}", std::process::id())?;
        Ok(DaemonLock { _file: file })
    }

    fn taken(&self, file: &mut fs::File) -> Failure {
        let mut pid = String::new();
        let holder = match file.read_to_string(&mut pid) {
            Ok(_) if !pid.is_empty() => format!("the process {pid}"),
            Ok(_) | Err(_) => "another process".to_owned(),
        };
        let text = format!(
            "{holder} is the daemon of {}; use it, stop it, or choose another folder with --data",
            self.path.display()
        );
        Failure::new(ErrorKind::Conflict, text)
    }

    /// Whether a daemon holds the directory now.
    pub(crate) fn is_locked(&self) -> bool {
        let Ok(file) = fs::File::open(self.lock_file()) else { return false };
        matches!(file.file().try_lock_shared(), Err(TryLockError::WouldBlock))
    }

    /// Tells other processes how to reach this daemon.
    pub(crate) fn publish(&self, state: &DaemonState) -> Result<(), Failure> {
        write_private(&self.state_file(), &to_json(state))
    }

    /// Removes what tells of a running daemon.
    pub(crate) fn retract(&self) {
        if let Err(error) = fs::remove_file(self.state_file()) {
            tracing::debug!(%error, "could not remove the state file");
        }
    }

    /// The daemon that runs now.
    pub(crate) fn daemon(&self) -> Result<DaemonState, Failure> {
        self.running()?.ok_or_else(|| {
            Failure::daemon_down(format!(
                "no daemon runs with the data directory {}; start one with `narthex up`, name \
                 another directory with --data, or add --config FILE to work without a daemon",
                self.path.display()
            ))
        })
    }

    /// The daemon that runs now, if one does and can be reached already.
    pub(crate) fn running(&self) -> Result<Option<DaemonState>, Failure> {
        if self.is_locked() { read_json(&self.state_file()) } else { Ok(None) }
    }

    /// The process that is the directory's daemon, if there is one, reachable or not.
    pub(crate) fn holder(&self) -> Result<Option<u32>, Failure> {
        if !self.is_locked() {
            return Ok(None);
        }
        let path = self.lock_file();
        let text = fs::read_to_string(&path)?;
        text.trim().parse().map(Some).map_err(|error| {
            let text = format!(
                "a daemon holds {}, but the file does not say which process it is ({error}); find \
                 it with `fuser {}`",
                path.display(),
                path.display()
            );
            Failure::new(ErrorKind::Invalid, text)
        })
    }
}

fn to_json(value: &impl Serialize) -> Vec<u8> {
    let mut text = serde_json::to_vec_pretty(value).unwrap_or_default();
    text.push(b'\n');
    text
}

/// Reads a file of our own; `None` if there is none.
fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, Failure> {
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    serde_json::from_slice(&text).map(Some).map_err(|error| {
        let text = format!("{} is damaged ({error}); delete it", path.display());
        Failure::new(ErrorKind::Invalid, text)
    })
}

/// Replaces a file at once, readable by its owner alone.
fn write_private(path: &Path, text: &[u8]) -> Result<(), Failure> {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}", std::process::id()));
    let temporary = PathBuf::from(name);
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    OpenOptionsExt::mode(options.options_mut(), 0o600);
    let mut file = options.open(&temporary)?;
    // A left-over of an earlier process may have another mode.
    file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
    file.write_all(text)?;
    drop(file);
    Ok(fs::rename(&temporary, path)?)
}

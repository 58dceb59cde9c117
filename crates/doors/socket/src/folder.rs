//! The folder of a run's sockets: checks its permissions, and removes sockets that a crash has left
//! in it.

use std::{
    io,
    os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
};

use fs_err::os::unix::fs::OpenOptionsExt;
use narthex_model::{Alias, ErrorKind};
use tokio::net::UnixListener;

/// The maximum length of a socket's path in bytes, without its terminating NUL.
const PATH_MOST: usize = if cfg!(target_os = "macos") { 103 } else { 107 };
/// The file name of the socket for all servers.
const AGGREGATED: &str = "mcp.sock";
/// The file that a door locks while it uses the folder, so that two doors do not remove each
/// other's sockets.
const LOCK: &str = "sockets.lock";

/// The reason why the sockets cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// The path is longer than the system's socket addresses allow.
    #[error(
        "the socket path `{}` has {length} bytes, but the system allows {PATH_MOST}; \
         choose a shorter folder, such as one in $XDG_RUNTIME_DIR",
        path.display()
    )]
    PathTooLong {
        /// The path.
        path: PathBuf,
        /// The path's length in bytes.
        length: usize,
    },
    /// Other users may enter the folder. They must not: any client in the folder acts for the run.
    #[error(
        "the socket folder `{}` has the mode {mode:04o}, so other users can enter it; close it \
         with `chmod 700 '{}'`",
        folder.display(), folder.display()
    )]
    OpenFolder {
        /// The folder.
        folder: PathBuf,
        /// The folder's mode.
        mode: u32,
    },
    /// The path of the folder is a link or a file, or the folder belongs to another user.
    #[error("{}", not_ours(folder, *owner))]
    NotOurs {
        /// The folder.
        folder: PathBuf,
        /// The owner, if the folder belongs to another user.
        owner: Option<u32>,
    },
    /// Another process serves this folder.
    #[error("another process serves `{}`; stop it, or choose another folder", path.display())]
    InUse {
        /// The path of the locked file or used socket.
        path: PathBuf,
    },
    /// A file that is no socket has the name of a socket.
    #[error("`{}` exists and is not a socket; move it away", path.display())]
    NotASocket {
        /// The path of that file.
        path: PathBuf,
    },
    /// The system refused an operation.
    #[error("the socket `{}` cannot be opened", path.display())]
    Io {
        /// The folder or socket.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
}

/// A folder that no other user may enter. It stays locked for as long as this value exists.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    /// True if the folder is removed when this value is dropped.
    is_passing: bool,
    _lock: fs_err::File,
}

/// A listening socket. Its file is removed when this value is dropped.
#[derive(Debug)]
pub(crate) struct Socket {
    pub(crate) listener: UnixListener,
    file: SocketFile,
}

#[derive(Debug)]
struct SocketFile(PathBuf);

impl SocketError {
    /// The error kind, which callers map to their own codes.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::PathTooLong { .. } => ErrorKind::Invalid,
            Self::OpenFolder { .. } | Self::NotOurs { .. } => ErrorKind::Denied,
            Self::InUse { .. } | Self::NotASocket { .. } => ErrorKind::Conflict,
            Self::Io { .. } => ErrorKind::Unavailable,
        }
    }
}

/// The file name of an endpoint's socket. `None` for an alias whose file name is reserved.
pub(crate) fn socket_name(alias: Option<&Alias>) -> Option<String> {
    let name = alias.map_or(AGGREGATED.to_owned(), |alias| format!("{alias}.sock"));
    (alias.is_none() || name != AGGREGATED).then_some(name)
}

/// The file name of a profile's socket. No alias has a dot.
pub(crate) fn profile_socket_name(profile: &str) -> String {
    format!("p.{profile}.sock")
}

impl Folder {
    /// Creates the folder if it does not exist, checks that only we may enter it, and locks it.
    pub(crate) fn open(path: &Path) -> Result<Self, SocketError> {
        make_private(path)?;
        Self::hold(path, false)
    }

    /// Opens a folder inside another one; only we may enter either of them. The inner folder is
    /// removed when this value is dropped. Sockets that a crash has left there are removed now.
    pub(crate) fn open_passing(base: &Path, name: &str) -> Result<Self, SocketError> {
        make_private(base)?;
        let path = base.join(name);
        make_private(&path)?;
        let folder = Self::hold(&path, true)?;
        folder.clear();
        Ok(folder)
    }

    /// Removes the temporary folders inside `base` that a crash has left, if `is_meant` accepts
    /// their names.
    pub(crate) fn sweep(base: &Path, is_meant: impl Fn(&str) -> bool) {
        let Ok(entries) = fs_err::read_dir(base) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name();
            if let Some(name) = name.to_str().filter(|name| is_meant(name))
                && let Err(error) = Self::open_passing(base, name)
            {
                tracing::warn!("a folder of sockets could not be removed: {error}");
            }
        }
    }

    fn clear(&self) {
        let Ok(entries) = fs_err::read_dir(&self.path) else { return };
        for entry in entries.flatten() {
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_socket())
                && let Err(error) = remove_stale(&path)
            {
                tracing::warn!("a socket could not be removed: {error}");
            }
        }
    }

    fn hold(path: &Path, is_passing: bool) -> Result<Self, SocketError> {
        let failed = |source| SocketError::Io { path: path.to_owned(), source };
        let lock = path.join(LOCK);
        let mut options = fs_err::OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        options.custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed());
        let file = options.open(&lock).map_err(failed)?;
        match file.file().try_lock() {
            Ok(()) => Ok(Self { path: path.to_owned(), is_passing, _lock: file }),
            Err(std::fs::TryLockError::WouldBlock) => Err(SocketError::InUse { path: lock }),
            Err(std::fs::TryLockError::Error(error)) => Err(failed(error)),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens one socket in the folder. Must be called inside a runtime.
    pub(crate) fn bind(&self, name: &str) -> Result<Socket, SocketError> {
        let path = self.path.join(name);
        let length = path.as_os_str().len();
        if length > PATH_MOST {
            return Err(SocketError::PathTooLong { path, length });
        }
        remove_stale(&path)?;
        let failed = |source| SocketError::Io { path: path.clone(), source };
        let listener = UnixListener::bind(&path).map_err(failed)?;
        let file = SocketFile(path.clone());
        // The folder already excludes other users. This mode protects the socket if the folder is
        // opened to them later.
        fs_err::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
        Ok(Socket { listener, file })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.is_passing {
            return;
        }
        let gone = fs_err::remove_file(self.path.join(LOCK));
        if let Err(error) = gone.and_then(|()| fs_err::remove_dir(&self.path)) {
            tracing::warn!("a folder of sockets could not be removed: {error}");
        }
    }
}

/// Creates a folder if it does not exist, and checks that only we may enter it.
fn make_private(path: &Path) -> Result<(), SocketError> {
    let failed = |source| SocketError::Io { path: path.to_owned(), source };
    match std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(failed(error));
        }
        Ok(()) | Err(_) => {}
    }
    let metadata = fs_err::symlink_metadata(path).map_err(failed)?;
    let folder = path.to_owned();
    if !metadata.is_dir() {
        return Err(SocketError::NotOurs { folder, owner: None });
    }
    if metadata.uid() != own_user() {
        return Err(SocketError::NotOurs { folder, owner: Some(metadata.uid()) });
    }
    match metadata.permissions().mode() & 0o777 {
        mode if mode & 0o077 != 0 => Err(SocketError::OpenFolder { folder, mode }),
        _ => Ok(()),
    }
}

fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Describes the fault of a folder, and the command that mends it. In a folder of another user,
/// such as the one for temporary files, we cannot move files of others. Then the remedy is another
/// place.
fn not_ours(folder: &Path, owner: Option<u32>) -> String {
    let place = folder.display();
    let fault = match owner {
        Some(owner) => format!("belongs to the user with the id {owner}"),
        None => "is a link, or is not a folder".to_owned(),
    };
    let own = own_user();
    let is_movable = own == 0
        || folder
            .parent()
            .and_then(|outer| fs_err::metadata(outer).ok())
            .is_some_and(|outer| outer.uid() == own);
    let remedy = match is_movable {
        true => format!("move it away with `mv -n '{place}' '{place}.old'`"),
        false => "set `XDG_RUNTIME_DIR` to a folder of yours, or choose a shorter folder with \
                  --data"
            .to_owned(),
    };
    format!("the socket folder `{place}` {fault}; {remedy}, and start the daemon again")
}

impl Socket {
    pub(crate) fn path(&self) -> &Path {
        &self.file.0
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if let Err(error) = fs_err::remove_file(&self.0) {
            tracing::debug!(%error, "could not remove a socket");
        }
    }
}

/// Removes the file of a socket that no process serves now.
fn remove_stale(path: &Path) -> Result<(), SocketError> {
    let failed = |source| SocketError::Io { path: path.to_owned(), source };
    let metadata = match fs_err::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
    };
    if !metadata.file_type().is_socket() {
        return Err(SocketError::NotASocket { path: path.to_owned() });
    }
    match std::os::unix::net::UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            fs_err::remove_file(path).map_err(failed)
        }
        Ok(_) => Err(SocketError::InUse { path: path.to_owned() }),
        Err(error) => Err(failed(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs_err::symlink_metadata(path).unwrap().permissions().mode() & 0o777
    }

    /// D4: only the owner may use the folder and its sockets.
    #[tokio::test]
    async fn folder_and_sockets_are_private_to_their_owner() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("a/run");
        let folder = Folder::open(&path).unwrap();
        let socket = folder.bind("mcp.sock").unwrap();
        assert_eq!((mode(&path), mode(socket.path())), (0o700, 0o600));
        let file = socket.path().to_owned();
        drop(socket);
        assert!(!file.exists());
    }

    #[test]
    fn folders_with_rights_for_other_users_are_refused() {
        let home = tempfile::tempdir().unwrap();
        let open = home.path().join("open");
        fs_err::create_dir(&open).unwrap();
        fs_err::set_permissions(&open, std::fs::Permissions::from_mode(0o750)).unwrap();
        let own = home.path().join("own");
        drop(Folder::open(&own).unwrap());
        let link = home.path().join("link");
        fs_err::os::unix::fs::symlink(&own, &link).unwrap();
        let refused = |path: &Path| {
            let error = Folder::open(path).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Denied);
            error.to_string()
        };
        let error = refused(&open);
        assert!(error.contains(&format!("`chmod 700 '{}'`", open.display())), "{error}");
        fs_err::set_permissions(&open, std::fs::Permissions::from_mode(0o700)).unwrap();
        drop(Folder::open(&open).unwrap());
        // `chmod` cannot mend the two faults below.
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&open, Some(65_534), None).unwrap();
            let error = refused(&open);
            assert!(error.contains("65534") && !error.contains("chmod"), "{error}");
        }
        let error = refused(&link);
        let remedy = format!("`mv -n '{0}' '{0}.old'`", link.display());
        assert!(error.contains(&remedy) && !error.contains("chmod"), "{error}");
        fs_err::rename(&link, home.path().join("link.old")).unwrap();
        drop(Folder::open(&link).unwrap());
        // A link with the name of the lock file is not followed either.
        let aside = home.path().join("aside");
        fs_err::remove_file(link.join(LOCK)).unwrap();
        fs_err::os::unix::fs::symlink(&aside, link.join(LOCK)).unwrap();
        let error = Folder::open(&link).unwrap_err();
        let SocketError::Io { source, .. } = &error else { panic!("{error:?}") };
        assert!(source.to_string().contains(LOCK) && !aside.exists(), "{error:?}");
    }

    #[tokio::test]
    async fn a_long_path_is_refused_with_a_remedy() {
        let home = tempfile::tempdir().unwrap();
        let folder = Folder::open(&home.path().join("x")).unwrap();
        let room = PATH_MOST - folder.path.as_os_str().len() - 1;
        let fits = folder.bind(&"s".repeat(room)).unwrap();
        assert_eq!(fits.path().as_os_str().len(), PATH_MOST);
        let error = folder.bind(&"s".repeat(room + 1)).unwrap_err().to_string();
        assert!(error.contains("shorter folder") && error.contains("108 bytes"), "{error}");
    }

    #[tokio::test]
    async fn only_dead_sockets_are_replaced() {
        let home = tempfile::tempdir().unwrap();
        let folder = Folder::open(&home.path().join("x")).unwrap();
        let path = folder.path.join("mcp.sock");
        // A listener that is dropped without removing its file leaves a dead socket.
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        drop(folder.bind("mcp.sock").unwrap());

        let _alive = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let error = folder.bind("mcp.sock").unwrap_err();
        assert!(matches!(error, SocketError::InUse { .. }), "{error:?}");

        fs_err::write(folder.path.join("git.sock"), "precious").unwrap();
        let error = folder.bind("git.sock").unwrap_err();
        assert!(matches!(error, SocketError::NotASocket { .. }), "{error:?}");
        assert_eq!(fs_err::read_to_string(folder.path.join("git.sock")).unwrap(), "precious");
    }

    /// D10, X-M45: temporary folders are removed with their sockets, and nothing else is.
    #[tokio::test]
    async fn files_left_by_a_crash_are_removed() {
        let home = tempfile::tempdir().unwrap();
        let base = home.path().join("base");
        let kept = Folder::open(&base).unwrap();
        drop(Folder::open_passing(&base, "one").unwrap());
        assert!(!base.join("one").exists(), "it goes with its door");
        for name in ["one", "two"] {
            let folder = base.join(name);
            fs_err::create_dir(&folder).unwrap();
            fs_err::set_permissions(&folder, std::fs::Permissions::from_mode(0o700)).unwrap();
            drop(std::os::unix::net::UnixListener::bind(folder.join("old.sock")).unwrap());
        }
        let open = Folder::open_passing(&base, "two").unwrap();
        assert!(!open.path().join("old.sock").exists());
        fs_err::write(base.join("notes"), "precious").unwrap();
        Folder::sweep(&base, |name| name != "notes" && name != LOCK);
        assert!(!base.join("one").exists());
        assert!(open.path().is_dir(), "another door has it");
        assert_eq!(fs_err::read_to_string(base.join("notes")).unwrap(), "precious");
        drop(kept);
    }

    #[test]
    fn a_second_socket_door_for_a_folder_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("x");
        let first = Folder::open(&path).unwrap();
        assert!(matches!(Folder::open(&path).unwrap_err(), SocketError::InUse { .. }));
        drop(first);
        Folder::open(&path).unwrap();
    }

    #[test]
    fn the_socket_name_of_the_aggregated_endpoint_is_reserved() {
        assert_eq!(socket_name(None).as_deref(), Some("mcp.sock"));
        assert_eq!(socket_name(Some(&Alias::new("mcp").unwrap())), None);
        assert_eq!(socket_name(Some(&Alias::new("git").unwrap())).as_deref(), Some("git.sock"));
    }
}

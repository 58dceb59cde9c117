//! Receives the system's events about the path of a file, or reports that the system has none.

use std::{
    collections::HashSet,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use arc_swap::ArcSwap;
use notify::{
    Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher,
    event::{AccessKind, AccessMode},
};
use tokio::sync::Notify;

use super::trail::Trail;

/// Number of attempts to walk a path that changes during the walk.
const WALKS_MAX: usize = 5;

/// The way in which changes of a file are noticed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Watching {
    /// By events of the system.
    Events,
    /// By polling from time to time.
    Polling {
        /// The reason why the system reports no events, and the remedy.
        reason: String,
    },
}

/// Creates the watcher of the system; another one in tests.
pub(super) type MakeWatcher =
    fn(Box<dyn Fn(notify::Result<Event>) + Send>) -> notify::Result<Box<dyn Watcher + Send>>;

/// Watches the way to some files.
pub(super) struct SystemEvents {
    make: MakeWatcher,
    /// The paths that matter now, for the thread that receives events.
    names: Arc<ArcSwap<HashSet<PathBuf>>>,
    wake: Arc<Notify>,
    watcher: Option<Box<dyn Watcher + Send>>,
    watched: Vec<PathBuf>,
}

impl SystemEvents {
    /// Notifies `wake` of each event that may be a change of the files.
    pub(super) fn new(wake: Arc<Notify>) -> Self {
        Self::with(wake, |hear| {
            let watcher = RecommendedWatcher::new(hear_all(hear), notify::Config::default())?;
            Ok(Box::new(watcher))
        })
    }

    pub(super) fn with(wake: Arc<Notify>, make: MakeWatcher) -> Self {
        Self { make, names: Arc::default(), wake, watcher: None, watched: Vec::new() }
    }

    /// Watches the way to `paths` as it is now; blocks. A caller that reads the files afterwards
    /// misses no change: a later change wakes it.
    ///
    /// # Errors
    /// The reason why the system cannot report changes, with the remedy. Nothing is watched then.
    pub(super) fn refresh(&mut self, paths: &[PathBuf]) -> Result<(), String> {
        let refreshed = self.try_refresh(paths);
        if refreshed.is_err() {
            self.watcher = None;
            self.watched.clear();
        }
        refreshed
    }

    fn try_refresh(&mut self, paths: &[PathBuf]) -> Result<(), String> {
        for _ in 0..WALKS_MAX {
            let trail = Trail::of(paths);
            if let Some(reason) = trail.folders.iter().find_map(|folder| without_events(folder)) {
                return Err(reason);
            }
            self.names.store(Arc::new(trail.names));
            if self.watch(trail.folders)? {
                return Ok(());
            }
        }
        Err("the folders on the way to the file change too often".to_owned())
    }

    /// Watches exactly these folders; `false` if one of them does not exist any more. Folders that
    /// are watched already are watched anew: their path may lead to a new folder.
    fn watch(&mut self, folders: impl IntoIterator<Item = PathBuf>) -> Result<bool, String> {
        let watcher = match self.watcher.take() {
            Some(watcher) => watcher,
            None => self.new_watcher().map_err(|error| reason(&error))?,
        };
        let watcher = self.watcher.insert(watcher);
        for folder in self.watched.drain(..) {
            // The system forgets removed folders by itself.
            if let Err(error) = watcher.unwatch(&folder) {
                tracing::trace!(%error, folder = %folder.display(), "not watched any more");
            }
        }
        for folder in folders {
            match watcher.watch(&folder, RecursiveMode::NonRecursive) {
                Ok(()) => self.watched.push(folder),
                Err(error) if is_gone(&error) => return Ok(false),
                Err(error) => return Err(reason(&error)),
            }
        }
        Ok(true)
    }

    fn new_watcher(&self) -> notify::Result<Box<dyn Watcher + Send>> {
        let (names, wake) = (self.names.clone(), self.wake.clone());
        (self.make)(Box::new(move |event| {
            if is_of_interest(&event, &names.load()) {
                wake.notify_one();
            }
        }))
    }
}

impl fmt::Debug for SystemEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SystemEvents").field("watched", &self.watched).finish_non_exhaustive()
    }
}

fn hear_all(
    hear: Box<dyn Fn(notify::Result<Event>) + Send>,
) -> impl FnMut(notify::Result<Event>) + Send {
    move |event| hear(event)
}

/// True if an event may be a change of these names. Reading is no change, and this program's own
/// reading must not wake it.
fn is_of_interest(event: &notify::Result<Event>, names: &HashSet<PathBuf>) -> bool {
    let Ok(event) = event else { return true };
    let is_change = match event.kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => true,
        EventKind::Access(_) => false,
        EventKind::Any
        | EventKind::Create(_)
        | EventKind::Modify(_)
        | EventKind::Remove(_)
        | EventKind::Other => true,
    };
    let is_named = event.paths.iter().any(|path| names.contains(path));
    is_change && (is_named || event.paths.is_empty() || event.need_rescan())
}

fn is_gone(error: &notify::Error) -> bool {
    match &error.kind {
        notify::ErrorKind::PathNotFound => true,
        notify::ErrorKind::Io(error) => {
            matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory)
        }
        notify::ErrorKind::Generic(_)
        | notify::ErrorKind::WatchNotFound
        | notify::ErrorKind::InvalidConfig(_)
        | notify::ErrorKind::MaxFilesWatch => false,
    }
}

/// The reason why the system reports no events, with the remedy.
fn reason(error: &notify::Error) -> String {
    let remedy = match &error.kind {
        notify::ErrorKind::MaxFilesWatch => {
            "; raise fs.inotify.max_user_watches (sysctl) and restart narthex"
        }
        // The system reports too many instances as too many open files.
        notify::ErrorKind::Io(error) if error.raw_os_error() == Some(EMFILE) => {
            "; raise fs.inotify.max_user_instances (sysctl) or the limit of open files, and \
             restart narthex"
        }
        notify::ErrorKind::Io(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            "; let this user list the folder"
        }
        notify::ErrorKind::Io(_)
        | notify::ErrorKind::Generic(_)
        | notify::ErrorKind::PathNotFound
        | notify::ErrorKind::WatchNotFound
        | notify::ErrorKind::InvalidConfig(_) => "",
    };
    let error = error.to_string();
    format!("the system cannot report changes: {}{remedy}", error.trim_end_matches('.'))
}

const EMFILE: i32 = rustix::io::Errno::MFILE.raw_os_error();

/// The reason why changes that others make in `folder` cause no events, if that is so.
fn without_events(folder: &Path) -> Option<String> {
    // A folder that does not exist any more is found out when it is to be watched.
    let kind = rustix::fs::statfs(folder).ok()?.f_type;
    let name = remote_name(kind)?;
    Some(format!(
        "{} is on {name}, where the system does not report changes by other machines",
        folder.display()
    ))
}

/// The file systems whose files change without an act of this kernel, by their numbers in
/// `linux/magic.h`.
#[cfg(target_os = "linux")]
fn remote_name(kind: rustix::fs::FsWord) -> Option<&'static str> {
    const REMOTE: [(u32, &str); 10] = [
        (0x0000_6969, "NFS"),
        (0x0000_517B, "SMB"),
        (0xFE53_4D42, "SMB"),
        (0xFF53_4D42, "CIFS"),
        (0x0102_1997, "9P"),
        (0x5346_414F, "AFS"),
        (0x00C3_6400, "Ceph"),
        (0x6573_5546, "FUSE"),
        (0x6A65_6A63, "virtiofs"),
        (0x786F_4256, "a shared folder of VirtualBox"),
    ];
    let remote = |(number, _): &&(u32, &str)| u64::try_from(kind) == Ok(u64::from(*number));
    REMOTE.iter().find(remote).map(|(_, name)| *name)
}

#[cfg(not(target_os = "linux"))]
fn remote_name(_kind: u32) -> Option<&'static str> {
    None
}

#[cfg(test)]
mod tests;

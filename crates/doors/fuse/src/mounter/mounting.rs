//! A folder with the files of a run, from its begin to its end.

use std::{
    collections::HashMap,
    ffi::OsString,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use narthex_model::{ErrorKind, Pid};
use narthex_vfs::{Failure, Limits, Namespace};
use tokio::{runtime::Handle, task::spawn_blocking};

use crate::mounter::{
    Daemon, Ended,
    following::Servers,
    reports::{Reports, Untold},
    watcher::Watcher,
};
use crate::{MountError, MountOptions, Mounted};

/// The options for mounting a run's files.
#[derive(Debug)]
pub struct MountingOptions {
    /// The folder, which is there and empty.
    pub folder: PathBuf,
    /// The number that the run is to have; any, if there is none.
    pub pid: Option<Pid>,
    /// This program, which watches over the mount when it is started with the argument that
    /// [`super::run_if_asked`] knows. `None`: without a watcher, a folder stays with a dead mount
    /// when this process is killed.
    pub watcher: Option<OsString>,
    /// The bounds of operations.
    pub limits: Limits,
    /// True if processors are kept awake while calls are under way.
    pub keeps_awake: bool,
}

/// Why a run's files are not mounted.
#[derive(Debug, thiserror::Error)]
pub enum MountingError {
    /// The daemon does not report the mounts of the run.
    #[error("{}", .0.message)]
    Daemon(Failure),
    /// The token is that of another run.
    #[error(
        "the token belongs to run {found}, not to run {wanted}; give the token of run {wanted}, \
         with --token-file FILE or in NARTHEX_TOKEN"
    )]
    OtherRun {
        /// Whose the token is.
        found: u64,
        /// Whose it should be.
        wanted: Pid,
    },
    /// The system mounts nothing there.
    #[error(transparent)]
    Mount(#[from] MountError),
    /// The process that watches over the mount does not start.
    #[error("the process that watches the mount cannot be started")]
    Watcher(#[source] io::Error),
}

impl MountingError {
    /// The kind of the failure.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Daemon(failure) if failure.kind == crate::mounter::daemon::OVER => {
                ErrorKind::Unauthenticated
            }
            Self::Daemon(_) | Self::Watcher(_) => ErrorKind::Unavailable,
            Self::OtherRun { .. } => ErrorKind::Denied,
            Self::Mount(MountError::Folder { .. }) => ErrorKind::NotFound,
            Self::Mount(
                MountError::NotEmpty { .. }
                | MountError::AlreadyMounted { .. }
                | MountError::Foreign { .. },
            ) => ErrorKind::Conflict,
            Self::Mount(
                MountError::NoFuse { .. }
                | MountError::Sleeps { .. }
                | MountError::Stale { .. }
                | MountError::Stays { .. }
                | MountError::Mount { .. },
            ) => ErrorKind::Unavailable,
        }
    }
}

/// A folder with the files of a run. Dropping it unmounts.
#[derive(Debug)]
pub struct Mounting {
    // In this order: the mount is dropped before its watcher.
    mounted: Mounted,
    servers: Servers,
    untold: Untold,
    watcher: Option<Watcher>,
    pid: Pid,
    folder: PathBuf,
}

impl Mounting {
    /// Mounts the files that the run of a token may open.
    ///
    /// # Errors
    /// The cases of [`MountingError`]; then nothing is mounted.
    pub async fn begin(daemon: Daemon, options: MountingOptions) -> Result<Self, MountingError> {
        let MountingOptions { folder, pid: wanted, watcher, limits, keeps_awake } = options;
        let root = daemon.root().await.map_err(MountingError::Daemon)?;
        if let Some(wanted) = wanted.filter(|wanted| wanted.get() != root.pid) {
            return Err(MountingError::OtherRun { found: root.pid, wanted });
        }
        let pid = Pid::new(root.pid);
        let (reports, untold) = Reports::new();
        let namespace = Namespace::new(limits, Some(Arc::new(reports)));
        let process = namespace.begin(pid, None, &[]);
        let process = process.map_err(|error| MountingError::Daemon(*error.failure))?;
        let mut servers =
            Servers { daemon, namespace, process: process.clone(), mounted: HashMap::new() };
        servers.be(&root);
        let folder = resolved(&folder).await?;
        let mut watcher =
            watcher.map(Watcher::start).transpose().map_err(MountingError::Watcher)?;
        let write_bytes = limits.write_bytes;
        let options = MountOptions { write_bytes, keeps_awake, ..MountOptions::default() };
        let (path, runtime) = (folder.clone(), Handle::current());
        let mounting = move || Mounted::new(process, &path, &options, runtime);
        let mounted = blocking(mounting).await??;
        if let Some(watcher) = &mut watcher {
            watcher.watch_over(mounted.device()).map_err(MountingError::Watcher)?;
        }
        Ok(Self { mounted, servers, untold, watcher, pid, folder })
    }

    /// The number of the run.
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// The folder of the mount.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The names of the servers that are there.
    #[must_use]
    pub fn servers(&self) -> Vec<String> {
        let mut names: Vec<_> = self.servers.mounted.keys().map(ToString::to_string).collect();
        names.sort_unstable();
        names
    }

    /// Keeps it as the run has it, until something ends it. The folder stays mounted.
    pub async fn ended(&mut self) -> Ended {
        let daemon = self.servers.daemon.clone();
        tokio::select! {
            ended = self.servers.follow(&self.mounted, self.pid) => ended,
            never = self.untold.tell(&daemon) => match never {},
        }
    }

    /// Answers the waiting operations, and frees the folder.
    ///
    /// # Errors
    /// When the system does not let it go.
    pub async fn unmount(self) -> Result<(), MountingError> {
        let Self { mounted, servers, watcher, .. } = self;
        let unmounting = move || {
            mounted.unmount()?;
            if let Some(mut watcher) = watcher
                && let Err(error) = watcher.dismiss()
            {
                tracing::debug!(%error, "the watcher of a mount could not be awaited");
            }
            Ok::<_, MountError>(())
        };
        blocking(unmounting).await??;
        drop(servers);
        Ok(())
    }
}

/// The folder by its whole path. The dead mount of a killed process is taken away first, as no path
/// below it can be examined.
async fn resolved(folder: &Path) -> Result<PathBuf, MountingError> {
    let folder = folder.to_owned();
    let resolving = move || {
        crate::clean_up(&folder)?;
        // Checked first: the folder may be a mount of another user that does not let us in.
        crate::check_free(&folder)?;
        crate::resolved(&folder)
    };
    Ok(blocking(resolving).await??)
}

/// Does what blocks for a moment.
async fn blocking<T: Send + 'static>(
    step: impl FnOnce() -> T + Send + 'static,
) -> Result<T, MountingError> {
    let failed = |error: tokio::task::JoinError| {
        MountingError::Mount(MountError::Mount {
            path: PathBuf::new(),
            cause: io::Error::other(error),
        })
    };
    spawn_blocking(step).await.map_err(failed)
}

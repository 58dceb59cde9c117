//! Mounts a folder, and takes the mount away again, also when the process that made it is gone.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        mpsc::{RecvTimeoutError, sync_channel},
    },
    time::Duration,
};

use fuser::{BackgroundSession, Config, Session, SessionACL};
use narthex_vfs::Process;
use tokio::runtime::Handle as Runtime;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    cpu_latency::{CpuLatency, DEVICE},
    filesystem::Files,
    interrupt_timer::InterruptTimer,
    kernel::{self, Folder, free, quoted},
    lists::Lists,
    mountinfo,
    running::Shared,
};

/// Longest wait for processes that have their working folder or a file in the mount.
const LEFT_WITHIN: Duration = Duration::from_secs(2);

/// The options of a mount.
#[derive(Debug, Clone, Copy)]
pub struct MountOptions {
    /// The most bytes of one request.
    pub write_bytes: usize,
    /// Threads that take the kernel's requests; calls wait on the runtime's.
    pub threads: usize,
    /// True if no processor of the machine sleeps while a caller waits for an answer, and for two
    /// seconds after: calls are faster, and the machine uses more power.
    pub keeps_awake: bool,
}

impl Default for MountOptions {
    fn default() -> Self {
        Self { write_bytes: 4 << 20, threads: threads(), keeps_awake: false }
    }
}

/// The number of threads that suffices for the requests of one folder: a quarter of the processors.
///
/// As many are for the calls that come of them; programs, daemon and servers need the others. One
/// takes each request in some microseconds, and waking another for it costs more than that.
#[must_use]
pub fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, |all| all.get().div_ceil(4))
}

/// Why a folder could not be mounted.
#[derive(Debug, thiserror::Error)]
pub enum MountError {
    /// The folder does not exist, or is no folder.
    #[error("`{}` is not a folder that can be mounted on; name an empty folder", .path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The reason.
        #[source]
        cause: io::Error,
    },
    /// The folder has entries, which no program could see below the mount.
    #[error("`{}` is not empty; name an empty folder", .path.display())]
    NotEmpty {
        /// The folder.
        path: PathBuf,
    },
    /// Files of a run are mounted there.
    #[error(
        "[ALREADY_MOUNTED] Mount: {} (files of a run are mounted there; end the process of that \
         mount, or free the folder with `umount {}`, without root with `fusermount3 -u {}`, or \
         name another folder)",
        .path.display(),
        quoted(.path),
        quoted(.path)
    )]
    AlreadyMounted {
        /// The folder.
        path: PathBuf,
    },
    /// The system has no FUSE for us.
    #[error(
        "FUSE cannot be used on this system: load the kernel module `fuse`, and run as root or \
         install `fusermount3` (package fuse3)"
    )]
    NoFuse {
        /// Why.
        #[source]
        cause: io::Error,
    },
    /// The system does not let us keep its processors awake.
    #[error(
        "processors cannot be kept awake: run as root, make `{}` writable for this user, or mount \
         without `--low-latency`",
        DEVICE
    )]
    Sleeps {
        /// Why.
        #[source]
        cause: io::Error,
    },
    /// A dead mount at the folder cannot be taken away.
    #[error(
        "a dead mount at `{}` cannot be removed; try `fusermount3 -u -z` on that folder",
        .path.display()
    )]
    Stale {
        /// The folder.
        path: PathBuf,
        /// The reason.
        #[source]
        cause: io::Error,
    },
    /// A dead mount of another program is there, which answers no request.
    #[error(
        "a dead mount of another program is at `{}`; free it with `umount {}`, without root with \
         `fusermount3 -u {}`, or name another folder",
        .path.display(),
        quoted(.path),
        quoted(.path)
    )]
    Foreign {
        /// The folder.
        path: PathBuf,
    },
    /// Our own mount cannot be taken away.
    #[error(
        "the dead mount at `{}` cannot be removed; once no other file system is mounted over it, \
         free the folder with `umount -l`, without root with `fusermount3 -u -z`",
        .path.display()
    )]
    Stays {
        /// The former mount point; the cause names the present one.
        path: PathBuf,
        /// The reason.
        #[source]
        cause: io::Error,
    },
    /// Anything else.
    #[error("`{}` cannot be mounted", .path.display())]
    Mount {
        /// The folder.
        path: PathBuf,
        /// The reason.
        #[source]
        cause: io::Error,
    },
}

/// A mounted folder. Dropping it unmounts, as [`Mounted::unmount`] does.
#[derive(Debug)]
pub struct Mounted {
    session: Option<BackgroundSession>,
    shared: Arc<Shared>,
    path: PathBuf,
    /// The device of the file system: another one may be at the path some day, and this one may be
    /// elsewhere.
    device: String,
}

impl Mounted {
    /// Mounts the files that a process may open at a folder, which has to be empty, and no link to
    /// one. Only our own user gets in, as the kernel sees to.
    ///
    /// A dead mount there, of a killed process, is taken away first.
    ///
    /// # Errors
    /// The cases of [`MountError`].
    pub fn new(
        process: Arc<Process>,
        path: &Path,
        options: &MountOptions,
        runtime: Runtime,
    ) -> Result<Self, MountError> {
        clean_up(path)?;
        let unfit = |cause| MountError::Folder { path: path.to_owned(), cause };
        // The checked folder is the one that is mounted at, even if the path changes meanwhile.
        let folder = Folder::itself(path).map_err(unfit)?;
        check_not_ours(&folder, path)?;
        check_empty(&folder, path)?;
        if let Err(cause) = fs_err::metadata("/dev/fuse") {
            return Err(MountError::NoFuse { cause });
        }
        let awake = options.keeps_awake.then(|| PathBuf::from(DEVICE));
        if let Some(device) = &awake {
            drop(CpuLatency::begin(device).map_err(|cause| MountError::Sleeps { cause })?);
        }
        let stopping = CancellationToken::new();
        let shared = Arc::new(Shared {
            interrupts: InterruptTimer::new(runtime.clone(), stopping.clone(), awake),
            lists: Lists::new(process.clone()),
            process,
            results: <_>::default(),
            handles: <_>::default(),
            runtime,
            tasks: TaskTracker::new(),
            stopping,
            write_bytes: options.write_bytes,
            notifier: <_>::default(),
        });
        let mut config = Config::default();
        config.acl = SessionACL::Owner;
        config.n_threads = Some(options.threads.max(1));
        let failed = |cause: io::Error| match cause.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::NotFound => {
                MountError::NoFuse { cause }
            }
            _ => MountError::Mount { path: path.to_owned(), cause },
        };
        let (asked_by, device) = kernel::mount_at(&folder).map_err(failed)?;
        let files = Files::new(shared.clone());
        let session = Session::from_fd(files, asked_by, SessionACL::Owner, config);
        let noted = session.inspect(|session| {
            drop(shared.notifier.set(session.notifier()));
        });
        match noted.and_then(Session::spawn) {
            Ok(session) => {
                Ok(Self { session: Some(session), shared, path: path.to_owned(), device })
            }
            Err(cause) => {
                if let Err(error) = free(&device) {
                    tracing::warn!(%error, "a folder stays mounted");
                }
                Err(failed(cause))
            }
        }
    }

    /// True if the kernel sends no requests any more: the folder was unmounted, and all programs
    /// left it.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.session.as_ref().is_none_or(|session| session.guard.is_finished())
    }

    /// To be called after a server was unmounted or revoked: notifies the pollers of its files,
    /// which nothing else would wake. Does not block.
    pub fn look_again(&self) {
        self.shared.tell_of_what_is_over();
    }

    /// True if the file system is mounted anywhere. Programs may use it longer than that.
    ///
    /// # Errors
    /// When the kernel does not list the mounts.
    pub fn is_mounted(&self) -> io::Result<bool> {
        // The list is read first: as long as the session lasts, no other mount has this device.
        let is_listed = mountinfo::is_mounted(&self.device)?;
        Ok(is_listed && !self.is_over())
    }

    /// The device of the mount, for [`free`]: `0:57`. Another mount may have it after this one.
    #[must_use]
    pub fn device(&self) -> &str {
        &self.device
    }

    /// Ends what is under way and takes the mount away, wherever it is by now. What programs have
    /// open of it is dead. Blocks for a moment.
    ///
    /// # Errors
    /// When the system does not let it go, or something else is mounted over it.
    pub fn unmount(mut self) -> Result<(), MountError> {
        self.end()
    }

    fn end(&mut self) -> Result<(), MountError> {
        let Some(session) = self.session.take() else { return Ok(()) };
        // Waiting callers are answered first: a program that waits for us cannot be killed.
        self.shared.stopping.cancel();
        self.shared.tasks.close();
        // Once the kernel has ended the session, the device may be that of another mount.
        if !session.guard.is_finished() {
            let stays = |cause| MountError::Stays { path: self.path.clone(), cause };
            free(&self.device).map_err(stays)?;
        }
        end_session(session);
        Ok(())
    }
}

/// Waits for the end of a session whose folder is free, for a moment: the kernel keeps it until
/// all programs have left it, or this process ends.
fn end_session(session: BackgroundSession) {
    let (ending, ended) = sync_channel::<()>(1);
    let joining = move || {
        if let Err(error) = session.umount_and_join() {
            tracing::debug!(%error, "the session had ended already");
        }
        drop(ending);
    };
    if let Err(error) = std::thread::Builder::new().name("unmount".to_owned()).spawn(joining) {
        return tracing::debug!(%error, "the end of the FUSE session cannot be awaited");
    }
    if ended.recv_timeout(LEFT_WITHIN) == Err(RecvTimeoutError::Timeout) {
        tracing::warn!("the folder is free, but programs still use files of the former mount");
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            tracing::warn!(%error, "a folder stays mounted");
        }
    }
}

fn check_empty(folder: &Folder, path: &Path) -> Result<(), MountError> {
    let unfit = |cause| MountError::Folder { path: path.to_owned(), cause };
    // Without `fs_err`, whose errors would name the link and not the folder.
    let mut entries = std::fs::read_dir(folder.link()).map_err(unfit)?;
    match entries.next() {
        None => Ok(()),
        Some(Ok(_)) => Err(MountError::NotEmpty { path: path.to_owned() }),
        Some(Err(cause)) => Err(unfit(cause)),
    }
}

fn check_not_ours(folder: &Folder, path: &Path) -> Result<(), MountError> {
    match folder.ours() {
        Ok(None) => Ok(()),
        Ok(Some(_)) => Err(MountError::AlreadyMounted { path: path.to_owned() }),
        Err(cause) => Err(MountError::Folder { path: path.to_owned(), cause }),
    }
}

/// Checks that no mount of ours is at the folder, neither of this user nor of another one.
///
/// # Errors
/// When there is one ([`MountError::AlreadyMounted`]), or there is no such folder.
pub fn check_free(path: &Path) -> Result<(), MountError> {
    check_not_ours(&folder_at(path)?, path)
}

/// The whole path of a folder, without links. Nothing is asked of what is mounted there.
///
/// # Errors
/// When there is no such folder.
pub fn resolved(path: &Path) -> Result<PathBuf, MountError> {
    let resolved = folder_at(path)?.path();
    resolved.map_err(|cause| MountError::Folder { path: path.to_owned(), cause })
}

fn folder_at(path: &Path) -> Result<Folder, MountError> {
    Folder::at(path).map_err(|cause| MountError::Folder { path: path.to_owned(), cause })
}

/// Takes away a mount of ours whose process is gone; whatever else is there stays. `true` if there
/// was one.
///
/// # Errors
/// When it cannot be taken away, or is another program's.
pub fn clean_up(path: &Path) -> Result<bool, MountError> {
    // The kernel reports these errors for a mount that no process answers for any more; not for
    // facts that it remembers for a moment, such as the folder's kind. Without `fs_err`, whose
    // errors hide the number.
    let is_dead = match std::fs::read_dir(path) {
        Ok(_) => false,
        Err(error) => {
            let dead = [rustix::io::Errno::NOTCONN, rustix::io::Errno::CONNABORTED];
            dead.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
        }
    };
    if !is_dead {
        return Ok(false);
    }
    let ours = folder_at(path)?.ours();
    let ours = ours.map_err(|cause| MountError::Folder { path: path.to_owned(), cause })?;
    // Also for a folder below the mount of another user.
    let Some(mount) = ours else { return Err(MountError::Foreign { path: path.to_owned() }) };
    let stale = |cause| MountError::Stale { path: path.to_owned(), cause };
    free(&mount.device).map_err(stale).map(|()| true)
}

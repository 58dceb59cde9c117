//! Has the kernel mount a folder and take it away: by ourselves where we may, and else by
//! `fusermount3`, the program of the system that may. It gets nothing of our environment, in which
//! a run's token may be.

use std::{
    ffi::{CString, OsStr},
    io::{self, IoSliceMut, Read},
    mem::MaybeUninit,
    os::{
        fd::{AsFd, AsRawFd, OwnedFd},
        unix::{ffi::OsStrExt, net::UnixStream},
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use rustix::{
    fs::{Mode, OFlags, fstat, open},
    io::Errno,
    mount::{MountFlags, UnmountFlags, mount, unmount},
    net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg},
    process::{getgid, getuid},
};

use crate::mountinfo::{Mount, NAME, mount_id, mounts, ours};

/// The device of the kernel's requests.
const DEVICE: &str = "/dev/fuse";
/// Programs that mount for users other than root.
const HELPERS: [&str; 2] = ["fusermount3", "fusermount"];
/// The options for such a program: only our own user gets in, and modes of files count.
const HELPER_OPTIONS: &str =
    "fsname=narthex,subtype=narthex,nodev,nosuid,noexec,noatime,default_permissions";
/// The variable in which such a program finds the number of the socket for its answer. The socket
/// is the program's standard input, which needs no care of ours.
const ANSWERS_BY: (&str, &str) = ("_FUSE_COMMFD", "0");
/// The most bytes kept of such a program's complaints.
const COMPLAINT_MAX: u64 = 4096;

/// Mounts at a folder. Returns the descriptor of the kernel's requests, and the device, by which
/// [`free`] finds the mount again.
///
/// # Errors
/// `PermissionDenied` or `NotFound` when the system has no FUSE for us; else the error of the
/// system.
pub(crate) fn mount_at(folder: &Folder) -> io::Result<(OwnedFd, String)> {
    let asked_by = match by_ourselves(folder) {
        Err(Errno::PERM | Errno::ACCESS) => {
            let path = folder.path()?;
            with_helper(|program| by_helper(program, &path))?
        }
        mounted => mounted?,
    };
    Ok((asked_by, folder.device_above()?))
}

fn by_ourselves(folder: &Folder) -> Result<OwnedFd, Errno> {
    let device = open(DEVICE, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    let options = format!(
        "fd={},rootmode={:o},user_id={},group_id={},default_permissions",
        device.as_raw_fd(),
        fstat(&folder.descriptor)?.st_mode,
        getuid().as_raw(),
        getgid().as_raw(),
    );
    let options = CString::new(options).map_err(|_never| Errno::INVAL)?;
    let flags = MountFlags::NODEV | MountFlags::NOSUID | MountFlags::NOEXEC | MountFlags::NOATIME;
    mount(NAME, folder.link(), "fuse", flags, options.as_c_str())?;
    Ok(device)
}

/// Tries one program after the other until one is there.
fn with_helper<T>(run: impl Fn(&str) -> io::Result<T>) -> io::Result<T> {
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for program in HELPERS {
        match run(program) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => last = error,
            done => return done,
        }
    }
    Err(last)
}

fn helper(program: &str) -> Command {
    let mut command = Command::new(program);
    command.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

fn by_helper(program: &str, path: &Path) -> io::Result<OwnedFd> {
    let (ours, its) = UnixStream::pair()?;
    let mut command = helper(program);
    command.env(ANSWERS_BY.0, ANSWERS_BY.1).stdin(OwnedFd::from(its));
    command.args(["-o", HELPER_OPTIONS, "--"]).arg(path);
    let child = command.spawn()?;
    // The socket's other end is the child's alone: otherwise its closing could not be seen.
    drop(command);
    let received = received(&ours);
    ended(program, child)?;
    received
}

/// The descriptor that comes through a socket.
fn received(socket: impl AsFd) -> io::Result<OwnedFd> {
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut bytes = [IoSliceMut::new(&mut byte)];
    rustix::io::retry_on_intr(|| {
        recvmsg(&socket, &mut bytes, &mut control, RecvFlags::CMSG_CLOEXEC)
    })?;
    let descriptor = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    descriptor.ok_or_else(|| io::Error::other("the mount program returned no descriptor"))
}

/// Waits for the end of a program, and gives what it complains of.
fn ended(program: &str, mut child: Child) -> io::Result<()> {
    let mut said = Vec::new();
    if let Some(stderr) = &mut child.stderr {
        stderr.take(COMPLAINT_MAX).read_to_end(&mut said)?;
    }
    drop(child.stderr.take());
    let status = child.wait()?;
    if status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&said);
    let said = said.trim().trim_start_matches(program).trim_start_matches(':').trim();
    Err(io::Error::other(match said.is_empty() {
        true => format!("{program} ended with {status}"),
        false => format!("{program} says: {said}{}", remedy(said)),
    }))
}

/// The remedy for a complaint of such a program, if it is known.
fn remedy(said: &str) -> &'static str {
    match () {
        () if said.contains("no write access") => {
            "; name a folder that belongs to you and that you can write to"
        }
        () if said.contains("/dev/fuse") => {
            "; the device must exist and be open to all users (`chmod 666 /dev/fuse`), as udev \
             creates it"
        }
        () if said.contains("not permitted") => {
            "; this program needs its setuid bit, as in the package fuse3, and a container needs \
             the permission to mount"
        }
        () if said.contains("is forbidden") => "; name a folder of a local file system",
        () => "",
    }
}

/// Takes a file system of ours away at its present mount point, also while it is in use, and
/// nothing else.
///
/// It is found by its device: a folder above it may have been renamed, and another mount may be at
/// its old place. A file system that is gone is no error.
///
/// # Errors
/// When another file system is mounted over it, which stays, as it does itself; when the system
/// does not let it go, and no `fusermount3` does.
pub fn free(device: &str) -> io::Result<()> {
    let mut freed = Ok(());
    for mount in ours(mounts()?, device) {
        match take_away(&mount) {
            // It is gone: the kernel, or another process, was faster.
            Err(_) if !ours(mounts()?, device).any(|one| one.id == mount.id) => {}
            Err(error) => {
                let text = format!("`{}` stays mounted: {error}", mount.point.display());
                freed = Err(io::Error::new(error.kind(), text));
            }
            Ok(()) => {}
        }
    }
    freed
}

/// Takes away the visible mount at a point, if it is this very mount. The folder is held meanwhile:
/// neither a link nor a rename by another process leads to another folder.
fn take_away(mount: &Mount) -> io::Result<()> {
    let folder = Folder::itself(&mount.point)?;
    if mount_id(&folder.descriptor)? != mount.id {
        return Err(io::Error::other("another file system is mounted over it"));
    }
    match unmount(folder.link(), UnmountFlags::DETACH) {
        Err(Errno::PERM | Errno::ACCESS) => with_helper(|program| {
            // The helper only takes away mounts of its caller, and follows no link either.
            let mut command = helper(program);
            ended(program, command.args(["-u", "-z", "--"]).arg(&mount.point).spawn()?)
        }),
        done => Ok(done?),
    }
}

/// A folder that is held, whatever becomes of its path. Nothing is asked of its file system.
#[derive(Debug)]
pub(crate) struct Folder {
    descriptor: OwnedFd,
}

impl Folder {
    /// The folder that a path leads to.
    pub(crate) fn at(path: &Path) -> io::Result<Self> {
        Self::open(path, OFlags::empty())
    }

    /// The folder that a path names, which is no link to one.
    pub(crate) fn itself(path: &Path) -> io::Result<Self> {
        Self::open(path, OFlags::NOFOLLOW)
    }

    fn open(path: &Path, flags: OFlags) -> io::Result<Self> {
        let flags = flags | OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self { descriptor: open(path, flags, Mode::empty())? })
    }

    /// A path to this folder for code of this process that takes a path.
    pub(crate) fn link(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.descriptor.as_raw_fd()))
    }

    /// Its whole path, without links, as it is now.
    pub(crate) fn path(&self) -> io::Result<PathBuf> {
        fs_err::read_link(self.link())
    }

    /// Our mount at the folder that is visible there.
    ///
    /// # Errors
    /// When the kernel does not list the mounts.
    pub(crate) fn ours(&self) -> io::Result<Option<Mount>> {
        let (id, path) = (mount_id(&self.descriptor)?, self.path()?);
        let is_it = |mount: &Mount| mount.is_ours && mount.id == id && mount.point == path;
        Ok(mounts()?.into_iter().find(is_it))
    }

    /// The device of what was mounted at it after it was opened.
    fn device_above(&self) -> io::Result<String> {
        let (id, path) = (mount_id(&self.descriptor)?, self.path()?);
        let is_it = |mount: &Mount| mount.is_ours && mount.parent == id && mount.point == path;
        let mount = mounts()?.into_iter().find(is_it);
        let text = "the new mount cannot be found; check for another mount or a rename of the \
                    folder, then try again";
        mount.map(|mount| mount.device).ok_or_else(|| io::Error::other(text))
    }
}

/// A path as it is typed in a shell.
pub(crate) fn quoted(path: &Path) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-+,:@".contains(byte);
    let text = path.display().to_string();
    match OsStr::as_bytes(path.as_os_str()).iter().all(plain) {
        true => text,
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The system's program complains in words for people who know it.
    #[test]
    fn a_complaint_of_fusermount_is_reported_with_a_remedy() {
        for (said, told) in [
            ("user has no write access to mountpoint /x", "a folder that belongs to you"),
            ("failed to open /dev/fuse: Permission denied", "chmod 666"),
            ("mount failed: Operation not permitted", "setuid"),
            ("mounting over filesystem type 0x6969 is forbidden", "local file system"),
        ] {
            assert!(remedy(said).starts_with("; ") && remedy(said).contains(told), "{said}");
        }
        assert_eq!(remedy("too many FUSE filesystems mounted"), "");
    }

    #[test]
    fn a_path_that_is_shown_can_be_typed() {
        assert_eq!(quoted(Path::new("/tmp/a.b-c")), "/tmp/a.b-c");
        assert_eq!(quoted(Path::new("/tmp/a b'c")), r"'/tmp/a b'\''c'");
    }
}

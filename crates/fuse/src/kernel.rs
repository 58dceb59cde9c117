//! Has the kernel mount a folder and take it away: by ourselves where we may, and else by
//! `fusermount3`, the program of the system that may. It gets nothing of our environment, in which
//! a run's token may be.

use std::{
    ffi::{CString, OsStr, OsString},
    io::{self, IoSliceMut, Read},
    mem::MaybeUninit,
    os::{
        fd::{AsFd, AsRawFd, OwnedFd},
        unix::{
            ffi::{OsStrExt, OsStringExt},
            net::UnixStream,
        },
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use rustix::{
    fs::{Mode, OFlags, open, stat},
    io::Errno,
    mount::{MountFlags, UnmountFlags, mount, unmount},
    net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg},
    process::{getgid, getuid},
};

/// What the kernel asks through.
const DEVICE: &str = "/dev/fuse";
/// What our mounts are called.
const NAME: &str = "narthex";
/// Programs that mount for whoever is not root.
const HELPERS: [&str; 2] = ["fusermount3", "fusermount"];
/// What such a program gets: only our own user gets in, and modes of files count.
const HELPER_OPTIONS: &str =
    "fsname=narthex,subtype=narthex,nodev,nosuid,noexec,noatime,default_permissions";
/// Where such a program finds the number of the socket that it answers through. It is its standard
/// input, which needs no care of ours.
const ANSWERS_BY: (&str, &str) = ("_FUSE_COMMFD", "0");
/// The most that is kept of what such a program complains of.
const COMPLAINT_MAX: u64 = 4096;

/// Mounts a folder; gives what the kernel asks through.
///
/// # Errors
/// `PermissionDenied` or `NotFound` when the system has no FUSE for us; else as the system says.
pub(crate) fn mount_at(path: &Path) -> io::Result<OwnedFd> {
    match by_ourselves(path) {
        Err(Errno::PERM | Errno::ACCESS) => with_helper(|program| by_helper(program, path)),
        mounted => Ok(mounted?),
    }
}

fn by_ourselves(path: &Path) -> Result<OwnedFd, Errno> {
    let device = open(DEVICE, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    let options = format!(
        "fd={},rootmode={:o},user_id={},group_id={},default_permissions",
        device.as_raw_fd(),
        stat(path)?.st_mode,
        getuid().as_raw(),
        getgid().as_raw(),
    );
    let options = CString::new(options).map_err(|_never| Errno::INVAL)?;
    let flags = MountFlags::NODEV | MountFlags::NOSUID | MountFlags::NOEXEC | MountFlags::NOATIME;
    mount(NAME, path, "fuse", flags, options.as_c_str())?;
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
    // Its end of the socket is its alone: else its end could not be seen.
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
    descriptor.ok_or_else(|| io::Error::other("the program that mounts gave no descriptor"))
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
        false => format!("{program} says: {said}"),
    }))
}

/// Takes a mount out of sight, whoever uses it; nothing is done where there is none.
///
/// # Errors
/// When the system does not let it go, and no `fusermount3` does.
pub fn detach(path: &Path) -> io::Result<()> {
    match unmount(path, UnmountFlags::DETACH) {
        Ok(()) => Ok(()),
        // It is gone: the kernel, or somebody else, was faster.
        Err(Errno::INVAL | Errno::NOENT) => Ok(()),
        Err(Errno::PERM | Errno::ACCESS) => {
            let helped = with_helper(|program| {
                let mut command = helper(program);
                ended(program, command.args(["-u", "-z", "--"]).arg(path).spawn()?)
            });
            match helped {
                Err(_not_there) if !is_mounted_at(path)? => Ok(()),
                helped => helped,
            }
        }
        Err(error) => Err(error.into()),
    }
}

/// Whether a file system of ours is mounted at a folder, also where it lets us not in.
///
/// # Errors
/// When the kernel does not say what is mounted, or there is no such folder.
pub(crate) fn is_mounted_at(path: &Path) -> io::Result<bool> {
    device_at(path).map(|device| device.is_some())
}

/// The device of what of ours is mounted at a folder, as mounts are told apart: `0:57`.
pub(crate) fn device_at(path: &Path) -> io::Result<Option<String>> {
    let whole = whole(path)?;
    let mounts = fs_err::read("/proc/self/mountinfo")?;
    // The last one is on top.
    Ok(ours(&mounts).filter(|(_, point)| *point == whole).last().map(|(device, _)| device))
}

/// A path without links. Its last name is looked at only where we may.
fn whole(path: &Path) -> io::Result<PathBuf> {
    if let Ok(whole) = path.canonicalize() {
        return Ok(whole);
    }
    let path = std::path::absolute(path)?;
    Ok(match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => parent.canonicalize()?.join(name),
        _ => path,
    })
}

/// The devices of our mounts, and where they are. A line is `ID PARENT MAJOR:MINOR ROOT POINT
/// OPTIONS … - TYPE SOURCE …`.
fn ours(mountinfo: &[u8]) -> impl Iterator<Item = (String, PathBuf)> {
    let lines = mountinfo.split(|byte| *byte == b'\n');
    lines.filter_map(|line| {
        let words: Vec<_> = line.split(|byte| *byte == b' ').collect();
        let kind = words.iter().position(|word| *word == b"-")?;
        let (kind, source) = (*words.get(kind + 1)?, *words.get(kind + 2)?);
        let is_ours = kind.starts_with(b"fuse") && source == NAME.as_bytes();
        let (device, point) = (*words.get(2)?, *words.get(4).filter(|_| is_ours)?);
        Some((String::from_utf8_lossy(device).into_owned(), unescaped(point)))
    })
}

/// Blanks and other such characters are `\` and three octal digits there.
fn unescaped(word: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((byte, after)) = rest.split_first() {
        let code = after.get(..3).filter(|_| *byte == b'\\');
        let code = code.and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 8).ok()) {
            Some(code) => {
                bytes.push(code);
                rest = &after[3..];
            }
            None => {
                bytes.push(*byte);
                rest = after;
            }
        }
    }
    OsString::from_vec(bytes).into()
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

    #[test]
    fn our_mounts_are_found_by_source_and_type() {
        let info = b"22 1 0:20 / /proc rw - proc proc rw\n\
            40 1 0:57 / /tmp/a\\040b rw,nosuid shared:1 - fuse.narthex narthex rw,user_id=0\n\
            41 1 0:58 / /tmp/b rw,nosuid - fuse narthex rw,user_id=0\n\
            42 1 0:59 / /tmp/c rw,nosuid - fuse.sshfs other rw,user_id=0\n";
        let found: Vec<_> = ours(info).collect();
        let wanted = [("0:57".to_owned(), "/tmp/a b".into()), ("0:58".to_owned(), "/tmp/b".into())];
        assert_eq!(found, wanted);
        assert_eq!(unescaped(br"/a\134\011b\9"), Path::new("/a\\\tb\\9"));
    }

    #[test]
    fn a_path_that_is_shown_can_be_typed() {
        assert_eq!(quoted(Path::new("/tmp/a.b-c")), "/tmp/a.b-c");
        assert_eq!(quoted(Path::new("/tmp/a b'c")), r"'/tmp/a b'\''c'");
    }
}

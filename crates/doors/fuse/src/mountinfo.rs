//! The mounts in the kernel's list. Read as bytes: a path need not be UTF-8, and a mount of another
//! program with such a path must hide none of ours.

use std::{
    ffi::OsString,
    io,
    os::{
        fd::{AsFd, AsRawFd},
        unix::ffi::OsStringExt,
    },
    path::PathBuf,
};

use fs_err as fs;

/// The source name of our mounts.
pub(crate) const NAME: &str = "narthex";
/// The file system types of our mounts. Root mounts without the helper program that knows the
/// second word.
const TYPES: [&[u8]; 2] = [b"fuse", b"fuse.narthex"];

/// One mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mount {
    /// The mount's id for this process, as in `/proc/self/fdinfo`.
    pub(crate) id: u64,
    /// The id of the mount that contains it.
    pub(crate) parent: u64,
    /// The device number of its file system: `0:57`. The same at every mount point.
    pub(crate) device: String,
    /// Its present mount point, as seen from this process, also when a folder above was renamed.
    pub(crate) point: PathBuf,
    /// True if this program has mounted it.
    pub(crate) is_ours: bool,
}

/// All mounts that this process can see.
pub(crate) fn mounts() -> io::Result<Vec<Mount>> {
    Ok(parsed(&fs::read("/proc/self/mountinfo")?))
}

/// True if a file system of ours with this device is mounted anywhere.
pub(crate) fn is_mounted(device: &str) -> io::Result<bool> {
    Ok(ours(mounts()?, device).next().is_some())
}

/// The mounts of a file system of ours.
pub(crate) fn ours(mounts: Vec<Mount>, device: &str) -> impl Iterator<Item = Mount> {
    mounts.into_iter().filter(move |mount| mount.is_ours && mount.device == device)
}

fn parsed(mountinfo: &[u8]) -> Vec<Mount> {
    mountinfo.split(|byte| *byte == b'\n').filter_map(line).collect()
}

/// A line is `ID PARENT MAJOR:MINOR ROOT POINT OPTIONS … - TYPE SOURCE OPTIONS`.
fn line(line: &[u8]) -> Option<Mount> {
    let words: Vec<_> = line.split(|byte| *byte == b' ').collect();
    let number = |at: usize| str::from_utf8(words.get(at)?).ok()?.parse().ok();
    let kind = words.iter().skip(6).position(|word| *word == b"-")? + 7;
    Some(Mount {
        id: number(0)?,
        parent: number(1)?,
        device: str::from_utf8(words.get(2)?).ok()?.to_owned(),
        point: unescaped(words.get(4)?),
        is_ours: TYPES.contains(words.get(kind)?) && *words.get(kind + 1)? == NAME.as_bytes(),
    })
}

/// Blanks and other such characters are `\` and three octal digits there.
fn unescaped(word: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((byte, after)) = rest.split_first() {
        let code = after.get(..3).filter(|_| *byte == b'\\');
        let code = code.and_then(|code| str::from_utf8(code).ok());
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

/// The mount that contains an open descriptor. No file system is asked for it: this works also for
/// one that answers no process, or not us.
pub(crate) fn mount_id(descriptor: impl AsFd) -> io::Result<u64> {
    let number = descriptor.as_fd().as_raw_fd();
    let told = fs::read_to_string(format!("/proc/self/fdinfo/{number}"))?;
    let id = told.lines().find_map(|line| line.strip_prefix("mnt_id:")?.trim().parse().ok());
    id.ok_or_else(|| io::Error::other("the kernel does not say in which mount a folder is"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const INFO: &[u8] = b"22 1 0:20 / /proc rw - proc proc rw\n\
        39 1 0:60 / /tmp/caf\xe9 rw,nosuid shared:2 - fuse.sshfs narthex rw,user_id=0\n\
        40 1 0:57 / /tmp/a\\040b rw,nosuid shared:1 - fuse.narthex narthex rw,user_id=0\n\
        41 22 0:58 / /tmp/\xff rw,nosuid - fuse narthex rw,user_id=0\n\
        42 1 0:59 / /tmp/c rw,nosuid - fuse.sshfs other rw,user_id=0\n";

    #[test]
    fn our_mounts_are_found_by_source_and_type() {
        let found: Vec<_> = parsed(INFO).into_iter().filter(|mount| mount.is_ours).collect();
        let mount = |id, parent, device: &str, point| {
            let (device, point) = (device.to_owned(), unescaped(point));
            Mount { id, parent, device, point, is_ours: true }
        };
        let wanted = [mount(40, 1, "0:57", b"/tmp/a b"), mount(41, 22, "0:58", b"/tmp/\xff")];
        assert_eq!(found, wanted);
        assert_eq!(unescaped(br"/a\134\011b\9"), Path::new("/a\\\tb\\9"));
    }

    #[test]
    fn mounts_at_paths_that_are_not_utf8_are_found() {
        assert_eq!(parsed(INFO).len(), 5);
        let has = |device| ours(parsed(INFO), device).next().is_some();
        assert!(has("0:57") && has("0:58"));
        assert!(!has("0:20") && !has("0:5") && !has("0:60") && !has(""));
    }
}

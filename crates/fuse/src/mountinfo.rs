//! What is mounted, as the kernel says. Read as bytes: a path need not be UTF-8, and one that is
//! not, of whatever else is mounted, must hide none of ours.

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

/// What our mounts are called.
pub(crate) const NAME: &str = "narthex";
/// Of which types they are. Root mounts without the program that knows of the second word.
const TYPES: [&[u8]; 2] = [b"fuse", b"fuse.narthex"];

/// One mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mount {
    /// What this process knows it by, as in `/proc/self/fdinfo`.
    pub(crate) id: u64,
    /// What it is mounted in.
    pub(crate) parent: u64,
    /// Its file system, as they are told apart: `0:57`. The same wherever it is mounted.
    pub(crate) device: String,
    /// Where it is now, as seen from this process, also when a folder above was renamed.
    pub(crate) point: PathBuf,
    /// Whether this program has mounted it.
    pub(crate) is_ours: bool,
}

/// All mounts that this process can see.
pub(crate) fn mounts() -> io::Result<Vec<Mount>> {
    Ok(parsed(&fs::read("/proc/self/mountinfo")?))
}

/// Whether a file system of ours with this device is mounted anywhere.
///
/// # Errors
/// When the kernel does not say what is mounted.
pub fn is_mounted(device: &str) -> io::Result<bool> {
    Ok(ours(mounts()?, device).next().is_some())
}

/// Where a file system of ours is mounted.
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

/// The mount in which an open descriptor is. No file system is asked for it: also not one that
/// answers nobody, or not us.
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
    fn paths_that_are_no_text_hide_no_mount() {
        assert_eq!(parsed(INFO).len(), 5);
        let has = |device| ours(parsed(INFO), device).next().is_some();
        assert!(has("0:57") && has("0:58"));
        assert!(!has("0:20") && !has("0:5") && !has("0:60") && !has(""));
    }
}

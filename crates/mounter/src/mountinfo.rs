//! Which file systems of ours are mounted, as the kernel says.

use std::{io, os::unix::fs::MetadataExt, path::Path};

use fs_err as fs;
use rustix::fs::{major, minor};

/// The device of a folder, as mounts are told apart: `0:57`. Asks the file system of the folder.
pub(crate) fn device(folder: &Path) -> io::Result<String> {
    let device = fs::metadata(folder)?.dev();
    Ok(format!("{}:{}", major(device), minor(device)))
}

/// Whether a file system of ours with this device is mounted anywhere.
pub(crate) fn is_mounted(device: &str) -> io::Result<bool> {
    Ok(has(&fs::read_to_string("/proc/self/mountinfo")?, device))
}

/// A line is `ID PARENT MAJOR:MINOR ROOT POINT OPTIONS … - TYPE SOURCE OPTIONS`.
fn has(mountinfo: &str, device: &str) -> bool {
    mountinfo.lines().any(|line| {
        // Root mounts without the helper that knows of the second word.
        let types = [" - fuse narthex ", " - fuse.narthex narthex "];
        let is_ours = types.iter().any(|one| line.contains(one));
        is_ours && line.split(' ').nth(2) == Some(device)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_is_found_by_its_device_and_type() {
        let info = "22 1 0:20 / /proc rw - proc proc rw\n\
                    40 1 0:57 / /tmp/a\\040b rw,nosuid - fuse.narthex narthex rw,user_id=0\n\
                    41 1 0:58 / /tmp/b rw,nosuid - fuse narthex rw,user_id=0\n";
        assert!(has(info, "0:57") && has(info, "0:58"));
        assert!(!has(info, "0:20") && !has(info, "0:5") && !has(info, ""));
    }
}

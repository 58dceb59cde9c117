//! Processes that are not children of the test: finds them, and waits for their end.

use std::{
    path::{Path, PathBuf},
    process::{Child, Command},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fd::AsFd,
    process::{Pid, PidfdFlags, pidfd_open},
};

use crate::support::SOON;

/// Every process that works in this folder, with its command line. A daemon's shims and servers do,
/// whichever process their parent is.
pub(super) fn working_in(folder: &Path) -> Vec<(Pid, String)> {
    let folder = fs_err::canonicalize(folder).unwrap();
    let entries = fs_err::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
    let found = entries.filter_map(|process: PathBuf| {
        let pid = Pid::from_raw(process.file_name()?.to_str()?.parse().ok()?)?;
        // No process is there any more if this cannot be read, or a zombie, or another user's.
        let place = fs_err::read_link(process.join("cwd")).ok()?;
        if !place.starts_with(&folder) {
            return None;
        }
        let line = fs_err::read(process.join("cmdline")).unwrap_or_default();
        Some((pid, String::from_utf8_lossy(&line).replace('\0', " ")))
    });
    found.collect()
}

/// Waits until no process works in this folder: each end is reported by the kernel.
#[track_caller]
pub(crate) fn wait_until_nobody_works_in(folder: &Path) {
    let patience = Timespec::try_from(SOON).unwrap();
    let mut empty = 0;
    // Twice, as a process that started another during a look may have been passed by.
    while empty < 2 {
        let living = working_in(folder);
        empty = if living.is_empty() { empty + 1 } else { 0 };
        for (pid, line) in living {
            let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else { continue };
            let mut ends = [PollFd::from_borrowed_fd(process.as_fd(), PollFlags::IN)];
            let ended = poll(&mut ends, Some(&patience)).unwrap();
            assert_eq!(ended, 1, "an orphan lives on: {} {line}", pid.as_raw_nonzero());
        }
    }
}

/// The search for orphans finds one: a process in the folder whose parent is gone.
#[test]
fn an_orphan_is_found() {
    let folder = tempfile::tempdir().unwrap();
    assert!(working_in(folder.path()).is_empty());
    let mut parent = Command::new("sh");
    parent.args(["-c", "exec 3<&0; cat <&3 & exit 0"]).current_dir(folder.path());
    let mut parent: Child = parent.stdin(std::process::Stdio::piped()).spawn().unwrap();
    let hold = parent.stdin.take().unwrap();
    parent.wait().unwrap();
    let found = working_in(folder.path());
    assert_eq!(found.len(), 1, "{found:?}");
    drop(hold);
    wait_until_nobody_works_in(folder.path());
}

//! The needs of servers as files besides the system: FUSE, and Debian's programs for the examples.

use std::path::Path;

use anyhow::{Result, ensure};

use crate::peers::install;
use crate::process::answers;

const PROGRAMS: &str = "jq python3 fusermount3";
const PACKAGES: &[&str] = &["jq", "python3", "fuse3"];

const DEVICE: &str = "/dev/fuse";

/// Installs the programs if one is missing. Only the kernel can provide the device: without it, no
/// folder is mounted and most of these tests leave themselves out, so its absence is reported here.
pub(super) fn provide() -> Result<()> {
    if !Path::new(DEVICE).exists() {
        let load = format!("modprobe fuse && test -e {DEVICE} || mknod -m 666 {DEVICE} c 10 229");
        ensure!(answers("sh", &["-c", &load]), "there is no {DEVICE}, and it cannot be made");
    }
    ensure!(
        answers("sh", &["-c", &format!(": <> {DEVICE}")]),
        "{DEVICE} cannot be opened: the tests of folders need FUSE, and root or udev"
    );
    if !is_there() {
        install::apt_install(PACKAGES)?;
    }
    ensure!(is_there(), "{PROGRAMS} are not all there, though {PACKAGES:?} are installed");
    Ok(())
}

fn is_there() -> bool {
    let script = "for program in $0; do command -v \"$program\" || exit 1; done";
    answers("sh", &["-c", script, PROGRAMS])
}

//! What the examples of servers as files need besides the system: Debian's programs.

use anyhow::{Result, ensure};

use crate::peers::install;
use crate::process::answers;

const PROGRAMS: &str = "jq python3 fusermount3";
const PACKAGES: &[&str] = &["jq", "python3", "fuse3"];

/// Installs them if one is missing.
pub(super) fn provide() -> Result<()> {
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

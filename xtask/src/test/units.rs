//! Programs of Debian that tests of crates need.

use anyhow::{Result, ensure};

use crate::peers::install;
use crate::process::answers;

const PROGRAM: &str = "systemd-analyze";

/// Installs it if it is missing. It needs no running systemd.
pub(super) fn provide() -> Result<()> {
    if !is_there() {
        install::apt_install(&["systemd"])?;
    }
    ensure!(is_there(), "there is no {PROGRAM}, though Debian's systemd is installed");
    Ok(())
}

/// Installs the program that confines servers, if it is missing.
pub(super) fn provide_confinement() -> Result<()> {
    if cfg!(target_os = "linux") {
        install::provide("bwrap", &["--version"], &["bubblewrap"])?;
    }
    Ok(())
}

fn is_there() -> bool {
    answers(PROGRAM, &["--version"])
}

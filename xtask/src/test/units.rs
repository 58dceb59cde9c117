//! The program that checks units of systemd, for the test of the texts that narthex writes.

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

fn is_there() -> bool {
    answers(PROGRAM, &["--version"])
}

//! A Secret Service for the test of the keychain: Debian's programs, which the test starts itself.

use std::process::Command;

use anyhow::{Result, ensure};

use crate::peers::install;
use crate::process::answers;

/// The variable that informs the test that the programs are there. Has to be the test's own name
/// for it.
const VARIABLE: &str = "NARTHEX_TEST_KEYCHAIN";
const PROGRAMS: &str = "secret-tool gnome-keyring-daemon dbus-run-session dbus-send";
const PACKAGES: &[&str] = &["libsecret-tools", "gnome-keyring", "dbus"];

/// Installs them if one is missing.
pub(super) fn provide() -> Result<()> {
    if !is_there() {
        install::apt_install(PACKAGES)?;
    }
    ensure!(is_there(), "{PROGRAMS} are not all there, though {PACKAGES:?} are installed");
    Ok(())
}

/// Sets the variable for a command.
pub(super) fn tell(command: &mut Command) {
    command.env(VARIABLE, "1");
}

fn is_there() -> bool {
    let script = "for program in $0; do command -v \"$program\" || exit 1; done";
    answers("sh", &["-c", script, PROGRAMS])
}

//! The marks of narthex's own files, and the names of the service of a machine.

/// The comment of a generated file.
pub(super) const MARK: &str = "Written by narthex (service install)";

/// The folder of a system service's data.
pub const SYSTEM_DATA: &str = "/var/lib/narthex";

/// The user of a system service.
pub const SYSTEM_USER: &str = "narthex";

/// The file by which `systemd-sysusers` creates that user.
pub const SYSUSERS: &str = "/etc/sysusers.d/narthex.conf";

/// The text of [`SYSUSERS`].
#[must_use]
pub fn sysusers() -> String {
    format!("# {MARK}.\nu {SYSTEM_USER} - \"daemon of narthex\" {SYSTEM_DATA}\n")
}

/// True if narthex has written the text of a unit, a property list or [`SYSUSERS`].
#[must_use]
pub fn is_ours(text: &str) -> bool {
    text.lines().take(3).any(|line| line.contains(MARK))
}

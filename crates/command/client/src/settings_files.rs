//! The names of the user's settings files: in their own folder, in backups, and in the data folder
//! after a restore.

/// The settings of the daemon and the commands.
pub const SETTINGS_FILE: &str = "narthex.toml";
/// The servers of all projects of the user.
pub const SERVERS_FILE: &str = "settings.json";

/// True for the name of one of the files.
#[must_use]
pub fn is_settings_file(name: &str) -> bool {
    [SETTINGS_FILE, SERVERS_FILE].contains(&name)
}

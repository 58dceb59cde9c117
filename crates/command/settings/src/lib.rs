//! Reads the environment, and builds the settings from it.
//!
//! Flags win over the environment, the environment over the settings file, the file over the
//! defaults. No other module of the project reads environment variables.

mod chosen;
mod connections;
mod keys;
mod layers;
mod settings;
mod signin;
mod variables;

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use narthex_model::Secret;
use narthex_supervisor::BaseEnvironment;

pub use connections::ConnectionOptions;
pub use keys::KeyPlace;
pub use settings::{Flags, Settings};
pub use signin::SignIn;

use narthex_failure::Failure;

/// One environment variable, if it is set and valid text.
#[expect(clippy::disallowed_methods, reason = "this is the one place that reads the environment")]
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The variable that gives master keys.
pub const MASTER_KEY: &str = "NARTHEX_MASTER_KEY";

/// The variable that gives the database of the store, with a password.
pub const STORE_URL: &str = "NARTHEX_STORE_URL";

/// The master keys that the environment gives, even if empty.
pub fn master_key() -> Option<Secret> {
    variable(MASTER_KEY).map(Secret::new)
}

/// The variable that gives the token of an operator's commands.
pub const TOKEN: &str = "NARTHEX_TOKEN";

/// The token that the environment gives. Scripts unset it by an empty value.
pub fn token() -> Option<Secret> {
    variable(TOKEN).filter(|text| !text.is_empty()).map(Secret::new)
}

/// True if the environment gives an empty token.
pub fn is_token_empty() -> bool {
    variable(TOKEN).is_some_and(|text| text.is_empty())
}

/// One environment variable, for placeholders of configuration files.
///
/// A file must not hand these to a server: the key of all secrets, the URL of the store, an
/// operator's token, and our passwords at sign-in providers.
pub fn placeholder(name: &str) -> Option<String> {
    if is_ours(name) { None } else { variable(name) }
}

fn is_ours(name: &str) -> bool {
    matches!(name, MASTER_KEY | STORE_URL | TOKEN) || name.starts_with(signin::SECRET)
}

/// The variables that no program gets which speaks to a keychain for us.
pub fn hidden() -> Vec<OsString> {
    let names = std::env::vars_os().map(|(name, _)| name);
    names.filter(|name| name.to_str().is_some_and(is_ours)).collect()
}

/// True if the terminal's language setting can show more than ASCII.
pub fn is_utf8_locale() -> bool {
    let names = ["LC_ALL", "LC_CTYPE", "LANG"];
    let locale = names.iter().filter_map(|name| variable(name)).find(|value| !value.is_empty());
    locale.is_some_and(|locale| {
        let locale = locale.to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

/// True if the environment does not refuse colours.
pub fn may_have_colours() -> bool {
    let is_refused = variable("NO_COLOR").is_some_and(|value| !value.is_empty());
    !is_refused && variable("TERM").is_none_or(|terminal| terminal != "dumb")
}

/// The environment variables that child processes get.
pub fn base_environment() -> BaseEnvironment {
    BaseEnvironment::from_process()
}

/// The folder that narthex works in.
pub fn workspace_root() -> Result<PathBuf, Failure> {
    Ok(std::env::current_dir()?)
}

/// Reads all layers.
pub fn load(flags: &Flags) -> Result<Settings, Failure> {
    settings::load(flags, &variable)
}

/// A folder of the user's by the rules of the XDG base directories.
fn user_folder(
    env: &dyn Fn(&str) -> Option<String>,
    variable: &str,
    below_home: &str,
) -> Option<PathBuf> {
    // By those rules a relative path counts as unset.
    let folder = env(variable).map(PathBuf::from).filter(|folder| folder.is_absolute());
    folder.or_else(|| Some(Path::new(&env("HOME")?).join(below_home)))
}

/// The folder for sockets of the user's programs, if the session sets one.
pub fn runtime_dir() -> Option<PathBuf> {
    variable("XDG_RUNTIME_DIR").map(PathBuf::from)
}

/// Which program this is, for lines that a user pastes elsewhere.
pub fn program() -> OsString {
    std::env::current_exe().map_or_else(|_| "narthex".into(), PathBuf::into_os_string)
}

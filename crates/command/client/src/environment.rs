//! Reads the environment. No other module of the project reads environment variables.

use std::{ffi::OsString, path::PathBuf};

use narthex_model::{ErrorKind, Secret};

use crate::Failure;

/// The variable with the token for an operator's commands.
pub const TOKEN: &str = "NARTHEX_TOKEN";

/// One environment variable, if it is set and valid text.
#[expect(clippy::disallowed_methods, reason = "this is the one place that reads the environment")]
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The names of all environment variables that are text. No value is read.
pub fn names() -> impl Iterator<Item = String> {
    std::env::vars_os().filter_map(|(name, _)| name.into_string().ok())
}

/// The token in the environment. Scripts unset it by an empty value.
pub fn token() -> Option<Secret> {
    variable(TOKEN).filter(|text| !text.is_empty()).map(Secret::new)
}

/// True if the environment has an empty token.
pub fn is_token_empty() -> bool {
    variable(TOKEN).is_some_and(|text| text.is_empty())
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

/// True if the environment does not forbid colours.
pub fn may_have_colours() -> bool {
    let is_refused = variable("NO_COLOR").is_some_and(|value| !value.is_empty());
    !is_refused && variable("TERM").is_none_or(|terminal| terminal != "dumb")
}

/// A user's folder by the rules of the XDG base directories; `env` looks up variables.
pub fn user_folder(
    env: &dyn Fn(&str) -> Option<String>,
    variable: &str,
    below_home: &str,
) -> Option<PathBuf> {
    // By the rules of XDG a relative path counts as unset.
    let folder = env(variable).map(PathBuf::from).filter(|folder| folder.is_absolute());
    folder.or_else(|| Some(home(env)?.join(below_home)))
}

/// The user's home directory; `env` looks up variables.
pub fn home(env: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    env("HOME").filter(|home| !home.is_empty()).map(PathBuf::from)
}

/// The default data directory of the user; `env` looks up variables.
///
/// # Errors
/// When the user has no home directory.
pub fn usual_data(env: &dyn Fn(&str) -> Option<String>) -> Result<PathBuf, Failure> {
    let folder = user_folder(env, "XDG_DATA_HOME", ".local/share");
    folder.map(|folder| folder.join("narthex")).ok_or_else(|| {
        Failure::new(
            ErrorKind::NotFound,
            "there is no home directory to keep data in; name a directory with --data",
        )
    })
}

/// The path of this program, for lines that a user pastes elsewhere.
pub fn program() -> OsString {
    std::env::current_exe().map_or_else(|_| "narthex".into(), PathBuf::into_os_string)
}

//! Builds the settings of the process from flags, the environment and the settings file.
//!
//! Flags override the environment, the environment overrides the settings file, and the file
//! overrides the defaults.

mod connections;
mod given;
mod issuers;
mod journal;
mod keys;
mod layers;
mod oauth;
mod programs;
mod reading;
mod settings;
mod shared_clients;
mod signin;
mod tls;
mod unknown;
mod variables;

use std::{ffi::OsString, path::PathBuf};

pub(crate) use narthex_client::environment::{program, variable};
use narthex_client::{Failure, environment::TOKEN};
use narthex_model::Secret;
use narthex_supervisor::BaseEnvironment;

pub use connections::ConnectionOptions;
pub(crate) use keys::KeyPlace;
pub(crate) use programs::programs;
#[cfg(test)]
pub(crate) use settings::load as load_from;
pub(crate) use settings::{Flags, Settings, own_folder, usual_servers};
pub(crate) use signin::SignIn;
pub(crate) use tls::TlsPlace;
pub(crate) use unknown::unknown_variables;

/// The variable that gives master keys.
pub(crate) const MASTER_KEY: &str = "NARTHEX_MASTER_KEY";

/// The variable that gives the database of the store, with a password.
pub(crate) const STORE_URL: &str = "NARTHEX_STORE_URL";

/// The master keys that the environment gives, even if empty.
pub(crate) fn master_key() -> Option<Secret> {
    variable(MASTER_KEY).map(Secret::new)
}

/// One environment variable, for placeholders of configuration files.
///
/// A file must not hand these to a server: the key of all secrets, the URL of the store, an
/// operator's token, and narthex's passwords at sign-in providers.
pub(crate) fn placeholder(name: &str) -> Option<String> {
    if is_ours(name) { None } else { variable(name) }
}

fn is_ours(name: &str) -> bool {
    matches!(name, MASTER_KEY | STORE_URL | TOKEN) || name.starts_with(signin::SECRET)
}

/// The variables that the programs of keychains do not get.
pub(crate) fn hidden() -> Vec<OsString> {
    let names = std::env::vars_os().map(|(name, _)| name);
    names.filter(|name| name.to_str().is_some_and(is_ours)).collect()
}

/// The environment variables that child processes get.
pub(crate) fn base_environment() -> BaseEnvironment {
    BaseEnvironment::from_process()
}

/// The folder that narthex works in.
pub(crate) fn workspace_root() -> Result<PathBuf, Failure> {
    std::env::current_dir().map_err(|error| {
        let failure = Failure::from(error);
        let text = format!(
            "the folder in which narthex works cannot be used: {}; was it deleted? Start narthex \
             in another folder",
            failure.message
        );
        Failure { message: text, ..failure }
    })
}

/// Reads all layers.
pub(crate) fn load(flags: &Flags) -> Result<Settings, Failure> {
    settings::load(flags, &variable)
}

/// Reads the flags and the environment, for a command that works also while the settings file
/// cannot be used.
pub(crate) fn load_without_file(flags: &Flags) -> Result<Settings, Failure> {
    settings::load_without_file(flags, &variable)
}

/// The folder for sockets of the user's programs, if the session sets one.
pub(crate) fn runtime_dir() -> Option<PathBuf> {
    variable("XDG_RUNTIME_DIR").map(PathBuf::from)
}

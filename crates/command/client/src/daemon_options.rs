//! The options of every command: the daemon, and the form of the output.

use std::path::{Path, PathBuf};

use narthex_model::{Fingerprint, command::Chosen};
use narthex_wire::Limits;

use crate::{
    environment::{self, usual_data},
    output::Format,
};

/// The daemon that commands work with.
#[derive(Debug, Clone)]
pub struct DaemonOptions {
    /// The data directory.
    pub data: PathBuf,
    /// The daemon's address for operators' commands, instead of that in the data directory.
    pub daemon_url: Option<String>,
    /// The flag, variable or setting that gave the address, for messages.
    pub daemon_url_source: String,
    /// The file of the token for that daemon, instead of the data directory's.
    pub token_file: Option<PathBuf>,
    /// The flag, variable or setting that named the file, for messages.
    pub token_file_source: String,
    /// The file of certificates to trust besides the machine's, for the daemon at that address.
    pub ca_file: Option<PathBuf>,
    /// The only certificate that the daemon at that address may have.
    pub fingerprint: Option<Fingerprint>,
    /// The named settings file, for a daemon that a command starts.
    pub settings: Option<PathBuf>,
    /// Limits of the daemon's messages.
    pub limits: Limits,
}

/// The daemon and the output options of a command.
#[derive(Debug, Clone)]
pub struct Context {
    /// The daemon that the command works with.
    pub daemon: DaemonOptions,
    /// The format of the command's outcome.
    pub format: Format,
    /// True if only ASCII may be printed.
    pub is_ascii: bool,
}

impl DaemonOptions {
    /// The flags for this process's daemon in printed commands. `settings` is the settings file of
    /// this command line.
    #[must_use]
    pub fn chosen(&self, settings: Option<&Path>, workspace: Option<String>) -> Chosen {
        let mut chosen = Vec::new();
        if let Some(file) = settings {
            chosen.push(("--settings", absolute(file)));
        }
        match &self.daemon_url {
            Some(url) => {
                chosen.push(("--daemon-url", url.clone()));
                if let Some(file) = &self.ca_file {
                    chosen.push(("--ca-file", absolute(file)));
                }
                if let Some(fingerprint) = &self.fingerprint {
                    chosen.push(("--daemon-fingerprint", fingerprint.to_string()));
                }
            }
            // A variable may lead there, and need not be set where the command is pasted.
            None if usual_data(&environment::variable).ok().as_ref() != Some(&self.data) => {
                chosen.push(("--data", self.data.to_string_lossy().into_owned()));
            }
            None => {}
        }
        if let Some(file) = &self.token_file {
            chosen.push(("--token-file", absolute(file)));
        }
        Chosen { flags: chosen, workspace }
    }
}

/// A path as it is named from any folder.
fn absolute(path: &Path) -> String {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    absolute.to_string_lossy().into_owned()
}

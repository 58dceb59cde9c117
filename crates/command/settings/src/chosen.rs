//! The flags by which another command finds the same daemon.

use std::path::Path;

use narthex_model::command::Chosen;

use crate::{Flags, Settings, settings::usual_data};

impl Settings {
    /// The daemon of this process, as flags for commands that it prints. `flags` are those of its
    /// own command line.
    #[must_use]
    pub fn chosen(&self, flags: &Flags, workspace: Option<String>) -> Chosen {
        let mut chosen = Vec::new();
        if let Some(file) = &flags.settings {
            chosen.push(("--settings", absolute(file)));
        }
        match &self.daemon_url {
            Some(url) => chosen.push(("--daemon-url", url.clone())),
            // A variable may lead there, and need not be set where the command is pasted.
            None if usual_data(&crate::variable).ok().as_ref() != Some(&self.data) => {
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

//! The servers that files configure, for commands without a daemon.

use narthex_client::commands::mcp::{Configured, Unapproved};

use super::source::{self, trusting, untrusted};
use crate::config::Settings;

/// The names in the files of this folder and of the user. A fault of a file is reported by `narthex
/// check mcp`.
pub(crate) async fn configured(settings: &Settings) -> Configured {
    let files = source::unfilled(settings);
    let loaded = files.iter().filter_map(|file| file.loaded.as_ref().ok());
    let entries = loaded.flat_map(|loaded| &loaded.entries);
    let names = entries.map(|entry| entry.name().to_owned()).collect();
    Configured { names, unapproved: unapproved(settings).await }
}

/// Why the folder's file does not count, if it is there and not approved (D27).
async fn unapproved(settings: &Settings) -> Option<Unapproved> {
    let file = source::usual();
    // A file that is named by the settings counts as approved.
    if settings.config.is_some() || !file.exists() {
        return None;
    }
    let why = untrusted(source::standing(&file, settings).await.ok()?)?;
    Some(Unapproved { why, approve: trusting(&file) })
}

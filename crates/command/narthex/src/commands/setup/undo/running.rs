//! The part of narthex that an undo leaves running.

use std::path::{Path, PathBuf};

use narthex_client::commands::service;
use narthex_model::command::narthex;

use crate::{cli::Context, data_dir::DataDir};

/// A service that a set-up did not install, or a daemon without a service.
pub(in crate::commands) enum Running {
    /// The service.
    Service {
        file: PathBuf,
        /// True if the daemon runs.
        has_daemon: bool,
    },
    /// A daemon in the background.
    Daemon,
}

impl Running {
    /// Finds the service or the daemon of the data directory. A part that cannot be looked for
    /// counts as absent, since the undo is made.
    pub(super) fn find(data: &DataDir, context: &Context) -> Option<Self> {
        let plain = context.client();
        let has_daemon = data.is_locked().unwrap_or(false);
        let has_service = service::is_installed(&plain).unwrap_or(false);
        match service::file(&plain) {
            Ok(file) if has_service => Some(Self::Service { file, has_daemon }),
            Ok(_) | Err(_) => has_daemon.then_some(Self::Daemon),
        }
    }

    /// The sentence with the command that ends it.
    pub(super) fn sentence(&self) -> String {
        let (remove, stop) = (narthex("service uninstall", &[]), narthex("daemon stop", &[]));
        match self {
            Self::Service { file, has_daemon: true } => {
                let file = file.display();
                format!("The service {file} still runs; `{remove}` stops it and removes it.")
            }
            Self::Service { file, has_daemon: false } => {
                format!("The service {} is still installed; `{remove}` removes it.", file.display())
            }
            Self::Daemon => format!("The daemon still runs in the background; `{stop}` stops it."),
        }
    }

    /// The file of the service.
    pub(super) fn service(&self) -> Option<&Path> {
        match self {
            Self::Service { file, .. } => Some(file),
            Self::Daemon => None,
        }
    }

    pub(super) fn has_daemon(&self) -> bool {
        match self {
            Self::Service { has_daemon, .. } => *has_daemon,
            Self::Daemon => true,
        }
    }
}

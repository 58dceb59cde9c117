//! The program, arguments and environment of a service.

use std::{
    num::NonZeroU16,
    path::{Path, PathBuf},
};

use narthex_model::ErrorKind;

use crate::{Failure, cli::RemoteArgs};

/// A service to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// The path of narthex.
    pub program: String,
    /// The data directory.
    pub data: String,
    /// The settings file, if one is named.
    pub settings: Option<String>,
    /// The file of servers, if one is named.
    pub config: Option<String>,
    /// The port, where no data directory has it.
    pub port: Option<NonZeroU16>,
    /// The permissions to serve other machines.
    pub remote: RemoteArgs,
    /// The working folder of the daemon.
    pub folder: String,
    /// Environment variables: the daemon finds the programs of servers by `PATH`.
    pub environment: Vec<(&'static str, String)>,
}

impl Spec {
    /// The program and its arguments.
    pub(super) fn words(&self) -> Vec<String> {
        let mut words = vec![self.program.clone(), "up".to_owned()];
        let listen = self.port.map(address);
        let options = [
            ("--data", Some(&self.data)),
            ("--settings", self.settings.as_ref()),
            ("--config", self.config.as_ref()),
            (LISTEN, listen.as_ref()),
        ];
        for (flag, value) in options {
            words.extend(value.into_iter().flat_map(|value| [flag.to_owned(), value.clone()]));
        }
        let RemoteArgs { allow_remote, allow_plain_remote } = self.remote;
        let allowed =
            [("--allow-remote", allow_remote), ("--allow-plain-remote", allow_plain_remote)];
        words.extend(allowed.into_iter().filter(|(_, is)| *is).map(|(flag, _)| flag.to_owned()));
        words
    }
}

/// The option of `narthex up` with the address.
pub(super) const LISTEN: &str = "--listen";

/// The address of a service at a port.
pub(super) fn address(port: NonZeroU16) -> String {
    format!("127.0.0.1:{port}")
}

/// A path as text, which the files of services are.
///
/// # Errors
/// When the path is no valid UTF-8.
pub fn utf8(path: &Path) -> Result<String, Failure> {
    path.to_str().map(str::to_owned).ok_or_else(|| {
        let text = format!(
            "the path {} is not valid UTF-8, and the file of a service cannot hold it; rename it",
            path.display()
        );
        Failure::new(ErrorKind::Invalid, text)
    })
}

/// The entries of a `PATH` that mean the same in every folder.
#[must_use]
pub fn absolute_entries(path: &str) -> String {
    let entries = path.split(':').map(PathBuf::from).filter(|entry| entry.is_absolute());
    let entries: Vec<_> = entries.map(|entry| entry.display().to_string()).collect();
    entries.join(":")
}

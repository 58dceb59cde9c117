//! The events of the daemon's life.

use std::path::{Path, PathBuf};

use narthex_model::Fingerprint;
use serde::Serialize;

use crate::rows::Row;

/// The events that a calling program gets, one line each.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(super) enum Event<'a> {
    /// The daemon accepts callers.
    Listening {
        url: &'a str,
        mcp: String,
        token_file: PathBuf,
        admin_token_file: PathBuf,
        socket: Option<PathBuf>,
        pid: u32,
        /// That of the certificate, with TLS.
        fingerprint: Option<Fingerprint>,
    },
    /// The certificate was replaced, or the new one cannot be used and the old one stays.
    Certificate { fingerprint: Fingerprint, error: Option<String> },
    /// A server was added or has changed.
    Server(&'a Row),
    /// A server was removed from the configuration.
    Removed { alias: &'a str },
    /// All servers are ready or have failed, for the first time.
    Ready { servers: &'a [Row] },
    /// A configuration file can no longer be used, was deleted, or can be used again.
    File { file: &'a Path, error: Option<String>, is_gone: bool },
    /// Every child has ended.
    Stopped,
}

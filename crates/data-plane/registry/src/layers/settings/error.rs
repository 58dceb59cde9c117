//! Errors of edits of the settings.

use std::{path::PathBuf, time::Duration};

use narthex_model::{Alias, AliasError, ErrorKind};

use crate::config::ConfigFileError;

/// The reason why no edit was stored.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// The name is no alias.
    #[error(transparent)]
    Name(#[from] AliasError),
    /// The given text is no JSON object.
    #[error("the entry of `{name}` is not a JSON object: {problem}; write `{{\"transport\": …}}`")]
    Entry {
        /// The server.
        name: Alias,
        /// The reason why the text is no JSON object.
        problem: String,
    },
    /// The entry would be refused when it is read. The message has file, place and remedy.
    #[error("{message}")]
    Refused {
        /// The server.
        name: Alias,
        /// The problem of the entry.
        message: String,
    },
    /// A server of this name exists (E142).
    #[error(
        "{}: there is a server `{name}` already; use another name, or replace it",
        file.display()
    )]
    Exists {
        /// The settings file.
        file: PathBuf,
        /// The server.
        name: Alias,
    },
    /// No server of this name exists.
    #[error("{}: there is no server `{name}`; add it, or correct the name", file.display())]
    Unknown {
        /// The settings file.
        file: PathBuf,
        /// The server.
        name: Alias,
    },
    /// The change would give the server another transport (E142).
    #[error(
        "{}: the transport of `{name}` cannot change; remove the server, then add it with the new \
         transport", file.display()
    )]
    TransportFixed {
        /// The settings file.
        file: PathBuf,
        /// The server.
        name: Alias,
    },
    /// The change has a field twice.
    #[error("the changes of `{name}`: `{key}` is given twice; keep one of them")]
    Twice {
        /// The server.
        name: Alias,
        /// The field.
        key: String,
    },
    /// The file itself cannot be used, and stays unchanged.
    #[error(transparent)]
    File(#[from] ConfigFileError),
    /// A value other than an object is in the servers' place.
    #[error("{}: {problem}; make it an object", file.display())]
    Shape {
        /// The settings file.
        file: PathBuf,
        /// The problem and its place.
        problem: String,
    },
    /// The file is a project's file (E144).
    #[error("{}: this is an mcp.json, which only people edit; name a settings file",
        file.display())]
    NotSettings {
        /// The file.
        file: PathBuf,
    },
    /// Another edit holds the lock.
    #[error(
        "{}: another edit did not end within {} s; end the program that hangs, then try again",
        file.display(), waited.as_secs()
    )]
    Busy {
        /// The settings file.
        file: PathBuf,
        /// Time spent waiting.
        waited: Duration,
    },
    /// The file system refused access.
    #[error(
        "{}: cannot be written; make its folder writable for this user",
        file.display()
    )]
    Write {
        /// The settings file.
        file: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The edit ended by a fault of narthex.
    #[error("{}: the edit failed inside narthex; check the log, then try again", file.display())]
    Bug {
        /// The settings file.
        file: PathBuf,
        /// The cause.
        #[source]
        source: tokio::task::JoinError,
    },
}

impl EditError {
    /// Kind of the failure.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Name(_)
            | Self::Entry { .. }
            | Self::Refused { .. }
            | Self::TransportFixed { .. }
            | Self::Twice { .. }
            | Self::Shape { .. } => ErrorKind::Invalid,
            Self::Exists { .. } => ErrorKind::Conflict,
            Self::Unknown { .. } => ErrorKind::NotFound,
            Self::File(error) => error.kind(),
            Self::NotSettings { .. } => ErrorKind::Denied,
            Self::Busy { .. } => ErrorKind::Timeout,
            Self::Write { .. } => ErrorKind::Unavailable,
            Self::Bug { .. } => ErrorKind::Bug,
        }
    }
}

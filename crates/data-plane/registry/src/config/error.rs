//! Faults of a configuration file as a whole.

use std::{
    io,
    path::{Path, PathBuf},
};

use narthex_model::ErrorKind;

/// The reason why no part of a file can be used. A caller with a last good set keeps its servers
/// running (E118).
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}; {}", file.display(), self.remedy())]
pub struct ConfigFileError {
    file: PathBuf,
    problem: FileProblem,
    #[source]
    source: Option<io::Error>,
}

/// The problem of the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileProblem {
    /// The file system refused access.
    #[error("the file cannot be read")]
    Unreadable(ErrorKind),
    /// The text is longer than any plausible configuration.
    #[error("the file is longer than {limit} bytes")]
    TooLong {
        /// Largest accepted size in bytes.
        limit: usize,
    },
    /// The text is not JSON.
    #[error("line {line}, column {column}: not valid JSON: {problem}")]
    Syntax {
        /// Line number, from 1.
        line: usize,
        /// Column, from 1; 0 at the start of a line.
        column: usize,
        /// The parser's error text.
        problem: String,
        /// The change to make.
        remedy: &'static str,
    },
    /// A key occurs twice in one object: JSON readers disagree on which value counts.
    #[error("`{path}` is given twice")]
    DuplicateKey {
        /// The key's place, such as `servers.billing`.
        path: String,
    },
    /// The text is valid JSON, but no array, where code registers servers.
    #[error("the text must be an array of servers, not {found}")]
    NotAList {
        /// Kind of the value found instead.
        found: &'static str,
    },
    /// The text is valid JSON, but no object.
    #[error("the file must hold an object, not {found}")]
    NotAnObject {
        /// Kind of the value found instead.
        found: &'static str,
    },
    /// The file has unknown keys next to `servers`, or instead of it (E109).
    #[error("unknown top-level key {keys}")]
    UnknownTopLevelKey {
        /// The keys, quoted.
        keys: String,
        /// The change to make.
        remedy: String,
    },
    /// The object has neither `servers` nor `mcpServers`.
    #[error("the top-level key `servers` is missing")]
    MissingServers,
    /// `servers` exists, but is no object of named entries.
    #[error("`{key}` must be an object, not {found}")]
    ServersNotAnObject {
        /// `servers` or `mcpServers`.
        key: &'static str,
        /// Kind of the value found instead.
        found: &'static str,
    },
    /// The file has both `servers` and `mcpServers`.
    #[error("the file has both `servers` and `mcpServers`")]
    TwoDocuments,
}

impl ConfigFileError {
    pub(super) fn new(file: &Path, problem: FileProblem) -> Self {
        Self { file: file.to_owned(), problem, source: None }
    }

    pub(super) fn read(file: &Path, source: io::Error) -> Self {
        let kind = match source.kind() {
            io::ErrorKind::NotFound => ErrorKind::NotFound,
            io::ErrorKind::PermissionDenied => ErrorKind::Denied,
            _ => ErrorKind::Unavailable,
        };
        let problem = FileProblem::Unreadable(kind);
        Self { file: file.to_owned(), problem, source: Some(source) }
    }

    /// The file.
    #[must_use]
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The problem of the file, for programs.
    #[must_use]
    pub fn problem(&self) -> &FileProblem {
        &self.problem
    }

    /// Kind of the failure.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match &self.problem {
            FileProblem::Unreadable(kind) => *kind,
            FileProblem::TooLong { .. }
            | FileProblem::Syntax { .. }
            | FileProblem::DuplicateKey { .. }
            | FileProblem::NotAnObject { .. }
            | FileProblem::NotAList { .. }
            | FileProblem::UnknownTopLevelKey { .. }
            | FileProblem::MissingServers
            | FileProblem::ServersNotAnObject { .. }
            | FileProblem::TwoDocuments => ErrorKind::Invalid,
        }
    }

    /// The remedy; never empty.
    #[must_use]
    pub fn remedy(&self) -> &str {
        match &self.problem {
            FileProblem::Unreadable(ErrorKind::NotFound) => "create it with `{\"servers\": {}}`",
            FileProblem::Unreadable(_) => "make the file readable for this user",
            FileProblem::TooLong { .. } => "keep only server definitions in it",
            FileProblem::Syntax { remedy, .. } => remedy,
            FileProblem::DuplicateKey { .. } => "keep one of them",
            FileProblem::NotAList { .. } => "start with `[{\"name\": …}]`",
            FileProblem::NotAnObject { .. } => "start with `{\"servers\": {}}`",
            FileProblem::UnknownTopLevelKey { remedy, .. } => remedy,
            FileProblem::MissingServers => {
                "put the servers, by name, into an object under `servers`"
            }
            FileProblem::ServersNotAnObject { .. } => "give it one object per server, by name",
            FileProblem::TwoDocuments => {
                "keep one: `servers` for a file that narthex alone reads, \
                 `mcpServers` for one shared with other programs"
            }
        }
    }
}

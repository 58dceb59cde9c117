//! The steps of a set-up.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::rewrite::Made;

/// The content of the record.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Record {
    /// Number of files that were written, by which backups are named.
    pub(super) count: u64,
    /// The lock of the settings, if the set-up made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) lock: Option<PathBuf>,
    /// Copies that stay after an undo, since their files lack a part of them: the last two names of
    /// each path. `None` in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) needed: Option<Vec<PathBuf>>,
    pub(super) steps: Vec<Step>,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Step {
    /// A file was written.
    File(Box<FileStep>),
    /// A secret was set that was not set before.
    Secret {
        /// The name.
        name: String,
        /// The version that the value got; `None` if the process ended before it was known.
        version: Option<u64>,
    },
    /// The daemon became a service.
    Service {
        /// The unit or property list.
        file: PathBuf,
    },
    /// A server came into the settings.
    Server {
        /// The name.
        alias: String,
        /// Hash of the whole entry, by which an equal one is known again.
        seal: String,
        /// The entry as it came into the settings; `None` in older records.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        entry: Option<String>,
        /// True until a check has shown that the server works. Until then it leaves no file of a
        /// client.
        #[serde(default)]
        is_unproven: bool,
    },
}

/// A file that was written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FileStep {
    /// The client, or another word for people.
    pub label: String,
    /// The path.
    pub path: PathBuf,
    /// The copy of the file before; `None` if there was none.
    pub backup: Option<PathBuf>,
    /// Hash of the content before; `None` if there was no file.
    pub(super) before: Option<String>,
    /// Hash of the content after.
    pub(super) after: String,
    pub(super) made: Made,
    /// The file that becomes the new one, as long as it is unfinished; `None` in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) unfinished: Option<PathBuf>,
}

impl FileStep {
    /// True if there was no file before.
    #[must_use]
    pub fn is_new(&self) -> bool {
        self.before.is_none()
    }

    /// True if the step added one entry, and did nothing else.
    #[must_use]
    pub fn is_own_entry(&self) -> bool {
        self.made.is_one_insertion()
    }
}

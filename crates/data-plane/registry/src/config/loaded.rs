//! The contents of a configuration file, and the inputs of reading one.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use narthex_model::{ConfigFault, ServerDefinition};

use super::profiles::ProfileEntry;

/// The contents of a configuration file.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadedConfig {
    /// The servers, in the order of the file.
    pub entries: Vec<Entry>,
    /// Warnings about keys and values that were tolerated, changed or ignored.
    pub warnings: Vec<ConfigWarning>,
    /// The profiles; only a settings file has some.
    pub profiles: Vec<ProfileEntry>,
}

impl LoadedConfig {
    /// A configuration without profiles.
    pub(crate) fn new(entries: Vec<Entry>, warnings: Vec<ConfigWarning>) -> Self {
        Self { entries, warnings, profiles: Vec::new() }
    }

    /// Notes in each entry the file whose changes a human approves, if there is such a file.
    pub(crate) fn approved_in(mut self, file: Option<&Arc<Path>>) -> Self {
        for entry in &mut self.entries {
            if let Entry::Server(definition) = entry {
                definition.approved_in = file.cloned();
            }
        }
        self
    }
}

/// One server of a file.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "nearly all entries are servers")]
pub enum Entry {
    /// A usable entry.
    Server(ServerDefinition),
    /// A faulty entry; becomes an `error` row (E117).
    Fault(ConfigFault),
}

/// A notice about a file for a person. A warning stops no server, and never holds a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigWarning {
    /// The file.
    pub file: PathBuf,
    /// Place in the file, such as `servers.billing.auth.key`.
    pub path: String,
    /// The problem and its remedy.
    pub message: String,
}

impl Entry {
    /// The name as written in the file. The name of a fault may not be a valid alias.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Server(definition) => definition.alias.as_str(),
            Self::Fault(fault) => &fault.name,
        }
    }
}

impl fmt::Display for ConfigWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.file.display(), self.path, self.message)
    }
}

/// Looks up one environment variable, for callers that read files again and again.
pub type Variables = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// The text that takes the place of `${env:NAME}`.
#[derive(Clone, Copy)]
pub enum Env<'a> {
    /// The value that a function has for the variable.
    Values(&'a dyn Fn(&str) -> Option<String>),
    /// The placeholder itself with its default, which may decide what is started: a person who
    /// approves the file has to see it (D27). A text with a placeholder is not checked, since its
    /// value is not known.
    AsWritten,
}

/// Inputs of reading a file, besides its text.
#[derive(Clone, Copy)]
pub struct LoadContext<'a> {
    /// The file's name, for messages.
    pub file: &'a Path,
    /// Value of `${workspaceRoot}`; relative folders start here.
    pub workspace_root: &'a Path,
    /// The text for `${env:NAME}`.
    pub env: Env<'a>,
}

impl fmt::Debug for LoadContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadContext")
            .field("file", &self.file)
            .field("workspace_root", &self.workspace_root)
            .finish_non_exhaustive()
    }
}

//! Reads `mcp.json`: bytes in, server definitions, faults and warnings out.
//!
//! Two kinds of document exist, distinguished by their one top-level key: `servers` (strict) and
//! `mcpServers` (tolerant, the shape that other programs write). A fault in the file as a whole is
//! a [`ConfigFileError`]; a fault in one entry is that entry's [`ConfigFault`], and the rest works.
//! No function here starts a server, reads the environment by itself, or prints a value.

mod auth;
mod confinement;
mod document;
mod error;
mod exposed;
mod foreign;
mod gates;
mod limits;
mod node;
mod notifications;
mod placeholder;
mod problem;
mod profiles;
mod reader;
mod secrets;
mod strict;
mod target;
mod tolerant;

use std::{
    fmt,
    fs::Metadata,
    io::{self, Read},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use narthex_model::{ConfigFault, ServerDefinition};
use rustix::fs::OFlags;

pub use error::{ConfigFileError, FileProblem};
pub use profiles::{ProfileEntry, ProfileFault};

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

/// Reads the text of an `mcp.json`.
///
/// # Errors
/// When the file as a whole cannot be used. A bad entry is an [`Entry::Fault`] instead.
pub fn parse(text: &[u8], context: &LoadContext<'_>) -> Result<LoadedConfig, ConfigFileError> {
    document::read(text, context)
}

/// Reads the text of a global settings file, whose `mcp.servers` holds entries of the same shape
/// (E11). Other programs own its other keys. A bad entry is an [`Entry::Fault`] (E117).
///
/// # Errors
/// When the file is no JSON object.
pub fn parse_settings(
    text: &[u8],
    context: &LoadContext<'_>,
) -> Result<LoadedConfig, ConfigFileError> {
    document::read_settings(text, context)
}

/// Reads entries that code registers: an array, with the name inside each entry (E13).
///
/// # Errors
/// When the text is no JSON array, or names a server twice. A bad entry is an [`Entry::Fault`].
pub fn parse_list(text: &[u8], context: &LoadContext<'_>) -> Result<LoadedConfig, ConfigFileError> {
    document::read_list(text, context)
}

/// Reads an `mcp.json` from disk.
///
/// # Errors
/// The errors of [`parse`], and an unreadable file: a missing file is of kind `not_found`.
pub fn load_file(
    path: &Path,
    workspace_root: &Path,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<LoadedConfig, ConfigFileError> {
    parse(&read(path)?, &LoadContext { file: path, workspace_root, env: Env::Values(env) })
}

/// Reads at most one byte more than a configuration may have. Reads only a regular file: a pipe or
/// a device, to which a link may lead, would never end.
///
/// # Errors
/// When the file cannot be read: a missing file is of kind `not_found`.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, ConfigFileError> {
    read_regular(path).map_err(|source| ConfigFileError::read(path, source))
}

fn read_regular(path: &Path) -> io::Result<Vec<u8>> {
    let refuse_others = |metadata: Metadata| match metadata.is_file() {
        true => Ok(()),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")),
    };
    // The kind of the file is checked before the file is opened, since opening alone triggers some
    // devices. It is checked again after that, since another file may be there by then. The open
    // does not wait, because a pipe would wait for its other end.
    refuse_others(fs_err::metadata(path)?)?;
    let mut options = fs_err::OpenOptions::new();
    options.read(true).options_mut().custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    let file = options.open(path)?;
    refuse_others(file.metadata()?)?;
    let mut text = Vec::new();
    file.take(node::TEXT_MAX as u64 + 1).read_to_end(&mut text)?;
    Ok(text)
}

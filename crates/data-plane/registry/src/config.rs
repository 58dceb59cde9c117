//! Reads `mcp.json`: bytes in, server definitions, faults and warnings out.
//!
//! Two kinds of document exist, distinguished by their one top-level key: `servers` (strict) and
//! `mcpServers` (tolerant, the shape that other programs write). A fault in the file as a whole is
//! a [`ConfigFileError`]; a fault in one entry is an [`Entry::Fault`], and the rest works.
//! No function here starts a server, reads the environment by itself, or prints a value.

mod auth;
mod confinement;
mod document;
mod error;
mod exposed;
mod foreign;
mod gates;
mod limits;
mod loaded;
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
    fs::Metadata,
    io::{self, Read},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use rustix::fs::OFlags;

pub use error::{ConfigFileError, FileProblem};
pub use loaded::{ConfigWarning, Entry, Env, LoadContext, LoadedConfig, Variables};
pub use profiles::{ProfileEntry, ProfileFault};

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

//! One file of a package.

use std::path::Path;

use anyhow::Result;
use fs_err as fs;

use crate::workspace;

/// The time of all files in packages: the first moment that a ZIP archive can name, 1980-01-01 UTC.
pub(super) const TIME: u64 = 315_532_800;

/// A file of a package.
#[derive(Clone)]
pub(super) struct Entry {
    /// The path from the root of the package, with slashes.
    pub(super) path: String,
    pub(super) bytes: Vec<u8>,
    pub(super) is_program: bool,
}

impl Entry {
    pub(super) fn file(path: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self { path: path.into(), bytes: bytes.into(), is_program: false }
    }

    pub(super) fn program(path: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self { path: path.into(), bytes: bytes.into(), is_program: true }
    }

    /// A file of the repository under another path.
    pub(super) fn of(path: impl Into<String>, file: &str) -> Result<Self> {
        Ok(Self::file(path, fs::read(workspace::root().join(file))?))
    }

    /// The permissions.
    pub(super) fn mode(&self) -> u32 {
        if self.is_program { 0o755 } else { 0o644 }
    }

    /// The same file below a folder.
    pub(super) fn below(&self, folder: &str) -> Self {
        Self { path: format!("{folder}/{}", self.path), ..self.clone() }
    }
}

/// The entries in the order of their paths, which all packages have.
pub(super) fn sorted(mut entries: Vec<Entry>) -> Vec<Entry> {
    entries.sort_by(|one, other| one.path.cmp(&other.path));
    entries
}

/// Writes the entries below a folder of the disk.
pub(super) fn write_all(entries: &[Entry], root: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;

    for entry in entries {
        let file = root.join(&entry.path);
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&file, &entry.bytes)?;
        fs::set_permissions(&file, PermissionsExt::from_mode(entry.mode()))?;
    }
    Ok(())
}

//! The marker of a directory that narthex has made: all in it is narthex's.

use std::path::Path;

use fs_err as fs;
use narthex_private::PrivateError;

/// The file with the marker.
pub(super) const MARKER: &str = "narthex.dir";
const TEXT: &str = "This is a data directory of narthex, made by it. An uninstallation deletes \
                    narthex's folders here with all that is in them.\n";
/// The part of the text by which the marker is known.
const KNOWN_BY: &[u8] = b"This is a data directory of narthex";
const MARKER_MAX: u64 = 4096;

/// Marks a directory that has nothing in it.
pub(super) fn mark_if_empty(folder: &Path) -> Result<(), PrivateError> {
    match fs::read_dir(folder)?.next() {
        None => narthex_private::replace(&folder.join(MARKER), TEXT.as_bytes()),
        Some(_) => Ok(()),
    }
}

/// True if narthex has made the directory.
pub(super) fn is_marked(folder: &Path) -> bool {
    let text = narthex_private::read(&folder.join(MARKER), MARKER_MAX);
    text.is_ok_and(|text| text.starts_with(KNOWN_BY))
}

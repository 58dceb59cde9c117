//! The folder for temporary files of one confined program. It exists as long as the program's tree.
//!
//! The folder that all programs share has files and sockets of others. So a program with limited
//! files gets its own folder as `TMPDIR`, and no access to the shared one.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::ConfinementFault;
use crate::ProcessSpec;

/// The variable that names it.
pub(crate) const VARIABLE: &str = "TMPDIR";

/// The prefix of its name. Sockets in the folder have short addresses, so it is short.
const PREFIX: &str = "narthex-";

/// The folder that all programs of the daemon share.
pub(super) fn shared(spec: &ProcessSpec) -> PathBuf {
    let folder = spec.base_environment.get(VARIABLE).map(PathBuf::from);
    folder.filter(|folder| folder.is_absolute()).unwrap_or_else(|| "/tmp".into())
}

/// Makes one in the shared folder, for this user alone. It goes when this is dropped.
pub(crate) fn make(spec: &ProcessSpec) -> Result<TempDir, ConfinementFault> {
    let folder = shared(spec);
    let made = tempfile::Builder::new()
        .prefix(PREFIX)
        .permissions(std::fs::Permissions::from_mode(0o700))
        .tempdir_in(&folder);
    made.map_err(|error| ConfinementFault::NoTemporary { folder, text: error.to_string() })
}

/// Removes one, also where its program has closed folders in it. Nothing else has its name, so a
/// second removal does nothing.
pub(crate) fn remove(folder: &Path) {
    if fs_err::remove_dir_all(folder).is_err() {
        open_folders(folder);
        // Files that are left after that belong to no program, and the system clears them.
        drop(fs_err::remove_dir_all(folder));
    }
}

/// Opens all folders below one to their owner. A link is not followed.
fn open_folders(folder: &Path) {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let open = std::fs::Permissions::from_mode(0o700);
        let inside =
            fs_err::set_permissions(&folder, open).and_then(|()| fs_err::read_dir(&folder));
        let entries = inside.into_iter().flatten().filter_map(io::Result::ok);
        let below = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        folders.extend(below.map(|entry| entry.path()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BaseEnvironment;

    #[test]
    fn a_temporary_folder_is_created_for_the_daemon_and_removed_with_its_contents() {
        let home = tempfile::tempdir().unwrap();
        let of = |place: &Path| {
            let base = BaseEnvironment::from_lookup(|name| {
                (name == VARIABLE).then(|| place.as_os_str().to_owned())
            });
            let mut spec = ProcessSpec::new("tool", base);
            // A variable of the entry is its program's own matter.
            spec.env.push((VARIABLE.to_owned(), "/elsewhere".to_owned()));
            spec
        };
        let made = make(&of(home.path())).unwrap();
        assert_eq!(made.path().parent(), Some(home.path()));
        let mode = fs_err::metadata(made.path()).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o700);
        let closed = made.path().join("a/closed");
        fs_err::create_dir_all(closed.join("inner")).unwrap();
        fs_err::set_permissions(&closed, std::fs::Permissions::from_mode(0o0)).unwrap();
        let outside = home.path().join("outside");
        fs_err::create_dir(&outside).unwrap();
        fs_err::os::unix::fs::symlink(&outside, made.path().join("link")).unwrap();
        remove(made.path());
        assert!(!made.path().exists() && outside.exists());
        remove(made.path());
        let absent = home.path().join("absent");
        let fault = make(&of(&absent)).unwrap_err().to_string();
        assert!(fault.contains(absent.to_str().unwrap()), "{fault}");
    }
}

//! Removes a data directory with all that narthex has written into it.

use std::{io, path::PathBuf};

use fs_err as fs;
use narthex_model::ErrorKind;

use super::{DAEMON_LOG, DataDir, FILES, FOLDERS};
use crate::Failure;

/// The folder of sockets, which the daemon removes at its end.
const SOCKETS: &str = "run";
const LOCK: &str = "daemon.lock";
/// A data directory that was used once has one of these.
const MARKS: [&str; 3] = [LOCK, "client.token", "store.db"];
/// Files that are replaced whole.
const REPLACED: [&str; 4] = ["daemon.json", "registry-cache.json", "service.json", "setup.lock"];

impl DataDir {
    /// Removes the files and folders of narthex, and the directory if nothing else is in it. Gives
    /// what is left: files that narthex does not know.
    ///
    /// # Errors
    /// When a daemon uses the directory, or something cannot be removed.
    pub fn remove(&self) -> Result<Vec<PathBuf>, Failure> {
        if self.is_locked()? {
            let text = format!("a daemon uses {}; stop it first", self.path.display());
            return Err(Failure::new(ErrorKind::Conflict, text));
        }
        // In another folder these names are another program's.
        if MARKS.iter().any(|name| self.path.join(name).exists()) {
            self.remove_own()?;
        }
        let left = self.entries()?;
        if left.is_empty() {
            gone(fs::remove_dir(&self.path))?;
        }
        Ok(left)
    }

    /// Removes the files and folders of narthex.
    fn remove_own(&self) -> Result<(), Failure> {
        for name in FOLDERS.into_iter().chain([SOCKETS]) {
            gone(fs::remove_dir_all(self.path.join(name)))?;
        }
        let files = FILES.into_iter().filter(|name| *name != LOCK);
        for name in files.chain(REPLACED) {
            gone(fs::remove_file(self.path.join(name)))?;
        }
        gone(fs::remove_file(self.path.join(format!("{DAEMON_LOG}.old"))))?;
        // The lock comes last: until then no daemon starts in a half-removed directory.
        gone(fs::remove_file(self.path.join(LOCK)))?;
        Ok(())
    }

    /// All files and folders in the directory, known or not.
    fn entries(&self) -> Result<Vec<PathBuf>, Failure> {
        let entries = match fs::read_dir(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        Ok(entries.map(|one| Ok(one?.path())).collect::<Result<_, io::Error>>()?)
    }
}

/// True if something was removed, false if it was not there.
fn gone(removed: io::Result<()>) -> Result<bool, Failure> {
    match removed {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_files_go_and_foreign_ones_stay() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("data");
        let data = DataDir::open(&path).unwrap();
        for name in FOLDERS.into_iter().chain([SOCKETS]) {
            fs::create_dir(path.join(name)).unwrap();
            fs::write(path.join(name).join("inner"), "x").unwrap();
        }
        for name in FILES.into_iter().chain(REPLACED) {
            fs::write(path.join(name), "x").unwrap();
        }
        fs::write(path.join("mine.txt"), "x").unwrap();
        assert_eq!(data.remove().unwrap(), [data.path().join("mine.txt")]);
        fs::remove_file(path.join("mine.txt")).unwrap();
        assert!(data.remove().unwrap().is_empty());
        assert!(!path.exists());
        // There is nothing to remove any more.
        assert!(data.remove().unwrap().is_empty());
    }

    #[test]
    fn a_folder_that_no_daemon_has_used_keeps_all() {
        let home = tempfile::tempdir().unwrap();
        let (setup, data) = (home.path().join("setup"), DataDir::at(home.path()));
        fs::create_dir(&setup).unwrap();
        assert_eq!(data.remove().unwrap(), std::slice::from_ref(&setup));
        assert!(setup.exists());
    }

    #[test]
    fn the_directory_of_a_daemon_stays() {
        let home = tempfile::tempdir().unwrap();
        let data = DataDir::open(&home.path().join("data")).unwrap();
        let _lock = data.lock().unwrap();
        let failure = data.remove().unwrap_err();
        assert!(failure.message.contains("a daemon uses"), "{failure}");
        assert!(data.path().join("daemon.lock").exists());
    }
}

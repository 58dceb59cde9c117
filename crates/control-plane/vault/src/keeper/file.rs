//! The key ring in a file for its owner alone.
//!
//! The file is created and replaced as a whole: written under another name, flushed to the disk,
//! and then renamed. Unfinished files of a killed process may hold keys, and are removed.

use std::{
    io::{self, Read, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use fs_err as fs;
use tempfile::NamedTempFile;
use zeroize::Zeroizing;

use super::{Keeper, KeeperError};
use crate::{KeyRing, MasterKey};

/// More than any key ring has.
const FILE_MAX: usize = 16 * 1024;
/// The beginning of unfinished files' names.
const UNFINISHED: &str = ".key-ring-";
const HEADER: &str = "\
# The master keys of narthex: anyone with this file and the store can read every secret.
# The first key seals, the others only open. Keep a copy apart from the store.
";

/// A key ring in a file.
#[derive(Debug)]
pub struct KeyFile {
    path: PathBuf,
}

impl KeyFile {
    /// The file at this path, which may be missing. No other process may use it at the same time.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    fn failed(&self, source: io::Error) -> KeeperError {
        KeeperError::File { path: self.path.clone(), source }
    }

    fn read(&self) -> Result<KeyRing, KeeperError> {
        let found = fs::symlink_metadata(&self.path).map_err(|error| self.failed(error))?;
        if !found.is_file() {
            return Err(KeeperError::NoFile(self.path.clone()));
        }
        let mut options = fs::OpenOptions::new();
        options.read(true);
        let flags = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
        options.options_mut().custom_flags(flags);
        let file = options.open(&self.path).map_err(|error| self.failed(error))?;
        let metadata = file.metadata().map_err(|error| self.failed(error))?;
        let own = rustix::process::geteuid().as_raw();
        is_private(&self.path, metadata.uid() == own, metadata.mode() & 0o777)?;
        // At once as long as it gets: a text that moves leaves a copy behind.
        let mut text = Zeroizing::new(String::with_capacity(FILE_MAX));
        let most = FILE_MAX as u64;
        file.take(most).read_to_string(&mut text).map_err(|error| self.failed(error))?;
        KeyRing::parse(&text).map_err(|fault| {
            let place = format!("the key file {}", self.path.display());
            KeeperError::Content { place, fault }
        })
    }

    fn write_beside(&self, ring: &KeyRing) -> io::Result<NamedTempFile> {
        // Made for its owner alone.
        let mut new = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(self.folder())?;
        new.write_all(HEADER.as_bytes())?;
        new.write_all(ring.write().as_bytes())?;
        new.as_file().sync_all()?;
        Ok(new)
    }

    /// Has the folder remember the name.
    fn sync_folder(&self) -> io::Result<()> {
        fs::File::open(self.folder())?.sync_all()
    }

    fn folder(&self) -> &Path {
        match self.path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            Some(_) | None => Path::new("."),
        }
    }

    /// Removes unfinished files.
    fn tidy(&self) -> io::Result<()> {
        for entry in fs::read_dir(self.folder())? {
            let entry = entry?;
            if entry.file_name().as_encoded_bytes().starts_with(UNFINISHED.as_bytes()) {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }
}

impl Keeper for KeyFile {
    fn place(&self) -> String {
        format!("the key file {}", self.path.display())
    }

    fn absent(&self) -> String {
        format!(
            "the key file {} does not exist; copy `master.key` of the data directory in which they \
             were set to this path, or name the key in NARTHEX_MASTER_KEY",
            self.path.display()
        )
    }

    fn is_ours(&self) -> bool {
        true
    }

    fn load(&self) -> Result<Option<KeyRing>, KeeperError> {
        match self.read() {
            Ok(ring) => {
                self.tidy().map_err(|error| self.failed(error))?;
                Ok(Some(ring))
            }
            Err(KeeperError::File { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn create(&self) -> Result<KeyRing, KeeperError> {
        let ring = KeyRing::new(MasterKey::generate().map_err(KeeperError::Randomness)?);
        let new = self.write_beside(&ring).map_err(|error| self.failed(error))?;
        match new.persist_noclobber(&self.path) {
            Ok(_file) => {
                self.sync_folder().map_err(|error| self.failed(error))?;
                Ok(ring)
            }
            // A ring that another process has stored serves as well.
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => self.read(),
            Err(error) => Err(self.failed(error.error)),
        }
    }

    fn replace(&self, ring: &KeyRing) -> Result<(), KeeperError> {
        let replaced = self.write_beside(ring).and_then(|new| {
            new.persist(&self.path).map_err(|error| error.error)?;
            self.sync_folder()
        });
        replaced.map_err(|error| self.failed(error))
    }
}

fn is_private(path: &Path, is_own: bool, mode: u32) -> Result<(), KeeperError> {
    let path = path.to_owned();
    if !is_own {
        Err(KeeperError::OtherUser(path))
    } else if mode & 0o077 != 0 {
        Err(KeeperError::NotPrivate { path, mode })
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests;

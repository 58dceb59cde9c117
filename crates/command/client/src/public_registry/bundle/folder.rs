//! The folders of bundles in the data directory: `bundles/NAME-HASH`, with the server's name here
//! and the beginning of the file's SHA-256.

use std::{
    io,
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::{Path, PathBuf},
};

use fs_err as fs;
use narthex_model::{
    Alias, ErrorKind,
    command::{narthex, quoted},
};
use tempfile::TempDir;

use super::source::BundleSource;
use crate::{Failure, data_dir::DataDir};

/// Number of characters of the hash in the name of a folder.
const HASH_LENGTH: usize = 12;
/// The beginning of the name of a folder that is not in its place yet.
const NEW: &str = ".new-";
const ARCHIVE: &str = "bundle.zip";
const FILES: &str = "files";

/// The bundles of a data directory.
#[derive(Debug)]
pub struct Bundles {
    path: PathBuf,
}

/// The folder of a bundle that is being unpacked, beside its place. Dropping it removes it.
#[derive(Debug)]
pub struct Staged {
    beside: TempDir,
    folder: PathBuf,
}

/// A bundle in its place. Dropping it removes the folder, unless it is kept.
#[derive(Debug)]
pub struct Placed {
    /// The folder; `None` once the bundle is kept.
    folder: Option<PathBuf>,
}

impl Bundles {
    /// The bundles of this data directory, which may have none.
    #[must_use]
    pub fn of(data: &DataDir) -> Self {
        Self { path: data.bundles_dir() }
    }

    /// A new folder beside the place of a server's bundle.
    ///
    /// # Errors
    /// When the place is taken, or the folder cannot be created.
    pub fn stage(&self, alias: &Alias, source: &BundleSource) -> Result<Staged, Failure> {
        match std::fs::DirBuilder::new().mode(0o700).create(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error.into()),
            Ok(()) | Err(_) => {}
        }
        narthex_private::check_inner_folder(&self.path)?;
        let folder = self.path.join(format!("{alias}-{}", &source.sha256[..HASH_LENGTH]));
        if fs::symlink_metadata(&folder).is_ok() {
            return Err(taken(&folder));
        }
        let beside = tempfile::Builder::new()
            .prefix(NEW)
            .permissions(std::fs::Permissions::from_mode(0o700))
            .tempdir_in(&self.path)?;
        std::fs::DirBuilder::new().mode(0o700).create(beside.path().join(FILES))?;
        Ok(Staged { beside, folder })
    }

    /// Removes the folders of a server that is gone, and gives their number.
    ///
    /// # Errors
    /// When a folder cannot be removed; the message has the command for it.
    pub fn remove(&self, alias: &str) -> Result<usize, Failure> {
        let entries = match fs::read_dir(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
            entries => entries?,
        };
        let mut removed = 0;
        for entry in entries {
            let entry = entry?;
            if !is_of(alias, &entry.file_name().to_string_lossy()) {
                continue;
            }
            fs::remove_dir_all(entry.path()).map_err(|error| left(&entry.path(), &error))?;
            removed += 1;
        }
        Ok(removed)
    }
}

impl Staged {
    /// The file to download to.
    pub(super) fn archive(&self) -> PathBuf {
        self.beside.path().join(ARCHIVE)
    }

    /// The folder to unpack into.
    pub(super) fn files(&self) -> PathBuf {
        self.beside.path().join(FILES)
    }

    /// The folder that the bundle is going to have.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn drop_archive(&self) -> Result<(), Failure> {
        Ok(fs::remove_file(self.archive())?)
    }

    /// Moves the files to their place, at once.
    ///
    /// # Errors
    /// When the place is taken by now, or the folder cannot be moved.
    pub fn place(self) -> Result<Placed, Failure> {
        let moved = fs::rename(self.files(), &self.folder);
        moved.map_err(|error| match fs::symlink_metadata(&self.folder) {
            Ok(_) => taken(&self.folder),
            Err(_) => error.into(),
        })?;
        Ok(Placed { folder: Some(self.folder) })
    }
}

impl Placed {
    /// Leaves the bundle in its place.
    pub fn keep(mut self) {
        self.folder = None;
    }
}

impl Drop for Placed {
    fn drop(&mut self) {
        if let Some(folder) = self.folder.take()
            && let Err(error) = fs::remove_dir_all(&folder)
        {
            crate::output::notice(&format!("warning: {}", left(&folder, &error).message));
        }
    }
}

/// True if the name of a folder is that of a bundle of this server.
fn is_of(alias: &str, name: &str) -> bool {
    let hash = name.strip_prefix(alias).and_then(|rest| rest.strip_prefix('-'));
    hash.is_some_and(|hash| {
        hash.len() == HASH_LENGTH && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

fn taken(folder: &Path) -> Failure {
    let text = format!(
        "the folder {} exists already: another `{}` may work with it, or a server that was \
         removed elsewhere has left it; delete it with `rm -r {}` if no server uses it",
        folder.display(),
        narthex("add NAME", &[]),
        quoted(&folder.to_string_lossy())
    );
    Failure::new(ErrorKind::Conflict, text)
}

fn left(folder: &Path, error: &io::Error) -> Failure {
    let text = format!(
        "the bundle's folder is left: {error}; delete it with `rm -r {}`",
        quoted(&folder.to_string_lossy())
    );
    Failure::new(ErrorKind::Unavailable, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source() -> BundleSource {
        let url = "https://a.example/b.mcpb".parse().unwrap();
        BundleSource { url, sha256: "0123456789abcdef".repeat(4) }
    }

    fn names(folder: &Path) -> Vec<String> {
        let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
        entries.map(|one| one.unwrap().file_name().into_string().unwrap()).collect()
    }

    /// E211: a bundle that is not kept leaves nothing, wherever its way ends.
    #[test]
    fn e211_a_bundle_is_in_its_place_as_a_whole_or_not_at_all() {
        let home = tempfile::tempdir().unwrap();
        let data = DataDir::open(&home.path().join("data")).unwrap();
        let bundles = Bundles::of(&data);
        let alias = Alias::of_server("pad").unwrap();
        let stage = || bundles.stage(&alias, &source()).unwrap();
        let staged = stage();
        assert!(names(&bundles.path)[0].starts_with(NEW));
        let mode = fs::metadata(&bundles.path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        fs::write(staged.files().join("a"), "x").unwrap();
        drop(staged);
        assert_eq!(names(&bundles.path), [""; 0]);
        drop(stage().place().unwrap());
        assert_eq!(names(&bundles.path), [""; 0]);
        let (first, second) = (stage(), stage());
        fs::write(first.files().join("a"), "x").unwrap();
        first.place().unwrap().keep();
        let failure = second.place().unwrap_err();
        assert!(failure.message.contains("exists already"), "{failure}");
        assert_eq!(names(&bundles.path), ["pad-0123456789ab"]);
        let failure = bundles.stage(&alias, &source()).unwrap_err();
        assert!(failure.message.contains("`rm -r "), "{failure}");
        // A server with a longer name is another one.
        assert_eq!((bundles.remove("pa").unwrap(), bundles.remove("pad-0").unwrap()), (0, 0));
        assert_eq!((bundles.remove("pad").unwrap(), bundles.remove("pad").unwrap()), (1, 0));
        assert_eq!(names(&bundles.path), [""; 0]);
    }
}

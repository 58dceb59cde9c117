//! Backups: tar files with the data of one data directory, and a list of digests at their end.
//!
//! The first entry names the format, and the last one lists all others with their digests. A file
//! that was cut short has no list, and a changed one has another digest: neither is restored.

use std::{
    collections::BTreeSet,
    fs::Permissions,
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use fs_err::{self as fs, os::unix::fs::OpenOptionsExt as _};
use narthex_client::{Failure, settings_files::is_settings_file};
use narthex_model::{ErrorKind, command::narthex};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tar::{Archive, Builder, Entry, EntryType, Header};
use tempfile::NamedTempFile;

/// The first entry, and its text.
const FORMAT: &str = "narthex-backup";
const VERSION: &str = "1\n";
/// The last entry.
const LIST: &str = "list.json";
/// The longest list: room for some 400,000 files.
const LIST_MAX: u64 = 64 << 20;

/// The folder of settings that lie outside of a data directory.
pub(crate) const SETTINGS: &str = "restored";
/// The entries of single files.
pub(crate) const STORE: &str = "store.db";
pub(crate) const MASTER_KEY: &str = "master.key";
/// The folder of shared files.
pub(crate) const SHARES: &str = "shares/workspaces";

/// The content of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Contents {
    /// The version of the narthex that wrote the backup.
    pub(crate) narthex: String,
    /// Time of the backup, in RFC 3339.
    pub(crate) created_at: String,
    pub(crate) files: Vec<Stored>,
}

/// One file of a backup.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Stored {
    /// Path below the data directory.
    pub(crate) name: String,
    pub(crate) bytes: u64,
    /// SHA-256 of the content, as hexadecimal digits.
    pub(crate) sha256: String,
}

impl Contents {
    pub(crate) fn has(&self, name: &str) -> bool {
        self.files.iter().any(|file| file.name == name)
    }
}

/// A backup that is being written, under an unpredictable temporary name. Dropping it unfinished
/// removes the file.
pub(crate) struct Writer {
    tar: Builder<NamedTempFile>,
    files: Vec<Stored>,
    path: PathBuf,
}

impl Writer {
    /// Begins a new file that only its owner can read.
    ///
    /// # Errors
    /// When the file exists or cannot be written.
    pub(crate) fn create(path: &Path) -> Result<Self, Failure> {
        if fs::symlink_metadata(path).is_ok() {
            return Err(taken(path));
        }
        let file = unfinished(path).map_err(|error| {
            let failure = Failure::from(error);
            let message = format!("cannot write {}: {}", path.display(), failure.message);
            Failure { message, ..failure }
        })?;
        let mut this = Self { tar: Builder::new(file), files: Vec::new(), path: path.to_owned() };
        this.append(FORMAT, VERSION.as_bytes())?;
        Ok(this)
    }

    /// Adds the file at `from`; `false` if there is none.
    ///
    /// # Errors
    /// When the file cannot be read, or its length changes meanwhile.
    pub(crate) fn add(&mut self, name: String, from: &Path) -> Result<bool, Failure> {
        let file = match fs::File::open(from) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        let bytes = file.metadata()?.len();
        let mut content = Digesting { inner: file.take(bytes), digest: Sha256::new(), bytes: 0 };
        self.tar.append_data(&mut header(bytes), &name, &mut content)?;
        if content.bytes != bytes {
            let text = format!("{} has changed while it was copied; try again", from.display());
            return Err(Failure::new(ErrorKind::Unavailable, text));
        }
        let sha256 = hex::encode(content.digest.finalize());
        self.files.push(Stored { name, bytes, sha256 });
        Ok(true)
    }

    /// Adds the list, writes all to the disk, and gives the file its name.
    ///
    /// # Errors
    /// When the file cannot be written, or there is one of its name by now.
    pub(crate) fn finish(mut self, created_at: String) -> Result<Contents, Failure> {
        let narthex = env!("CARGO_PKG_VERSION").to_owned();
        let files = std::mem::take(&mut self.files);
        let contents = Contents { narthex, created_at, files };
        let list = serde_json::to_vec_pretty(&contents)
            .map_err(|error| Failure::new(ErrorKind::Bug, error.to_string()))?;
        self.append(LIST, &list)?;
        let Self { tar, path, .. } = self;
        place_new(tar.into_inner()?, &path)?;
        Ok(contents)
    }

    fn append(&mut self, name: &str, text: &[u8]) -> Result<(), Failure> {
        self.tar.append_data(&mut header(text.len() as u64), name, text)?;
        Ok(())
    }
}

fn header(bytes: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_mode(0o600);
    header.set_size(bytes);
    header.set_entry_type(EntryType::Regular);
    header
}

/// Computes the digest of what is read or written.
struct Digesting<T> {
    inner: T,
    digest: Sha256,
    bytes: u64,
}

impl<T: Read> Read for Digesting<T> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.digest.update(&buffer[..count]);
        self.bytes += count as u64;
        Ok(count)
    }
}

/// Reads a backup into an empty folder, and checks each file against the list.
///
/// # Errors
/// When the file is no backup, is incomplete or was changed, or comes from a newer narthex.
pub(crate) fn extract(file: &Path, to: &Path) -> Result<Contents, Failure> {
    let wrong = |why: &str| {
        let text = format!("{} cannot be restored: {why}", file.display());
        Failure::new(ErrorKind::Invalid, text)
    };
    let unreadable = |error: &io::Error| wrong(&format!("it is damaged ({error})"));
    let mut archive = Archive::new(fs::File::open(file)?);
    let mut entries = archive.entries().map_err(|error| unreadable(&error))?;
    let is_backup = match entries.next() {
        Some(Ok(entry)) => is_format(entry).map_err(|error| unreadable(&error))?,
        Some(Err(_)) | None => None,
    };
    match is_backup {
        None => return Err(wrong(&format!("it is no file of `{}`", narthex("backup FILE", &[])))),
        Some(false) => return Err(wrong("a newer narthex made it; install that version first")),
        Some(true) => {}
    }
    let mut found = BTreeSet::new();
    let mut contents = None;
    for entry in entries {
        let entry = entry.map_err(|error| unreadable(&error))?;
        if contents.is_some() || entry.header().entry_type() != EntryType::Regular {
            return Err(wrong("it has an entry that no backup has"));
        }
        let name = entry.path().ok().and_then(|path| path.to_str().map(str::to_owned));
        match name.as_deref() {
            Some(LIST) => contents = Some(list(entry).map_err(|error| wrong(&error.to_string()))?),
            Some(name) if is_known(name) => {
                found.insert(unpack(entry, name, to)?);
            }
            Some(_) | None => return Err(wrong("it has a file that no backup has")),
        }
    }
    let contents: Contents =
        contents.ok_or_else(|| wrong("it is incomplete: its end is missing"))?;
    let listed: BTreeSet<_> = contents.files.iter().cloned().collect();
    if listed != found {
        return Err(wrong("its content differs from its list of digests"));
    }
    Ok(contents)
}

/// True for this format, false for another version of it; `None` for another file.
fn is_format(mut entry: Entry<'_, fs::File>) -> io::Result<Option<bool>> {
    if entry.path()? != Path::new(FORMAT) {
        return Ok(None);
    }
    let mut text = String::new();
    entry.by_ref().take(64).read_to_string(&mut text)?;
    Ok(Some(text == VERSION))
}

fn list(entry: Entry<'_, fs::File>) -> serde_json::Result<Contents> {
    serde_json::from_reader(entry.take(LIST_MAX))
}

/// True for the names that a backup may have. No other name becomes a path.
fn is_known(name: &str) -> bool {
    let is_word = |word: &str| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        !word.is_empty() && word.chars().all(is_plain)
    };
    if name == STORE || name == MASTER_KEY {
        return true;
    }
    if let Some(name) = name.strip_prefix(SETTINGS).and_then(|rest| rest.strip_prefix('/')) {
        return is_settings_file(name);
    }
    let share = name.strip_prefix(SHARES).and_then(|rest| rest.strip_prefix('/'));
    let parts = share.and_then(|rest| rest.split_once('/'));
    parts.is_some_and(|(workspace, copy)| is_word(workspace) && is_word(copy))
}

fn unpack(entry: Entry<'_, fs::File>, name: &str, to: &Path) -> Result<Stored, Failure> {
    let path = to.join(name);
    if let Some(folder) = path.parent() {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let mut file = create_private(&path)?;
    let mut content = Digesting { inner: entry, digest: Sha256::new(), bytes: 0 };
    io::copy(&mut content, &mut file)?;
    file.flush()?;
    file.sync_all()?;
    let sha256 = hex::encode(content.digest.finalize());
    Ok(Stored { name: name.to_owned(), bytes: content.bytes, sha256 })
}

/// A file beside `path` for its owner alone, to be put there once it is complete.
///
/// # Errors
/// When the folder does not take a file.
pub(crate) fn unfinished(path: &Path) -> io::Result<NamedTempFile> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".narthex-").permissions(Permissions::from_mode(0o600));
    builder.tempfile_in(folder)
}

/// Gives a complete file its name, unless a file has it.
///
/// # Errors
/// When there is a file of this name, or the system refuses.
pub(crate) fn place_new(file: NamedTempFile, path: &Path) -> Result<(), Failure> {
    file.as_file().sync_all()?;
    let Err(error) = file.persist_noclobber(path) else { return Ok(()) };
    if error.error.kind() == io::ErrorKind::AlreadyExists || fs::symlink_metadata(path).is_ok() {
        return Err(taken(path));
    }
    // Some file systems, as of memory cards, have no such renaming.
    error.file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// The refusal to write over a file.
pub(crate) fn taken(path: &Path) -> Failure {
    let path = path.display();
    let text = format!("the file {path} exists already, and is unchanged; name another file");
    Failure::new(ErrorKind::Conflict, text)
}

fn create_private(path: &Path) -> Result<fs::File, Failure> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    match options.open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(taken(path)),
        opened => Ok(opened?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(dir: &Path) -> PathBuf {
        let file = dir.join("backup.tar");
        fs::write(dir.join("source"), "the store").unwrap();
        let mut writer = Writer::create(&file).unwrap();
        assert!(writer.add(STORE.to_owned(), &dir.join("source")).unwrap());
        assert!(!writer.add(MASTER_KEY.to_owned(), &dir.join("absent")).unwrap());
        let share = format!("{SHARES}/{}/{}", "w".repeat(60), "0".repeat(64));
        assert!(writer.add(share, &dir.join("source")).unwrap());
        writer.finish("2026-01-01T00:00:00Z".to_owned()).unwrap();
        file
    }

    fn refused(file: &Path) -> String {
        let to = tempfile::tempdir().unwrap();
        extract(file, to.path()).unwrap_err().message
    }

    /// A written backup is read again, for its owner alone.
    #[test]
    fn a_backup_is_read_as_it_was_written() {
        let dir = tempfile::tempdir().unwrap();
        let file = written(dir.path());
        let to = tempfile::tempdir().unwrap();
        let contents = extract(&file, to.path()).unwrap();
        assert!(contents.has(STORE) && !contents.has(MASTER_KEY));
        assert_eq!(contents.files.len(), 2);
        assert_eq!(fs::read_to_string(to.path().join(STORE)).unwrap(), "the store");
        assert!(refused(&dir.path().join("source")).contains("it is no file of `narthex backup"));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "nothing else is left");
        let again = Writer::create(&file).map(drop).unwrap_err();
        assert_eq!(again.kind, narthex_client::FailureKind::Operation(ErrorKind::Conflict));
    }

    /// A file that appears meanwhile, or a link, is not replaced.
    #[test]
    fn a_backup_replaces_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("backup.tar");
        let writer = Writer::create(&file).unwrap();
        fs::write(&file, "mine").unwrap();
        let failure = writer.finish("2026-01-01T00:00:00Z".to_owned()).unwrap_err();
        assert!(failure.message.contains("exists already"), "{failure}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
        let link = dir.path().join("link.tar");
        std::os::unix::fs::symlink("absent", &link).unwrap();
        assert!(Writer::create(&link).is_err());
        drop(Writer::create(&dir.path().join("dropped.tar")).unwrap());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "nothing else is left");
    }

    /// No changed byte and no cut goes unnoticed.
    #[test]
    fn a_changed_backup_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let file = written(dir.path());
        let whole = fs::read(&file).unwrap();
        let other = dir.path().join("other.tar");
        let at = whole.windows(9).position(|part| part == b"the store").unwrap();
        let mut changed = whole.clone();
        changed[at] ^= 1;
        fs::write(&other, changed).unwrap();
        assert!(refused(&other).contains("list of digests"));
        for length in [0, 100, 512, at, at + 5, whole.len() / 2] {
            fs::write(&other, &whole[..length]).unwrap();
            let text = refused(&other);
            assert!(text.contains("cannot be restored"), "{length}: {text}");
        }
    }

    /// A forged file leaves the folder by no name and no link.
    #[test]
    fn no_entry_leads_out_of_the_folder() {
        for name in ["/etc/x", "../x", "shares/workspaces/../x", "shares/workspaces/a/b/c", "x"] {
            assert!(!is_known(name), "{name}");
        }
        for name in ["store.db", "restored/settings.json", "shares/workspaces/default/0a"] {
            assert!(is_known(name), "{name}");
        }
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("evil.tar");
        let mut tar = Builder::new(fs::File::create(&file).unwrap());
        tar.append_data(&mut header(2), FORMAT, VERSION.as_bytes()).unwrap();
        let mut link = Header::new_gnu();
        link.set_entry_type(EntryType::Symlink);
        link.set_size(0);
        tar.append_link(&mut link, STORE, "/etc/passwd").unwrap();
        tar.into_inner().unwrap();
        assert!(refused(&file).contains("no backup has"));
        let mut tar = Builder::new(fs::File::create(&file).unwrap());
        tar.append_data(&mut header(2), FORMAT, "2\n".as_bytes()).unwrap();
        tar.into_inner().unwrap();
        assert!(refused(&file).contains("newer narthex"));
    }
}

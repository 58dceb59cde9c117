//! Files in their state of one moment, copied out of a folder.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

use sha2::{Digest, Sha256};
use tempfile::{NamedTempFile, TempPath};

use crate::error::io_error;
use crate::folder::{self, MADE_AGAIN, Opened, Refused};
use crate::kind::INDEX;
use crate::{ContentHash, Folder, ShareError, ShareKind, Stop, content_type};

/// Most parts that were passed over and are listed.
const SKIPPED_MAX: usize = 100;

/// Limits of one share.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Maximum size of one file in bytes.
    pub file_bytes: u64,
    /// Maximum size of all files in bytes.
    pub share_bytes: u64,
    /// Maximum number of files.
    pub files: usize,
    /// Maximum number of examined names in folders, with those that are not shared.
    pub names: usize,
    /// Maximum depth of folders.
    pub depth: usize,
}

impl Default for Limits {
    /// The limits of X-E95, and some that keep one share from being a disk.
    fn default() -> Self {
        let (file_bytes, share_bytes) = (50 * 1024 * 1024, 200 * 1024 * 1024);
        Self { file_bytes, share_bytes, files: 2000, names: 20_000, depth: 32 }
    }
}

/// The copied files, and the skipped parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The kind of display.
    pub kind: ShareKind,
    /// The file's or folder's own name; `.` for the whole folder of the run.
    pub name: String,
    /// The files, in the order of their paths.
    pub files: Vec<SharedFile>,
    /// Size of all files in bytes.
    pub total_size: u64,
    /// The file to open first: the page of a site, or the only file.
    pub entry_point: Option<String>,
    /// The skipped parts, at most 100 of them.
    pub skipped: Vec<Skipped>,
    /// Number of all skipped parts.
    pub skipped_count: usize,
}

/// One file of a share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedFile {
    /// Path within the shared folder, without `..`; for a single file its name.
    pub path: String,
    /// Size of the file in bytes.
    pub size: u64,
    /// Content type, by the file's name.
    pub content_type: &'static str,
    /// Hash of the file's content, by which its copy is stored.
    pub hash: ContentHash,
}

/// A part of a folder that is not in its share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Path within the shared folder. Bytes that are no text are replaced.
    pub path: String,
    /// The reason why the part is not in the share.
    pub why: Why,
}

/// The reason why a part of a folder is not in its share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Why {
    /// The name begins with a dot.
    Hidden,
    /// The folder can be generated again: `node_modules`, `__pycache__`.
    MadeAgain,
    /// The file is larger than the limit.
    TooLarge,
    /// The part is a link; its target is not shared by it.
    Link,
    /// The part is neither a file nor a folder.
    NotAFile,
    /// The daemon may not read the part.
    Unreadable,
    /// The part was removed meanwhile.
    Gone,
    /// The name is no text, or has control characters.
    Name,
    /// The part is nested too deeply.
    TooDeep,
}

impl Why {
    /// The name in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hidden => "hidden",
            Self::MadeAgain => "made_again",
            Self::TooLarge => "too_large",
            Self::Link => "link",
            Self::NotAFile => "not_a_file",
            Self::Unreadable => "unreadable",
            Self::Gone => "gone",
            Self::Name => "name",
            Self::TooDeep => "too_deep",
        }
    }
}

/// A copy that the depot does not store yet; it is deleted when it is dropped.
#[derive(Debug)]
pub(crate) struct FileCopy {
    pub(crate) hash: ContentHash,
    pub(crate) size: u64,
    pub(crate) at: TempPath,
}

/// The parameters of copying.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Copying<'a> {
    pub(crate) limits: &'a Limits,
    /// The folder in which copies lie until they are stored.
    pub(crate) temporary: &'a Path,
    pub(crate) stop: &'a Stop,
}

/// Copies the file or folder at `path` of the folder.
pub(crate) fn copy_out(
    folder: &Folder,
    path: &str,
    copying: Copying<'_>,
) -> Result<(Snapshot, Vec<FileCopy>), ShareError> {
    let limits = copying.limits;
    let path = folder::clean(path)?;
    let name = path.rsplit('/').next().unwrap_or(&path).to_owned();
    let mut walk = Walk::new(&path, copying);
    let is_file = match folder.at(&path)? {
        Opened::File(file, size) => {
            let is_copied = size <= limits.file_bytes && walk.file(file, &name)?;
            if !is_copied {
                return Err(ShareError::FileTooLarge { path, max: limits.file_bytes });
            }
            true
        }
        Opened::Folder(folder) => {
            walk.folder(&folder, "", 0)?;
            false
        }
    };
    let Walk { files, copies, skipped, skipped_count, total_size, .. } = walk;
    let mut files = files;
    files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    let paths = files.iter().map(|file| file.path.as_str());
    let kind = if is_file { ShareKind::of_file(&name) } else { ShareKind::of_files(paths) };
    let entry_point = match files.as_slice() {
        [] => return Err(ShareError::Nothing { path }),
        [only] => Some(only.path.clone()),
        _ => (kind == ShareKind::Site).then(|| INDEX.to_owned()),
    };
    let snapshot = Snapshot { kind, name, files, total_size, entry_point, skipped, skipped_count };
    Ok((snapshot, copies))
}

struct Walk<'a> {
    asked: &'a str,
    limits: &'a Limits,
    copying: Copying<'a>,
    files: Vec<SharedFile>,
    copies: Vec<FileCopy>,
    skipped: Vec<Skipped>,
    skipped_count: usize,
    total_size: u64,
    names_left: usize,
}

impl<'a> Walk<'a> {
    fn new(asked: &'a str, copying: Copying<'a>) -> Self {
        let limits = copying.limits;
        Self {
            asked,
            limits,
            copying,
            files: Vec::new(),
            copies: Vec::new(),
            skipped: Vec::new(),
            skipped_count: 0,
            total_size: 0,
            names_left: limits.names,
        }
    }

    fn folder(&mut self, folder: &OwnedFd, at: &str, depth: usize) -> Result<(), ShareError> {
        let names = folder::names(folder, self.names_left).map_err(io_error("read a folder"))?;
        let Some(names) = names else {
            return Err(self.too_many("names to look through", self.limits.names));
        };
        self.names_left -= names.len();
        for name in names {
            self.copying.stop.check()?;
            let (path, why) = look_at(at, &name);
            match why {
                Some(why) => self.skip(path, why),
                None => self.entry(folder, &name, path, depth)?,
            }
        }
        Ok(())
    }

    fn entry(
        &mut self,
        folder: &OwnedFd,
        name: &[u8],
        path: String,
        depth: usize,
    ) -> Result<(), ShareError> {
        let why = match folder::entry(folder, name) {
            Ok(Opened::Folder(_)) if depth == self.limits.depth => Why::TooDeep,
            Ok(Opened::Folder(folder)) => return self.folder(&folder, &path, depth + 1),
            Ok(Opened::File(file, size)) => {
                if size <= self.limits.file_bytes && self.file(file, &path)? {
                    return Ok(());
                }
                Why::TooLarge
            }
            Err(Refused::Link | Refused::Outside) => Why::Link,
            Err(Refused::NotFound) => Why::Gone,
            Err(Refused::Unreadable) => Why::Unreadable,
            Err(Refused::NotAFile) => Why::NotAFile,
            Err(Refused::Failed(error)) => return Err(error),
        };
        self.skip(path, why);
        Ok(())
    }

    /// Copies one file; returns true if it stayed within the limit of files while it was read.
    fn file(&mut self, file: OwnedFd, path: &str) -> Result<bool, ShareError> {
        if self.files.len() == self.limits.files {
            return Err(self.too_many("files", self.limits.files));
        }
        let left = self.limits.share_bytes - self.total_size;
        let max = self.limits.file_bytes.min(left);
        let Some(copy) = copy(File::from(file), max, self.copying)? else {
            if left < self.limits.file_bytes {
                let (path, max) = (self.asked.to_owned(), self.limits.share_bytes);
                return Err(ShareError::ShareTooLarge { path, max });
            }
            return Ok(false);
        };
        let (path, content_type) = (path.to_owned(), content_type(path));
        self.total_size += copy.size;
        self.files.push(SharedFile { path, size: copy.size, content_type, hash: copy.hash });
        self.copies.push(copy);
        Ok(true)
    }

    fn skip(&mut self, path: String, why: Why) {
        self.skipped_count += 1;
        if self.skipped.len() < SKIPPED_MAX {
            self.skipped.push(Skipped { path, why });
        }
    }

    fn too_many(&self, what: &'static str, max: usize) -> ShareError {
        ShareError::TooMany { path: self.asked.to_owned(), what, max }
    }
}

/// The path of an entry, and why it is passed over by its name alone.
fn look_at(folder: &str, name: &[u8]) -> (String, Option<Why>) {
    let text = String::from_utf8_lossy(name);
    let shown = text.replace(char::is_control, "\u{fffd}");
    let is_text = shown.as_bytes() == name;
    let path = if folder.is_empty() { shown } else { format!("{folder}/{shown}") };
    let why = match name {
        [b'.', ..] => Some(Why::Hidden),
        name if MADE_AGAIN.contains(&name) => Some(Why::MadeAgain),
        _ if !is_text => Some(Why::Name),
        _ => None,
    };
    (path, why)
}

/// A copy of a file of at most `max` bytes; `None` when it has more.
fn copy(mut file: File, max: u64, by: Copying<'_>) -> Result<Option<FileCopy>, ShareError> {
    let copying = "copy a file";
    let mut target = NamedTempFile::new_in(by.temporary).map_err(io_error(copying))?;
    let (mut sha256, mut size) = (Sha256::new(), 0);
    let mut buffer = vec![0; 64 * 1024];
    loop {
        by.stop.check()?;
        let read = match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(io_error("read a file")(error)),
        };
        size += read as u64;
        if size > max {
            return Ok(None);
        }
        sha256.update(&buffer[..read]);
        target.write_all(&buffer[..read]).map_err(io_error(copying))?;
    }
    let hash = ContentHash::new(sha256.finalize().into());
    Ok(Some(FileCopy { hash, size, at: target.into_temp_path() }))
}

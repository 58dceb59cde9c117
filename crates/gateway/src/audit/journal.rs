//! The file that records go to, and the ones set aside before it.
//!
//! One writer per file: the file is locked, and a second process on the same folder takes
//! `audit.2.jsonl` and so on, so that lines of two writers never mix.

use std::{
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    time::SystemTime,
};

use fs_err::os::unix::fs::OpenOptionsExt;
use narthex_model::Timestamp;

use super::{AuditSettings, record::note, writer::Sink};

/// How many processes may record in one folder at once.
const WRITERS_MOST: usize = 16;
/// What was left by a process that ended in the middle of a line.
pub(super) const TORN: &str = "the line before was cut off when the process that wrote it ended";

/// The open file of one writer.
#[derive(Debug)]
pub(super) struct Journal {
    folder: PathBuf,
    rotate_bytes: u64,
    keep_files: usize,
    current: Option<Current>,
}

#[derive(Debug)]
struct Current {
    file: fs_err::File,
    path: PathBuf,
    bytes: u64,
}

impl Journal {
    /// Opens the folder's file and repairs what a crash left.
    pub(super) fn open(folder: &Path, settings: &AuditSettings) -> io::Result<Self> {
        create_folder(folder)?;
        let AuditSettings { queue: _, rotate_bytes, keep_files } = *settings;
        let mut journal =
            Self { folder: folder.to_owned(), rotate_bytes, keep_files, current: None };
        let current = journal.open_current()?;
        journal.current = Some(current);
        Ok(journal)
    }

    /// The first file that no other process writes.
    fn open_current(&self) -> io::Result<Current> {
        for number in 1..=WRITERS_MOST {
            let name = match number {
                1 => "audit.jsonl".to_owned(),
                more => format!("audit.{more}.jsonl"),
            };
            let path = self.folder.join(name);
            let mut options = fs_err::OpenOptions::new();
            let mut file = options.read(true).append(true).create(true).mode(0o600).open(&path)?;
            match file.file().try_lock() {
                Ok(()) => {
                    let bytes = repair(&mut file)?;
                    return Ok(Current { file, path, bytes });
                }
                Err(std::fs::TryLockError::WouldBlock) => {}
                Err(std::fs::TryLockError::Error(error)) => return Err(error),
            }
        }
        Err(io::Error::other("too many processes record in this folder"))
    }

    fn current(&mut self) -> io::Result<&mut Current> {
        if self.current.is_none() {
            self.current = Some(self.open_current()?);
        }
        self.current.as_mut().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Sets the file aside under the present time, and begins a new one.
    fn rotate(&mut self) -> io::Result<()> {
        let Some(current) = self.current.take() else { return Ok(()) };
        current.file.sync_all()?;
        fs_err::rename(&current.path, self.free_path())?;
        self.current = Some(self.open_current()?);
        self.prune()
    }

    fn free_path(&self) -> PathBuf {
        let time = Timestamp::new(SystemTime::now()).for_file_name();
        let first = std::iter::once(format!("audit-{time}.jsonl"));
        let more = (2_u32..).map(|number| format!("audit-{time}-{number}.jsonl"));
        let mut paths = first.chain(more).map(|name| self.folder.join(name));
        paths.find(|path| !path.exists()).unwrap_or_else(|| self.folder.join("audit-last.jsonl"))
    }

    /// Removes the oldest of the files that were set aside.
    fn prune(&self) -> io::Result<()> {
        let mut names = Vec::new();
        for entry in fs_err::read_dir(&self.folder)? {
            let name = entry?.file_name();
            let text = name.to_string_lossy();
            if text.starts_with("audit-") && text.ends_with(".jsonl") {
                names.push(name);
            }
        }
        // Without the ending, so that `…Z-2` comes after `…Z`.
        names.sort_by_key(|name| name.to_string_lossy().trim_end_matches(".jsonl").to_owned());
        let surplus = names.len().saturating_sub(self.keep_files);
        for name in &names[..surplus] {
            fs_err::remove_file(self.folder.join(name))?;
        }
        Ok(())
    }
}

impl Sink for Journal {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let current = self.current()?;
        let count = current.file.write(bytes)?;
        current.bytes += count as u64;
        Ok(count)
    }

    fn at_line_end(&mut self) -> io::Result<()> {
        if self.current()?.bytes < self.rotate_bytes {
            return Ok(());
        }
        self.rotate()
    }

    fn sync(&mut self) -> io::Result<()> {
        self.current()?.file.sync_data()
    }
}

fn create_folder(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;

    if folder.is_dir() {
        return Ok(());
    }
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o700).create(folder)
}

/// Ends a line that was cut off, and says how long the file is.
fn repair(file: &mut fs_err::File) -> io::Result<u64> {
    let length = file.seek(SeekFrom::End(0))?;
    if length == 0 {
        return Ok(0);
    }
    let mut last = [0];
    file.seek(SeekFrom::Start(length - 1))?;
    file.read_exact(&mut last)?;
    if last == *b"\n" {
        return Ok(length);
    }
    tracing::warn!(path = %file.path().display(), "an audit line was cut off by a crash");
    let mut ending = b"\n".to_vec();
    ending.extend(note(TORN, SystemTime::now()));
    file.write_all(&ending)?;
    Ok(length + ending.len() as u64)
}

//! The files of records on their way into the store.
//!
//! A process has a slot of the folder, which is a lock that it holds for its whole life. It writes
//! `audit.jsonl` (of further slots `audit.2.jsonl` and so on), and rotates a long file. A file of
//! the previous process is rotated when the slot is opened. Each file starts with the ends of the
//! chains and the running changes, one per line, so that the next process needs only the newest
//! file.

mod backlog;
mod reader;
mod recovered;

use std::{
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use fs_err::os::unix::fs::OpenOptionsExt;

pub use self::reader::{SpoolBatch, SpoolFiles, SpoolGrown, SpoolReader};
pub(crate) use self::{
    backlog::Backlog,
    recovered::{CHANGE, Intent, Standing, header},
};

/// Most processes that may record in one folder at once.
const SLOTS_MOST: u32 = 16;
const NODE_BYTES: usize = 6;

/// The open file of one writer.
#[derive(Debug)]
pub(crate) struct Spool {
    folder: PathBuf,
    slot: u32,
    /// Number of starts of this slot.
    epoch: u64,
    asides: u32,
    rotate_bytes: u64,
    current: Option<Current>,
    backlog: Arc<Backlog>,
    /// The lock of the slot, held while the file is open.
    _lock: fs_err::File,
}

#[derive(Debug)]
struct Current {
    file: fs_err::File,
    bytes: u64,
    /// Size of the file's header in bytes.
    header: u64,
}

/// The result of opening a spool.
#[derive(Debug)]
pub(crate) struct Opened {
    /// The open file.
    pub(crate) spool: Spool,
    /// The writer's name, which no earlier one has had.
    pub(crate) writer: String,
    /// The state in which the slot's writer before this one ended.
    pub(crate) standing: Standing,
}

impl Spool {
    /// Takes a slot of the folder, and rotates the file that was left in it.
    ///
    /// # Errors
    /// When the folder cannot be used, or too many processes use it.
    pub(crate) fn open(
        folder: &Path,
        rotate_bytes: u64,
        backlog: Arc<Backlog>,
    ) -> io::Result<Opened> {
        create_folder(folder)?;
        let (slot, mut lock) = take_slot(folder)?;
        let (node, epoch) = next_name(&mut lock)?;
        let writer = format!("{node}.{slot}.{epoch:x}");
        let mut spool = Self {
            folder: folder.to_owned(),
            slot,
            epoch,
            asides: 0,
            rotate_bytes,
            current: None,
            backlog,
            _lock: lock,
        };
        let standing = spool.recover()?;
        spool.backlog.begin(bytes_of(folder)?);
        spool.begin_file(&standing.header())?;
        Ok(Opened { spool, writer, standing })
    }

    /// Checks that [`Self::open`] can use the folder and its files, beside a process that has them
    /// open. Changes nothing.
    ///
    /// # Errors
    /// When the folder or a file in it cannot be used.
    pub(crate) fn check(folder: &Path) -> io::Result<()> {
        if !folder.try_exists()? {
            return Ok(());
        }
        for slot in 1..=SLOTS_MOST {
            let current = current_path(folder, slot);
            writable(&current.with_extension("new"))?;
            match fs_err::metadata(&current) {
                Ok(found) if !found.is_file() => {
                    let text = format!("`{}` is not a regular file", current.display());
                    return Err(io::Error::other(text));
                }
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(_) | Err(_) => {}
            }
            // The slots are taken in their order, so none after a free one matters.
            let Some(lock) = writable(&current.with_extension("lock"))? else { break };
            io::read_to_string(&lock)?;
            if lock.file().try_lock_shared().is_ok() {
                break;
            }
        }
        bytes_of(folder).map(drop)
    }

    /// Returns the state of the chains according to the slot's last file.
    fn recover(&mut self) -> io::Result<Standing> {
        let current = current_path(&self.folder, self.slot);
        let left = match fs_err::read(&current) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            text => Some(Standing::read(&text?)),
        };
        let standing = if let Some(standing) = left {
            let aside = self.next_aside();
            match standing {
                Some(standing) => fs_err::rename(&current, aside).map(|()| Some(standing))?,
                // Every file of the present version has a beginning.
                None => {
                    let name = aside.file_name().unwrap_or_default().to_string_lossy();
                    fs_err::rename(&current, self.folder.join(format!("unchained-{name}")))?;
                    tracing::warn!("a file of an earlier version was renamed to unchained-{name}");
                    None
                }
            }
        } else {
            // The process before this one ended between two files.
            let newest = asides(&self.folder)?;
            let newest = newest.into_iter().rfind(|path| aside_slot(path) == Some(self.slot));
            newest.map(fs_err::read).transpose()?.and_then(|text| Standing::read(&text))
        };
        Ok(standing.unwrap_or_default())
    }

    fn next_aside(&mut self) -> PathBuf {
        let Self { slot, epoch, asides, .. } = *self;
        self.asides += 1;
        self.folder.join(format!("audit-{slot:02}-{epoch:012x}-{asides:06}.jsonl"))
    }

    /// Sets the present file aside and begins another. Where that fails, the present one stays.
    fn begin_file(&mut self, header: &[u8]) -> io::Result<()> {
        let path = current_path(&self.folder, self.slot);
        let new = path.with_extension("new");
        let mut options = fs_err::OpenOptions::new();
        let options = options.create(true).truncate(true).write(true).mode(0o600);
        let mut file = options.open(&new)?;
        file.write_all(header)?;
        file.sync_all()?;
        if let Some(current) = &self.current {
            current.file.sync_all()?;
            let aside = self.next_aside();
            fs_err::rename(&path, aside)?;
        }
        // Should this fail, its file is where the next start looks if there is no present one.
        fs_err::rename(&new, &path)?;
        fs_err::File::open(&self.folder)?.sync_all()?;
        let bytes = header.len() as u64;
        self.backlog.grew(bytes);
        self.current = Some(Current { file, bytes, header: bytes });
        Ok(())
    }

    fn current(&mut self) -> io::Result<&mut Current> {
        self.current.as_mut().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl Spool {
    /// Writes the beginning of `bytes` and returns its length.
    ///
    /// # Errors
    /// When the disk refuses.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let current = self.current()?;
        let count = current.file.write(bytes)?;
        current.bytes += count as u64;
        self.backlog.grew(count as u64);
        Ok(count)
    }

    /// Begins a further file if the present one is long; `header` makes its beginning. Call this
    /// when the written text ends with a whole line.
    ///
    /// # Errors
    /// When the disk refuses; the present file stays.
    pub(crate) fn at_line_end(&mut self, header: &mut dyn FnMut() -> Vec<u8>) -> io::Result<()> {
        let rotate_bytes = self.rotate_bytes;
        let Current { bytes, header: beginning, .. } = self.current()?;
        // At least half of a file is news, however much there is to begin it with.
        if *bytes < rotate_bytes.max(beginning.saturating_mul(2)) {
            return Ok(());
        }
        self.begin_file(&header())
    }

    /// Makes written lines survive a power failure.
    ///
    /// # Errors
    /// When the disk refuses.
    pub(crate) fn sync(&mut self) -> io::Result<()> {
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

/// A file that can be read and written, opened; `None` if there is none.
fn writable(path: &Path) -> io::Result<Option<fs_err::File>> {
    match fs_err::OpenOptions::new().read(true).write(true).open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The first slot that no other process has.
fn take_slot(folder: &Path) -> io::Result<(u32, fs_err::File)> {
    for slot in 1..=SLOTS_MOST {
        let path = current_path(folder, slot).with_extension("lock");
        let mut options = fs_err::OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(&path)?;
        match file.file().try_lock() {
            Ok(()) => return Ok((slot, file)),
            Err(std::fs::TryLockError::WouldBlock) => {}
            Err(std::fs::TryLockError::Error(error)) => return Err(error),
        }
    }
    Err(io::Error::other("too many processes write audit records in this folder"))
}

/// The node that the slot belongs to, and the next of its epochs, which the lock's file keeps.
fn next_name(lock: &mut fs_err::File) -> io::Result<(String, u64)> {
    let mut text = String::new();
    lock.read_to_string(&mut text)?;
    let last = text.trim().split_once(' ').and_then(|(node, epoch)| {
        let is_node = node.len() == 2 * NODE_BYTES && node.bytes().all(|b| b.is_ascii_hexdigit());
        Some((node.to_owned(), u64::from_str_radix(epoch, 16).ok()?)).filter(|_| is_node)
    });
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let now = u64::try_from(since.as_millis()).unwrap_or_default();
    let (node, epoch) = match last {
        // The epoch also grows where the clock was set back.
        Some((node, last)) => (node, now.max(last + 1)),
        None => (new_node()?, now),
    };
    lock.seek(SeekFrom::Start(0))?;
    lock.set_len(0)?;
    lock.write_all(format!("{node} {epoch:x}\n").as_bytes())?;
    lock.sync_all()?;
    Ok((node, epoch))
}

fn new_node() -> io::Result<String> {
    let mut bytes = [0; NODE_BYTES];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(hex::encode(bytes))
}

/// The file that a slot writes.
pub(crate) fn current_path(folder: &Path, slot: u32) -> PathBuf {
    match slot {
        1 => folder.join("audit.jsonl"),
        more => folder.join(format!("audit.{more}.jsonl")),
    }
}

/// The files of all slots that are written, as far as there are any.
pub(crate) fn current_paths(folder: &Path) -> Vec<PathBuf> {
    let paths = (1..=SLOTS_MOST).map(|slot| current_path(folder, slot));
    paths.filter(|path| path.exists()).collect()
}

/// The rotated files, those of a slot in the order in which they were written.
///
/// # Errors
/// When the folder cannot be read.
pub(crate) fn asides(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs_err::read_dir(folder)? {
        let path = entry?.path();
        if aside_slot(&path).is_some() {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

fn aside_slot(path: &Path) -> Option<u32> {
    let name = path.file_name()?.to_str()?.strip_prefix("audit-")?.strip_suffix(".jsonl")?;
    let mut parts = name.split('-');
    let slot = parts.next()?.parse().ok()?;
    // Files of earlier versions have a time there and nothing else.
    (parts.count() == 2).then_some(slot)
}

fn bytes_of(folder: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for path in asides(folder)?.into_iter().chain(current_paths(folder)) {
        match fs_err::metadata(path) {
            Ok(metadata) => bytes += metadata.len(),
            // Another process has moved the file into the store meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(bytes)
}

//! Reads the spool in order, for whoever moves it into the store.

use std::{
    collections::BTreeMap,
    io::{self, Read, Seek, SeekFrom},
    os::unix::fs::MetadataExt,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use super::{asides, backlog::Backlog, current_paths};

/// How much is read at a time; longer than any line.
const CHUNK_BYTES: u64 = 1024 * 1024;
/// The most lines of a batch.
const LINES_MOST: usize = 500;
/// How often other processes' files are looked at.
const OTHERS_EVERY: Duration = Duration::from_secs(5);

/// Reads what all processes have written in a folder, the lines of each in their order.
#[derive(Debug)]
pub struct SpoolReader {
    folder: PathBuf,
    backlog: Arc<Backlog>,
    /// How far each file was moved, by its number in the file system: names change.
    places: BTreeMap<u64, u64>,
}

/// Some lines of the spool, in their order.
#[derive(Debug)]
pub struct SpoolBatch {
    /// Events, each as its line.
    pub lines: Vec<String>,
    /// Whether as much was read as is read at once, so that there may be more.
    pub is_full: bool,
    file: u64,
    from: u64,
    to: u64,
}

/// Tells a reader when there may be something to read.
#[derive(Debug, Clone)]
pub struct SpoolGrown(Arc<Backlog>);

struct Source {
    path: PathBuf,
    file: fs_err::File,
    number: u64,
    bytes: u64,
}

impl SpoolReader {
    /// Reads this folder, from its beginning.
    #[must_use]
    pub(crate) fn new(folder: PathBuf, backlog: Arc<Backlog>) -> Self {
        Self { folder, backlog, places: BTreeMap::new() }
    }

    /// Tells when there may be something to read.
    #[must_use]
    pub fn grown(&self) -> SpoolGrown {
        SpoolGrown(self.backlog.clone())
    }

    /// The lines that follow the last that were [`SpoolReader::moved`]; `None` if there are none.
    /// Files that were moved whole and are not written any more are removed. Blocks.
    ///
    /// # Errors
    /// When a file cannot be read or removed.
    pub fn next_batch(&mut self) -> io::Result<Option<SpoolBatch>> {
        // First, so that what is set aside meanwhile is not passed over for what came after it.
        let current = current_paths(&self.folder);
        let current = current.into_iter().filter_map(open).collect::<Vec<_>>();
        let asides = asides(&self.folder)?;
        let asides = asides.into_iter().filter_map(open).collect::<io::Result<Vec<_>>>()?;
        let current = current.into_iter().collect::<io::Result<Vec<_>>>()?;
        // The number of a file that is gone may be given to another.
        self.places.retain(|number, _| {
            asides.iter().chain(&current).any(|source| source.number == *number)
        });
        for source in asides {
            if let Some(batch) = self.read(&source)? {
                return Ok(Some(batch));
            }
            self.remove(&source)?;
        }
        for source in current {
            if let Some(batch) = self.read(&source)? {
                return Ok(Some(batch));
            }
        }
        self.backlog.is_moved();
        Ok(None)
    }

    /// These lines are where they belong.
    pub fn moved(&mut self, batch: &SpoolBatch) {
        self.places.insert(batch.file, batch.to);
        self.backlog.moved(batch.to - batch.from);
    }

    fn read(&self, source: &Source) -> io::Result<Option<SpoolBatch>> {
        let mut from = self.places.get(&source.number).copied().unwrap_or_default();
        let start = from;
        loop {
            let before = from;
            let mut file = source.file.file();
            file.seek(SeekFrom::Start(from))?;
            let mut text = Vec::new();
            file.take(CHUNK_BYTES).read_to_end(&mut text)?;
            let mut lines = Vec::new();
            for line in text.split_inclusive(|byte| *byte == b'\n') {
                // What has no end is being written, or was cut off with its writer.
                if line.last() != Some(&b'\n') || lines.len() == LINES_MOST {
                    break;
                }
                from += line.len() as u64;
                let line = String::from_utf8_lossy(line);
                if !line.starts_with("{\"spool\"") && !line.starts_with("{\"intent\"") {
                    lines.push(line.trim_end().to_owned());
                }
            }
            let is_stuck = text.len() as u64 == CHUNK_BYTES && from == before;
            if is_stuck {
                return Err(io::Error::other("a line of the audit's spool is too long"));
            }
            // A file may begin with more than is read at once of what is no event.
            let has_more = lines.is_empty() && text.len() as u64 == CHUNK_BYTES;
            if !has_more {
                let is_full = lines.len() == LINES_MOST || text.len() as u64 == CHUNK_BYTES;
                let file = source.number;
                let batch = SpoolBatch { lines, is_full, file, from: start, to: from };
                return Ok((from > start).then_some(batch));
            }
        }
    }

    fn remove(&mut self, source: &Source) -> io::Result<()> {
        match fs_err::remove_file(&source.path) {
            Ok(()) => {
                let moved = self.places.remove(&source.number).unwrap_or_default();
                // What was cut off with its writer never is moved.
                self.backlog.moved(source.bytes.saturating_sub(moved));
                self.backlog.removed(source.bytes);
                Ok(())
            }
            // Another process was faster.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }
}

impl SpoolGrown {
    /// Waits until something was written since this was last waited for, or for some seconds:
    /// nobody tells of what other processes write.
    pub async fn wait(&self) {
        drop(tokio::time::timeout(OTHERS_EVERY, self.0.grown()).await);
    }
}

/// Opens a file, if it is still there.
fn open(path: PathBuf) -> Option<io::Result<Source>> {
    let opened = fs_err::File::open(&path).and_then(|file| {
        let metadata = file.metadata()?;
        Ok(Source { number: metadata.ino(), bytes: metadata.len(), path, file })
    });
    match opened {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        opened => Some(opened),
    }
}

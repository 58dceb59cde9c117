//! Reads the spool in order, for the task that moves it into the store.

use std::{
    collections::BTreeMap,
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom},
    os::unix::fs::MetadataExt,
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime},
};

use narthex_model::Timestamp;
use serde::Deserialize;

use super::{Standing, asides, backlog::Backlog, current_paths, recovered::NO_EVENTS};
use crate::Head;

/// Number of bytes with which a batch is full.
const BATCH_BYTES: usize = 1024 * 1024;
/// The most lines of a batch.
const LINES_MOST: usize = 500;
/// Time between two looks at other processes' files.
const OTHERS_EVERY: Duration = Duration::from_secs(5);

/// Reads the lines of all processes in a folder, each process's lines in their order.
#[derive(Debug)]
pub struct SpoolReader {
    folder: PathBuf,
    backlog: Arc<Backlog>,
    /// Number of moved bytes of each file, by its inode, as names change.
    places: BTreeMap<u64, u64>,
}

/// Some lines of the spool, in their order.
#[derive(Debug)]
pub struct SpoolBatch {
    /// Events, one line each.
    pub lines: Vec<String>,
    /// True if the batch has its maximum size, so that there may be more lines.
    pub is_full: bool,
    file: u64,
    from: u64,
    to: u64,
}

/// Wakes a reader when there may be new records.
#[derive(Debug, Clone)]
pub struct SpoolGrown(Arc<Backlog>);

/// The files of the spool, each with the number of bytes that were moved when the list was made.
#[derive(Debug)]
pub struct SpoolFiles(Vec<(Source, u64)>);

#[derive(Debug)]
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

    /// Returns a waker for new records.
    #[must_use]
    pub fn grown(&self) -> SpoolGrown {
        SpoolGrown(self.backlog.clone())
    }

    /// Returns the lines after the last ones that were [`SpoolReader::moved`]; `None` if there are
    /// none. Removes files that were moved as a whole and are no longer written. Blocks.
    ///
    /// # Errors
    /// When a file cannot be read or removed.
    pub fn next_batch(&mut self) -> io::Result<Option<SpoolBatch>> {
        let (asides, current) = self.sources()?;
        // The number of a file that is gone may be given to another.
        self.places.retain(|number, _| {
            asides.iter().chain(&current).any(|source| source.number == *number)
        });
        for source in asides {
            if let Some(batch) = self.read(&source)? {
                return Ok(Some(self.waits(batch)));
            }
            self.remove(&source)?;
        }
        for source in current {
            if let Some(batch) = self.read(&source)? {
                return Ok(Some(self.waits(batch)));
            }
        }
        self.backlog.is_moved();
        Ok(None)
    }

    /// Marks these lines as moved into the store.
    pub fn moved(&mut self, batch: &SpoolBatch) {
        self.places.insert(batch.file, batch.to);
        self.backlog.moved(batch.to - batch.from);
    }

    /// Opens all files, for a reader that does not delay the task that moves them.
    ///
    /// # Errors
    /// When a file cannot be opened.
    pub fn files(&self) -> io::Result<SpoolFiles> {
        let (asides, current) = self.sources()?;
        let place = |source: Source| {
            let from = self.places.get(&source.number).copied().unwrap_or_default();
            (source, from)
        };
        Ok(SpoolFiles(asides.into_iter().chain(current).map(place).collect()))
    }

    /// Sets whether moving lines fails.
    pub fn tell_stuck(&self, is_stuck: bool) {
        self.backlog.tell_stuck(is_stuck);
    }

    /// The rotated files, in their order, and those that are being written.
    fn sources(&self) -> io::Result<(Vec<Source>, Vec<Source>)> {
        // The current files come first: otherwise a file that is rotated meanwhile would be passed
        // over for later ones.
        let current = current_paths(&self.folder);
        let current = current.into_iter().filter_map(open).collect::<Vec<_>>();
        let asides = asides(&self.folder)?;
        let asides = asides.into_iter().filter_map(open).collect::<io::Result<Vec<_>>>()?;
        Ok((asides, current.into_iter().collect::<io::Result<Vec<_>>>()?))
    }

    /// Notes since when the lines of a batch have waited, also where another process has written
    /// them.
    fn waits(&self, batch: SpoolBatch) -> SpoolBatch {
        if let Some(since) = batch.lines.first().and_then(|line| time_of(line)) {
            self.backlog.waits_since(since);
        }
        batch
    }

    fn read(&self, source: &Source) -> io::Result<Option<SpoolBatch>> {
        let start = self.places.get(&source.number).copied().unwrap_or_default();
        let mut file = BufReader::new(source.file.file());
        file.seek(SeekFrom::Start(start))?;
        let (mut to, mut bytes, mut lines) = (start, 0, Vec::new());
        let is_full = loop {
            if lines.len() == LINES_MOST || bytes >= BATCH_BYTES {
                break true;
            }
            let Some((length, event)) = next_line(&mut file)? else { break false };
            to += length;
            if let Some(event) = event {
                bytes += event.len();
                lines.push(event);
            }
        };
        let batch = SpoolBatch { lines, is_full, file: source.number, from: start, to };
        Ok((to > start).then_some(batch))
    }

    fn remove(&mut self, source: &Source) -> io::Result<()> {
        match fs_err::remove_file(&source.path) {
            Ok(()) => {
                let moved = self.places.remove(&source.number).unwrap_or_default();
                // A last line that is incomplete because its writer died is never moved.
                self.backlog.moved(source.bytes.saturating_sub(moved));
                self.backlog.removed(source.bytes);
                Ok(())
            }
            // Another process has removed the file before.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }
}

impl SpoolFiles {
    /// Calls `show` with each event that is not [`SpoolReader::moved`], as its line, until about
    /// `most` bytes were read. Returns true if there are no more. Blocks.
    ///
    /// # Errors
    /// When a file cannot be read, after the events of all other files were shown.
    pub fn waiting(&self, most: u64, mut show: impl FnMut(&str)) -> io::Result<bool> {
        let mut left = most;
        let mut result = Ok(());
        for (source, from) in &self.0 {
            result = result.and(show_each(source, *from, &mut left, &mut show));
        }
        result.map(|()| left > 0)
    }

    /// The last moved events of a workspace, or of the installation, as far as the files show. They
    /// include at least the last event of each process that records in this folder, or did so last
    /// in its slot. Blocks.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn moved(&self, workspace: &str) -> io::Result<Vec<Head>> {
        let mut heads = Vec::new();
        for (source, to) in self.0.iter().filter(|(_, to)| *to > 0) {
            let mut text = Vec::new();
            let mut file = source.file.file();
            file.seek(SeekFrom::Start(0))?;
            file.take(*to).read_to_end(&mut text)?;
            heads.extend(Standing::read(&text).and_then(|mut all| all.heads.remove(workspace)));
        }
        Ok(heads)
    }
}

fn show_each(
    source: &Source,
    from: u64,
    left: &mut u64,
    show: &mut impl FnMut(&str),
) -> io::Result<()> {
    let mut file = BufReader::new(source.file.file());
    file.seek(SeekFrom::Start(from))?;
    while *left > 0 {
        let Some((length, event)) = next_line(&mut file)? else { break };
        *left = left.saturating_sub(length);
        if let Some(event) = event {
            show(&event);
        }
    }
    Ok(())
}

impl SpoolGrown {
    /// Waits until more was written since the last wait, or for some seconds: writes of other
    /// processes cause no event.
    pub async fn wait(&self) {
        drop(tokio::time::timeout(OTHERS_EVERY, self.0.grown()).await);
    }
}

/// The time of the event of a line.
fn time_of(line: &str) -> Option<SystemTime> {
    #[derive(Deserialize)]
    struct Timed {
        time: String,
    }
    let Timed { time } = serde_json::from_str(line).ok()?;
    Timestamp::read(&time)
}

/// The length of the next line, and the line if it is an event; `None` if no line is whole. A line
/// without an end is being written, or its writer died. Lines may have any length.
fn next_line(file: &mut impl BufRead) -> io::Result<Option<(u64, Option<String>)>> {
    let mut line = Vec::new();
    let longest = NO_EVENTS.iter().map(|beginning| beginning.len()).max().unwrap_or_default();
    file.by_ref().take(longest as u64).read_until(b'\n', &mut line)?;
    if NO_EVENTS.iter().any(|beginning| line.starts_with(beginning)) {
        let rest = if line.ends_with(b"\n") { Some(0) } else { pass_over(file)? };
        return Ok(rest.map(|rest| (line.len() as u64 + rest, None)));
    }
    if !line.ends_with(b"\n") {
        file.read_until(b'\n', &mut line)?;
    }
    let length = line.len() as u64;
    if line.pop() != Some(b'\n') {
        return Ok(None);
    }
    // Bytes that are no text were changed by hand: the line stays, so that its hash does not fit.
    let text = String::from_utf8(line)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    Ok(Some((length, Some(text))))
}

/// Passes over the rest of a line without holding it, and returns its length; `None` if it has no
/// end.
fn pass_over(file: &mut impl BufRead) -> io::Result<Option<u64>> {
    let mut passed = 0;
    loop {
        let some = file.fill_buf()?;
        if some.is_empty() {
            return Ok(None);
        }
        let end = some.iter().position(|byte| *byte == b'\n');
        let count = end.map_or(some.len(), |at| at + 1);
        file.consume(count);
        passed += count as u64;
        if end.is_some() {
            return Ok(Some(passed));
        }
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

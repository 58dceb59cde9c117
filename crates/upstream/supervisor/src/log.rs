//! A child's stderr as bounded lines: the last lines are stored, and subscribers get all lines.
//!
//! A [`LogRing`] belongs to a caller that wants the lines to outlive a child. Children that are
//! started one after the other with the same ring write into it one after the other (R-E17).

mod lines;

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::broadcast;

use self::lines::Lines;
use crate::Redact;

/// Lines a slow subscriber may fall behind before it loses some.
const SUBSCRIBER_LINES: usize = 64;
const READ_BYTES: usize = 8 * 1024;

/// Limits of a [`LogRing`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogLimits {
    /// Maximum number of stored lines.
    pub lines: usize,
    /// Maximum length of a line in bytes; the rest of a longer line is dropped.
    pub line_bytes: usize,
    /// Maximum memory of all stored lines in bytes; the oldest lines are dropped first.
    pub total_bytes: usize,
}

impl Default for LogLimits {
    /// 256 lines of at most 256 KiB, 1 MiB in all.
    fn default() -> Self {
        Self { lines: 256, line_bytes: 256 * 1024, total_bytes: 1024 * 1024 }
    }
}

/// The last lines of one server's stderr, over all its starts. Clones share one ring.
#[derive(Clone)]
pub struct LogRing {
    shared: Arc<Shared>,
}

/// A part of a ring's lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPart {
    /// Number of lines since the earlier reading that were dropped before this one.
    pub missed: u64,
    /// The lines, the oldest first.
    pub lines: Vec<String>,
    /// The place for the next call of [`LogRing::read_from`].
    pub next: u64,
}

struct Shared {
    limits: LogLimits,
    ring: Mutex<Ring>,
    subscribers: broadcast::Sender<Arc<str>>,
    cut: AtomicU64,
    has_served: AtomicBool,
    has_output: AtomicBool,
}

impl Default for LogRing {
    fn default() -> Self {
        Self::new(LogLimits::default())
    }
}

impl LogRing {
    /// An empty ring.
    #[must_use]
    pub fn new(limits: LogLimits) -> Self {
        let shared = Shared {
            limits,
            ring: Mutex::default(),
            subscribers: broadcast::Sender::new(SUBSCRIBER_LINES),
            cut: AtomicU64::new(0),
            has_served: AtomicBool::new(false),
            has_output: AtomicBool::new(false),
        };
        Self { shared: Arc::new(shared) }
    }

    /// The stored lines, the oldest first.
    #[must_use]
    pub fn tail(&self) -> Vec<String> {
        self.tail_since(0)
    }

    /// True if a child has written more than blank lines since the ring was made.
    #[must_use]
    pub fn has_output(&self) -> bool {
        self.shared.has_output.load(Ordering::Relaxed)
    }

    /// Subscribes to future lines. A slow subscriber loses the oldest lines.
    #[must_use]
    pub fn subscribe(&self) -> broadcast::Receiver<Arc<str>> {
        self.shared.subscribers.subscribe()
    }

    /// Number of lines that were too long, and lost their end.
    #[must_use]
    pub fn cut_lines(&self) -> u64 {
        self.shared.cut.load(Ordering::Relaxed)
    }

    /// Adds lines of the owner, such as a note on a shortened result. No redaction happens here:
    /// the text must hold no secret.
    pub fn append(&self, text: &str) {
        let mut lines = Lines::new(self.shared.limits.line_bytes);
        lines.push(text.as_bytes(), |line| self.add(&line, line.finish(None)));
        lines.finish(|line| self.add(&line, line.finish(None)));
    }

    /// Stores the lines of another stream of a child until the stream ends, mixed with those of its
    /// stderr.
    pub async fn keep(
        &self,
        from: impl AsyncRead + Unpin + Send,
        process_id: u32,
        redact: Option<Redact>,
    ) {
        Reader { log: self.clone(), process_id, server_name: None, redact }.run(from).await;
    }

    /// Begins the part of one child; gives where it begins. A line parts it from earlier ones.
    pub(crate) fn begin(&self, process_id: u32) -> u64 {
        if self.shared.has_served.swap(true, Ordering::Relaxed) {
            self.append(&format!("--- started again as process {process_id} ---"));
        }
        self.lock().next
    }

    /// The stored lines from a place on: 0, or [`LogPart::next`] of an earlier reading, so that
    /// each line is read once. [`LogRing::subscribe`] reports new lines.
    #[must_use]
    pub fn read_from(&self, place: u64) -> LogPart {
        let ring = self.lock();
        let first = ring.next - ring.lines.len() as u64;
        let (missed, before) = (first.saturating_sub(place), place.saturating_sub(first));
        let before = usize::try_from(before).unwrap_or(usize::MAX);
        let lines = ring.lines.iter().skip(before).map(|line| line.as_ref().to_owned()).collect();
        LogPart { missed, lines, next: ring.next }
    }

    /// True if both handles share one ring.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// The kept lines from a place on.
    pub(crate) fn tail_since(&self, begin: u64) -> Vec<String> {
        self.read_from(begin).lines
    }

    fn add(&self, line: &lines::Line<'_>, text: String) {
        if line.is_cut() {
            self.shared.cut.fetch_add(1, Ordering::Relaxed);
        }
        let text: Arc<str> = text.into();
        self.lock().push(Arc::clone(&text), &self.shared.limits);
        // An error means that there is no subscriber.
        drop(self.shared.subscribers.send(text));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Ring> {
        self.shared.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for LogRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Lines are the server's, and long.
        f.debug_struct("LogRing").field("limits", &self.shared.limits).finish_non_exhaustive()
    }
}

/// The last lines, limited in number and in size.
#[derive(Default)]
struct Ring {
    lines: VecDeque<Arc<str>>,
    bytes: usize,
    /// The number of the next line, counted from the first that was ever added.
    next: u64,
}

impl Ring {
    fn push(&mut self, line: Arc<str>, limits: &LogLimits) {
        self.bytes += line.len();
        self.next += 1;
        self.lines.push_back(line);
        while self.lines.len() > limits.lines || self.bytes > limits.total_bytes {
            let Some(oldest) = self.lines.pop_front() else { break };
            self.bytes -= oldest.len();
        }
    }
}

/// Reads the output of one child until the child ends.
pub(crate) struct Reader {
    pub(crate) log: LogRing,
    pub(crate) process_id: u32,
    pub(crate) server_name: Option<String>,
    pub(crate) redact: Option<Redact>,
}

impl Reader {
    pub(crate) async fn run(self, mut from: impl AsyncRead + Unpin + Send) {
        let mut lines = Lines::new(self.log.shared.limits.line_bytes);
        let mut buffer = vec![0; READ_BYTES];
        loop {
            match from.read(&mut buffer).await {
                Ok(0) => break,
                Ok(read) => lines.push(&buffer[..read], |line| self.keep(line)),
                Err(error) => {
                    tracing::warn!(process.id = self.process_id, %error, "could not read output");
                    break;
                }
            }
        }
        lines.finish(|line| self.keep(line));
    }

    fn keep(&self, line: lines::Line<'_>) {
        let text = line.finish(self.redact.as_ref());
        tracing::debug!(
            process.id = self.process_id,
            server.name = self.server_name.as_deref(),
            line = %text,
            "a process wrote"
        );
        if !text.trim().is_empty() {
            self.log.shared.has_output.store(true, Ordering::Relaxed);
        }
        self.log.add(&line, text);
    }
}

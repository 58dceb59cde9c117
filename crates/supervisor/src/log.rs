//! A child's stderr as bounded lines: the last ones are kept, all are offered to subscribers.

mod lines;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::AsyncReadExt;
use tokio::process::ChildStderr;
use tokio::sync::broadcast;

use self::lines::Lines;
use crate::{ProcessSpec, Redact};

/// Lines a slow subscriber may fall behind before it loses some.
const SUBSCRIBER_LINES: usize = 64;
const READ_BYTES: usize = 8 * 1024;

/// What is kept of one child's stderr.
pub(crate) struct Log {
    ring: Mutex<Ring>,
    subscribers: broadcast::Sender<Arc<str>>,
    cut: AtomicU64,
}

impl Log {
    pub(crate) fn new(spec: &ProcessSpec) -> Self {
        let ring = Ring {
            lines: VecDeque::new(),
            bytes: 0,
            max_lines: spec.log_lines,
            max_bytes: spec.log_total_bytes,
        };
        Self {
            ring: Mutex::new(ring),
            subscribers: broadcast::Sender::new(SUBSCRIBER_LINES),
            cut: AtomicU64::new(0),
        }
    }

    pub(crate) fn tail(&self) -> Vec<String> {
        let ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        ring.lines.iter().map(|line| line.as_ref().to_owned()).collect()
    }

    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Arc<str>> {
        self.subscribers.subscribe()
    }

    pub(crate) fn cut_lines(&self) -> u64 {
        self.cut.load(Ordering::Relaxed)
    }

    fn add(&self, line: Arc<str>) {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&line));
        // An error means that nobody subscribed.
        drop(self.subscribers.send(line));
    }
}

/// The last lines, limited in number and in size.
struct Ring {
    lines: VecDeque<Arc<str>>,
    bytes: usize,
    max_lines: usize,
    max_bytes: usize,
}

impl Ring {
    fn push(&mut self, line: Arc<str>) {
        self.bytes += line.len();
        self.lines.push_back(line);
        while self.lines.len() > self.max_lines || self.bytes > self.max_bytes {
            let Some(oldest) = self.lines.pop_front() else { break };
            self.bytes -= oldest.len();
        }
    }
}

/// Reads one child's stderr until it ends.
pub(crate) struct Reader {
    pub(crate) log: Arc<Log>,
    pub(crate) process_id: u32,
    pub(crate) server_name: Option<String>,
    pub(crate) redact: Option<Redact>,
    pub(crate) line_bytes: usize,
}

impl Reader {
    pub(crate) async fn run(self, mut stderr: ChildStderr) {
        let mut lines = Lines::new(self.line_bytes);
        let mut buffer = vec![0; READ_BYTES];
        loop {
            match stderr.read(&mut buffer).await {
                Ok(0) => break,
                Ok(read) => lines.push(&buffer[..read], |line| self.keep(line)),
                Err(error) => {
                    tracing::warn!(process.id = self.process_id, %error, "could not read stderr");
                    break;
                }
            }
        }
        lines.finish(|line| self.keep(line));
    }

    fn keep(&self, line: lines::Line<'_>) {
        let text = line.finish(self.redact.as_ref());
        if line.is_cut() {
            self.log.cut.fetch_add(1, Ordering::Relaxed);
        }
        tracing::debug!(
            process.id = self.process_id,
            server.name = self.server_name.as_deref(),
            line = %text,
            "a process wrote to its stderr"
        );
        self.log.add(text.into());
    }
}

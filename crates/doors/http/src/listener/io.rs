//! A connection's bytes, observed for incoming requests and for stuck answers.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    task::{Context, Poll},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

/// The activity on a connection so far. The connection reads it at intervals, so requests need not
/// set timers.
#[derive(Debug, Default)]
pub(super) struct Activity {
    requests: AtomicU64,
    writes: AtomicU64,
    is_write_blocked: AtomicBool,
}

/// The counts of [`Activity`] at one moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Look {
    requests: u64,
    writes: u64,
    is_write_blocked: bool,
}

impl Activity {
    /// Counts a request.
    pub(super) fn request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn look(&self) -> Look {
        Look {
            requests: self.requests.load(Ordering::Relaxed),
            writes: self.writes.load(Ordering::Relaxed),
            is_write_blocked: self.is_write_blocked.load(Ordering::Relaxed),
        }
    }

    fn written<T>(&self, outcome: Poll<T>) -> Poll<T> {
        match outcome.is_pending() {
            true => self.is_write_blocked.store(true, Ordering::Relaxed),
            false => {
                self.is_write_blocked.store(false, Ordering::Relaxed);
                self.writes.fetch_add(1, Ordering::Relaxed);
            }
        }
        outcome
    }
}

impl Look {
    /// True if no request has ever arrived.
    pub(super) fn is_idle_since_start(&self) -> bool {
        self.requests == 0
    }

    pub(super) fn has_no_request_since(&self, earlier: &Self) -> bool {
        self.requests == earlier.requests
    }

    /// True if the client has taken no byte of an answer since `earlier`.
    pub(super) fn is_stuck_since(&self, earlier: &Self) -> bool {
        self.is_write_blocked && earlier.is_write_blocked && self.writes == earlier.writes
    }
}

/// A client's socket that records its own activity. TLS is above it, so that bytes count when the
/// client takes them.
#[derive(Debug)]
pub(super) struct Watched {
    inner: TcpStream,
    activity: Arc<Activity>,
}

impl Watched {
    pub(super) fn new(inner: TcpStream, activity: Arc<Activity>) -> Self {
        Self { inner, activity }
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buf)
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.inner).poll_write(cx, buf);
        self.activity.written(outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.inner).poll_write_vectored(cx, bufs);
        self.activity.written(outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

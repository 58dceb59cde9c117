//! Lines from and to the client, and from and to the daemon.

use std::io;

use bytes::{Bytes, BytesMut};
use narthex_model::ErrorKind;
use narthex_wire::{Limits, LineParser};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, Stdout, stdin, stdout},
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::mpsc,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::Failure;

/// Number of bytes that are read at once.
const CHUNK: usize = 64 * 1024;
/// Lines of the client that wait for the daemon. The client waits beyond.
const WAITING_MOST: usize = 64;

/// Lines of a stream.
#[derive(Debug)]
pub(super) struct Lines<R> {
    from: R,
    parser: LineParser,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    fn new(from: R, limits: Limits) -> Self {
        Self { from, parser: LineParser::new(limits.message_bytes) }
    }

    /// The next line; `None` at the end. A line that is longer than a message may be is passed
    /// over.
    ///
    /// # Errors
    /// When the stream breaks.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        loop {
            match self.parser.next_line() {
                Ok(Some(line)) => return Ok(Some(line)),
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!("a message was dropped: {error}");
                    continue;
                }
            }
            let mut chunk = BytesMut::with_capacity(CHUNK);
            match self.from.read_buf(&mut chunk).await {
                Ok(0) => return Ok(None),
                Ok(_) => self.parser.push(chunk.freeze()),
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(None),
                Err(error) => return Err(broken("the connection to the daemon failed", &error)),
            }
        }
    }
}

/// A stream that lines are written to.
#[derive(Debug)]
pub(super) struct Writer<W>(W);

impl<W: AsyncWrite + Unpin> Writer<W> {
    pub(super) async fn write(&mut self, line: &[u8]) -> io::Result<()> {
        self.0.write_all(line).await?;
        self.0.write_all(b"\n").await?;
        self.0.flush().await
    }

    pub(super) async fn end(&mut self) -> io::Result<()> {
        self.0.shutdown().await
    }
}

/// A connection to the daemon.
#[derive(Debug)]
pub(super) struct Link {
    lines: Lines<OwnedReadHalf>,
    writer: Writer<OwnedWriteHalf>,
}

impl Link {
    pub(super) fn new(stream: UnixStream, limits: Limits) -> Self {
        let (from, to) = stream.into_split();
        Self { lines: Lines::new(from, limits), writer: Writer(to) }
    }

    /// Both sides, each to be used by itself.
    pub(super) fn sides(&mut self) -> (&mut Lines<OwnedReadHalf>, &mut Writer<OwnedWriteHalf>) {
        (&mut self.lines, &mut self.writer)
    }

    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        self.lines.next().await
    }

    pub(super) async fn write(&mut self, line: &[u8]) -> Result<(), Failure> {
        let written = self.writer.write(line).await;
        written.map_err(|error| broken("the connection to the daemon failed", &error))
    }
}

/// The client's lines, read from the beginning on: also while there is no daemon.
#[derive(Debug)]
pub(super) struct Input {
    lines: mpsc::Receiver<Bytes>,
    has_ended: bool,
    /// Cancelled when the client has closed standard input; some of its lines may still wait.
    closed: CancellationToken,
}

impl Input {
    pub(super) fn begin(limits: Limits) -> Self {
        let (sender, lines) = mpsc::channel(WAITING_MOST);
        let closed = CancellationToken::new();
        let guard = closed.clone().drop_guard();
        let reading = async move {
            let _guard = guard;
            let mut from = Lines::new(stdin(), limits);
            while let Ok(Some(line)) = from.next().await {
                if sender.send(line).await.is_err() {
                    return;
                }
            }
        };
        // The task ends only with the process: a read of standard input cannot be cancelled.
        TaskTracker::new().spawn(reading);
        Self { lines, has_ended: false, closed }
    }

    /// Says when the client has closed standard input.
    pub(super) fn closed(&self) -> CancellationToken {
        self.closed.clone()
    }

    /// The next line; `None` once the client has no more to say. Nothing is lost where this is not
    /// waited for to its end.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        let line = self.lines.recv().await;
        self.has_ended = line.is_none();
        line
    }

    /// The next line if one has arrived already.
    pub(super) fn waiting(&mut self) -> Option<Bytes> {
        self.lines.try_recv().ok()
    }

    pub(super) fn has_ended(&self) -> bool {
        self.has_ended
    }
}

/// The lines that the client gets.
#[derive(Debug)]
pub(super) struct Output(Writer<Stdout>);

impl Output {
    pub(super) fn new() -> Self {
        Self(Writer(stdout()))
    }

    /// Writes lines; `false` if the client has gone without closing its end first.
    ///
    /// # Errors
    /// When standard output breaks.
    pub(super) async fn write(
        &mut self,
        lines: impl IntoIterator<Item = Bytes>,
    ) -> Result<bool, Failure> {
        for line in lines {
            match self.0.write(&line).await {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(false),
                Err(error) => return Err(broken("standard output failed", &error)),
            }
        }
        Ok(true)
    }
}

fn broken(what: &str, error: &io::Error) -> Failure {
    Failure::new(ErrorKind::Unavailable, format!("{what}: {error}"))
}

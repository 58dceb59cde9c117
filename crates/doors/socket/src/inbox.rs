//! The reading half of a connection: reads bytes, and splits them into lines.

use std::{io, time::Duration};

use bytes::{Bytes, BytesMut};
use narthex_wire::{LineError, LineParser};
use tokio::{
    io::{AsyncReadExt, Interest, Ready},
    net::unix::OwnedReadHalf,
};

/// The maximum number of bytes in one read.
const CHUNK_BYTES: usize = 64 * 1024;
/// Interval of checks whether a client that has stopped sending still reads.
const HANG_UP_CHECK: Duration = Duration::from_millis(200);

/// The incoming messages of a client.
#[derive(Debug)]
pub(crate) struct Inbox {
    reader: OwnedReadHalf,
    parser: LineParser,
    buffer: BytesMut,
}

impl Inbox {
    pub(crate) fn new(reader: OwnedReadHalf, line_bytes: usize) -> Self {
        Self { reader, parser: LineParser::new(line_bytes), buffer: BytesMut::new() }
    }

    /// Reads once; returns `false` at the end. Can be cancelled and called again. The caller must
    /// take all lines before the next read.
    pub(crate) async fn read(&mut self) -> io::Result<bool> {
        // Waits for bytes first, so that an idle connection holds no buffer.
        self.reader.readable().await?;
        self.buffer.reserve(CHUNK_BYTES);
        let count = self.reader.read_buf(&mut self.buffer).await?;
        self.parser.push(self.buffer.split().freeze());
        self.buffer = BytesMut::new();
        Ok(count > 0)
    }

    /// The next complete line.
    pub(crate) fn next_line(&mut self) -> Result<Option<Bytes>, LineError> {
        self.parser.next_line()
    }

    /// Waits until the client has stopped reading, too. A client that only stops sending still gets
    /// its answers, and the system reports the difference only on request.
    pub(crate) async fn hung_up(&self) {
        let mut checks = tokio::time::interval(HANG_UP_CHECK);
        loop {
            checks.tick().await;
            let now = tokio::select! {
                biased;
                ready = self.reader.ready(Interest::WRITABLE) => ready,
                () = std::future::ready(()) => Ok(Ready::EMPTY),
            };
            if now.is_ok_and(Ready::is_write_closed) {
                return;
            }
        }
    }
}

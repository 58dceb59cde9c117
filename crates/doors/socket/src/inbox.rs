//! The reading half of a connection: bytes in, lines out.

use std::{io, time::Duration};

use bytes::{Bytes, BytesMut};
use narthex_wire::{LineError, LineParser};
use tokio::{
    io::{AsyncReadExt, Interest, Ready},
    net::unix::OwnedReadHalf,
};

/// Most bytes per read.
const CHUNK_BYTES: usize = 64 * 1024;
/// Time between checks that a client which sends nothing more still reads.
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

    /// Reads once; `false` at the end. Safe to drop and call again. All lines must be taken
    /// before the next read.
    pub(crate) async fn read(&mut self) -> io::Result<bool> {
        // An idle connection keeps no buffer.
        self.reader.readable().await?;
        self.buffer.reserve(CHUNK_BYTES);
        let count = self.reader.read_buf(&mut self.buffer).await?;
        self.parser.push(self.buffer.split().freeze());
        self.buffer = BytesMut::new();
        Ok(count > 0)
    }

    /// The next whole line.
    pub(crate) fn next_line(&mut self) -> Result<Option<Bytes>, LineError> {
        self.parser.next_line()
    }

    /// Waits until the client does not read any more either. A client that only stops sending keeps
    /// its calls, and the system distinguishes the two only when asked.
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

//! The writing half of a connection: one queue and one task. Large messages are not copied.

use std::{collections::VecDeque, io, io::IoSlice, time::Duration};

use bytes::{Buf, Bytes};
use narthex_wire::{Payload, line_frames};
use tokio::{
    io::{AsyncWrite, AsyncWriteExt},
    sync::mpsc,
    time::timeout,
};

/// Number of messages that the queue holds.
pub(crate) const QUEUE: usize = 16;
/// Number of bytes that one write collects, if that many are ready.
const GATHER_BYTES: usize = 64 * 1024;
/// Maximum number of pieces in one write.
const SLICES: usize = 64;

/// A message, or a stream of messages, for the writer.
#[derive(Debug)]
pub(crate) enum Outgoing {
    /// One message.
    Message(Payload),
    /// A stream of the servers' own messages, which the writer sends from now on.
    Outbox(mpsc::Receiver<Payload>),
}

/// Writes messages until the queue has no senders left. Fails if the client has disconnected, or
/// has read nothing for too long.
pub(crate) async fn run(
    mut out: impl AsyncWrite + Unpin,
    mut queue: mpsc::Receiver<Outgoing>,
    patience: Duration,
) -> io::Result<()> {
    let mut outbox = None;
    let mut pieces = Pieces::default();
    while let Some(outgoing) = next(&mut queue, &mut outbox).await {
        pieces.take(outgoing, &mut outbox);
        while pieces.bytes < GATHER_BYTES
            && let Ok(outgoing) = queue.try_recv()
        {
            pieces.take(outgoing, &mut outbox);
        }
        pieces.write(&mut out, patience).await?;
    }
    timeout(patience, out.shutdown()).await?
}

async fn next(
    queue: &mut mpsc::Receiver<Outgoing>,
    outbox: &mut Option<mpsc::Receiver<Payload>>,
) -> Option<Outgoing> {
    loop {
        let Some(messages) = outbox else { return queue.recv().await };
        tokio::select! {
            biased;
            outgoing = queue.recv() => return outgoing,
            message = messages.recv() => match message {
                Some(message) => return Some(Outgoing::Message(message)),
                None => *outbox = None,
            },
        }
    }
}

/// The pieces that wait to be written.
#[derive(Default)]
struct Pieces {
    pieces: VecDeque<Bytes>,
    bytes: usize,
}

impl Pieces {
    fn take(&mut self, outgoing: Outgoing, outbox: &mut Option<mpsc::Receiver<Payload>>) {
        match outgoing {
            Outgoing::Outbox(messages) => *outbox = Some(messages),
            Outgoing::Message(payload) => {
                let line = line_frames(&[payload]);
                self.bytes += line.len();
                self.pieces.extend(line.pieces().filter(|piece| !piece.is_empty()).cloned());
            }
        }
    }

    async fn write(
        &mut self,
        out: &mut (impl AsyncWrite + Unpin),
        patience: Duration,
    ) -> io::Result<()> {
        while !self.pieces.is_empty() {
            let slices: Vec<IoSlice<'_>> =
                self.pieces.iter().take(SLICES).map(|piece| IoSlice::new(piece)).collect();
            // Each written byte restarts the client's time: the client reads, even if slowly.
            let count = timeout(patience, out.write_vectored(&slices)).await??;
            if count == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            self.advance(count);
        }
        self.bytes = 0;
        Ok(())
    }

    fn advance(&mut self, mut count: usize) {
        while let Some(piece) = self.pieces.front_mut() {
            if piece.len() > count {
                piece.advance(count);
                return;
            }
            count -= piece.len();
            self.pieces.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, duplex};

    use super::*;

    fn message(text: &str) -> Outgoing {
        Outgoing::Message(Bytes::copy_from_slice(text.as_bytes()).into())
    }

    #[tokio::test]
    async fn messages_become_lines_in_order() {
        let (near, mut far) = duplex(10);
        let (sender, queue) = mpsc::channel(QUEUE);
        let long = format!("\"{}\"", "x".repeat(100_000));
        let sent = async {
            for text in ["{\n}", "1", &long, "2"] {
                sender.send(message(text)).await.unwrap();
            }
            let (outbox, messages) = mpsc::channel(1);
            sender.send(Outgoing::Outbox(messages)).await.unwrap();
            outbox.send(Bytes::from_static(b"3").into()).await.unwrap();
            // The outbox has room for one message: room for a second one proves that the first was
            // taken.
            drop(outbox.reserve().await.unwrap());
            drop(sender);
        };
        let mut read = String::new();
        let writing = run(near, queue, Duration::from_secs(30));
        let (written, (), count) = tokio::join!(writing, sent, far.read_to_string(&mut read));
        written.unwrap();
        assert_eq!(count.unwrap(), read.len());
        assert_eq!(read, format!("{{ }}\n1\n{long}\n2\n3\n"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_read_is_cut() {
        let (near, _far) = duplex(10);
        let (sender, queue) = mpsc::channel(QUEUE);
        sender.send(message(&"1".repeat(100))).await.unwrap();
        let error = run(near, queue, Duration::from_secs(30)).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn writing_to_a_disconnected_client_fails() {
        let (near, far) = duplex(10);
        drop(far);
        let (sender, queue) = mpsc::channel(QUEUE);
        sender.send(message("1")).await.unwrap();
        let error = run(near, queue, Duration::from_secs(30)).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }
}

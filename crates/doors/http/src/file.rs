//! A file as the body of an answer, read in pieces.

use std::{
    convert::Infallible,
    fs::File,
    io::{self, Read},
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use narthex_gateway::metrics::OpenCount;
use tokio::task::{JoinError, spawn_blocking};
use tokio_util::sync::ReusableBoxFuture;

/// Number of bytes that are read at a time.
const PIECE: u64 = 128 * 1024;

type Next = Result<io::Result<(File, Vec<u8>)>, JoinError>;

/// A file from its current position, with a known length. If reading fails midway, the stream ends
/// before that length, so its reader can detect the failure.
pub(crate) struct FileStream {
    /// `None` when the file has been read.
    next: Option<ReusableBoxFuture<'static, Next>>,
    left: u64,
    _open: OpenCount,
}

impl FileStream {
    pub(crate) fn new(file: File, length: u64, open: OpenCount) -> Self {
        let next = (length > 0).then(|| ReusableBoxFuture::new(step(file, length)));
        Self { next, left: length, _open: open }
    }
}

async fn step(file: File, left: u64) -> Next {
    spawn_blocking(move || {
        let mut piece = Vec::new();
        (&file).take(left.min(PIECE)).read_to_end(&mut piece)?;
        Ok((file, piece))
    })
    .await
}

impl Body for FileStream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Some(next) = &mut self.next else { return Poll::Ready(None) };
        let broken = match ready!(next.poll(cx)) {
            Ok(Ok((file, piece))) if !piece.is_empty() => {
                self.left = self.left.saturating_sub(piece.len() as u64);
                match (self.left, &mut self.next) {
                    (0, next) => *next = None,
                    (left, Some(next)) => next.set(step(file, left)),
                    (_, None) => {}
                }
                return Poll::Ready(Some(Ok(Frame::data(piece.into()))));
            }
            Ok(Ok(_)) => "it is shorter than it was".to_owned(),
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        tracing::warn!("a shared file could not be sent completely: {broken}");
        self.next = None;
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        self.next.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

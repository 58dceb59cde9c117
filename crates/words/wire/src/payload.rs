//! Outgoing bytes, in as few pieces as possible and without copies of large ones.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use smallvec::SmallVec;

/// Pieces at least this long are shared with the original message, shorter ones are copied.
const SHARE_FROM: usize = 4096;

/// An outgoing text as a short list of pieces. It is an [`http_body::Body`] with a known length.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Payload {
    pieces: SmallVec<[Bytes; 3]>,
    next: usize,
}

impl Payload {
    /// Number of bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pieces[self.next..].iter().map(Bytes::len).sum()
    }

    /// True if there are no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The pieces in order.
    pub fn pieces(&self) -> impl Iterator<Item = &Bytes> {
        self.pieces[self.next..].iter()
    }

    /// All bytes as one piece; copies only if there is more than one.
    #[must_use]
    pub fn into_bytes(mut self) -> Bytes {
        if self.pieces.len() == 1 && self.next == 0 {
            return self.pieces.remove(0);
        }
        let mut all = BytesMut::with_capacity(self.len());
        for piece in self.pieces() {
            all.extend_from_slice(piece);
        }
        all.freeze()
    }
}

impl From<Bytes> for Payload {
    fn from(bytes: Bytes) -> Self {
        Self { pieces: SmallVec::from_iter([bytes]), next: 0 }
    }
}

impl From<Vec<u8>> for Payload {
    fn from(bytes: Vec<u8>) -> Self {
        Bytes::from(bytes).into()
    }
}

impl Body for Payload {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = self.next;
        let Some(piece) = self.pieces.get_mut(next).map(std::mem::take) else {
            return Poll::Ready(None);
        };
        self.next += 1;
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.next >= self.pieces.len()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.len() as u64)
    }
}

/// Collects a [`Payload`] from literals and from parts of one original.
#[derive(Debug)]
pub struct PayloadBuilder<'a> {
    original: &'a Bytes,
    pieces: SmallVec<[Bytes; 3]>,
    scratch: Vec<u8>,
}

impl<'a> PayloadBuilder<'a> {
    /// Starts empty. The result may become `extra` bytes longer than the original.
    #[must_use]
    pub fn new(original: &'a Bytes, extra: usize) -> Self {
        let capacity = original.len().min(SHARE_FROM) + extra;
        Self { original, pieces: SmallVec::new(), scratch: Vec::with_capacity(capacity) }
    }

    /// Adds a literal.
    pub fn push(&mut self, literal: &[u8]) {
        self.scratch.extend_from_slice(literal);
    }

    /// Adds a part of the original, verbatim.
    pub fn copy(&mut self, range: std::ops::Range<usize>) {
        if range.len() < SHARE_FROM {
            self.scratch.extend_from_slice(&self.original[range]);
        } else {
            self.flush();
            self.pieces.push(self.original.slice(range));
        }
    }

    /// Adds shared bytes that are no part of the original.
    pub fn share(&mut self, bytes: &Bytes) {
        if bytes.len() < SHARE_FROM {
            self.scratch.extend_from_slice(bytes);
        } else {
            self.flush();
            self.pieces.push(bytes.clone());
        }
    }

    fn flush(&mut self) {
        if !self.scratch.is_empty() {
            self.pieces.push(std::mem::take(&mut self.scratch).into());
        }
    }

    /// The collected payload.
    #[must_use]
    pub fn build(mut self) -> Payload {
        self.flush();
        Payload { pieces: self.pieces, next: 0 }
    }
}

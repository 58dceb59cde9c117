//! An answer; its holder reads the body from the connection.

use std::{
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode, response::Parts};
use http_body::Body;
use hyper::body::Incoming;
use tokio::task::yield_now;

use super::{ClientError, coding::Decoder, origin::Origin, pool::Lease, relay::quietly};

/// Number of bytes of a body that are read before others get their turn: timers, and a caller that
/// ends the call, must not wait for a server that sends without an end.
const TURN: usize = 64 * 1024;

/// An answer of a server.
#[derive(Debug)]
pub struct HttpResponse {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body, not yet read.
    pub body: ResponseBody,
}

/// The body of an answer.
///
/// A body that is read to its end gives the connection back for reuse. A body that is dropped
/// before closes the connection: so servers learn that the caller has stopped waiting.
#[derive(Debug)]
pub struct ResponseBody {
    incoming: Incoming,
    /// `None` once the end was reached or the connection broke.
    lease: Option<Lease>,
    origin: Arc<Origin>,
    /// `None` for a body without compression.
    decoder: Option<Box<Decoder>>,
    /// Number of bytes read since the task last yielded.
    in_turn: usize,
    /// A piece that was put back, which comes before all others.
    unread: Option<Bytes>,
}

impl HttpResponse {
    pub(super) fn new(
        response: http::Response<Incoming>,
        lease: Lease,
        origin: Arc<Origin>,
    ) -> Self {
        let (Parts { status, headers, .. }, incoming) = response.into_parts();
        let decoder = Decoder::of(&headers).map(Box::new);
        let (lease, in_turn, unread) = (Some(lease), 0, None);
        let mut body = ResponseBody { incoming, lease, origin, decoder, in_turn, unread };
        if body.incoming.is_end_stream() {
            body.finish();
        }
        Self { status, headers, body }
    }
}

impl ResponseBody {
    /// Returns the next piece in the size in which it arrived; `None` at the end. Cancel safe.
    ///
    /// However fast the server sends, other tasks get their turn every 64 KiB.
    pub async fn chunk(&mut self) -> Option<Result<Bytes, ClientError>> {
        if self.in_turn >= TURN {
            self.in_turn = 0;
            yield_now().await;
        }
        let chunk = poll_fn(|cx| self.poll_chunk(cx)).await;
        if let Some(Ok(chunk)) = &chunk {
            self.in_turn += chunk.len();
        }
        chunk
    }

    /// Polls for the next piece; see [`ResponseBody::chunk`].
    pub fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, ClientError>>> {
        if let Some(piece) = self.unread.take() {
            return Poll::Ready(Some(Ok(piece)));
        }
        let Some(mut decoder) = self.decoder.take() else { return self.poll_raw(cx) };
        let polled = loop {
            match decoder.next() {
                Ok(Some(piece)) => break Poll::Ready(Some(Ok(piece))),
                Ok(None) => {}
                Err(reason) => break Poll::Ready(Some(Err(self.uncodable(reason)))),
            }
            match self.poll_raw(cx) {
                Poll::Ready(Some(Ok(chunk))) => decoder.push(chunk),
                Poll::Ready(None) if !decoder.is_finished() => decoder.finish(),
                Poll::Ready(None) => break Poll::Ready(None),
                Poll::Ready(Some(Err(error))) => break Poll::Ready(Some(Err(error))),
                Poll::Pending => break Poll::Pending,
            }
        };
        self.decoder = Some(decoder);
        polled
    }

    /// Puts back the piece that was read last: the next reader gets it first.
    pub fn unread(&mut self, piece: Bytes) {
        self.unread = Some(piece);
    }

    fn uncodable(&mut self, reason: String) -> ClientError {
        // The rest of the body is not read.
        self.lease = None;
        ClientError::Coding { address: self.origin.address.clone(), reason }
    }

    fn poll_raw(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, ClientError>>> {
        // Pieces that were already read come first: the driver holds one at a time.
        if let Poll::Ready(arrived) = self.poll_arrived() {
            return Poll::Ready(arrived);
        }
        if let Some(lease) = &mut self.lease {
            lease.drive(cx);
        }
        self.poll_arrived()
    }

    /// Returns the body as one piece, without a copy if it arrived as one. An answer longer than
    /// `limit` bytes is refused before it is stored.
    ///
    /// # Errors
    ///
    /// If the answer is too long or breaks off.
    pub async fn collect(mut self, limit: usize) -> Result<Bytes, ClientError> {
        if self.incoming.size_hint().lower() > limit as u64 {
            return Err(self.too_large(limit));
        }
        let Some(first) = self.chunk().await.transpose()? else { return Ok(Bytes::new()) };
        if first.len() > limit {
            return Err(self.too_large(limit));
        }
        let Some(mut next) = self.chunk().await.transpose()? else { return Ok(first) };
        let rest = usize::try_from(self.incoming.size_hint().lower()).unwrap_or(limit);
        let known = first.len() + next.len() + rest;
        let mut all = BytesMut::with_capacity(known.min(limit));
        all.extend_from_slice(&first);
        drop(first);
        loop {
            if all.len() + next.len() > limit {
                return Err(self.too_large(limit));
            }
            all.extend_from_slice(&next);
            match self.chunk().await.transpose()? {
                Some(chunk) => next = chunk,
                None => return Ok(all.freeze()),
            }
        }
    }

    fn too_large(&self, limit: usize) -> ClientError {
        ClientError::TooLarge { address: self.origin.address.clone(), limit }
    }

    /// Reads the pieces that the driver has handed over. It alone can change the outcome, so no
    /// waker is needed.
    fn poll_arrived(&mut self) -> Poll<Option<Result<Bytes, ClientError>>> {
        if self.lease.is_none() {
            return Poll::Ready(None);
        }
        loop {
            let mut cx = Context::from_waker(Waker::noop());
            match quietly(|| Pin::new(&mut self.incoming).poll_frame(&mut cx)) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => {
                    self.finish();
                    return Poll::Ready(None);
                }
                Poll::Ready(Some(Ok(frame))) => {
                    // Other frames are trailers, which MCP does not use.
                    let Ok(data) = frame.into_data() else { continue };
                    if self.incoming.is_end_stream() {
                        self.finish();
                    }
                    return Poll::Ready(Some(Ok(data)));
                }
                Poll::Ready(Some(Err(cause))) => {
                    self.lease = None;
                    let address = self.origin.address.clone();
                    return Poll::Ready(Some(Err(ClientError::BrokenOff { address, cause })));
                }
            }
        }
    }

    fn finish(&mut self) {
        if let Some(lease) = self.lease.take() {
            lease.finish();
        }
    }
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        // The end of a chunked body may have arrived without having been asked for.
        if let Some(lease) = &mut self.lease {
            lease.drive(&mut Context::from_waker(Waker::noop()));
            // At the end this gives the connection back; otherwise it is closed with the lease.
            drop(self.poll_arrived());
        }
    }
}

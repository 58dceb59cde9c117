//! Events that wait to be sent. Short events are joined.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame};
use narthex_wire::{Payload, sse_event, write_sse_event};

/// Events that are ready at the same moment are sent together, up to about this many bytes.
const JOINED_MAX: usize = 64 * 1024;
/// A message that is longer is sent alone, without a copy.
const JOINED_MESSAGE_MAX: usize = 4096;

/// The result of polling a body.
pub(crate) type Polled = Poll<Option<Result<Frame<Bytes>, Infallible>>>;

/// Events that wait to be sent.
#[derive(Debug, Default)]
pub(crate) struct Sending {
    /// Short events, which will be sent together.
    joined: BytesMut,
    /// A long event, to be sent after the short ones.
    long: Payload,
}

impl Sending {
    /// Adds an event. The caller must call this only if no data is [due](Self::due).
    pub(crate) fn push(&mut self, id: Option<&str>, retry_ms: Option<u64>, data: &Payload) {
        match data.len() > JOINED_MESSAGE_MAX {
            true => self.long = sse_event(id, retry_ms, data),
            false => write_sse_event(&mut self.joined, id, retry_ms, data),
        }
    }

    /// The data that must be sent before the caller looks for a further event.
    pub(crate) fn due(&mut self, cx: &mut Context<'_>) -> Option<Polled> {
        if self.joined.len() >= JOINED_MAX || !self.long.is_empty() {
            return self.joined().or_else(|| piece(&mut self.long, cx));
        }
        None
    }

    /// The joined events, to be sent if no further event is ready; `None` if there are none.
    pub(crate) fn joined(&mut self) -> Option<Polled> {
        let joined = self.joined.split().freeze();
        (!joined.is_empty()).then(|| Poll::Ready(Some(Ok(Frame::data(joined)))))
    }
}

/// The next piece of a payload that is being sent.
fn piece(payload: &mut Payload, cx: &mut Context<'_>) -> Option<Polled> {
    match Pin::new(payload).poll_frame(cx) {
        Poll::Ready(None) | Poll::Pending => None,
        polled @ Poll::Ready(Some(_)) => Some(polled),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(polled: Option<Polled>) -> Option<Bytes> {
        match polled? {
            Poll::Ready(Some(Ok(frame))) => frame.into_data().ok(),
            Poll::Ready(_) | Poll::Pending => None,
        }
    }

    #[test]
    fn messages_that_are_ready_together_are_sent_together_in_order() {
        let mut cx = Context::from_waker(std::task::Waker::noop());
        let mut sending = Sending::default();
        let mut all = Vec::new();
        assert_eq!(frame(sending.joined()), None);
        for text in ["a", "b", "c"] {
            sending.push(None, None, &Bytes::from_static(text.as_bytes()).into());
        }
        assert!(sending.due(&mut cx).is_none(), "more may be ready");
        assert_eq!(frame(sending.joined()).unwrap(), "data: a\n\ndata: b\n\ndata: c\n\n");
        sending.push(Some("1"), None, &Bytes::from_static(b"d").into());
        let long = Bytes::from(vec![b'e'; JOINED_MESSAGE_MAX + 1]);
        sending.push(None, None, &long.clone().into());
        assert_eq!(frame(sending.due(&mut cx)).unwrap(), "id: 1\ndata: d\n\n");
        while let Some(piece) = frame(sending.due(&mut cx)) {
            all.extend_from_slice(&piece);
        }
        assert_eq!(all, [&b"data: "[..], &long, b"\n\n"].concat());
        let short = Bytes::from(vec![b'f'; JOINED_MESSAGE_MAX]);
        (0..16).for_each(|_| sending.push(None, None, &short.clone().into()));
        assert!(frame(sending.due(&mut cx)).unwrap().len() > JOINED_MAX);
    }
}

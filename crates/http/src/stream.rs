//! Event streams as HTTP bodies: of a modern call, and of what a legacy stream keeps.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame};
use narthex_gateway::{Answering, OpenCount, Session, Step};
use narthex_wire::{Payload, sse_event};
use tokio::time::{Instant, Sleep, sleep};
use tokio_util::sync::{ReusableBoxFuture, WaitForCancellationFutureOwned};

use crate::{
    detached::{Opened, Start},
    hub::Reader,
};

/// A comment, which readers ignore.
const SIGN_OF_LIFE: Bytes = Bytes::from_static(b":\n\n");

/// Events that are there at the same moment go out together, up to about this many bytes.
const JOINED_MAX: usize = 64 * 1024;
/// Longer events go out alone, as they are.
const JOINED_EVENT_MAX: usize = 4096;

type Polled = Poll<Option<Result<Frame<Bytes>, Infallible>>>;

/// Shows life when nothing else has for a while.
struct Pulse {
    every: Duration,
    next: Pin<Box<Sleep>>,
}

impl Pulse {
    fn new(every: Duration) -> Self {
        Self { every, next: Box::pin(sleep(every)) }
    }

    fn restart(&mut self) {
        self.next.as_mut().reset(Instant::now() + self.every);
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Polled {
        ready!(self.next.as_mut().poll(cx));
        self.restart();
        Poll::Ready(Some(Ok(Frame::data(SIGN_OF_LIFE))))
    }
}

/// Short events that wait for nothing but each other.
#[derive(Default)]
struct Joined {
    first: Bytes,
    /// All of them, if there are several.
    all: BytesMut,
}

impl Joined {
    fn push(&mut self, event: Bytes) {
        if self.first.is_empty() {
            self.first = event;
            return;
        }
        if self.all.is_empty() {
            self.all.reserve(8 * self.first.len().max(event.len()));
            self.all.extend_from_slice(&self.first);
        }
        self.all.extend_from_slice(&event);
    }

    fn is_full(&self) -> bool {
        self.all.len() >= JOINED_MAX
    }

    /// What is to go out now, if there is anything.
    fn take(&mut self) -> Option<Polled> {
        let first = std::mem::take(&mut self.first);
        let frame = match self.all.is_empty() {
            true => first,
            false => self.all.split().freeze(),
        };
        (!frame.is_empty()).then(|| Poll::Ready(Some(Ok(Frame::data(frame)))))
    }
}

/// Events on their way out.
#[derive(Default)]
struct Sending {
    joined: Joined,
    /// A long one, after those.
    long: Payload,
}

impl Sending {
    fn push(&mut self, event: Payload) {
        match event.len() > JOINED_EVENT_MAX {
            true => self.long = event,
            false => self.joined.push(event.into_bytes()),
        }
    }

    /// What must go out before any further event is looked for.
    fn due(&mut self, cx: &mut Context<'_>) -> Option<Polled> {
        if self.joined.is_full() || !self.long.is_empty() {
            return self.joined.take().or_else(|| piece(&mut self.long, cx));
        }
        None
    }
}

/// The next piece of a payload that is being sent.
fn piece(payload: &mut Payload, cx: &mut Context<'_>) -> Option<Polled> {
    match Pin::new(payload).poll_frame(cx) {
        Poll::Ready(None) | Poll::Pending => None,
        polled @ Poll::Ready(Some(_)) => Some(polled),
    }
}

/// The stream of a modern call. Dropping it drops the call, which gives it up.
pub(crate) struct CallStream {
    /// `None` once the answer came.
    next: Option<ReusableBoxFuture<'static, Opened>>,
    sending: Sending,
    pulse: Pulse,
    _open: OpenCount,
}

impl CallStream {
    pub(crate) fn new(start: Start, keep_alive: Duration, open: OpenCount) -> Self {
        let next = match start {
            Start::Opening(opening) => ReusableBoxFuture::new(opening),
            Start::Opened(opened) => ReusableBoxFuture::new(std::future::ready(*opened)),
        };
        let (sending, pulse) = (Sending::default(), Pulse::new(keep_alive));
        Self { next: Some(next), sending, pulse, _open: open }
    }
}

async fn step(mut answering: Answering) -> Opened {
    let step = answering.next().await;
    (answering, step)
}

impl Body for CallStream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Polled {
        loop {
            if let Some(polled) = self.sending.due(cx) {
                return polled;
            }
            let Some(next) = &mut self.next else {
                return self.sending.joined.take().unwrap_or(Poll::Ready(None));
            };
            let Poll::Ready((answering, step_taken)) = next.poll(cx) else {
                return self.sending.joined.take().unwrap_or_else(|| self.pulse.poll(cx));
            };
            match step_taken {
                Some(Step::Message(message)) => {
                    next.set(step(answering));
                    self.sending.push(sse_event(None, None, None, &message));
                }
                // Only legacy streams can be taken up again.
                Some(Step::Break { .. }) => next.set(step(answering)),
                Some(Step::Answer(answer)) => {
                    self.next = None;
                    self.sending.push(sse_event(None, None, None, &answer.payload));
                }
                None => self.next = None,
            }
            self.pulse.restart();
        }
    }
}

/// What ends a stream from outside.
pub(crate) type End = Pin<Box<WaitForCancellationFutureOwned>>;

/// What a legacy stream has to do with its surroundings.
pub(crate) struct Shown {
    /// Whose it is; an open stream keeps it from being idle.
    pub(crate) session: Arc<Session>,
    pub(crate) keep_alive: Duration,
    pub(crate) open: OpenCount,
}

/// A legacy stream as one connection sees it.
pub(crate) struct ReaderStream {
    reader: Reader,
    sending: Sending,
    pulse: Pulse,
    ends: Vec<End>,
    session: Arc<Session>,
    _open: OpenCount,
}

impl ReaderStream {
    pub(crate) fn new(reader: Reader, shown: Shown, ends: Vec<End>) -> Self {
        let Shown { session, keep_alive, open } = shown;
        let (sending, pulse) = (Sending::default(), Pulse::new(keep_alive));
        Self { reader, sending, pulse, ends, session, _open: open }
    }
}

impl Body for ReaderStream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Polled {
        let this = &mut *self;
        let polled = loop {
            if let Some(polled) = this.sending.due(cx) {
                return polled;
            }
            match this.reader.poll_event(cx) {
                Poll::Ready(Some(event)) => {
                    this.pulse.restart();
                    this.sending.push(event);
                }
                polled => break polled.map(drop),
            }
        };
        if let Some(joined) = this.sending.joined.take() {
            return joined;
        }
        match polled {
            Poll::Ready(()) => Poll::Ready(None),
            Poll::Pending if this.ends.iter_mut().any(|end| end.as_mut().poll(cx).is_ready()) => {
                Poll::Ready(None)
            }
            Poll::Pending => {
                let sign = ready!(this.pulse.poll(cx));
                this.session.touch();
                Poll::Ready(sign)
            }
        }
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
    fn what_is_ready_at_once_goes_out_at_once_and_in_order() {
        let mut cx = Context::from_waker(std::task::Waker::noop());
        let mut sending = Sending::default();
        assert_eq!(frame(sending.joined.take()), None);
        for text in ["a", "b", "c"] {
            sending.push(Bytes::from_static(text.as_bytes()).into());
        }
        assert!(sending.due(&mut cx).is_none(), "more may be ready");
        assert_eq!(frame(sending.joined.take()).unwrap(), "abc");
        sending.push(Bytes::from_static(b"d").into());
        let long = Bytes::from(vec![b'e'; JOINED_EVENT_MAX + 1]);
        sending.push(long.clone().into());
        assert_eq!(frame(sending.due(&mut cx)).unwrap(), "d");
        assert_eq!(frame(sending.due(&mut cx)).unwrap(), long);
        assert!(sending.due(&mut cx).is_none());
        let short = Bytes::from(vec![b'f'; JOINED_EVENT_MAX]);
        (0..16).for_each(|_| sending.push(short.clone().into()));
        assert_eq!(frame(sending.due(&mut cx)).unwrap().len(), JOINED_MAX);
    }
}

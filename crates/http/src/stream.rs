//! Event streams as HTTP bodies: of a modern call, and of what a legacy stream keeps.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
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
    sending: Payload,
    pulse: Pulse,
    _open: OpenCount,
}

impl CallStream {
    pub(crate) fn new(start: Start, keep_alive: Duration, open: OpenCount) -> Self {
        let next = match start {
            Start::Opening(opening) => ReusableBoxFuture::new(opening),
            Start::Opened(opened) => ReusableBoxFuture::new(std::future::ready(*opened)),
        };
        let (sending, pulse) = (Payload::default(), Pulse::new(keep_alive));
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
            if let Some(polled) = piece(&mut self.sending, cx) {
                return polled;
            }
            let Some(next) = &mut self.next else { return Poll::Ready(None) };
            let Poll::Ready((answering, step_taken)) = next.poll(cx) else {
                return self.pulse.poll(cx);
            };
            match step_taken {
                Some(Step::Message(message)) => {
                    next.set(step(answering));
                    self.sending = sse_event(None, None, None, &message);
                }
                // Only legacy streams can be taken up again.
                Some(Step::Break { .. }) => next.set(step(answering)),
                Some(Step::Answer(answer)) => {
                    self.next = None;
                    self.sending = sse_event(None, None, None, &answer.payload);
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
    sending: Payload,
    pulse: Pulse,
    ends: Vec<End>,
    session: Arc<Session>,
    _open: OpenCount,
}

impl ReaderStream {
    pub(crate) fn new(reader: Reader, shown: Shown, ends: Vec<End>) -> Self {
        let Shown { session, keep_alive, open } = shown;
        let (sending, pulse) = (Payload::default(), Pulse::new(keep_alive));
        Self { reader, sending, pulse, ends, session, _open: open }
    }
}

impl Body for ReaderStream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Polled {
        let this = &mut *self;
        if let Some(polled) = piece(&mut this.sending, cx) {
            return polled;
        }
        match this.reader.poll_event(cx) {
            Poll::Ready(Some(event)) => {
                this.pulse.restart();
                this.sending = event;
                piece(&mut this.sending, cx).unwrap_or(Poll::Ready(None))
            }
            Poll::Ready(None) => Poll::Ready(None),
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

//! Event streams as HTTP bodies: for a modern call, and for the stored events of a legacy stream.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http_body::{Body, Frame};
use narthex_gateway::metrics::OpenCount;
use narthex_gateway::{Answering, Attended, Session, Step};
use tokio::time::{Instant, Sleep, sleep};
use tokio_util::sync::{ReusableBoxFuture, WaitForCancellationFutureOwned};

use crate::{
    detached::{Opened, Start},
    hub::Reader,
    sending::{Polled, Sending},
};

/// A comment, which readers ignore.
const SIGN_OF_LIFE: Bytes = Bytes::from_static(b":\n\n");

/// Sends a sign of life if the stream has sent nothing else for a while.
pub(crate) struct Pulse {
    every: Duration,
    next: Pin<Box<Sleep>>,
}

impl Pulse {
    pub(crate) fn new(every: Duration) -> Self {
        Self { every, next: Box::pin(sleep(every)) }
    }

    pub(crate) fn restart(&mut self) {
        self.next.as_mut().reset(Instant::now() + self.every);
    }

    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Polled {
        ready!(self.next.as_mut().poll(cx));
        self.restart();
        Poll::Ready(Some(Ok(Frame::data(SIGN_OF_LIFE))))
    }
}

/// The stream of a modern call. Dropping it cancels the call.
pub(crate) struct CallStream {
    /// `None` after the answer.
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
                return self.sending.joined().unwrap_or(Poll::Ready(None));
            };
            let Poll::Ready((answering, step_taken)) = next.poll(cx) else {
                return self.sending.joined().unwrap_or_else(|| self.pulse.poll(cx));
            };
            match step_taken {
                Some(Step::Message(message)) => {
                    next.set(step(answering));
                    self.sending.push(None, None, &message);
                }
                // Only legacy streams can be resumed.
                Some(Step::Break { .. }) => next.set(step(answering)),
                Some(Step::Answer(answer)) => {
                    self.next = None;
                    self.sending.push(None, None, &answer.payload);
                }
                None => self.next = None,
            }
            self.pulse.restart();
        }
    }
}

/// The signal that ends a stream from outside.
pub(crate) type End = Pin<Box<WaitForCancellationFutureOwned>>;

/// The parts that a legacy stream holds while a connection reads it.
pub(crate) struct Shown {
    /// The session of the stream. An open stream keeps the session from becoming idle.
    pub(crate) session: Arc<Session>,
    pub(crate) keep_alive: Duration,
    pub(crate) open: OpenCount,
    /// Counts the client as present while it reads.
    pub(crate) attended: Attended,
}

/// A legacy stream, as one connection reads it.
pub(crate) struct ReaderStream {
    reader: Reader,
    sending: Sending,
    pulse: Pulse,
    ends: Vec<End>,
    session: Arc<Session>,
    _open: OpenCount,
    _attended: Attended,
}

impl ReaderStream {
    pub(crate) fn new(reader: Reader, shown: Shown, ends: Vec<End>) -> Self {
        let Shown { session, keep_alive, open, attended } = shown;
        let (sending, pulse) = (Sending::default(), Pulse::new(keep_alive));
        Self { reader, sending, pulse, ends, session, _open: open, _attended: attended }
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
            match this.reader.poll_event(cx, &mut this.sending) {
                Poll::Ready(Some(())) => this.pulse.restart(),
                polled => break polled.map(drop),
            }
        };
        if let Some(joined) = this.sending.joined() {
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

//! Event streams of the API: changes of servers, events of sessions, and the stages of a test.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http_body::Body;
use narthex_gateway::metrics::OpenCount;
use narthex_wire::Payload;
use serde::Serialize;
use tokio::sync::mpsc;

use crate::{
    sending::{Polled, Sending},
    stream::{End, Pulse},
};

/// Number of events that may wait for a slow reader. When that many wait, their source waits too.
const QUEUE: usize = 8;

/// The sender through which work puts events into a stream.
#[derive(Debug, Clone)]
pub(crate) struct Events(mpsc::Sender<Queued>);

/// An event, with its id if a reader can resume after it.
type Queued = (Option<u64>, Payload);

impl Events {
    /// Adds an event, and waits while the queue is full. It does not report a gone reader: when the
    /// stream is dropped, the work is dropped with it.
    pub(crate) async fn put(&self, event: &impl Serialize) {
        self.queue((None, payload(event))).await;
    }

    /// Adds an event that a reader can resume after, and waits while the queue is full.
    pub(crate) async fn put_as(&self, id: u64, event: &impl Serialize) {
        self.queue((Some(id), payload(event))).await;
    }

    /// Adds an event of HTML, and waits while the queue is full. Line breaks in it become spaces.
    pub(crate) async fn put_html(&self, html: String) {
        self.queue((None, html.into_bytes().into())).await;
    }

    async fn queue(&self, event: Queued) {
        if self.0.send(event).await.is_err() {
            tracing::trace!("the reader of a stream of events has gone");
        }
    }

    /// Adds an event, or drops it if the queue is full. For work whose events always fit into the
    /// queue.
    pub(crate) fn put_now(&self, event: &impl Serialize) {
        if let Err(error) = self.0.try_send((None, payload(event))) {
            tracing::warn!(%error, "an event of a stream was dropped");
        }
    }
}

/// # Panics
/// When the event is no JSON: no member of a shape has a fault, and all names are text.
fn payload(event: &impl Serialize) -> Payload {
    serde_json::to_vec(event).expect("an event of the API is JSON").into()
}

/// An event stream. The work that makes its events runs only while a reader reads, and is dropped
/// with the stream.
pub(crate) struct FeedStream {
    /// `None` when the work is done.
    work: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    queue: mpsc::Receiver<Queued>,
    sending: Sending,
    pulse: Pulse,
    end: End,
    _open: OpenCount,
}

impl FeedStream {
    /// Creates a stream of the events that `work` makes. It ends when the work is done or `end`
    /// fires.
    pub(crate) fn new<F>(
        work: impl FnOnce(Events) -> F,
        end: End,
        keep_alive: Duration,
        open: OpenCount,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (events, queue) = mpsc::channel(QUEUE);
        let work: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(work(Events(events)));
        let (sending, pulse) = (Sending::default(), Pulse::new(keep_alive));
        Self { work: Some(work), queue, sending, pulse, end, _open: open }
    }
}

impl Body for FeedStream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Polled {
        let this = &mut *self;
        loop {
            if let Some(polled) = this.sending.due(cx) {
                return polled;
            }
            // Work that never stops making events must not prevent the stream from ending.
            let is_over = this.end.as_mut().poll(cx).is_ready();
            if let Some(work) = &mut this.work
                && (is_over || work.as_mut().poll(cx).is_ready())
            {
                this.work = None;
            }
            let Poll::Ready(event) = this.queue.poll_recv(cx) else { break };
            match event {
                Some((id, event)) => {
                    let id = id.map(|id| id.to_string());
                    this.sending.push(id.as_deref(), None, &event);
                }
                None => return this.sending.joined().unwrap_or(Poll::Ready(None)),
            }
            this.pulse.restart();
        }
        this.sending.joined().unwrap_or_else(|| this.pulse.poll(cx))
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;
    use serde_json::json;
    use tokio_util::sync::CancellationToken;

    use super::*;

    /// The stream ends although its work never stops making events. Events that are already in the
    /// queue are still delivered.
    #[tokio::test]
    async fn a_flood_of_events_does_not_keep_its_stream_open() {
        let closing = CancellationToken::new();
        let end: End = Box::pin(closing.clone().cancelled_owned());
        let metrics = narthex_gateway::metrics::Metrics::default();
        let flood = async |events: Events| loop {
            events.put(&json!("x".repeat(5000))).await;
        };
        let keep_alive = Duration::from_secs(3600);
        let mut stream = FeedStream::new(flood, end, keep_alive, metrics.stream_opened());
        assert!(stream.frame().await.is_some());
        closing.cancel();
        let mut frames = 0;
        while stream.frame().await.is_some() {
            frames += 1;
            assert!(frames <= 10 * QUEUE, "it goes on and on");
        }
    }

    /// S11: HTML with line ends of each kind is one event, also a long one.
    #[tokio::test]
    async fn s11_html_in_an_event_begins_no_other_event() {
        let metrics = narthex_gateway::metrics::Metrics::default();
        for length in [1, 100_000] {
            let html = format!("{}\r\nevent: x\rdata: y\n\nid: 7\n\n", "a".repeat(length));
            let work = async move |events: Events| events.put_html(html).await;
            let end: End = Box::pin(CancellationToken::new().cancelled_owned());
            let keep_alive = Duration::from_secs(3600);
            let stream = FeedStream::new(work, end, keep_alive, metrics.stream_opened());
            let sent = stream.collect().await.unwrap().to_bytes();
            let sent = std::str::from_utf8(&sent).unwrap();
            assert!(sent.starts_with("data: a") && sent.ends_with("\n\n"), "{length}");
            let ends = sent.bytes().filter(|byte| matches!(byte, b'\n' | b'\r')).count();
            assert_eq!(ends, 2, "{length}");
        }
    }
}

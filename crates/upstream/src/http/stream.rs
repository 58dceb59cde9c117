//! Event streams from a server: the answer to one request, and the server's own stream (legacy).

use std::{sync::Arc, time::Duration};

use narthex_wire::{Message, MessageKind, SseParser};

use super::{CancelOnDrop, HttpLink};
use crate::{Frame, LinkError, LinkEvent, client::ResponseBody};

/// The pause before a broken stream is resumed, unless the server names another.
const RETRY: Duration = Duration::from_secs(1);
/// The longest pause that a server may ask for.
const RETRY_MAX: Duration = Duration::from_secs(60);
/// How often one stream is resumed without anything new before it is given up.
const ATTEMPTS: u32 = 5;

/// The stream that answers one request. Resumes by itself where the server gave event ids.
#[derive(Debug)]
pub(crate) struct HttpStream {
    link: Arc<HttpLink>,
    id: u64,
    events: Events,
    body: Option<ResponseBody>,
    guard: Option<CancelOnDrop>,
    queued: std::collections::VecDeque<Message>,
    resume: Option<u32>,
}

/// The parser and what the stream said about resuming it.
#[derive(Debug)]
struct Events {
    parser: SseParser,
    last_id: Option<String>,
    retry_ms: Option<u64>,
}

impl Events {
    fn new(link: &HttpLink) -> Self {
        Self { parser: SseParser::new(link.limits.message_bytes), last_id: None, retry_ms: None }
    }

    /// The messages of the next event that has any; `None` at the stream's end.
    async fn next(
        &mut self,
        body: &mut ResponseBody,
        link: &HttpLink,
    ) -> Result<Option<Vec<Message>>, LinkError> {
        loop {
            let unusable = |error: narthex_wire::SseError| LinkError::Protocol(error.to_string());
            if let Some(event) = self.parser.next_event().map_err(unusable)? {
                self.last_id = event.id.or(self.last_id.take());
                self.retry_ms = event.retry_ms.or(self.retry_ms);
                let is_message = event.event.as_deref().is_none_or(|name| name == "message");
                if event.data.is_empty() || !is_message {
                    continue;
                }
                let messages = Message::parse_batch(&event.data, &link.limits, 100);
                return messages.map(Some).map_err(|error| LinkError::Protocol(error.to_string()));
            }
            match body.chunk().await {
                Some(chunk) => self.parser.push(chunk?),
                None => return Ok(None),
            }
        }
    }

    fn pause(&self) -> Duration {
        self.retry_ms.map_or(RETRY, Duration::from_millis).min(RETRY_MAX)
    }
}

impl HttpStream {
    pub(super) fn new(
        link: Arc<HttpLink>,
        id: u64,
        body: ResponseBody,
        guard: CancelOnDrop,
    ) -> Self {
        let events = Events::new(&link);
        Self {
            link,
            id,
            events,
            body: Some(body),
            guard: Some(guard),
            queued: std::collections::VecDeque::new(),
            resume: None,
        }
    }

    /// The next frame. Safe to drop and call again.
    pub(crate) async fn next(&mut self) -> Result<Frame, LinkError> {
        loop {
            if let Some(message) = self.queued.pop_front() {
                if let Some(frame) = self.frame(message) {
                    return Ok(frame);
                }
                continue;
            }
            let Some(body) = &mut self.body else {
                self.resume().await?;
                continue;
            };
            match self.events.next(body, &self.link).await {
                Ok(Some(messages)) => {
                    self.resume = None;
                    self.queued.extend(messages);
                }
                Ok(None) => {
                    self.body = None;
                    return self.broken(None);
                }
                Err(error @ LinkError::Client(_)) => {
                    self.body = None;
                    return self.broken(Some(error));
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn frame(&mut self, message: Message) -> Option<Frame> {
        match message.kind() {
            MessageKind::Notification => Some(Frame::Notification(message)),
            MessageKind::Request => Some(Frame::Request(message)),
            MessageKind::Result | MessageKind::Error => {
                let id = message.id().and_then(narthex_wire::Raw::as_u64);
                if id.is_some_and(|id| id != self.id) {
                    tracing::debug!("dropped an answer that belongs to another request");
                    return None;
                }
                if let Some(guard) = self.guard.take() {
                    guard.disarm();
                }
                self.body = None;
                Some(Frame::Answer(message))
            }
        }
    }

    fn broken(&mut self, error: Option<LinkError>) -> Result<Frame, LinkError> {
        let is_first = self.resume.is_none();
        if self.events.last_id.is_none() {
            return Err(error.unwrap_or_else(|| {
                LinkError::Protocol("the stream ended before the answer".to_owned())
            }));
        }
        let attempt = self.resume.map_or(0, |attempt| attempt + 1);
        if attempt >= ATTEMPTS {
            let why = "the stream broke again and again before the answer";
            return Err(error.unwrap_or_else(|| LinkError::Protocol(why.to_owned())));
        }
        self.resume = Some(attempt);
        if is_first {
            return Ok(Frame::Break { retry_ms: self.events.retry_ms });
        }
        // Later breaks of the same stream are our own business.
        Ok(Frame::Break { retry_ms: None })
    }

    async fn resume(&mut self) -> Result<(), LinkError> {
        if self.resume.is_none() {
            return Err(LinkError::Protocol("nothing follows the answer".to_owned()));
        }
        tokio::time::sleep(self.events.pause()).await;
        let body = self.link.open_stream(self.events.last_id.as_deref()).await?;
        self.events.parser = SseParser::new(self.link.limits.message_bytes);
        self.body = Some(body);
        Ok(())
    }
}

/// Reads the server's own stream and opens it again when it breaks, until the link ends.
pub(super) async fn listen(link: Arc<HttpLink>, first: ResponseBody) {
    let mut events = Events::new(&link);
    let mut body = Some(first);
    let mut attempts = 0;
    while !link.closed().is_cancelled() {
        if let Some(open) = &mut body {
            let got = tokio::select! {
                biased;
                () = link.closed().cancelled() => return,
                got = events.next(open, &link) => got,
            };
            if let Ok(Some(messages)) = got {
                attempts = 0;
                messages.into_iter().for_each(|message| deliver(&link, message));
                continue;
            }
            body = None;
        }
        tokio::select! {
            biased;
            () = link.closed().cancelled() => return,
            () = tokio::time::sleep(events.pause() * 2_u32.pow(attempts)) => {}
        }
        match link.open_stream(events.last_id.as_deref()).await {
            Ok(opened) => {
                events.parser = SseParser::new(link.limits.message_bytes);
                body = Some(opened);
            }
            Err(LinkError::SessionEnded) => return,
            Err(error) if attempts >= ATTEMPTS => {
                tracing::info!(%error, "gave up the server's own stream");
                return;
            }
            Err(_) => attempts += 1,
        }
    }
}

fn deliver(link: &Arc<HttpLink>, message: Message) {
    match message.kind() {
        MessageKind::Notification => link.event(LinkEvent::Notification(message)),
        MessageKind::Request if message.method() == "ping" => {
            if let Some(id) = message.id() {
                let pong = bytes::Bytes::from_static(b"{}");
                link.send_later(narthex_wire::rpc::result_response(id, &pong));
            }
        }
        MessageKind::Request => link.event(LinkEvent::Request(message)),
        MessageKind::Result | MessageKind::Error => {
            tracing::debug!("dropped an answer on the server's own stream");
        }
    }
}

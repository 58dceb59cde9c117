//! Event streams from a server: the answer to one request, and the server's own stream (legacy).

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use bytes::Bytes;
use narthex_http_client::ResponseBody;
use narthex_wire::{Message, MessageError, MessageKind, SseParser, method, rpc};
use tokio::{task::JoinHandle, time::Instant};
use tokio_util::sync::DropGuard;

use super::{CancelOnDrop, HttpLink, hidden::SentWith};
use crate::{
    Frame, LinkError, LinkEvent, aside,
    aside::{BATCH_MAX, is_large},
};

/// The pause before narthex resumes a broken stream, unless the server names another pause.
const RETRY: Duration = Duration::from_secs(1);
/// The longest pause that narthex grants a server.
const RETRY_MAX: Duration = Duration::from_secs(60);
/// Longest wait for the first frame of an answer before the call counts as started.
const PEEK: Duration = Duration::from_millis(250);
/// Number of times that narthex resumes one stream without a new message before narthex gives the
/// stream up.
const ATTEMPTS: u32 = 5;
/// Time without a message after which the end of a server's own stream is normal.
const QUIET: Duration = Duration::from_secs(10);

/// The stream that answers one request. After a break, it resumes by itself if the server gave
/// event ids.
#[derive(Debug)]
pub(crate) struct HttpStream {
    link: Arc<HttpLink>,
    id: u64,
    events: Events,
    body: Option<ResponseBody>,
    guard: Option<CancelOnDrop>,
    resume: Option<u32>,
    /// True if failures of this stream prove nothing about the server.
    pub(super) is_blameless: bool,
    /// The first frame, which was read before the caller polled.
    pub(super) first: Option<Frame>,
    /// The request, while its answer is to be searched for a refusal.
    pub(super) unsearched: Option<SentWith>,
    /// True if the first frame was checked for words about the session, or needs no check.
    is_looked_at: bool,
}

/// The parser, and the stream's state for resuming it.
#[derive(Debug)]
struct Events {
    parser: SseParser,
    /// The last event id; empty if the stream cannot be resumed.
    last_id: Vec<u8>,
    retry_ms: Option<u64>,
    /// The rest of a batch (revision 2025-03-26), in reverse order.
    batch: Vec<Message>,
    /// The bytes of an event that is no message.
    unreadable: Bytes,
    /// A large event, which precedes all later events of the stream.
    large: Large,
}

/// A large event that no thread has read yet, or that a thread is reading.
#[derive(Debug, Default)]
enum Large {
    #[default]
    None,
    Waiting(Bytes),
    Reading(Bytes, JoinHandle<Result<Vec<Message>, MessageError>>),
}

impl Events {
    fn new(link: &HttpLink) -> Self {
        let parser = SseParser::new(link.limits.message_bytes);
        let (last_id, batch, unreadable) = (Vec::new(), Vec::new(), Bytes::new());
        Self { parser, last_id, retry_ms: None, batch, unreadable, large: Large::None }
    }

    /// The next message; `None` at the stream's end.
    async fn next(
        &mut self,
        body: &mut ResponseBody,
        link: &HttpLink,
    ) -> Result<Option<Message>, LinkError> {
        loop {
            if let Some(message) = self.buffered(link)? {
                return Ok(Some(message));
            }
            if !matches!(self.large, Large::None) {
                return Box::pin(self.read_large(link)).await.map(Some);
            }
            match body.chunk().await {
                Some(chunk) => self.parser.push(chunk?),
                None => return Ok(None),
            }
        }
    }

    /// The message of a large event, or the first message of its batch; another thread reads the
    /// event. A caller may drop the future and call again.
    async fn read_large(&mut self, link: &HttpLink) -> Result<Message, LinkError> {
        if let Large::Waiting(text) = &self.large {
            let (text, limits) = (text.clone(), link.limits);
            let read = {
                let text = text.clone();
                move || Message::parse_batch_lenient(&text, &limits, BATCH_MAX)
            };
            let reading = link.outlet.aside().begin(read).await;
            self.large = Large::Reading(text, reading);
        }
        let read = match &mut self.large {
            Large::Reading(_, reading) => aside::done(reading).await,
            Large::None | Large::Waiting(_) => Ok(Vec::new()),
        };
        let large = std::mem::take(&mut self.large);
        match (read, large) {
            (Ok(messages), _) => self.first_of(messages),
            (Err(error), Large::Reading(text, _)) => {
                self.unreadable = text;
                Err(unusable(error))
            }
            (Err(error), _) => Err(unusable(error)),
        }
    }

    /// The next message that has already arrived. A large event, and messages after it, do not
    /// count.
    fn buffered(&mut self, link: &HttpLink) -> Result<Option<Message>, LinkError> {
        if let Some(message) = self.batch.pop() {
            return Ok(Some(message));
        }
        if !matches!(self.large, Large::None) {
            return Ok(None);
        }
        let unusable = |error: narthex_wire::SseError| LinkError::Protocol(error.to_string());
        while let Some(event) = self.parser.next_event().map_err(unusable)? {
            if let Some(id) = &event.id {
                self.last_id.clear();
                self.last_id.extend_from_slice(id);
            }
            self.retry_ms = event.retry_ms.or(self.retry_ms);
            let is_message = event.event.as_deref().is_none_or(|name| name == b"message");
            if event.event.as_deref() == Some(b"error") {
                // The event is no message of MCP, but may explain why no message comes.
                self.unreadable = event.data;
                continue;
            }
            if is_message && is_large(&event.data) {
                self.large = Large::Waiting(event.data);
                return Ok(None);
            }
            if is_message && !event.data.is_empty() {
                return self.message(event.data, link).map(Some);
            }
        }
        Ok(None)
    }

    /// The message of one event, or the first of its batch.
    fn message(&mut self, data: Bytes, link: &HttpLink) -> Result<Message, LinkError> {
        match Message::parse_lenient(data.clone(), &link.limits) {
            Err(MessageError::Batch) => {}
            parsed => {
                if parsed.is_err() {
                    self.unreadable = data;
                }
                return parsed.map_err(unusable);
            }
        }
        let messages = Message::parse_batch_lenient(&data, &link.limits, BATCH_MAX);
        self.first_of(messages.map_err(unusable)?)
    }

    /// The first message of a batch; the others follow.
    fn first_of(&mut self, messages: Vec<Message>) -> Result<Message, LinkError> {
        self.batch = messages;
        self.batch.reverse();
        self.batch.pop().ok_or_else(|| LinkError::Protocol("an empty batch".to_owned()))
    }

    fn pause(&self) -> Duration {
        self.retry_ms.map_or(RETRY, Duration::from_millis).min(RETRY_MAX)
    }

    /// The pause after a number of consecutive streams without a message. The pause grows with the
    /// number, even if the server asks for none. Otherwise, narthex would request an absent stream
    /// without an end.
    fn pause_after(&self, fruitless: u32) -> Duration {
        match fruitless {
            0 => self.pause(),
            _ => (self.pause().max(RETRY) * 2_u32.pow(fruitless.min(ATTEMPTS))).min(RETRY_MAX),
        }
    }
}

fn unusable(error: MessageError) -> LinkError {
    LinkError::Protocol(error.to_string())
}

impl HttpStream {
    pub(super) fn new(
        link: Arc<HttpLink>,
        id: u64,
        body: ResponseBody,
        guard: CancelOnDrop,
    ) -> Self {
        let events = Events::new(&link);
        let (body, guard) = (Some(body), Some(guard));
        let is_looked_at = link.session().is_none();
        Self {
            link,
            id,
            events,
            body,
            guard,
            resume: None,
            is_blameless: false,
            first: None,
            unsearched: None,
            is_looked_at,
        }
    }

    pub(super) fn link(&self) -> &Arc<HttpLink> {
        &self.link
    }

    /// Reads the first frame, if it arrives at once: the frame may report that the session is over.
    /// In this case the server refused the request, and the caller can send it in a new session.
    pub(super) async fn peek(&mut self) -> Result<(), LinkError> {
        if let Ok(first) = tokio::time::timeout(PEEK, self.read()).await {
            self.first = Some(self.looked_at(first).await?);
        }
        Ok(())
    }

    /// The answer, if it is the first frame and arrives at once.
    pub(super) async fn peek_answer(&mut self) -> Result<Option<&Message>, LinkError> {
        if self.first.is_none() {
            self.peek().await?;
        }
        match &self.first {
            Some(Frame::Answer(answer)) => Ok(Some(answer)),
            Some(_) | None => Ok(None),
        }
    }

    /// The first frame; an error if the frame reports that the session is over.
    async fn looked_at(&mut self, first: Result<Frame, LinkError>) -> Result<Frame, LinkError> {
        self.is_looked_at = true;
        let said = match &first {
            Ok(Frame::Answer(message)) if message.kind() == MessageKind::Error => message.bytes(),
            Err(LinkError::Protocol(_)) => &self.events.unreadable,
            Ok(_) | Err(_) => return first,
        };
        let said = said.clone();
        match self.link.lost_by(&said).await {
            Some(lost) => Err(lost),
            None => first,
        }
    }

    /// Sends the server a cancellation of the request, and waits until the server has accepted it.
    pub(crate) async fn give_up(mut self) {
        let Some(guard) = self.guard.take() else { return };
        if let Some(cancelled) = guard.cancelled()
            && let Err(error) = self.link.send(cancelled, http::HeaderMap::new()).await
        {
            tracing::debug!(%error, "the cancellation of a request could not be sent");
        }
    }

    /// The next frame, if it has already arrived.
    pub(crate) fn buffered(&mut self) -> Option<Result<Frame, LinkError>> {
        if let Some(first) = self.first.take() {
            return Some(Ok(first));
        }
        self.body.as_ref()?;
        loop {
            match self.events.buffered(&self.link).transpose()? {
                Err(error) => return Some(Err(error)),
                Ok(message) => {
                    self.resume = None;
                    if let Some(frame) = self.frame(message) {
                        return Some(Ok(frame));
                    }
                }
            }
        }
    }

    /// Returns the next frame. Cancel safe except at one moment: while a ping checks a first frame
    /// that reports the end of the session.
    pub(crate) async fn next(&mut self) -> Result<Frame, LinkError> {
        if let Some(first) = self.first.take() {
            return Ok(first);
        }
        let next = self.read().await;
        match self.is_looked_at {
            true => next,
            false => self.looked_at(next).await,
        }
    }

    async fn read(&mut self) -> Result<Frame, LinkError> {
        loop {
            let Some(body) = &mut self.body else {
                self.resume().await?;
                continue;
            };
            match self.events.next(body, &self.link).await {
                Ok(Some(message)) => {
                    self.resume = None;
                    if let Some(frame) = self.frame(message) {
                        return Ok(frame);
                    }
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
            MessageKind::Request if message.method() == "ping" => {
                pong(&self.link, &message);
                None
            }
            MessageKind::Request => Some(Frame::Request(message)),
            MessageKind::Result | MessageKind::Error => {
                let id = message.id().and_then(narthex_wire::Raw::as_u64);
                if id.is_some_and(|id| id != self.id) {
                    tracing::debug!("dropped an answer that belongs to another request");
                    return None;
                }
                self.link.outlet().health().answered();
                if let Some(guard) = self.guard.take() {
                    guard.disarm();
                }
                self.body = None;
                Some(Frame::Answer(message))
            }
        }
    }

    /// Handles the end of the stream before the answer: resumes the stream if possible.
    fn broken(&mut self, error: Option<LinkError>) -> Result<Frame, LinkError> {
        // Modern streams cannot be resumed, whatever ids they carry.
        if self.events.last_id.is_empty() || self.link.is_modern() {
            return Err(error.unwrap_or_else(|| {
                LinkError::Protocol("the stream ended before the answer".to_owned())
            }));
        }
        self.count_attempt(error)?;
        Ok(Frame::Break { retry_ms: self.events.retry_ms })
    }

    fn count_attempt(&mut self, error: Option<LinkError>) -> Result<(), LinkError> {
        let attempt = self.resume.map_or(0, |attempt| attempt + 1);
        if attempt >= ATTEMPTS {
            let why = "the stream failed too often before the answer";
            return Err(error.unwrap_or_else(|| LinkError::Protocol(why.to_owned())));
        }
        self.resume = Some(attempt);
        Ok(())
    }

    /// Opens the stream again after a pause. The server has taken the request, so no failure here
    /// means that the server did not see the request.
    async fn resume(&mut self) -> Result<(), LinkError> {
        if self.resume.is_none() {
            return Err(LinkError::Protocol("nothing follows the answer".to_owned()));
        }
        tokio::time::sleep(self.events.pause()).await;
        match self.link.open_stream(&self.events.last_id).await {
            Ok(body) => {
                self.events.parser = SseParser::new(self.link.limits.message_bytes);
                self.body = Some(body);
                Ok(())
            }
            // The server may be about to start again.
            Err(error @ LinkError::Client(_)) => {
                self.count_attempt(Some(LinkError::BrokenOff(error.into())))
            }
            // The server took the request itself, so the request must not count as refused.
            Err(LinkError::SessionEnded) => {
                Err(LinkError::Closed("the server ended the session before its answer".into()))
            }
            Err(error) => Err(LinkError::BrokenOff(error.into())),
        }
    }
}

/// Reads the server's own stream, and opens it again when it breaks, until the link ends. Drops
/// `opening` after the first attempt to open the stream.
pub(super) async fn listen(link: Arc<HttpLink>, opening: DropGuard) {
    let mut events = Events::new(&link);
    let first = tokio::select! {
        biased;
        () = link.closed().cancelled() => return,
        first = link.open_stream(b"") => first,
    };
    drop(opening);
    let mut body = match first {
        Ok(body) => Some(body),
        Err(error) => {
            let error = link.outlet.redacted(error);
            tracing::debug!(%error, "the server offers no stream of its own");
            return;
        }
    };
    let mut attempts = 0;
    let mut fruitless: u32 = 0;
    let mut since = Instant::now();
    let mut last_id = events.last_id.clone();
    while !link.closed().is_cancelled() {
        if let Some(open) = &mut body {
            let got = tokio::select! {
                biased;
                () = link.closed().cancelled() => return,
                got = events.next(open, &link) => got,
            };
            if let Ok(Some(message)) = got {
                (attempts, fruitless) = (0, 0);
                since = Instant::now();
                deliver(&link, message);
                continue;
            }
            body = None;
            // The end of a stream is normal if the stream was quiet for long, or sent an id from
            // which to resume.
            let is_fruitful = since.elapsed() >= QUIET || events.last_id != last_id;
            fruitless = if is_fruitful { 0 } else { fruitless.saturating_add(1) };
            last_id.clone_from(&events.last_id);
        }
        tokio::select! {
            biased;
            () = link.closed().cancelled() => return,
            () = tokio::time::sleep(events.pause_after(fruitless.max(attempts))) => {}
        }
        let opened = tokio::select! {
            biased;
            () = link.closed().cancelled() => return,
            opened = link.open_stream(&events.last_id) => opened,
        };
        match opened {
            Ok(opened) => {
                events.parser = SseParser::new(link.limits.message_bytes);
                since = Instant::now();
                body = Some(opened);
            }
            Err(LinkError::SessionEnded) => return,
            Err(error) if attempts >= ATTEMPTS => {
                let error = link.outlet.redacted(error);
                tracing::info!(%error, "stopped reading the server's own stream");
                return;
            }
            Err(_) => attempts += 1,
        }
    }
}

fn deliver(link: &Arc<HttpLink>, message: Message) {
    match message.kind() {
        MessageKind::Notification => {
            if message.method() == method::MESSAGE {
                link.logs_aside.store(true, Ordering::Relaxed);
            }
            link.outlet().event(LinkEvent::Notification(message));
        }
        MessageKind::Request if message.method() == "ping" => pong(link, &message),
        MessageKind::Request => {
            let busy = message.id().map(|id| {
                let text = "too many requests of this server are waiting";
                rpc::error_response(Some(id), rpc::code::INTERNAL_ERROR, text, None)
            });
            if !link.outlet().event(LinkEvent::Request(message)) {
                busy.into_iter().for_each(|refusal| link.send_later(refusal));
            }
        }
        MessageKind::Result | MessageKind::Error => {
            tracing::debug!("dropped an answer on the server's own stream");
        }
    }
}

fn pong(link: &Arc<HttpLink>, ping: &Message) {
    if let Some(id) = ping.id() {
        link.send_later(rpc::result_response(id, &Bytes::from_static(b"{}")));
    }
}

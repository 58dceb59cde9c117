//! JSON-RPC batches, which only revision 2025-03-26 allows.

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use narthex_gateway::{Gateway, Session, Step, is_large};
use narthex_wire::{Message, MessageError, MessageKind, Payload, Revision, method};
use tokio::{
    sync::mpsc,
    time::{Instant, timeout_at},
};

use crate::{
    hub::CallChannel,
    legacy::{self, NoSession, caller, deliver},
    post::{Post, accepts, not_acceptable, refuse},
    replay::Event,
    respond::{Response, empty, event_stream, json},
};

/// The maximum number of messages in one batch.
const MOST: usize = 100;
/// Number of steps of a batch's calls that the queue holds.
const QUEUE: usize = 16;

/// Answers a batch with an array. Answers with a stream instead if a call sends a message before
/// its answer, or if not all answers arrive within the quiet time.
pub(crate) async fn receive(post: Post<'_>, bytes: &Bytes) -> Response {
    if !accepts(&post.visit.parts.headers, "text", "event-stream") {
        return post.refused("accept", not_acceptable());
    }
    let session = match legacy::session(post.door, post.visit) {
        Ok(session) => session,
        // Without a session the gateway does not know whether the client's revision allows batches.
        Err(NoSession::Unnamed) => {
            return post.refused("message", refuse(&MessageError::Batch, None));
        }
        Err(refusal) => return post.refused("session", refusal.answer_unasked()),
    };
    if session.revision != Revision::V2025_03_26 {
        return post.refused("message", refuse(&MessageError::Batch, None));
    }
    let gateway = &post.door.gateway;
    let parsed = match is_large(bytes) {
        false => Message::parse_batch(bytes, gateway.limits(), MOST),
        true => gateway.parse_batch_aside(&post.visit.run, bytes.clone(), MOST).await,
    };
    let messages = match parsed {
        Ok(messages) => messages,
        Err(error) => return post.refused("message", refuse(&error, None)),
    };
    if messages.iter().any(|message| message.method() == method::INITIALIZE) {
        let fault = MessageError::Envelope("initialize must not be part of a batch");
        return post.refused("message", refuse(&fault, None));
    }
    let (steps, received) = mpsc::channel(QUEUE);
    let mut calls = 0;
    for message in messages {
        if message.kind() == MessageKind::Request {
            calls += 1;
            start(post, session.clone(), message, steps.clone());
        } else {
            deliver(post, session.clone(), message).await;
        }
    }
    drop(steps);
    if calls == 0 {
        return empty(StatusCode::ACCEPTED);
    }
    answer(post, &session, Answers { received, calls, answers: Vec::with_capacity(calls) }).await
}

/// Runs one call to its end, also after the client has disconnected.
fn start(post: Post<'_>, session: Arc<Session>, request: Message, steps: mpsc::Sender<Step>) {
    let gateway: Gateway = post.door.gateway.clone();
    let caller = caller(post.visit, session);
    post.door.gateway.tasks().spawn(async move {
        let mut answering = gateway.call(&caller, request).await;
        while let Some(step) = answering.next().await {
            let is_last = matches!(step, Step::Answer(_));
            if steps.send(step).await.is_err() {
                tracing::trace!("progress inside a batch is not sent");
            }
            if is_last {
                return;
            }
        }
    });
}

/// The answers of a batch, collected as they arrive.
struct Answers {
    received: mpsc::Receiver<Step>,
    calls: usize,
    answers: Vec<Payload>,
}

async fn answer(post: Post<'_>, session: &Arc<Session>, mut batch: Answers) -> Response {
    let until = Instant::now() + post.door.options.quiet;
    let other = loop {
        match timeout_at(until, batch.received.recv()).await {
            Ok(Some(Step::Answer(answer))) => batch.answers.push(answer.payload),
            Ok(Some(Step::Message(message))) => break Some(message),
            Ok(Some(Step::Break { .. })) => continue,
            Ok(None) => return array(batch.answers),
            Err(_quiet) => break None,
        }
        if batch.answers.len() == batch.calls {
            return array(batch.answers);
        }
    };
    legacy::stream(post.door, session, |call| pump(call, other, batch))
}

async fn pump(call: CallChannel, message: Option<Payload>, mut batch: Answers) {
    for payload in batch.answers.into_iter().chain(message) {
        call.channel().push(Event::Message(payload)).await;
    }
    while let Some(step) = batch.received.recv().await {
        if let Step::Message(payload) | Step::Answer(narthex_gateway::Answer { payload, .. }) = step
        {
            call.channel().push(Event::Message(payload)).await;
        }
    }
}

fn array(answers: Vec<Payload>) -> Response {
    if answers.is_empty() {
        // The client has cancelled every call: no call has an answer, and the stream ends.
        return event_stream(Payload::default());
    }
    let mut out = Vec::with_capacity(2 + answers.iter().map(|one| one.len() + 1).sum::<usize>());
    out.push(b'[');
    for (index, answer) in answers.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        answer.pieces().for_each(|piece| out.extend_from_slice(piece));
    }
    out.push(b']');
    json(StatusCode::OK, out.into())
}

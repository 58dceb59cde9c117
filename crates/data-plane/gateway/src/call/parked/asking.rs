//! Questions of a bridged call to its client, and the answers.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use narthex_audit::Outcome;
use narthex_policy::{Paid, Request, bound_arguments};
use narthex_upstream::{Frame, Link};
use narthex_wire::{
    Answerable, Message, MessageKind, Raw, embedded, json::encode_string, meta_key, method, rpc,
    wanted_urls,
};
use tokio::time::Instant;

use super::{AGAIN, PARKED, ParkedId};
use crate::{
    Answer, Caller, Place, RunView, Step,
    call::answering::ForwardedCall,
    links::bridge::{Bridge, Turn},
    refusal::Refusal,
    seal::state_binding,
    session::TWO_MEANINGS,
    shared::Shared,
    view::check_question,
};

/// Time to wait for further questions that a server asks at the same time.
const GATHER: Duration = Duration::from_millis(20);
/// The most questions of one call that wait at a time.
const QUESTIONS_MAX: usize = 64;

/// The parts of a call that let its server ask its client.
#[derive(Debug)]
pub(crate) struct Asking {
    shared: Arc<Shared>,
    run: Arc<RunView>,
    answerable: Answerable,
    turn: Turn,
    /// The bytes that states are bound to.
    binding: Vec<u8>,
    /// The digest of the call's arguments.
    arguments: [u8; 32],
    pending: Vec<Question>,
    /// Number of questions that the server has asked.
    asked: u64,
    /// The end of the wait for further questions.
    gather: Option<Instant>,
    /// The call's place among those that wait for their client.
    place: Option<Place>,
    /// The id under which the call is parked, once its client has the question.
    parked_as: Option<ParkedId>,
}

/// A question of a server that waits for the client's answer.
#[derive(Debug)]
pub(super) struct Question {
    /// The question's key in `inputRequests`.
    key: String,
    /// The server's own id, as JSON.
    pub(super) id: Bytes,
    pub(super) method: String,
    /// The entry in `inputRequests`, as JSON.
    entry: Vec<u8>,
}

/// A client's answer to a question.
pub(super) struct Answered {
    key: String,
    result: Bytes,
}

impl Asking {
    /// The parts for the questions of a call with this turn. `request` is as its caller sent it.
    pub(crate) fn new(
        shared: &Arc<Shared>,
        caller: &Caller,
        request: &Request,
        answerable: Answerable,
        turn: Turn,
    ) -> Self {
        Self {
            shared: shared.clone(),
            run: caller.run.clone(),
            answerable,
            turn,
            binding: binding(&caller.run, request),
            arguments: bound_arguments(request),
            pending: Vec::new(),
            asked: 0,
            gather: None,
            place: None,
            parked_as: None,
        }
    }

    pub(crate) fn bridge(&self) -> &Bridge {
        self.turn.bridge()
    }

    pub(super) fn link(&self) -> &Arc<Link> {
        self.turn.bridge().link()
    }

    pub(super) fn run(&self) -> &Arc<RunView> {
        &self.run
    }

    /// Returns the server's next message outside of the call's stream. Cancel safe.
    pub(crate) async fn heard(&mut self) -> Frame {
        let message = self.turn.heard().await;
        match message.kind() {
            MessageKind::Request => Frame::Request(message),
            _ => Frame::Notification(message),
        }
    }

    /// The end of the wait for further questions; `None` if there is none.
    pub(crate) fn gathers_until(&self) -> Option<Instant> {
        self.gather
    }

    /// Takes a question for the client, or returns an error code and text for the server.
    pub(crate) fn take(&mut self, question: &Message) -> Result<(), (i64, &'static str)> {
        if let Some(refused) = self.answerable.refuses(question) {
            return Err(refused);
        }
        check_question(question).map_err(|_fault| (rpc::code::INVALID_PARAMS, TWO_MEANINGS))?;
        let too_many = "too many requests to this client are open";
        if self.pending.len() >= QUESTIONS_MAX {
            return Err((rpc::code::INTERNAL_ERROR, too_many));
        }
        if self.place.is_none() {
            let place = self.shared.parked_places.take(&self.run, 1);
            let full = |_full| (rpc::code::INTERNAL_ERROR, "too many calls wait for their clients");
            self.place = Some(place.map_err(full)?);
        }
        let Some(id) = question.id() else { return Ok(()) };
        self.asked += 1;
        self.pending.push(Question {
            key: format!("question-{}", self.asked),
            id: Bytes::copy_from_slice(id.as_bytes()),
            method: question.method().to_owned(),
            entry: embedded(question),
        });
        self.gather = Some(Instant::now() + GATHER);
        Ok(())
    }

    /// Removes a question that its server takes back.
    pub(crate) fn taken_back(&mut self, notice: &Message) {
        let Some(id) = notice.get("requestId").filter(|_| notice.method() == method::CANCELLED)
        else {
            return;
        };
        self.pending.retain(|question| question.id != id.as_bytes());
        if self.pending.is_empty() {
            self.nothing_waits();
        }
    }

    pub(super) fn nothing_waits(&mut self) {
        self.gather = None;
        self.place = None;
    }

    pub(super) fn take_pending(&mut self) -> Vec<Question> {
        std::mem::take(&mut self.pending)
    }

    /// The answers to the questions, read from a retry.
    pub(super) fn answers(&self, retry: &Message) -> Vec<Answered> {
        let given = retry.get("inputResponses");
        let answer = |Question { key, .. }: &Question| {
            // An object, as all are (`check_decided`).
            let answer = given.and_then(|given| given.get(key))?;
            Some(Answered { key: key.clone(), result: Bytes::copy_from_slice(answer.as_bytes()) })
        };
        self.pending.iter().filter_map(answer).collect()
    }

    /// Sends the answers to the server. A refused answer is no failure here: the call's own result
    /// shows it.
    pub(super) async fn answer(&mut self, answers: Vec<Answered>) {
        for Answered { key, result } in answers {
            let Some(at) = self.pending.iter().position(|question| question.key == key) else {
                continue;
            };
            let question = self.pending.remove(at);
            let response = rpc::result_response(Raw::new(&question.id), &result);
            if let Err(error) = self.link().respond(response).await {
                let server = self.link().name();
                tracing::debug!(server.name = server, %error, "an answer could not be delivered");
            }
        }
    }

    /// True if no question waits for the client any more.
    pub(super) fn is_answered(&mut self) -> bool {
        let is_answered = self.pending.is_empty();
        if is_answered {
            self.nothing_waits();
        }
        is_answered
    }

    /// The result with the pending questions, and the id by which the retry finds the call. `None`
    /// if the system gives no random bytes.
    pub(super) fn ask(&mut self, server_info: &[u8]) -> Option<(Bytes, ParkedId)> {
        self.gather = None;
        let mut id = [0; 16];
        getrandom::fill(&mut id).ok()?;
        let state = self.seal(Vec::new(), &[&[PARKED][..], &id].concat())?;
        let entries = self.pending.iter().map(|one| (one.key.as_str(), &one.entry[..]));
        Some((input_required(entries, &state, server_info), id))
    }

    fn seal(&self, grants: Vec<narthex_model::GrantId>, tail: &[u8]) -> Option<String> {
        let paid = Paid { grants, arguments: self.arguments };
        self.shared.sealer.seal(&paid.with_state(Some(tail)), &self.binding)
    }

    pub(super) fn is_parked_as(&mut self, id: ParkedId) {
        self.parked_as = Some(id);
    }
}

/// The bytes that a state of a call to a legacy server is bound to.
pub(super) fn binding(run: &RunView, request: &Request) -> Vec<u8> {
    let method = request.message.method();
    let mut binding = state_binding(run.id, &request.alias, method, request.item.name());
    binding.extend_from_slice(b"\0legacy");
    binding
}

/// A result that asks for input.
fn input_required<'a>(
    entries: impl Iterator<Item = (&'a str, &'a [u8])>,
    state: &str,
    server_info: &[u8],
) -> Bytes {
    let mut out = br#"{"resultType":"input_required","inputRequests":{"#.to_vec();
    for (index, (key, entry)) in entries.enumerate() {
        out.extend_from_slice(if index > 0 { b"," } else { b"" });
        out.extend_from_slice(&encode_string(key));
        out.push(b':');
        out.extend_from_slice(entry);
    }
    out.extend_from_slice(br#"},"requestState":"#);
    out.extend_from_slice(&encode_string(state));
    if !server_info.is_empty() {
        out.extend_from_slice(br#","_meta":{"#);
        out.extend_from_slice(&encode_string(meta_key::SERVER_INFO));
        out.push(b':');
        out.extend_from_slice(server_info);
        out.push(b'}');
    }
    out.push(b'}');
    out.into()
}

impl ForwardedCall {
    /// Asks the client the server's questions so far.
    pub(crate) fn ask_client(&mut self) -> Option<Step> {
        let asking = self.asking.as_mut()?;
        let Some((body, id)) = asking.ask(&self.finish.request.server_info) else {
            let text = "the state could not be sealed";
            return self.finish.refused(Refusal::rpc(rpc::code::INTERNAL_ERROR, text));
        };
        asking.is_parked_as(id);
        let payload = rpc::result_response(Raw::new(&self.finish.request.id), &body);
        Some(Step::Answer(Answer::new(payload, 200)))
    }

    /// Leads the client to the URLs that the server wants visited before it answers (−32042); with
    /// the state, the same call is sent again. `None` for any other answer.
    pub(crate) fn lead_to_urls(&mut self, answer: &Message) -> Option<Step> {
        let asking = self.asking.as_ref().filter(|asking| asking.answerable.takes_urls())?;
        let urls = wanted_urls(answer);
        if urls.is_empty() {
            return None;
        }
        let state = asking.seal(self.payment.grants.clone(), &[AGAIN])?;
        let keys: Vec<_> = (1..=urls.len()).map(|number| format!("url-{number}")).collect();
        let entries = keys.iter().zip(&urls).map(|(key, entry)| (key.as_str(), &entry[..]));
        let body = input_required(entries, &state, &self.finish.request.server_info);
        let payload = rpc::result_response(Raw::new(&self.finish.request.id), &body);
        self.finish.record.answered(Outcome::Ok, &payload);
        Some(Step::Answer(Answer::new(payload, 200)))
    }

    /// Parks the call if its client was asked; otherwise the call ends.
    pub(crate) fn keep_if_asked(mut self: Box<Self>) {
        let Some(asking) = &mut self.asking else { return };
        if let Some(id) = asking.parked_as.take() {
            let shared = asking.shared.clone();
            shared.park(id, self);
        }
    }
}

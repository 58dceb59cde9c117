//! Changes to frames on their way to the caller: ids and tokens back, era back, record.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use narthex_audit::Outcome;
use narthex_model::CallErrorKind;
use narthex_upstream::{InUse, KeptAwake, Link, LinkError};
use narthex_wire::{
    Era, LogLevel, Message, MessageKind, Notification, Payload, Raw, Rewrite, meta_key, method,
    notification::About, rpc, supported_versions, translate,
};
use tokio_util::sync::CancellationToken;

use crate::{
    Answer, Step,
    call::{record::CallRecord, request_facts::RequestFacts},
    lists::exposure::{hide, is_filtered, keep_private, may_be_told},
    refusal::{Refusal, outcome_of_refusal, status_of_code},
    seal::state_binding,
    session::OpenCall,
    view::check_questions,
};

/// The parts of a forwarded call that its answer needs.
#[derive(Debug)]
pub(crate) struct Finish {
    pub(crate) request: RequestFacts,
    pub(crate) link: Held,
    pub(crate) open_call: Option<OpenCall>,
    pub(crate) record: CallRecord,
}

/// The link of a forwarded call.
#[derive(Debug)]
pub(crate) enum Held {
    /// A link of a call: the link makes way for a newer one only after the answer.
    InUse(InUse),
    /// A link of a stream. A stream has no end of its own, so the end of the link does not wait for
    /// the stream: the gateway opens the stream anew elsewhere. An open stream keeps its server
    /// from being idle.
    Awake(KeptAwake),
}

impl Held {
    pub(crate) fn get(&self) -> &Arc<Link> {
        match self {
            Self::InUse(link) => link,
            Self::Awake(link) => link,
        }
    }
}

impl Finish {
    pub(crate) fn link(&self) -> &Arc<Link> {
        self.link.get()
    }

    /// The refusal of a call whose link failed.
    pub(crate) fn failed(&self, error: &LinkError) -> Refusal {
        Refusal::failed(error, self.link().name())
    }

    pub(crate) fn cancelled(&self) -> Option<CancellationToken> {
        match &self.open_call {
            Some(call) => Some(call.cancelled.clone()),
            None => self.request.run_over.clone(),
        }
    }

    pub(crate) fn waits_for_client(&self) -> bool {
        self.open_call.as_ref().is_some_and(OpenCall::is_asking)
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.record.elapsed()
    }

    fn is_cross_era(&self) -> bool {
        self.request.down.era() != self.request.up.era()
    }

    /// The notification for the caller; `None` if the caller may not see it.
    pub(crate) fn notification(&self, message: &Message) -> Option<Payload> {
        let mut rewrite = Rewrite::default();
        let known = Notification::named(message.method());
        match known.map(|known| (known.about, known.era)) {
            Some((About::Progress, _)) => {
                let token = self.request.progress_token.as_deref()?;
                rewrite.body.set(meta_key::PROGRESS_TOKEN, token.to_vec());
            }
            // The notice is about a question of the server, which the client knows by the gateway's
            // id.
            Some((About::Request, _)) => {
                return self.request.session.as_ref()?.ask_cancelled(self.link(), message);
            }
            Some((About::Log, _)) => {
                let level = message.get("level").and_then(LogLevel::read);
                if !self.wants_log(level) {
                    return None;
                }
            }
            Some((About::Task, Some(Era::Legacy))) => {
                return self.request.tasks.as_ref()?.told(message, false);
            }
            _ => {}
        }
        if let Some(tasks) = &self.request.tasks {
            tasks.rename_related(message, &mut rewrite);
        }
        if message.meta_value(meta_key::SUBSCRIPTION_ID).is_some() {
            match self.request.down.era() {
                Era::Modern => {
                    rewrite.meta.set(meta_key::SUBSCRIPTION_ID, self.request.id.to_vec())
                }
                Era::Legacy => rewrite.meta.remove(meta_key::SUBSCRIPTION_ID),
            }
        }
        Some(rewrite.apply(message))
    }

    fn wants_log(&self, level: Option<LogLevel>) -> bool {
        match (self.request.down.era(), self.request.log_level) {
            (Era::Legacy, None) => true,
            // A modern request that names no level must get no log messages.
            (Era::Modern, None) => false,
            (_, Some(wanted)) => level.is_none_or(|level| level >= wanted),
        }
    }

    /// A server's question for the client, or the refusal for the server.
    pub(crate) fn question(&self, question: &Message) -> Result<Payload, Payload> {
        let refused =
            |text| rpc::error_response(question.id(), rpc::code::METHOD_NOT_FOUND, text, None);
        if self.is_cross_era() {
            return Err(refused("a client of another protocol era cannot be asked questions"));
        }
        let session = self.request.session.as_ref().filter(|session| session.can_be_asked());
        let Some(session) = session else {
            return Err(refused("this client did not declare this capability"));
        };
        session
            .ask(self.link(), question, self.open_call.as_ref())
            .map_err(|(code, text)| rpc::error_response(question.id(), code, text, None))
    }

    /// The step with the caller's answer, made from the server's.
    pub(crate) fn answer(&mut self, message: &Message) -> Step {
        let outcome = outcome_of(message);
        let changed = match self.changed(message) {
            Ok(changed) => changed,
            Err(refusal) => return self.step(outcome, refusal),
        };
        let message = changed.as_ref().unwrap_or(message);
        let mut rewrite = self.translated(message);
        let (exposed, frozen) = (self.exposed(), self.request.frozen.as_deref());
        let mut is_filtered =
            is_filtered(&self.request.method, exposed, frozen) || self.is_for_some();
        hide(&self.request.method, message, &mut rewrite, exposed, frozen);
        if let Some((run, row)) = self.request.told_by.as_deref() {
            if message.get("supportedVersions").is_some() {
                rewrite.body.set("supportedVersions", supported_versions().into_bytes());
            }
            let is_told =
                |told: Raw<'_>| told.as_str().is_some_and(|it| may_be_told(run, row, &it));
            if !message.get("instructions").is_none_or(is_told) {
                rewrite.body.remove("instructions");
                is_filtered = true;
            }
        }
        if is_filtered && self.request.down.is_modern() && message.kind() == MessageKind::Result {
            keep_private(message, &mut rewrite);
        }
        if message.kind() == MessageKind::Result {
            if let Err(refusal) = self.seal_state(message, &mut rewrite) {
                return self.step(outcome, refusal);
            }
            if let Some(tasks) = &self.request.tasks {
                tasks.answered(&self.request.method, message, self.link(), &mut rewrite);
            }
        }
        rewrite.id = Some(self.request.id.to_vec().into());
        let code = rewrite.error_code(message);
        let status = code.map_or(200, |code| status_of_code(code, self.request.down.era()));
        let payload = with_id(&rewrite, message, &self.request.id);
        self.record.answered(outcome, &payload);
        Step::Answer(Answer::new(payload, status))
    }

    /// True if only some callers may read this result: a gate or the server's exposure decides. No
    /// shared cache may then serve the result to others (S21).
    fn is_for_some(&self) -> bool {
        let is_gated = self.request.definition.as_ref().is_some_and(|one| !one.gates.is_empty());
        self.request.method == method::RESOURCES_READ
            && (is_gated || !self.exposed().is_everything())
    }

    /// The step with the gateway's own answer, if the server gave none.
    pub(crate) fn refused(&mut self, refusal: Refusal) -> Option<Step> {
        let outcome = outcome_of_refusal(&refusal);
        self.record.checked(&refusal);
        match refusal {
            Refusal::Cancelled if self.has_session_ended() => {
                Some(self.step(outcome, Refusal::session_over()))
            }
            Refusal::Cancelled if self.has_run_ended() => {
                Some(self.step(outcome, Refusal::run_over()))
            }
            Refusal::Cancelled => {
                self.record.finish(outcome);
                None
            }
            refusal => Some(self.step(outcome, refusal)),
        }
    }

    fn has_session_ended(&self) -> bool {
        self.open_call.as_ref().is_some_and(|call| call.session.closed().is_cancelled())
    }

    fn has_run_ended(&self) -> bool {
        self.request.run_over.as_ref().is_some_and(CancellationToken::is_cancelled)
    }

    fn step(&mut self, outcome: Outcome, refusal: Refusal) -> Step {
        let refusal = refusal.settled().shaped(self.request.is_shaped);
        let mut answering = refusal.into_answering(
            Raw::new(&self.request.id),
            &self.request.method,
            (self.request.down.era(), self.request.reader),
        );
        let none = || Answer::new(Payload::default(), 500);
        let answer = answering.take_answer().unwrap_or_else(none);
        self.record.answered(outcome, &answer.payload);
        Step::Answer(answer)
    }

    fn translated(&self, message: &Message) -> Rewrite<'static> {
        match (self.request.up.era(), self.request.down.era()) {
            (Era::Modern, Era::Legacy) => {
                translate::answer_to_legacy(&self.request.method, message)
            }
            (Era::Legacy, Era::Modern) => {
                let rewrite = translate::answer_to_modern(&self.request.method, message, None);
                self.with_server_info(message, rewrite)
            }
            (Era::Modern, Era::Modern) | (Era::Legacy, Era::Legacy) => Rewrite::default(),
        }
    }

    fn with_server_info(
        &self,
        message: &Message,
        mut rewrite: Rewrite<'static>,
    ) -> Rewrite<'static> {
        if message.kind() == MessageKind::Result && !self.request.server_info.is_empty() {
            rewrite.meta.set(meta_key::SERVER_INFO, self.request.server_info.to_vec());
        }
        rewrite
    }

    /// Wraps a modern server's request state, bound to this caller and this request (§1.3).
    fn seal_state(&self, message: &Message, rewrite: &mut Rewrite<'static>) -> Result<(), Refusal> {
        let kind = message.get("resultType").and_then(Raw::as_str);
        let is_interim = kind.is_some_and(|kind| kind == "input_required");
        if is_interim && self.is_cross_era() {
            let text = format!(
                "the server asks for input in its answer to `{}`, but with no question and no \
                 state that a client of an older revision can get",
                self.request.method
            );
            return Err(Refusal::call(CallErrorKind::ServerError, text));
        }
        if is_interim && let Err(fault) = check_questions(message) {
            let text = format!("the server's question to its client is ambiguous: {fault}");
            return Err(Refusal::call(CallErrorKind::ServerError, text));
        }
        let Some(seal) = self.request.state.as_ref().filter(|_| is_interim) else { return Ok(()) };
        let state = message.get("requestState").map(Raw::as_bytes);
        if state.is_some() || !seal.paid.grants.is_empty() {
            let method = self
                .request
                .own_call
                .as_ref()
                .map_or(&*self.request.method, |call| call.tool.method());
            let binding = state_binding(seal.run, &seal.alias, method, self.request.item.name());
            let sealed =
                seal.sealer.seal(&seal.paid.with_state(state), &binding).ok_or_else(|| {
                    Refusal::rpc(rpc::code::INTERNAL_ERROR, "the state could not be sealed")
                })?;
            let sealed = narthex_wire::json::encode_string(&sealed);
            rewrite.body.set("requestState", sealed);
        }
        Ok(())
    }
}

/// Writes an answer under the caller's id, also if the server's answer had no id.
fn with_id(rewrite: &Rewrite<'_>, message: &Message, id: &Bytes) -> Payload {
    let has_id = message.id().is_some_and(|id| id.as_bytes() != b"null");
    if has_id || message.kind() != MessageKind::Error {
        return rewrite.apply(message);
    }
    let code = rewrite.error_code(message).unwrap_or(rpc::code::INTERNAL_ERROR);
    let text = rewrite.body.get("message").map(Raw::new).or_else(|| message.get("message"));
    let text = text.and_then(Raw::as_str).unwrap_or_default();
    let data = message.get("data").map(Raw::as_bytes);
    rpc::error_response(Some(Raw::new(id)), code, &text, data)
}

fn outcome_of(message: &Message) -> Outcome {
    match message.error_code() {
        Some(code) => Outcome::RpcError(code),
        None if message.get("isError").and_then(Raw::as_bool) == Some(true) => Outcome::ToolError,
        None => Outcome::Ok,
    }
}

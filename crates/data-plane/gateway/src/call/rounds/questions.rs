//! Asks a legacy client the questions in a modern server's answer. Each question is a request of
//! its own in the stream of the waiting call; all are asked at once.

use std::{borrow::Cow, collections::VecDeque, sync::Arc};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use narthex_model::{CallError, CallErrorKind};
use narthex_wire::{
    Limits, Message, MessageKind, Payload, Raw, Revision, json::encode_string, method, rpc,
    translate,
};
use serde_json::json;
use tokio::sync::mpsc;

use crate::{
    Session,
    refusal::Refusal,
    session::{ASK_TIMEOUT, ASKS_MAX, OpenCall},
    view::check_question,
};

/// Number of characters of a server's name for a question that an error shows.
const KEY_SHOWN: usize = 100;
/// The answer for a user whose client could not ask: the protocol's word for a closed question.
const NO_CHOICE: &[u8] = br#"{"action":"cancel"}"#;

/// The next step that an answer asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// The same call again, with the answer's state.
    Again,
    /// The same call with the state, and with answers to at least one question.
    Answers,
}

/// Reads the next step that an answer asks for; `None` if the answer ends the call.
pub(crate) fn wanted(answer: &Message) -> Option<Wanted> {
    let is_interim = answer.kind() == MessageKind::Result
        && answer.get("resultType").is_some_and(|kind| kind.as_bytes() == br#""input_required""#);
    if !is_interim {
        return None;
    }
    match answer.get("inputRequests") {
        Some(all) if !all.entries().is_empty() => Some(Wanted::Answers),
        _ => state_of(answer).map(|_| Wanted::Again),
    }
}

/// The state in an answer, as JSON; `None` if the answer has no valid state.
pub(crate) fn state_of(answer: &Message) -> Option<&[u8]> {
    let state = answer.get("requestState")?;
    state.as_str().is_some().then(|| state.as_bytes())
}

/// The kinds of questions to clients inside an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ability {
    Sampling,
    Elicitation,
    Roots,
}

impl Ability {
    fn of(method: &str) -> Option<Self> {
        match method {
            method::SAMPLING_CREATE_MESSAGE => Some(Self::Sampling),
            method::ELICITATION_CREATE => Some(Self::Elicitation),
            method::ROOTS_LIST => Some(Self::Roots),
            _ => None,
        }
    }

    fn method(self) -> &'static str {
        match self {
            Self::Sampling => method::SAMPLING_CREATE_MESSAGE,
            Self::Elicitation => method::ELICITATION_CREATE,
            Self::Roots => method::ROOTS_LIST,
        }
    }
}

/// One question of a server.
struct Question<'a> {
    key: Cow<'a, str>,
    ability: Ability,
    params: Option<Raw<'a>>,
}

impl<'a> Question<'a> {
    fn read(server: &str, key: Cow<'a, str>, body: Raw<'a>) -> Result<Self, Refusal> {
        let asked = body.get("method").and_then(Raw::as_str);
        let Some(ability) = asked.as_deref().and_then(Ability::of) else {
            let text = format!(
                "server `{server}` asks `{}` with a method that clients do not answer: `{}`",
                shown(&key),
                shown(&asked.unwrap_or_default())
            );
            return Err(Refusal::call(CallErrorKind::ServerError, text));
        };
        Ok(Self { key, ability, params: body.get("params") })
    }

    /// The capability that the question needs, if the client has not declared it.
    fn undeclared(&self, declared: Raw<'_>) -> Option<Cow<'static, str>> {
        let param = |name| self.params.and_then(|params| params.get(name));
        match self.ability {
            Ability::Roots => declared.get("roots").is_none().then_some("roots".into()),
            Ability::Sampling => {
                let Some(own) = declared.get("sampling") else { return Some("sampling".into()) };
                let has_tools = param("tools").is_some() || param("toolChoice").is_some();
                (has_tools && own.get("tools").is_none()).then_some("sampling.tools".into())
            }
            Ability::Elicitation => {
                let Some(own) = declared.get("elicitation") else {
                    return Some("elicitation".into());
                };
                let mode = param("mode").and_then(Raw::as_str).unwrap_or("form".into());
                // A client that names no mode can show forms.
                let is_form = mode == "form" && own.get("url").is_none();
                (!is_form && own.get(&mode).is_none())
                    .then(|| format!("elicitation.{}", shown(&mode)).into())
            }
        }
    }

    /// The request for the client, under this id.
    fn request(
        &self,
        server: &str,
        id: u64,
        (revision, limits): (Revision, &Limits),
    ) -> Result<Payload, Refusal> {
        let refused = |why: String| {
            let text = format!(
                "server `{server}` asks `{}` with a faulty request: {why}",
                shown(&self.key)
            );
            Refusal::call(CallErrorKind::ServerError, text)
        };
        let (id, params) = (id.to_string(), self.params.map(Raw::as_bytes));
        let request = rpc::request(Raw::new(id.as_bytes()), self.ability.method(), params);
        let request = Message::parse(request.into_bytes(), limits)
            .map_err(|error| refused(error.to_string()))?;
        check_question(&request).map_err(|fault| refused(fault.to_string()))?;
        let mut rewrite = translate::question_to_legacy(&request, revision);
        let is_url = request.get("mode").is_some_and(|mode| mode.as_bytes() == br#""url""#);
        if is_url && request.get("elicitationId").is_none() {
            let mut random = [0; 16];
            getrandom::fill(&mut random).map_err(|error| refused(error.to_string()))?;
            let page = encode_string(&URL_SAFE_NO_PAD.encode(random));
            rewrite.body.set("elicitationId", page);
        }
        Ok(rewrite.apply(&request))
    }
}

/// A question that the client was asked.
#[derive(Debug)]
struct Asked {
    /// The server's key for the question.
    key: Box<str>,
    ability: Ability,
    /// The id of the request to the client.
    id: u64,
    /// The answer for the server, as JSON.
    answer: Option<Vec<u8>>,
}

/// The questions of one answer, while their client answers them. Dropping this value withdraws open
/// questions: the client is notified on its session's own stream.
#[derive(Debug)]
pub(crate) struct Asking {
    session: Arc<Session>,
    server: Box<str>,
    /// The questions, in the server's order.
    questions: Vec<Asked>,
    /// The client's answers, each with the position of its question.
    received: mpsc::Receiver<(usize, Message)>,
    state: Option<Vec<u8>>,
}

/// The members of a further round for the server, each as JSON.
#[derive(Debug, Default)]
pub(crate) struct Given {
    pub(crate) state: Option<Vec<u8>>,
    pub(crate) answers: Option<Vec<u8>>,
}

impl Asking {
    /// Asks all questions of a server's answer for one call; returns the requests for the client.
    ///
    /// # Errors
    /// When a question is malformed, needs an undeclared capability, or too many questions wait for
    /// this client. Then no question is asked.
    pub(crate) fn begin(
        call: &OpenCall,
        server: &str,
        answer: &Message,
        limits: &Limits,
    ) -> Result<(Self, VecDeque<Payload>), Refusal> {
        let session = &call.session;
        let questions = read_all(server, answer)?;
        let declared = Raw::new(&session.declared);
        for question in &questions {
            if let Some(missing) = question.undeclared(declared) {
                return Err(undeclared(server, question, &missing));
            }
        }
        let ids: Vec<u64> = questions.iter().map(|_| session.next_ask()).collect();
        let form = (session.revision, limits);
        let requests = questions.iter().zip(&ids);
        let requests: Result<_, _> =
            requests.map(|(question, id)| question.request(server, *id, form)).collect();
        let requests = requests?;
        let (answers, received) = mpsc::channel(ids.len());
        if !session.ask_for(call, &ids, &answers) {
            let text = format!(
                "the client has too many open questions for the {} of server `{server}`; \
                 answer those first",
                ids.len()
            );
            return Err(Refusal::call(CallErrorKind::LimitExceeded, text));
        }
        let questions = questions.into_iter().zip(ids).map(|(question, id)| Asked {
            key: question.key.into(),
            ability: question.ability,
            id,
            answer: None,
        });
        let state = state_of(answer).map(<[u8]>::to_vec);
        let (session, server) = (session.clone(), server.into());
        let questions = questions.collect();
        Ok((Self { session, server, questions, received, state }, requests))
    }

    /// Waits until the client has answered all questions. Cancel safe.
    ///
    /// # Errors
    /// When the client refuses a question that has no answer for a refusal, or does not answer in
    /// time.
    pub(crate) async fn answered(&mut self) -> Result<(), Refusal> {
        while self.questions.iter().any(|question| question.answer.is_none()) {
            let Some((place, response)) = self.received.recv().await else {
                return Err(self.late());
            };
            let Some(question) = self.questions.get_mut(place) else { continue };
            question.answer = Some(question.read(&self.server, &response)?);
        }
        Ok(())
    }

    /// The members for the server, once all questions are answered.
    pub(crate) fn given(mut self) -> Given {
        let mut answers = b"{".to_vec();
        for question in &mut self.questions {
            if answers.len() > 1 {
                answers.push(b',');
            }
            answers.extend_from_slice(&encode_string(&question.key));
            answers.push(b':');
            answers.extend_from_slice(&question.answer.take().unwrap_or_default());
        }
        answers.push(b'}');
        // No question is open any more.
        self.questions.clear();
        Given { state: self.state.take(), answers: Some(answers) }
    }

    /// Takes back the open questions; returns the notifications for the client.
    pub(crate) fn withdraw(mut self) -> VecDeque<Payload> {
        self.take_back()
    }

    /// The refusal of a call whose client does not answer.
    pub(crate) fn late(&self) -> Refusal {
        let keys: Vec<_> = self.questions.iter().filter(|one| one.answer.is_none()).collect();
        let keys: Vec<_> =
            keys.iter().take(3).map(|one| format!("`{}`", shown(&one.key))).collect();
        let text = format!(
            "the client did not answer {} of server `{}` within {} s",
            keys.join(", "),
            self.server,
            ASK_TIMEOUT.as_secs()
        );
        Refusal::call(CallErrorKind::Timeout, text)
    }

    fn take_back(&mut self) -> VecDeque<Payload> {
        let questions = std::mem::take(&mut self.questions);
        let open = questions.iter().filter(|one| one.answer.is_none()).map(|one| one.id);
        let open = self.session.take_back(open);
        open.into_iter().map(cancelled).collect()
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        for payload in self.take_back() {
            self.session.deliver(payload);
        }
    }
}

impl Asked {
    /// The answer for the server, read from the client's response.
    fn read(&self, server: &str, response: &Message) -> Result<Vec<u8>, Refusal> {
        let body = response.body_raw().filter(|body| body.is_object());
        let why = match (response.kind(), body) {
            (MessageKind::Result, Some(result)) => return Ok(result.as_bytes().to_vec()),
            (MessageKind::Error, _) if self.ability == Ability::Elicitation => {
                tracing::debug!(
                    server.name = server,
                    code = response.error_code(),
                    "a client could not ask its user"
                );
                return Ok(NO_CHOICE.to_vec());
            }
            (MessageKind::Error, _) => {
                let words = response.get("message").and_then(Raw::as_str).unwrap_or_default();
                format!("refused the question: {words}")
            }
            _ => "answered with a value that is not an object".to_owned(),
        };
        let method = self.ability.method();
        let text = format!(
            "the client of server `{server}`, asked `{}` ({method}), {why}",
            shown(&self.key)
        );
        let mut details = json!({ "question": shown(&self.key), "method": method });
        if let Some(code) = response.error_code() {
            details["code"] = code.into();
        }
        let details = Some(details);
        let kind = CallErrorKind::ServerError;
        Err(CallError { kind, message: text, details }.into())
    }
}

/// The questions of an answer, in its order.
fn read_all<'a>(server: &str, answer: &'a Message) -> Result<Vec<Question<'a>>, Refusal> {
    let all = answer.get("inputRequests").map(Raw::entries).unwrap_or_default();
    if all.len() > ASKS_MAX {
        let text = format!(
            "server `{server}` asks {} questions; at most {ASKS_MAX} can be open",
            all.len()
        );
        return Err(Refusal::call(CallErrorKind::LimitExceeded, text));
    }
    let mut questions: Vec<Question<'a>> = Vec::with_capacity(all.len());
    for (key, body) in all {
        if questions.iter().any(|earlier| earlier.key == key) {
            let text = format!("server `{server}` asks `{}` twice in one answer", shown(&key));
            return Err(Refusal::call(CallErrorKind::ServerError, text));
        }
        questions.push(Question::read(server, key, body)?);
    }
    Ok(questions)
}

fn undeclared(server: &str, question: &Question<'_>, missing: &str) -> Refusal {
    let method = question.ability.method();
    let message = format!(
        "server `{server}` asks `{}` ({method}), for which the client has not declared \
         `{missing}`",
        shown(&question.key)
    );
    let details = json!({
        "question": shown(&question.key), "method": method, "capability": missing,
    });
    let details = Some(details);
    CallError { kind: CallErrorKind::ServerError, message, details }.into()
}

/// The notification to a client that a question is taken back.
fn cancelled(id: u64) -> Payload {
    let params = format!(r#"{{"requestId":{id},"reason":"the call that asked has ended"}}"#);
    rpc::notification(method::CANCELLED, Some(params.as_bytes()))
}

/// The beginning of a server's text, for an error.
fn shown(word: &str) -> String {
    word.chars().take(KEY_SHOWN).collect()
}

#[cfg(test)]
mod tests;

//! The state of a client's session, for opening it again at another daemon.

use std::collections::{BTreeMap, HashSet};

use bytes::Bytes;
use narthex_model::ErrorKind;
use narthex_wire::{Limits, Message, MessageKind, Notification, Raw, method, rpc};

/// The id of requests that this program sends itself. Clients number their requests.
const OWN_ID: &[u8] = br#""narthex-connect-again""#;
/// More messages than any batch has.
const BATCH_MOST: usize = 10_000;
/// The error for a client's request that is lost.
const LOST: &str = "the daemon ended before it answered this request, which may have taken effect; \
                    check for its effects before you send it again";

/// A client's session, as its messages have set it so far.
#[derive(Debug)]
pub(super) struct Session {
    limits: Limits,
    /// Ids of the client's unanswered requests.
    open: HashSet<Bytes>,
    /// Ids of the client's streams of subscriptions, which are answered only at their end.
    streams: HashSet<Bytes>,
    /// Ids of the daemon's unanswered requests on the present connection.
    asked: HashSet<Bytes>,
    hello: Option<Message>,
    /// The answer to the client's first `initialize`.
    opened: Option<Message>,
    initialized: Option<Bytes>,
    level: Option<Message>,
    subscribed: BTreeMap<String, Message>,
}

impl Session {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            open: HashSet::new(),
            streams: HashSet::new(),
            asked: HashSet::new(),
            hello: None,
            opened: None,
            initialized: None,
            level: None,
            subscribed: BTreeMap::new(),
        }
    }

    pub(super) fn limits(&self) -> Limits {
        self.limits
    }

    /// Notes a line of the client; `false` if the daemon must not get it: an answer to a question
    /// of another connection.
    pub(super) fn note_client(&mut self, line: &Bytes) -> bool {
        // The daemon reports unreadable lines.
        let Ok(messages) = Message::parse_batch(line, &self.limits, BATCH_MOST) else {
            return true;
        };
        let mut is_meant = false;
        for message in messages {
            is_meant |= match message.kind() {
                MessageKind::Result | MessageKind::Error => {
                    id(&message).is_none_or(|id| self.asked.remove(&id))
                }
                MessageKind::Notification => {
                    self.note_notification(&message, line);
                    true
                }
                MessageKind::Request => {
                    let is_stream = message.method() == "subscriptions/listen";
                    let of = if is_stream { &mut self.streams } else { &mut self.open };
                    of.extend(id(&message));
                    self.note_request(message);
                    true
                }
            };
        }
        is_meant
    }

    fn note_request(&mut self, message: Message) {
        let uri = || Some(message.get("uri")?.as_str()?.into_owned());
        match message.method() {
            method::INITIALIZE => (self.hello, self.opened) = (Some(message), None),
            method::LOGGING_SET_LEVEL => self.level = Some(message),
            method::RESOURCES_SUBSCRIBE => {
                if let Some(uri) = uri() {
                    self.subscribed.insert(uri, message);
                }
            }
            method::RESOURCES_UNSUBSCRIBE => {
                if let Some(uri) = uri() {
                    self.subscribed.remove(&uri);
                }
            }
            _ => {}
        }
    }

    fn note_notification(&mut self, message: &Message, line: &Bytes) {
        match message.method() {
            method::INITIALIZED => self.initialized = Some(line.clone()),
            // A cancelled request need not be answered.
            method::CANCELLED => {
                if let Some(id) = message.get("requestId") {
                    self.open.remove(id.as_bytes());
                    self.streams.remove(id.as_bytes());
                }
            }
            _ => {}
        }
    }

    /// Notes a line of the daemon; `false` if the client must not get it: an answer to a request
    /// that it did not send.
    pub(super) fn note_daemon(&mut self, line: &Bytes) -> bool {
        let Ok(messages) = Message::parse_batch(line, &self.limits, BATCH_MOST) else {
            return true;
        };
        let mut is_meant = true;
        for message in messages {
            match message.kind() {
                MessageKind::Request => self.asked.extend(id(&message)),
                MessageKind::Notification => {}
                MessageKind::Result | MessageKind::Error => is_meant = self.note_answer(message),
            }
        }
        is_meant
    }

    /// Notes an answer of the daemon; `false` if it answers a request of this program itself.
    fn note_answer(&mut self, message: Message) -> bool {
        let Some(id) = id(&message) else { return true };
        self.open.remove(&id);
        self.streams.remove(&id);
        let hello = self.hello.as_ref().and_then(Message::id);
        let is_hello = hello.is_some_and(|hello| hello.as_bytes() == id);
        let is_own = id == OWN_ID;
        if is_hello && self.opened.is_none() && message.kind() == MessageKind::Result {
            self.opened = Some(message);
        }
        !is_own
    }

    /// True if every request of the client was answered, except streams of subscriptions.
    pub(super) fn is_answered(&self) -> bool {
        self.open.is_empty()
    }

    /// The connection is gone: the errors of all that was asked on it.
    pub(super) fn lost(&mut self) -> Vec<Bytes> {
        self.asked.clear();
        let code = rpc::code_for(ErrorKind::Unavailable);
        let error = |id: Bytes| rpc::error_response(Some(Raw::new(&id)), code, LOST, None);
        let all = self.open.drain().chain(self.streams.drain());
        all.map(|id| error(id).into_bytes()).collect()
    }

    /// The request that opens the client's session again; `None` if it has none: in the modern era
    /// each request is complete, and a client without an answer asks again.
    pub(super) fn hello(&self) -> Option<Bytes> {
        self.opened.as_ref()?;
        Some(again(self.hello.as_ref()?))
    }

    /// True if a line opens the session as it was before; `None` for any other line.
    pub(super) fn is_opened_by(&mut self, line: &Bytes) -> Option<bool> {
        let message = Message::parse(line.clone(), &self.limits).ok()?;
        if message.id()?.as_bytes() != OWN_ID || message.kind() == MessageKind::Request {
            return None;
        }
        let version = |message: &Message| {
            let version = message.get("protocolVersion").and_then(|text| text.as_str());
            version.map(std::borrow::Cow::into_owned)
        };
        let is_same = message.kind() == MessageKind::Result
            && self.opened.as_ref().is_some_and(|opened| version(opened) == version(&message));
        self.opened = Some(message);
        Some(is_same)
    }

    /// The lines that set the state of the client's session, to be sent again.
    pub(super) fn state(&self) -> Vec<Bytes> {
        let requests = self.level.iter().chain(self.subscribed.values()).map(again);
        self.initialized.iter().cloned().chain(requests).collect()
    }

    /// The notifications that lists may have changed, as far as the client was promised them.
    pub(super) fn news(&self) -> Vec<Bytes> {
        let capabilities = self.opened.as_ref().and_then(|opened| opened.get("capabilities"));
        let is_promised = |known: &&Notification| {
            let list = known.lists().first().map_or("", |list| list.member());
            let list = capabilities.and_then(|all| all.get(list)?.get("listChanged")?.as_bool());
            self.initialized.is_some() && list == Some(true)
        };
        let promised = Notification::of_lists().filter(is_promised);
        promised.map(|known| rpc::notification(known.name, None).into_bytes()).collect()
    }
}

/// The same request with the id of this program's own requests.
fn again(request: &Message) -> Bytes {
    let params = request.body_raw().map(Raw::as_bytes);
    rpc::request(Raw::new(OWN_ID), request.method(), params).into_bytes()
}

fn id(message: &Message) -> Option<Bytes> {
    message.id().map(|id| Bytes::copy_from_slice(id.as_bytes()))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn line(value: &Value) -> Bytes {
        value.to_string().into()
    }

    fn request(id: u32, method: &str, params: Value) -> Bytes {
        line(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
    }

    fn result(id: &Value, result: Value) -> Bytes {
        line(&json!({ "jsonrpc": "2.0", "id": id, "result": result }))
    }

    fn values(lines: Vec<Bytes>) -> Vec<Value> {
        lines.iter().map(|line| serde_json::from_slice(line).unwrap()).collect()
    }

    fn opened() -> Session {
        let mut session = Session::new(Limits::default());
        let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {} });
        assert!(session.note_client(&request(0, "initialize", hello)));
        let told = json!({ "protocolVersion": "2025-11-25", "capabilities":
            { "tools": { "listChanged": true }, "prompts": { "listChanged": false } } });
        assert!(session.note_daemon(&result(&json!(0), told)));
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert!(session.note_client(&line(&initialized)));
        session
    }

    #[test]
    fn each_unanswered_request_gets_one_error_when_the_connection_is_lost() {
        let mut session = opened();
        for id in 1..=4 {
            session.note_client(&request(id, "tools/call", json!({ "name": "x" })));
        }
        session.note_daemon(&result(&json!(1), json!({})));
        let cancelled = json!({ "requestId": 2 });
        let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": cancelled });
        session.note_client(&line(&cancelled));
        session.note_client(&request(5, "subscriptions/listen", json!({})));
        let batch = json!([{ "jsonrpc": "2.0", "id": "b", "method": "ping" }]);
        session.note_client(&line(&batch));
        assert!(!session.is_answered());
        let lost = values(session.lost());
        let mut ids: Vec<_> = lost.iter().map(|error| error["id"].to_string()).collect();
        ids.sort();
        assert_eq!(ids, ["\"b\"", "3", "4", "5"]);
        assert!(lost.iter().all(|error| error["error"]["code"] == -31503), "{lost:?}");
        assert!(session.is_answered() && session.lost().is_empty());
    }

    #[test]
    fn a_reopened_session_restores_the_log_level_and_subscriptions() {
        let mut session = opened();
        session.note_client(&request(1, "logging/setLevel", json!({ "level": "info" })));
        session.note_client(&request(2, "logging/setLevel", json!({ "level": "error" })));
        for uri in ["a://a", "a://b"] {
            session.note_client(&request(3, "resources/subscribe", json!({ "uri": uri })));
        }
        session.note_client(&request(4, "resources/unsubscribe", json!({ "uri": "a://a" })));
        let hello: Value = serde_json::from_slice(&session.hello().unwrap()).unwrap();
        assert_eq!(hello["method"], "initialize");
        assert_eq!(hello["params"]["protocolVersion"], "2025-11-25");
        let told = json!({ "protocolVersion": "2025-11-25", "capabilities":
            { "tools": { "listChanged": true } } });
        assert_eq!(session.is_opened_by(&result(&json!(7), json!({}))), None);
        assert_eq!(session.is_opened_by(&result(&hello["id"], told)), Some(true));
        let said = values(session.state());
        let methods: Vec<_> = said.iter().map(|one| one["method"].as_str().unwrap()).collect();
        assert_eq!(
            methods,
            ["notifications/initialized", "logging/setLevel", "resources/subscribe"]
        );
        assert_eq!(
            (&said[1]["params"]["level"], &said[2]["params"]["uri"]),
            (&json!("error"), &json!("a://b"))
        );
        // The client did not ask that, and does not get the answer.
        assert!(!session.note_daemon(&result(&said[1]["id"], json!({}))));
        let news = values(session.news());
        assert_eq!(news.len(), 1);
        assert_eq!(news[0]["method"], "notifications/tools/list_changed");
    }

    #[test]
    fn a_session_is_not_restored_under_another_revision_or_after_an_error() {
        let mut session = opened();
        let id = json!("narthex-connect-again");
        let other = json!({ "protocolVersion": "2024-11-05", "capabilities": {} });
        assert_eq!(session.is_opened_by(&result(&id, other)), Some(false));
        let error = json!({ "jsonrpc": "2.0", "id": id, "error": { "code": 1, "message": "no" } });
        assert_eq!(session.is_opened_by(&line(&error)), Some(false));
    }

    /// A daemon numbers its questions from the start: an old answer would be taken for another's.
    #[test]
    fn answers_to_questions_of_a_lost_connection_are_dropped() {
        let mut session = opened();
        session.note_daemon(&request(1, "roots/list", json!({})));
        session.note_daemon(&request(2, "roots/list", json!({})));
        assert!(session.note_client(&result(&json!(1), json!({ "roots": [] }))));
        session.lost();
        assert!(!session.note_client(&result(&json!(2), json!({ "roots": [] }))));
    }

    #[test]
    fn a_client_without_an_answered_initialize_has_no_session_to_reopen() {
        let mut session = Session::new(Limits::default());
        session.note_client(&request(1, "tools/list", json!({ "_meta": {} })));
        assert!(session.hello().is_none() && session.state().is_empty());
        assert!(session.news().is_empty());
        session.note_client(&request(2, "initialize", json!({})));
        assert!(session.hello().is_none(), "it was not answered");
    }
}

//! The servers of a simulation: all over HTTP are one peer, which distinguishes them by their
//! paths.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use narthex_model::{CallError, CallErrorKind, ConfigFault, ServerDefinition};
use narthex_registry::config::Entry;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::model::Config;
use crate::{
    peer::{Peer, Reply, Seen, event, events, result, text},
    unruly::Mark,
    world::{http, initialize_result, with_env},
};

#[derive(Default)]
struct State {
    /// Each session that is open.
    sessions: HashMap<String, Session>,
    opened: u64,
    /// Calls that wait until the test lets them continue.
    held: Vec<(Value, mpsc::Sender<String>)>,
}

struct Session {
    path: String,
    /// True if the session's client has named the session since its opening. A client that gives up
    /// during the opening cannot know that it would have to end the session.
    is_known: bool,
}

pub(super) struct Servers {
    peer: Peer,
    state: Arc<Mutex<State>>,
    pub(super) mark: Mark,
}

impl Servers {
    pub(super) async fn start() -> Self {
        let state = Arc::<Mutex<State>>::default();
        let answering = state.clone();
        let peer = Peer::start(move |seen| answer(&answering, seen)).await;
        Self { peer, state, mark: Mark::new() }
    }

    pub(super) fn entry(&self, name: &str, config: Config) -> Entry {
        if config == Config::Fault {
            let error = CallError::new(CallErrorKind::InvalidArguments, "faulty");
            return Entry::Fault(ConfigFault { name: name.to_owned(), error });
        }
        let mut definition = match config {
            Config::Good(version) => self.definition(name, version),
            Config::Refused => http(name, "http://127.0.0.1:9/mcp"),
            Config::Off | Config::Fault => self.definition(name, 1),
        };
        definition.is_disabled = config == Config::Off;
        Entry::Server(definition)
    }

    pub(super) fn definition(&self, name: &str, version: u8) -> ServerDefinition {
        if name == "child" {
            return with_env(self.mark.server(name, ""), "VERSION", &version.to_string());
        }
        let base = self.peer.url.trim_end_matches("/mcp");
        http(name, &format!("{base}/{name}/v{version}"))
    }

    /// Number of sessions that are open at the servers over HTTP and known to their clients.
    pub(super) fn sessions(&self) -> usize {
        let state = self.state.lock().unwrap();
        state.sessions.values().filter(|session| session.is_known).count()
    }

    /// The server of this name forgets all its sessions.
    pub(super) fn forget(&self, name: &str) {
        let prefix = format!("/{name}/");
        self.state.lock().unwrap().sessions.retain(|_, one| !one.path.starts_with(&prefix));
    }

    /// Answers all calls that are held.
    pub(super) fn answer_held(&self) {
        for (id, stream) in self.state.lock().unwrap().held.drain(..) {
            // The caller of a server that was disabled no longer waits.
            drop(stream.try_send(event(&called(&id, "held"))));
        }
    }

    /// Forgets all requests.
    pub(super) fn forget_requests(&self) {
        self.peer.forget();
    }
}

fn called(id: &Value, text: &str) -> Value {
    let content = json!([{"type": "text", "text": text}]);
    json!({"jsonrpc": "2.0", "id": id, "result": {"content": content}})
}

fn answer(state: &Mutex<State>, seen: &Seen) -> Reply {
    let mut state = state.lock().unwrap();
    let session = seen.header("mcp-session-id").unwrap_or_default();
    let known = state.sessions.get_mut(session).filter(|one| one.path == seen.path);
    let is_known = known.map(|one| one.is_known = true).is_some();
    match (seen.method.as_str(), seen.rpc()) {
        ("POST", "server/discover") => text(400, "text/plain", "what?"),
        ("POST", "initialize") => open(&mut state, seen),
        ("GET", _) => text(405, "text/plain", "no stream"),
        ("DELETE", _) => {
            state.sessions.remove(session);
            text(200, "text/plain", "")
        }
        _ if !is_known => text(404, "text/plain", "who are you?"),
        (_, "tools/list") => {
            let version = seen.path.rsplit('/').next().unwrap_or_default();
            result(seen, &json!({"tools": [{"name": version}, {"name": "echo"}]}))
        }
        (_, "tools/call") if seen.body["params"]["name"] == "hold" => {
            let (sender, stream) = events();
            state.held.push((seen.body["id"].clone(), sender));
            stream
        }
        (_, "tools/call") => {
            text(200, "application/json", called(&seen.body["id"], &seen.path).to_string())
        }
        _ => text(202, "text/plain", ""),
    }
}

fn open(state: &mut State, seen: &Seen) -> Reply {
    state.opened += 1;
    let session = format!("session-{}", state.opened);
    let opened = Session { path: seen.path.clone(), is_known: false };
    state.sessions.insert(session.clone(), opened);
    let Reply::Now(mut response) = result(seen, &initialize_result()) else {
        unreachable!("a result is an answer")
    };
    response.headers_mut().insert("mcp-session-id", session.parse().unwrap());
    Reply::Now(response)
}

//! One life of a daemon: many clients send requests at once, until the daemon is killed.

use std::{
    collections::BTreeSet,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Request, StatusCode, client::conn::http1};
use hyper_util::rt::TokioIo;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::{io::AsyncReadExt, net::TcpStream, net::unix::pipe, task::JoinSet};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    books::{Answer, Books, End, Stored, StoredRun, StoredSession, What},
    chance::Chance,
};
use crate::world::{Client, modern};

/// Number of clients that ask at the same time.
const IN_FLIGHT: usize = 8;
const HOME: &str = "/api/workspaces/default";

/// The options that are the same in all lives.
pub(super) struct LifeOptions {
    pub(super) port: u16,
    /// The token of the operator.
    pub(super) admin: String,
    /// Each server that is a program writes here when it starts.
    pub(super) starts: Arc<tokio::sync::Mutex<pipe::Receiver>>,
}

pub(super) struct Life {
    address: SocketAddr,
    admin: String,
    daemon: Pid,
    starts: Arc<tokio::sync::Mutex<pipe::Receiver>>,
    events: AtomicUsize,
    kill_at: usize,
    killed: CancellationToken,
    tasks: TaskTracker,
}

/// Books and chance of all who ask.
pub(super) type Shared = Arc<Mutex<(Books, Chance)>>;

/// Something to ask for.
enum Plan {
    Create { number: usize, token: String, document: Value, parent: Option<usize> },
    End { number: usize, run: String },
    EndSession { session: String },
}

impl Life {
    /// A life of a daemon that listens; it is killed after `kill_at` events.
    pub(super) fn new(options: &LifeOptions, daemon: u32, kill_at: usize) -> Self {
        Self {
            address: SocketAddr::from(([127, 0, 0, 1], options.port)),
            admin: options.admin.clone(),
            daemon: Pid::from_raw(daemon.cast_signed()).unwrap(),
            starts: options.starts.clone(),
            events: AtomicUsize::new(0),
            kill_at,
            killed: CancellationToken::new(),
            tasks: TaskTracker::new(),
        }
    }

    /// Asks for this and that until the daemon is dead.
    pub(super) async fn lead(self: &Arc<Self>, shared: &Shared) {
        let mut working = JoinSet::new();
        for _ in 0..IN_FLIGHT {
            let (life, shared) = (self.clone(), shared.clone());
            working.spawn(async move {
                while !life.killed.is_cancelled() {
                    let plan = plan(&shared, &life.admin);
                    life.carry_out(plan, &shared).await;
                }
            });
        }
        let life = self.clone();
        working.spawn(async move { life.count_starts().await });
        while let Some(done) = working.join_next().await {
            done.unwrap();
        }
    }

    async fn count_starts(&self) {
        let mut starts = self.starts.lock().await;
        let mut bytes = [0; 64];
        loop {
            let read = tokio::select! {
                read = starts.read(&mut bytes) => read.unwrap(),
                () = self.killed.cancelled() => return,
            };
            let lines = bytes[..read].iter().filter(|byte| **byte == b'\n');
            lines.for_each(|_| self.count());
        }
    }

    /// Something has happened; the daemon is killed if it was the last that may.
    fn count(&self) {
        if self.events.fetch_add(1, Ordering::Relaxed) + 1 == self.kill_at {
            // First, so that a client that meets a broken connection knows why.
            self.killed.cancel();
            kill_process(self.daemon, Signal::KILL).unwrap();
        }
    }

    async fn carry_out(&self, plan: Plan, shared: &Shared) {
        let with = |change: &dyn Fn(&mut Books)| change(&mut shared.lock().unwrap().0);
        match plan {
            Plan::Create { number, token, document, parent } => {
                let path = format!("{HOME}/runs");
                let answer = self.ask("POST", &path, &token, &document.to_string()).await;
                let Some((status, body)) = answer else { return };
                with(&|books| note_created(books, number, parent, status, &body));
            }
            Plan::End { number, run } => {
                let path = format!("{HOME}/runs/{run}");
                let Some((status, body)) = self.ask("DELETE", &path, &self.admin, "").await else {
                    return;
                };
                with(&|books| {
                    // Its session may have been ended first.
                    let session = &books.asked[number].session;
                    let is_late = books.session_may_have_ended(session);
                    let is_right = status == StatusCode::NO_CONTENT
                        || (status == StatusCode::CONFLICT && is_late);
                    assert!(is_right, "{run}: {status} {body}");
                    books.asked[number].end = End::Done;
                });
            }
            Plan::EndSession { session } => {
                let path = format!("{HOME}/sessions/{session}");
                let Some((status, body)) = self.ask("DELETE", &path, &self.admin, "").await else {
                    return;
                };
                assert_eq!(status, StatusCode::NO_CONTENT, "{session}: {body}");
                with(&|books| books.end_session(&session, true));
            }
        }
    }

    /// The answer; none if the daemon was killed meanwhile.
    async fn ask(
        &self,
        method: &str,
        path: &str,
        token: &str,
        body: &str,
    ) -> Option<(StatusCode, Value)> {
        let answer = self.try_ask(method, path, token, body).await;
        match answer {
            Ok((status, body)) => {
                self.count();
                // A refusal at the door is no JSON.
                let text = String::from_utf8_lossy(&body).into_owned();
                let body = serde_json::from_slice(&body).unwrap_or(Value::String(text));
                Some((status, body))
            }
            Err(error) => {
                assert!(self.killed.is_cancelled(), "{method} {path}: {error}");
                None
            }
        }
    }

    async fn try_ask(
        &self,
        method: &str,
        path: &str,
        token: &str,
        body: &str,
    ) -> Result<(StatusCode, Bytes), Box<dyn std::error::Error + Send + Sync>> {
        let stream = TcpStream::connect(self.address).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        self.tasks.spawn(async move { drop(connection.await) });
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", self.address.to_string())
            .header("authorization", format!("Bearer {token}"))
            .header("content-type", "application/json")
            .body(Full::new(Bytes::copy_from_slice(body.as_bytes())))?;
        let answer = sender.send_request(request);
        self.count();
        let (parts, body) = answer.await?.into_parts();
        Ok((parts.status, body.collect().await?.to_bytes()))
    }

    async fn get(&self, path: &str) -> Value {
        let (status, body) = self.ask("GET", path, &self.admin, "").await.unwrap();
        assert_eq!(status, StatusCode::OK, "{path} {body}");
        body
    }

    async fn items(&self, path: &str) -> Vec<Value> {
        let (mut items, mut after) = (Vec::new(), String::new());
        loop {
            let page = self.get(&format!("{HOME}/{path}?limit=100{after}")).await;
            let more = page["items"].as_array().unwrap().iter();
            // The daemon's own run is left out.
            items.extend(more.filter(|item| item["is_local"] != true).cloned());
            let Some(next) = page["next"].as_str() else { return items };
            after = format!("&after={next}");
        }
    }

    /// All that is stored; of sessions with the numbers of their runs, if they are among these.
    pub(super) async fn stored(&self, looked_into: &BTreeSet<String>) -> Stored {
        let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("{value}")).to_owned();
        let mut stored = Stored::default();
        for run in self.items("runs").await {
            let status = text(&run["status"]);
            assert!(status == "running" || status == "ended", "{run}");
            let row = StoredRun {
                session: text(&run["session_id"]),
                pid: run["pid"].as_u64().unwrap(),
                parent: run["parent_run_id"].as_str().map(str::to_owned),
                is_running: status == "running",
            };
            stored.runs.insert(text(&run["run_id"]), row);
        }
        for session in self.items("sessions").await {
            let id = text(&session["session_id"]);
            let mut pids = None;
            if looked_into.contains(&id) {
                let whole = self.get(&format!("{HOME}/sessions/{id}")).await;
                let all = whole["pids"].as_array().unwrap().iter();
                pids = Some(all.map(|pid| pid.as_u64().unwrap()).collect());
            }
            let is_running = session["status"] == "running";
            stored.sessions.insert(id, StoredSession { pids, is_running });
        }
        stored
    }

    /// Shows each token of the life before: it opens all that its agent has, or, if the run was
    /// ended, nothing. Most that live are ended then.
    pub(super) async fn opens_what_was_told(&self, books: &mut Books, chance: &mut Chance) {
        let numbers = 0..books.asked.len();
        let new = numbers.filter(|number| !books.asked[*number].is_checked);
        for number in new.collect::<Vec<_>>() {
            books.asked[number].is_checked = true;
            let asked = &books.asked[number];
            let Some((run, token)) = asked.begun() else { continue };
            let mut client = Client::new(self.address, "/mcp", token);
            let reply = client.modern(&modern(1, "tools/list", json!({}))).await;
            let (may, must) = (books.may_have_ended(asked), books.must_have_ended(asked));
            if must || (may && reply.status == StatusCode::UNAUTHORIZED) {
                assert_eq!(reply.status, StatusCode::UNAUTHORIZED, "{run} was ended: {reply:?}");
                continue;
            }
            let answer = reply.json();
            let tools = answer["result"]["tools"].to_string();
            for server in ["files", "remote"] {
                let has = tools.contains(&format!("\"mcp__{server}__echo\""));
                let wanted = server == "remote" || asked.agent == "both";
                assert_eq!(has, wanted, "{run} of {}: {server}: {answer}", asked.agent);
            }
            let shown = self.get(&format!("{HOME}/runs/{run}")).await;
            let servers = shown["servers"].as_array().unwrap();
            assert!(servers.iter().all(|row| row["state"] == "ready"), "{shown}");
            if chance.below(4) != 0 {
                let path = format!("{HOME}/runs/{run}");
                let ended = self.ask("DELETE", &path, &self.admin, "").await.unwrap();
                assert_eq!(ended.0, StatusCode::NO_CONTENT, "{ended:?}");
                books.asked[number].end = End::Done;
            }
        }
    }
}

fn note_created(
    books: &mut Books,
    number: usize,
    parent: Option<usize>,
    status: StatusCode,
    body: &Value,
) {
    let is_late = parent.is_some_and(|parent| books.may_have_ended(&books.asked[parent]))
        || books.session_may_have_ended(&books.asked[number].session);
    let asked = &mut books.asked[number];
    let is_begun = status == StatusCode::CREATED;
    let is_right = match asked.what {
        What::Faulty => status.is_client_error() || status == StatusCode::SERVICE_UNAVAILABLE,
        What::New => is_begun,
        What::Child | What::Resumed => is_begun || (is_late && status.is_client_error()),
    };
    assert!(is_right, "{:?} of {}: {status} {body}", asked.what, asked.agent);
    let text = |key: &str| body[key].as_str().unwrap().to_owned();
    asked.answer = match is_begun {
        true => Answer::Begun { run: text("run_id"), token: text("token") },
        false => Answer::Refused,
    };
}

fn request(agent: &str, session: &str) -> Value {
    json!({ "agent_name": agent, "session_id": session, "prompt": "work",
            "scope": { "context_id": "context" } })
}

/// The next request of a client.
fn plan(shared: &Shared, admin: &str) -> Plan {
    let mut shared = shared.lock().unwrap();
    let (books, chance) = &mut *shared;
    let living = books.living();
    let begun = |books: &Books, number: usize| {
        let (run, token) = books.asked[number].begun().unwrap();
        (run.to_owned(), token.to_owned())
    };
    let agent = if chance.below(2) == 0 { "both" } else { "remote" };
    let chosen = chance.one(&living).copied();
    match (chance.below(20), chosen) {
        (0, Some(number)) => {
            let session = books.asked[number].session.clone();
            books.end_session(&session, false);
            return Plan::EndSession { session };
        }
        (1..=3, Some(number)) => {
            books.asked[number].end = End::Asked;
            return Plan::End { number, run: begun(books, number).0 };
        }
        (4..=6, Some(parent)) if books.asked[parent].what == What::New => {
            let (_, token) = begun(books, parent);
            let session = books.new_session();
            let number = books.ask(session.clone(), agent, What::Child);
            let document = json!({ "agent_name": agent, "session_id": session });
            return Plan::Create { number, token, document, parent: Some(parent) };
        }
        (7..=8, Some(of)) => {
            let (session, agent) = (books.asked[of].session.clone(), books.asked[of].agent);
            let number = books.ask(session.clone(), agent, What::Resumed);
            let document = json!({ "type": "resume_session", "session_id": session,
                                   "scope": { "context_id": "context" } });
            return Plan::Create { number, token: admin.to_owned(), document, parent: None };
        }
        _ => {}
    }
    let session = books.new_session();
    let (agent, what, document) = match chance.below(10) {
        // A server that does not start, after others have started; and a document with a visible
        // fault.
        0 => ("broken", What::Faulty, request("broken", &session)),
        1 => ("both", What::Faulty, json!({ "agent_name": "both", "session_id": session })),
        _ => (agent, What::New, request(agent, &session)),
    };
    let number = books.ask(session, agent, what);
    Plan::Create { number, token: admin.to_owned(), document, parent: None }
}

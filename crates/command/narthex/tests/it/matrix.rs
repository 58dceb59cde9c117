//! Rights to call tools, over every way in: one table of grants, one answer wherever a call comes
//! from (S14, S26).

use std::{
    fmt,
    net::SocketAddr,
    process::Stdio,
    rc::Rc,
    time::{Duration, SystemTime},
};

use fs_err as fs;
use hyper::StatusCode;
use narthex_model::Timestamp;
use narthex_testkit::fixture::{Options, Running};
use serde_json::{Value, json};
use tokio::{
    net::UnixStream,
    task::{JoinSet, LocalSet},
};

use crate::{
    support::{Daemon, Place},
    world::{Client, Socket, call, initialize, legacy, modern},
};

const HOME: &str = "/api/workspaces/default";
/// The holder of the operator's token drives the runs that they create.
const LOCAL: &str = "prn_0000000000000000";
/// The prefix of the names of the built-in tools at the aggregated endpoint.
const PREFIX: &str = "mcp__narthex__";

/// The origin of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Entry {
    Aggregated,
    Transparent,
    Socket,
    ServerSocket,
    /// `narthex connect`.
    Stdio,
    /// `narthex connect --server`.
    ServerStdio,
    /// `narthex call`.
    CommandLine,
    /// A POST to the place of the tool.
    Rest,
    /// A write to the tool's file, as mounted folders and `narthex vfs` make it.
    File,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Era {
    Legacy,
    Modern,
}

/// All ways in, with the eras that they can be spoken to in.
const WAYS: [(Entry, &[Era]); 9] = [
    (Entry::Aggregated, &[Era::Legacy, Era::Modern]),
    (Entry::Transparent, &[Era::Legacy, Era::Modern]),
    (Entry::Socket, &[Era::Legacy, Era::Modern]),
    (Entry::ServerSocket, &[Era::Legacy, Era::Modern]),
    (Entry::Stdio, &[Era::Legacy, Era::Modern]),
    (Entry::ServerStdio, &[Era::Legacy, Era::Modern]),
    // The command line chooses the era itself.
    (Entry::CommandLine, &[Era::Modern]),
    (Entry::Rest, &[Era::Modern]),
    (Entry::File, &[Era::Modern]),
];

/// The grant that exists before the calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Granted {
    Nothing,
    Once,
    Run,
    Session,
    Persistent,
    Expired,
    Revoked,
    OtherUser,
    OtherRun,
    OtherArguments,
    TheseArguments,
    OtherTool,
    OtherScope,
}

/// Number of calls by each way.
const CALLS: usize = 2;
/// The outcomes of a first call and a second one: `true` if they get through.
const TABLE: [(Granted, [bool; CALLS]); 13] = [
    (Granted::Nothing, [false, false]),
    (Granted::Once, [true, false]),
    (Granted::Run, [true, true]),
    (Granted::Session, [true, true]),
    (Granted::Persistent, [true, true]),
    (Granted::Expired, [false, false]),
    (Granted::Revoked, [false, false]),
    (Granted::OtherUser, [false, false]),
    (Granted::OtherRun, [false, false]),
    (Granted::OtherArguments, [false, false]),
    (Granted::TheseArguments, [true, true]),
    (Granted::OtherTool, [false, false]),
    (Granted::OtherScope, [false, false]),
];

/// A daemon with one server, one tool of which is gated.
struct Gated {
    place: Place,
    _daemon: Daemon,
    address: SocketAddr,
    admin: String,
    /// The server of the calls; it counts them.
    fixture: Running,
}

/// A run, and a data directory in which its token is the one of clients.
struct Run {
    id: String,
    session: String,
    token: String,
    sockets: String,
    /// The folder with the files of the run's server.
    files: String,
    data: String,
}

impl Gated {
    async fn new() -> Self {
        let fixture = Running::http(Options::default()).await.unwrap();
        let scopes = json!({ "echo": "demo.write" });
        let entry = json!({ "transport": "http", "url": fixture.url, "tool_scopes": scopes });
        let place = Place::with(&json!({ "fixture": entry }));
        let daemon = place.start(&["up", "--config", "mcp.json", "--listen", "127.0.0.1:0"]);
        let listening = daemon.event("listening");
        daemon.event("ready");
        let url = listening["url"].as_str().unwrap();
        let address = url.strip_prefix("http://").unwrap().trim_end_matches('/').parse().unwrap();
        let admin = fs::read_to_string(place.path("data/admin.token")).unwrap().trim().to_owned();
        place.run(["users", "create", "ada", "--role", "author"]).succeeded();
        Self { place, _daemon: daemon, address, admin, fixture }
    }

    /// Number of calls that have reached the server.
    fn reached(&self) -> u64 {
        self.fixture.fixture.counts().calls
    }

    async fn ask(&self, method: &str, path: &str, body: &Value) -> (StatusCode, Value) {
        let client = Client::new(self.address, &format!("{HOME}/{path}"), &self.admin);
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let reply = client.whole(method, &[], body).await;
        let said = serde_json::from_slice(&reply.body).unwrap_or_default();
        (reply.status, said)
    }

    async fn made(&self, path: &str, body: &Value) -> Value {
        let (status, said) = self.ask("POST", path, body).await;
        assert_eq!(status, StatusCode::CREATED, "{body} {said}");
        said
    }

    async fn begin(&self, number: usize) -> Run {
        let begun = self.made("runs", &json!({ "tools": ["fixture"], "sockets": true })).await;
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let run = Run {
            id: text(&begun["run_id"]),
            session: text(&begun["session_id"]),
            token: text(&begun["token"]),
            sockets: text(&begun["endpoints"]["sockets"]),
            files: format!("/vfs/mnt/mcp/{}-fixture", begun["pid"]),
            data: format!("d{number}"),
        };
        let (data, own) = (self.place.path("data"), self.place.path(&run.data));
        fs::create_dir(&own).unwrap();
        // The daemon's own file, and no link to it, which would be refused.
        fs::hard_link(data.join("daemon.lock"), own.join("daemon.lock")).unwrap();
        let told = fs::read_to_string(data.join("daemon.json")).unwrap();
        let mut told: Value = serde_json::from_str(&told).unwrap();
        told["socket_dir"] = json!(run.sockets);
        for (name, text) in [("daemon.json", &told.to_string()), ("client.token", &run.token)] {
            let name = format!("{}/{name}", run.data);
            self.place.write(&name, text);
            self.place.set_mode(&name, 0o600);
        }
        run
    }

    /// Makes the grant that a row of the table is about, if any.
    async fn grant(&self, what: Granted, run: &Run, others: &Run) -> Option<String> {
        let mut grant = unlimited();
        match what {
            // That of the whole row has run out.
            Granted::Nothing | Granted::Expired => return None,
            Granted::Persistent | Granted::Revoked => {}
            Granted::Once => grant["scope"] = json!("once"),
            Granted::Run => {
                (grant["scope"], grant["run_id"]) = (json!("run"), json!(run.id));
            }
            Granted::Session => {
                (grant["scope"], grant["session_id"]) = (json!("session"), json!(run.session));
            }
            Granted::OtherRun => {
                (grant["scope"], grant["run_id"]) = (json!("run"), json!(others.id));
            }
            Granted::OtherUser => grant["user_subject_id"] = json!("ada"),
            Granted::OtherArguments => grant["details"]["arguments"] = json!({ "message": "y" }),
            Granted::TheseArguments => grant["details"]["arguments"] = json!({ "message": "x" }),
            Granted::OtherTool => grant["details"]["tool"] = json!("add"),
            Granted::OtherScope => grant["details"]["scope"] = json!("demo.read"),
        }
        let made = self.made("grants", &grant).await;
        let id = made["id"].as_str().unwrap().to_owned();
        if what == Granted::Revoked {
            self.revoke(&id).await;
        }
        Some(id)
    }

    async fn revoke(&self, id: &str) {
        let (status, said) = self.ask("DELETE", &format!("grants/{id}"), &Value::Null).await;
        assert!(status.is_success(), "{said}");
    }

    /// The answer to a call.
    async fn call(&self, run: &Run, entry: Entry, era: Era) -> Value {
        let socket = |name: &str| UnixStream::connect(format!("{}/{name}", run.sockets));
        match entry {
            Entry::Aggregated => self.over_http("/mcp", "mcp__fixture__echo", run, era).await,
            Entry::Transparent => self.over_http("/mcp/fixture", "echo", run, era).await,
            Entry::Socket => {
                let (reader, writer) = socket("mcp.sock").await.unwrap().into_split();
                over_lines(Socket::of(reader, writer), "mcp__fixture__echo", era).await
            }
            Entry::ServerSocket => {
                let (reader, writer) = socket("fixture.sock").await.unwrap().into_split();
                over_lines(Socket::of(reader, writer), "echo", era).await
            }
            Entry::Stdio => self.bridged(run, &[], "mcp__fixture__echo", era).await,
            Entry::ServerStdio => self.bridged(run, &["--server", "fixture"], "echo", era).await,
            Entry::CommandLine => {
                let words = ["call", "fixture", "echo", "message=x", "--json", "--data", &run.data];
                let done = self.place.run(words);
                serde_json::from_str(&done.stdout).unwrap_or_else(|_| panic!("{done:?}"))
            }
            Entry::Rest => {
                let client = Client::new(self.address, "/mcp/fixture/tools/echo", &run.token);
                let reply = client.whole("POST", &[], r#"{"message":"x"}"#).await;
                assert_eq!(reply.status, StatusCode::OK, "{reply:?}");
                serde_json::from_slice(&reply.body).unwrap()
            }
            Entry::File => {
                let path = format!("{}/tools/echo", run.files);
                let client = Client::new(self.address, &path, &run.token);
                let reply = client.whole("POST", &[], r#"{"message":"x"}"#).await;
                let said: Value = serde_json::from_slice(&reply.body).unwrap();
                if reply.status == StatusCode::OK {
                    return said;
                }
                // A file has no results that are errors: it fails, with the same words.
                assert_eq!(
                    (reply.status, &said["code"]),
                    (StatusCode::FORBIDDEN, &json!("PERMISSION"))
                );
                let failure = &said["failure"];
                json!({
                    "isError": true,
                    "content": [{ "text": failure["message"] }],
                    "structuredContent": { "error": failure },
                })
            }
        }
    }

    async fn over_http(&self, path: &str, tool: &str, run: &Run, era: Era) -> Value {
        let mut client = Client::new(self.address, path, &run.token);
        let said = call(tool, json!({ "message": "x" }));
        let mut answer = match era {
            Era::Modern => client.modern(&modern(7, "tools/call", said)).await.json(),
            Era::Legacy => {
                client.open_session(json!({})).await;
                let body = legacy(7, "tools/call", said).to_string();
                client.post(&[], body).await.json()
            }
        };
        answer["result"].take()
    }

    async fn bridged(&self, run: &Run, further: &[&str], tool: &str, era: Era) -> Value {
        let words = [&["connect", "--data", &run.data], further].concat();
        let mut command = tokio::process::Command::from(self.place.command(words));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let answer = over_lines(Socket::of(output, input), tool, era).await;
        assert!(child.wait().await.unwrap().success());
        answer
    }
}

async fn over_lines(mut socket: Socket, tool: &str, era: Era) -> Value {
    let said = call(tool, json!({ "message": "x" }));
    let mut answer = match era {
        Era::Modern => socket.ask(&modern(7, "tools/call", said)).await,
        Era::Legacy => {
            socket.ask(&initialize(json!({}))).await;
            socket.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
            socket.ask(&legacy(7, "tools/call", said)).await
        }
    };
    answer["result"].take()
}

/// A grant of all that the calls need, for good.
fn unlimited() -> Value {
    json!({
        "grant_type": "tool_scope",
        "details": { "scope": "demo.write" },
        "scope": "persistent",
        "user_subject_id": LOCAL,
    })
}

/// The part of an answer that is alike at all doors: success, text, and the reason of a failure.
#[derive(PartialEq)]
struct Outcome {
    is_error: bool,
    text: Value,
    kind: Value,
    scopes: Value,
    /// The way to ask, but for the name of the tool at the endpoint.
    ask: Value,
}

impl Outcome {
    fn of(result: &Value) -> Self {
        let error = &result["structuredContent"]["error"];
        // The text adds for models how to ask, which `ask` has at each door.
        let said = &result["content"][0]["text"];
        let text = error["message"].as_str().or(said.as_str()).unwrap_or_default();
        let mut ask = error["details"]["ask"].clone();
        for call in ask["calls"].as_array_mut().into_iter().flatten() {
            let name = call["name"].as_str().unwrap().trim_start_matches(PREFIX).to_owned();
            call["name"] = json!(name);
        }
        Self {
            is_error: result["isError"].as_bool().unwrap_or(false),
            text: json!(text),
            kind: error["kind"].clone(),
            scopes: error["details"]["scopes"].clone(),
            ask,
        }
    }
}

impl fmt::Debug for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { is_error, text, kind, scopes, ask } = self;
        write!(f, "{is_error} {kind} {scopes}: {text} {ask}")
    }
}

impl Gated {
    /// Runs one cell of the table in a run of its own, and returns the answer of each call.
    async fn cell(
        &self,
        number: usize,
        granted: Granted,
        way: (Entry, Era),
        other: &Run,
    ) -> Vec<Outcome> {
        let run = self.begin(number).await;
        let grant = self.grant(granted, &run, other).await;
        let mut found = Vec::new();
        for _ in 0..CALLS {
            let before = self.reached();
            let outcome = Outcome::of(&self.call(&run, way.0, way.1).await);
            let has_reached = self.reached() - before;
            assert_eq!(has_reached, u64::from(!outcome.is_error), "{granted:?} by {way:?}");
            found.push(outcome);
        }
        if let Some(grant) = grant {
            self.revoke(&grant).await;
        }
        let (status, said) = self.ask("DELETE", &format!("runs/{}", run.id), &Value::Null).await;
        assert_eq!(status, StatusCode::NO_CONTENT, "{said}");
        found
    }

    /// Waits until a short grant has expired. A slow machine takes longer to create it.
    async fn expires(&self, other: &Run) {
        let mut grant = unlimited();
        for seconds in 2.. {
            let end = SystemTime::now() + Duration::from_secs(seconds);
            grant["expires_at"] = json!(Timestamp::new(end).to_string());
            let (status, said) = self.ask("POST", "grants", &grant).await;
            if status == StatusCode::CREATED {
                break;
            }
            assert!(said.to_string().contains("expires_at"), "{said}");
        }
        while !Outcome::of(&self.call(other, Entry::Transparent, Era::Modern).await).is_error {
            tokio::task::yield_now().await;
        }
    }
}

/// The way to ask that a refused call names.
fn how_to_ask() -> Value {
    let arguments = json!({
        "request_id": "demo.write@fixture/echo",
        "grant_type": "tool_scope",
        "details": { "scope": "demo.write", "server": "fixture", "tool": "echo" },
        "scope": "once",
        "justification": "`echo` of the server `fixture` requires `demo.write`",
    });
    let call = json!({ "name": "request_grant", "arguments": arguments });
    json!({ "server": "narthex", "calls": [call] })
}

/// S14, S26, X-M53, X-M57, X-E75, A-6: every way in and every era gives the same answer for the
/// same grants.
#[tokio::test(flavor = "multi_thread")]
async fn s14_every_endpoint_requires_the_same_grants() {
    let gated = Gated::new().await;
    let mut number = 0;
    let other = gated.begin(number).await;
    let ways = WAYS.iter().flat_map(|(entry, eras)| eras.iter().map(|era| (*entry, *era)));
    let ways: Vec<_> = ways.collect();
    for (granted, wanted) in TABLE {
        if granted == Granted::Expired {
            gated.expires(&other).await;
        }
        let mut row = Vec::new();
        for way in &ways {
            number += 1;
            let found = gated.cell(number, granted, *way, &other).await;
            let passed: Vec<bool> = found.iter().map(|outcome| !outcome.is_error).collect();
            assert_eq!(passed, wanted, "{granted:?} by {way:?}: {found:?}");
            for refused in found.iter().filter(|outcome| outcome.is_error) {
                assert_eq!(refused.kind, "permission_required", "{granted:?} by {way:?}");
                assert_eq!(refused.scopes, json!(["demo.write"]), "{granted:?} by {way:?}");
                assert_eq!(refused.ask, how_to_ask(), "{granted:?} by {way:?}");
            }
            row.push(found);
        }
        for (way, found) in ways.iter().zip(&row) {
            assert_eq!(*found, row[0], "{granted:?} by {way:?}");
        }
    }
}

/// Number of runs that try to use a grant for a single call.
const RIVALS: usize = 100;

/// S26, X-M54, X-E75: of many runs of one user that use a grant for a single call at the same time,
/// over all ways in, one gets through: exactly one call reaches the server.
#[tokio::test(flavor = "multi_thread")]
async fn s26_one_of_a_hundred_runs_uses_a_grant_for_a_single_call() {
    let gated = Rc::new(Gated::new().await);
    let mut runs = vec![gated.begin(0).await];
    for number in 1..RIVALS {
        runs.push(gated.begin(number).await);
    }
    // Each program of `narthex connect` and `narthex call` takes a while and a core.
    let ways = [Entry::Aggregated, Entry::Transparent, Entry::Socket, Entry::ServerSocket];
    let ways = ways.into_iter().chain([Entry::Rest]).cycle();
    gated.grant(Granted::Once, &runs[0], &runs[1]).await;
    let (mut calls, here) = (JoinSet::new(), LocalSet::new());
    for (number, (run, way)) in runs.into_iter().zip(ways).enumerate() {
        let gated = gated.clone();
        let era = if number % 2 == 0 { Era::Modern } else { Era::Legacy };
        let call = async move { Outcome::of(&gated.call(&run, way, era).await) };
        calls.spawn_local_on(call, &here);
    }
    let outcomes = here.run_until(calls.join_all()).await;
    let passed = outcomes.iter().filter(|outcome| !outcome.is_error).count();
    assert_eq!((passed, gated.reached()), (1, 1), "{outcomes:?}");
    for refused in outcomes.iter().filter(|outcome| outcome.is_error) {
        assert_eq!(refused.kind, "permission_required", "{refused:?}");
    }
}

//! Two daemons on one PostgreSQL, and a server behind a sign-in at an authorization server that
//! rotates refresh tokens and revokes families.

use std::{
    error::Error,
    net::SocketAddr,
    process::Command,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use fs_err as fs;
use http_body_util::{BodyExt, Full};
use hyper::{Request, client::conn::http1};
use hyper_util::rt::TokioIo;
use narthex_model::Timestamp;
use narthex_testkit::{
    authorization::{AuthorizationFixture, Quirks, Settings},
    postgres::{self, Database},
};
use serde_json::{Value, json};
use tokio::{net::TcpStream, task::JoinSet, time::Instant};

use crate::{
    server_sign_ins::{until, visit},
    support::{Daemon, Done, Place},
    world::{call, modern, modern_headers},
};

/// Lifetime of a token that ends soon, in seconds. It is due after half of it.
const SHORT_S: u64 = 6;
const LONG_S: u64 = 3600;
/// The data directories of the daemons.
const FOLDERS: [&str; 2] = ["here", "there"];

/// The answer to a call, or the error of its connection.
type Called = Result<Value, Box<dyn Error + Send + Sync>>;
/// Open calls.
pub(super) type Calls = JoinSet<(Called, Duration)>;

/// The daemons, their database, and their server.
pub(super) struct Stage {
    pub(super) fixture: AuthorizationFixture,
    place: Place,
    database: Database,
    peers: [Option<Peer>; 2],
}

/// The times of a token that ends soon.
pub(super) struct Short {
    pub(super) due: SystemTime,
    pub(super) ends: SystemTime,
}

/// A running daemon.
struct Peer {
    address: SocketAddr,
    token: String,
    _daemon: Daemon,
}

impl Stage {
    /// Two daemons that are signed in to the server; `None` without PostgreSQL.
    pub(super) fn start(quirks: Quirks) -> Option<Self> {
        let database = postgres::database(&[])?;
        let settings = Settings { clock_runs: true, ..Settings::with(quirks) };
        let fixture = AuthorizationFixture::start(settings);
        let entry = json!({ "transport": "http", "url": fixture.url });
        let place = Place::with(&json!({ "tracker": entry }));
        let mut stage = Self { fixture, place, database, peers: [None, None] };
        stage.start_daemon(0);
        stage.sign_in(0);
        let [here, there] = FOLDERS;
        fs::create_dir(stage.place.path(there)).unwrap();
        stage.place.set_mode(there, 0o700);
        // Both need the one key of the database.
        let key = |folder: &str| stage.place.path(&format!("{folder}/master.key"));
        fs::copy(key(here), key(there)).unwrap();
        stage.start_daemon(1);
        Some(stage)
    }

    /// Starts a daemon, or starts it again. If there is a grant, its server is ready.
    pub(super) fn start_daemon(&mut self, number: usize) {
        let words = ["up", "--config", "mcp.json", "--listen", "127.0.0.1:0"];
        let daemon = self.place.start_with(&words, |command| self.at(number, command));
        let listening = daemon.event("listening");
        daemon.event("ready");
        let text = |name: &str| listening[name].as_str().unwrap().to_owned();
        let url: http::Uri = text("url").parse().unwrap();
        let address = SocketAddr::from(([127, 0, 0, 1], url.port_u16().unwrap()));
        let token = fs::read_to_string(text("token_file")).unwrap().trim().to_owned();
        self.peers[number] = Some(Peer { address, token, _daemon: daemon });
        if self.fixture.counts().exchanged_codes > 0 {
            self.until_in(number, "ready");
        }
    }

    /// Kills a daemon, as `kill -9` does.
    pub(super) fn kill(&mut self, number: usize) {
        drop(self.peers[number].take());
    }

    /// A person signs in to the server, by the address that a daemon gives.
    pub(super) fn sign_in(&self, number: usize) {
        let url = until(|| self.row(number)["authUrl"].as_str().map(str::to_owned));
        let page = visit(&self.fixture.browse(&url).unwrap());
        assert_eq!(page.status, 200, "{page:?}");
        self.until_in(number, "ready");
    }

    pub(super) fn until_in(&self, number: usize, status: &str) {
        until(|| (self.row(number)["status"] == status).then_some(()));
    }

    /// The row of the server at a daemon.
    pub(super) fn row(&self, number: usize) -> Value {
        let mut command = self.place.command(["mcp", "list", "--json"]);
        self.at(number, &mut command);
        let list = Done::from(command.output().unwrap()).succeeded().json();
        let mut rows = list["data"]["mounts"].as_array().unwrap().iter();
        rows.find(|row| row["name"] == "tracker").unwrap().clone()
    }

    fn at(&self, number: usize, command: &mut Command) {
        command.env("NARTHEX_DATA", self.place.path(FOLDERS[number]));
        command.env("NARTHEX_STORE_URL", &self.database.url);
    }

    /// Gives both daemons a token that ends soon, which `first` has renewed. Later ones live long.
    pub(super) async fn gives_short_token(&self, first: usize) -> Short {
        self.fixture.change(|settings| settings.access_lives_s = SHORT_S);
        self.fixture.end_access_tokens();
        let before = SystemTime::now();
        self.works(first).await;
        let after = SystemTime::now();
        self.fixture.change(|settings| settings.access_lives_s = LONG_S);
        self.works(1 - first).await;
        let life = Duration::from_secs(SHORT_S);
        Short { due: before + life / 2, ends: after + life }
    }

    /// Has a daemon call, until it has a token that ends later than a short one. Before that, the
    /// token that is due serves, and the lease of a killed daemon may be open.
    pub(super) async fn has_long_token(&self, number: usize, short: &Short) {
        loop {
            self.works(number).await;
            let row = self.row(number);
            let ends = row["signIn"]["expiresAt"].as_str().unwrap();
            if Timestamp::read(ends).unwrap() > short.ends {
                return;
            }
        }
    }

    /// One call, which must be answered.
    pub(super) async fn works(&self, number: usize) {
        all_work(self.calls(number, 1)).await;
    }

    /// Calls one after another, until this is dropped.
    pub(super) async fn calls_on(&self, number: usize) {
        loop {
            self.works(number).await;
        }
    }

    /// Starts calls at a daemon, all at once.
    pub(super) fn calls(&self, number: usize, count: usize) -> Calls {
        let peer = self.peers[number].as_ref().unwrap();
        let mut calls = JoinSet::new();
        for _ in 0..count {
            let (address, token) = (peer.address, peer.token.clone());
            calls.spawn(async move {
                let began = Instant::now();
                let called = try_call(address, &token).await;
                (called, began.elapsed())
            });
        }
        calls
    }
}

/// Waits for calls, which must all be answered. Gives the longest time that one took.
pub(super) async fn all_work(mut calls: Calls) -> Duration {
    let mut longest = Duration::ZERO;
    while let Some(done) = calls.join_next().await {
        let (called, took) = done.unwrap();
        let answer = called.unwrap();
        assert!(is_right(&answer), "after {took:?}: {answer}");
        longest = longest.max(took);
    }
    longest
}

/// Waits for calls of a daemon that was killed: those that were answered are right. Gives the
/// number of the others.
pub(super) async fn lost(mut calls: Calls) -> usize {
    let mut lost = 0;
    while let Some(done) = calls.join_next().await {
        match done.unwrap() {
            (Ok(answer), took) => assert!(is_right(&answer), "after {took:?}: {answer}"),
            (Err(_broken), _) => lost += 1,
        }
    }
    lost
}

/// True if the server answered a call as the person who has signed in.
pub(super) fn is_right(answer: &Value) -> bool {
    answer["result"]["content"][0]["text"] == "ada"
}

/// The answer to one call, on a connection of its own.
async fn try_call(address: SocketAddr, token: &str) -> Called {
    let stream = TcpStream::connect(address).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let message = modern(1, "tools/call", call("whoami", json!({})));
    let mut builder = Request::builder()
        .method("POST")
        .uri("/mcp/tracker")
        .header("host", address.to_string())
        .header("authorization", format!("Bearer {token}"))
        .header("accept", "application/json, text/event-stream")
        .header("content-type", "application/json");
    for (name, value) in modern_headers("tools/call", Some("whoami")) {
        builder = builder.header(name, value);
    }
    let request = builder.body(Full::new(Bytes::from(message.to_string())))?;
    let answered = async move {
        let response = sender.send_request(request).await?;
        response.into_body().collect().await
    };
    // The connection ends with its one request.
    let (_ended, answered) = tokio::join!(connection, answered);
    let body = answered?.to_bytes();
    let text = std::str::from_utf8(&body)?;
    // Of a stream, the last event is the answer.
    let text = text.rsplit("data: ").next().unwrap_or_default();
    Ok(serde_json::from_str(text)?)
}

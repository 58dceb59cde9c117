//! A daemon that is killed while it creates runs: each stored run is whole afterwards.

mod books;
pub(crate) mod chance;
mod life;
pub(crate) mod processes;

use std::{
    io::Write,
    net::TcpListener,
    path::Path,
    process::Stdio,
    sync::{Arc, Mutex},
};

use fs_err as fs;
use narthex_control::SecretRows;
use narthex_model::{RunId, SessionId, WorkspaceId};
use narthex_store::Store;
use narthex_testkit::fixture::{Options, Running};
use narthex_vault::{KeyFile, SealedBackend, Vault};
use serde_json::{Value, json};
use tokio::net::{UnixStream, unix::pipe};

use self::{
    books::{Books, Stored},
    chance::Chance,
    life::{Life, LifeOptions},
    processes::{wait_until_nobody_works_in, working_in},
};
use crate::support::{Daemon, Done, Place, fixture};

/// Number of creations that are requested.
const CREATIONS: usize = 500;
/// Largest number of events in a life of the daemon: sent requests, received answers, and started
/// programs.
const EVENTS_MAX: usize = 120;

/// Puts three servers into the catalog: a program, a server over HTTP, and one that does not start.
fn put_catalog(place: &Place, fifo: &Path, url: &str) {
    let script =
        format!("echo started > '{}'; exec '{}' --stdio", fifo.display(), fixture().display());
    let sensitive = json!({ "type": "string", "required": true, "sensitive": true });
    let told =
        |key: &str| json!({ key: sensitive, "context": { "type": "string", "required": true } });
    let by = |server: &str, key: &str| {
        let config = json!({ key: "${KEY}", "context": "${scope.context_id}" });
        json!({ "ref": server, "config": config })
    };
    let both = json!({ "files": by("files", "API_KEY"), "remote": by("remote", "api_key") });
    let spawnable = json!(["both", "remote"]);
    let document = json!({
        "servers": [
            { "id": "files", "type": "stdio", "command": "sh", "args": ["-c", script],
              "config_schema": told("API_KEY") },
            { "id": "remote", "url": url, "config_schema": told("api_key") },
            { "id": "gone", "type": "stdio", "command": "no-such-program" },
        ],
        "agents": [
            { "name": "both", "mcpServers": both, "spawnable_agents": spawnable },
            { "name": "remote", "mcpServers": { "remote": by("remote", "api_key") },
              "spawnable_agents": spawnable },
            { "name": "broken", "mcpServers": { "gone": { "ref": "gone" },
              "files": by("files", "API_KEY") } },
        ],
    });
    let mut command = place.command(["secrets", "set", "KEY", "--quiet"]);
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"value-of-key").unwrap();
    Done::from(child.wait_with_output().unwrap()).succeeded();
    for (kind, id) in [("servers", "id"), ("agents", "name")] {
        for object in document[kind].as_array().unwrap() {
            let file = format!("{kind}-{}.json", object[id].as_str().unwrap());
            place.write(&file, &object.to_string());
            place.run([kind, "apply", "--file", &file]).succeeded();
        }
    }
}

/// A port that no other process gets: outside of the range from which the system chooses ports.
pub(crate) fn port_of_our_own(chance: &mut Chance) -> u16 {
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap();
    let first: usize = range.split_whitespace().next().unwrap().parse().unwrap();
    let from = 2000;
    loop {
        let port = u16::try_from(from + chance.below(first - from)).unwrap();
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// The daemon's place, and all that stays the same from one life to the next.
struct World {
    place: Place,
    port: u16,
}

impl World {
    fn start(&self) -> Daemon {
        let listen = format!("127.0.0.1:{}", self.port);
        self.place.start(&["up", "--config", "mcp.json", "--listen", &listen])
    }

    /// Starts it after a death: its port and its sockets are there again.
    async fn start_again(&self) -> Daemon {
        let daemon = self.start();
        let listening = daemon.event("listening");
        daemon.event("ready");
        let socket = Path::new(listening["socket"].as_str().unwrap());
        let connected = UnixStream::connect(socket).await;
        connected.unwrap_or_else(|error| panic!("{}: {error}", socket.display()));
        daemon
    }
}

/// D10, D17, S32: a daemon that is killed at any moment of 500 creations leaves no half run, no
/// process, no port and no socket; its answers to callers hold; the audit has every run once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d17_a_killed_daemon_leaves_no_half_run() {
    let mut chance = Chance::new();
    // Shown if the test fails.
    println!("NARTHEX_TEST_SEED={}", chance.seed);
    let place = Place::with(&json!({}));
    let fifo = place.path("started");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let starts = pipe::OpenOptions::new().read_write(true).open_receiver(&fifo).unwrap();
    let remote = Running::http(Options::default()).await.unwrap();
    let port = port_of_our_own(&mut chance);
    let world = World { place, port };
    let mut books = Books::default();
    let mut daemon = world.start();
    daemon.event("ready");
    put_catalog(&world.place, &fifo, &remote.url);
    let starts = Arc::new(tokio::sync::Mutex::new(starts));
    let admin = fs::read_to_string(world.place.path("data/admin.token")).unwrap();
    let options = LifeOptions { port, admin: admin.trim().to_owned(), starts };
    let mut lives = 0;
    while books.creations() < CREATIONS {
        lives += 1;
        let kill_at = 1 + chance.below(EVENTS_MAX);
        let life = Arc::new(Life::new(&options, daemon.pid(), kill_at));
        let shared = Arc::new(Mutex::new((std::mem::take(&mut books), chance)));
        life.lead(&shared).await;
        (books, chance) = Arc::into_inner(shared).unwrap().into_inner().unwrap();
        daemon.wait();
        wait_until_nobody_works_in(&world.place.path(""));
        if chance.below(4) == 0 {
            // While it starts, too.
            daemon = world.start();
            daemon.event("listening");
            daemon.signal("KILL");
            daemon.wait();
            wait_until_nobody_works_in(&world.place.path(""));
        }
        daemon = world.start_again().await;
        let life = Life::new(&options, daemon.pid(), usize::MAX);
        books.hold_against(&life.stored(&books.sessions(false)).await);
        life.opens_what_was_told(&mut books, &mut chance).await;
    }
    println!("{} creations in {lives} lives; {}", books.creations(), books.summary());
    books.tell_everything_happened();
    let life = Life::new(&options, daemon.pid(), usize::MAX);
    let stored = life.stored(&books.sessions(true)).await;
    books.hold_against(&stored);
    audit_is_whole(&world.place, &books, &stored);
    daemon.signal("TERM");
    assert_eq!(daemon.wait().code(), Some(0));
    assert_eq!(working_in(&world.place.path("")), []);
    what_is_frozen_opens(&world.place, &stored).await;
}

/// Checks that every chain is complete and unchanged, and that each stored run was created once.
fn audit_is_whole(place: &Place, books: &Books, stored: &Stored) {
    let verified = place.run(["audit", "verify", "--json"]).succeeded().json();
    assert!(verified["data"]["events"].as_u64().unwrap() > 0, "{verified}");
    let exported = place.run(["audit", "export"]).succeeded().stdout;
    let events: Vec<Value> =
        exported.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(events.iter().any(|event| event.get("chain").is_some()), "no chain has its end");
    let of = |run: &str| -> Vec<&str> {
        let of = events
            .iter()
            .filter(|event| event["kind"] == "session.run.created" && event["run"] == *run);
        of.map(|event| event["outcome"].as_str().unwrap()).collect()
    };
    for run in stored.runs.keys() {
        let outcomes = of(run);
        let is_told = books.was_told_of(run);
        let is_right = outcomes == ["ok"] || (!is_told && outcomes == ["interrupted"]);
        assert!(is_right, "{run}: {outcomes:?}, told of: {is_told}");
    }
}

/// Frozen parts of runs and sessions are there as long as these live, and open.
async fn what_is_frozen_opens(place: &Place, stored: &Stored) {
    let store = Store::open(&place.path("data/store.db")).await.unwrap();
    let rows = Arc::new(SecretRows::new(store.clone()));
    let keys = Arc::new(KeyFile::new(place.path("data/master.key")));
    let vault = Vault::new(Arc::new(SealedBackend::start(rows, keys).await.unwrap()));
    let here = WorkspaceId::default();
    let mut living = 0;
    for (id, run) in &stored.runs {
        let row = store.runs().find(RunId::parse(id).unwrap()).await.unwrap().unwrap();
        let session = SessionId::parse(&run.session).unwrap();
        let session_row = store.sessions().find(&here, session).await.unwrap().unwrap();
        if session_row.ended_at.is_none() {
            let place = format!("session {}", run.session);
            vault.open_document(&here, &place, &session_row.sealed).await.unwrap();
        }
        if !run.is_running {
            assert_eq!(row.sealed, "", "{id} has ended");
            continue;
        }
        living += 1;
        let text = vault.open_document(&here, &format!("run {id}"), &row.sealed).await.unwrap();
        let frozen: Value = serde_json::from_str(text.expose()).unwrap();
        assert!(frozen.is_object(), "{id}");
    }
    assert!(living > 0, "no run is left whose frozen document could be opened");
    store.close().await;
}

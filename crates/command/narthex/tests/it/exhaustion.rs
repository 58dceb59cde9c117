//! S31: floods and leaks, measured in a separate process.

use narthex_testkit::{
    fixture::{Eras, Options, Running},
    load::{Era, IdlePlan, Target},
};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::{
    support::{Daemon, Place, SOON, descendants, fixture_entry},
    world::{Client, http_entry, initialize},
};

const WORDS: [&str; 5] = ["up", "--config", "mcp.json", "--listen", "127.0.0.1:0"];

/// A daemon, with the facts that its clients need.
struct Up {
    place: Place,
    daemon: Daemon,
    address: std::net::SocketAddr,
    token: String,
}

impl Up {
    fn start(servers: &Value, sessions: usize) -> Self {
        let place = Place::with(servers);
        let daemon = place.start_with(&WORDS, |command| {
            command.env("NARTHEX_LIMITS_SESSIONS", sessions.to_string());
        });
        let listening = daemon.event("listening");
        daemon.event("ready");
        let url: http::Uri = listening["url"].as_str().unwrap().parse().unwrap();
        let token = fs_err::read_to_string(place.path("data/client.token")).unwrap();
        let address = url.authority().unwrap().as_str().parse().unwrap();
        Self { place, daemon, address, token: token.trim().to_owned() }
    }

    fn client(&self, path: &str) -> Client {
        Client::new(self.address, path, &self.token)
    }

    /// Resident memory in KiB.
    fn memory_kib(&self) -> u64 {
        let path = format!("/proc/{}/statm", self.daemon.pid());
        let text = fs_err::read_to_string(path).unwrap();
        let pages: u64 = text.split(' ').nth(1).unwrap().parse().unwrap();
        pages * 4
    }

    /// The children of the daemon.
    fn children(&self) -> Vec<u32> {
        descendants(self.daemon.pid())
    }

    fn end(mut self) {
        self.daemon.signal("TERM");
        assert_eq!(self.daemon.wait().code(), Some(0));
        drop(self.place);
    }
}

/// Sends `count` `initialize` requests over one connection; returns the number of accepted ones.
async fn flood(mut client: Client, count: usize) -> usize {
    let body = initialize(json!({})).to_string();
    let mut taken = 0;
    for _ in 0..count {
        let reply = client.post(&[], body.clone()).await;
        let is_taken = reply.headers.contains_key("mcp-session-id");
        if !is_taken {
            let answer = reply.json();
            let text = answer["error"]["message"].as_str().unwrap();
            assert!(text.contains("too many sessions"), "{answer}");
        }
        taken += usize::from(is_taken);
    }
    taken
}

/// S31: 10,000 handshakes that no client ends: no more sessions than one run may have, and bounded
/// memory.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s31_a_flood_of_handshakes_is_bounded() {
    const MOST: usize = 1000;
    const FLOOD: usize = 10_000;
    let up = Up::start(&json!({}), 2 * MOST);
    flood(up.client("/mcp"), 20).await;
    let before = up.memory_kib();
    let mut clients = JoinSet::new();
    for _ in 0..8 {
        clients.spawn(flood(up.client("/mcp"), FLOOD / 8));
    }
    let mut taken = 20;
    while let Some(ended) = clients.join_next().await {
        taken += ended.unwrap();
    }
    assert_eq!(taken, MOST);
    let grown = up.memory_kib().saturating_sub(before);
    println!("{grown} KiB for {taken} sessions");
    assert!(grown < 16 * 1024, "{grown} KiB for {taken} sessions");
    up.end();
}

/// Opens a session that servers may ask questions, so that it gets a server of its own; uses the
/// session, and ends it.
async fn cycles(mut client: Client, name: &'static str, count: usize) {
    for _ in 0..count {
        client.open_session(json!({"sampling": {}})).await;
        let params = json!({"name": name, "arguments": {"message": "m"}});
        let call = crate::world::legacy(1, "tools/call", params);
        let answer = client.post(&[], call.to_string()).await.json();
        assert_eq!(answer["result"]["content"][0]["text"], "m", "{answer}");
        client.end_session().await;
    }
}

async fn in_parallel(up: &Up, path: &str, name: &'static str, count: usize) {
    let mut clients = JoinSet::new();
    for _ in 0..4 {
        clients.spawn(cycles(up.client(path), name, count / 4));
    }
    while let Some(ended) = clients.join_next().await {
        ended.unwrap();
    }
}

/// S31: 1,000 sessions come and go, each with a child process of its own, and 200 more with their
/// own link to a server over HTTP. They leave no child, no session and no memory behind.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s31_a_thousand_sessions_leave_no_child_and_no_memory() {
    let fixture =
        Running::http(Options { eras: Eras::Legacy, ..Options::default() }).await.unwrap();
    let up = Up::start(&json!({"child": fixture_entry(), "far": http_entry(&fixture.url)}), 10);
    let shared = up.children();
    // The server, and the shim above it.
    assert_eq!(shared.len(), 2);
    in_parallel(&up, "/mcp/child", "echo", 20).await;
    in_parallel(&up, "/mcp/far", "echo", 40).await;
    // On a busy machine more sessions overlap, for which the allocator keeps memory. It does so
    // once; what a session leaves behind adds up again each time.
    let mut grown = Vec::new();
    while grown.len() < 3 && grown.last().is_none_or(|kib| *kib >= 4 * 1024) {
        let before = up.memory_kib();
        in_parallel(&up, "/mcp/child", "echo", 980).await;
        in_parallel(&up, "/mcp/far", "echo", 160).await;
        grown.push(up.memory_kib().saturating_sub(before));
    }
    println!("{grown:?} KiB after all sessions have ended");
    assert!(grown.last().is_some_and(|kib| *kib < 4 * 1024), "{grown:?} KiB, each time more");
    let far = 40 + 160 * u64::try_from(grown.len()).unwrap();
    // The end of a session waits for its children.
    assert_eq!(up.children(), shared);
    // The daemon waits for the servers only a limited time, and a slow server is counted a moment
    // later.
    let given_back = async {
        while fixture.fixture.counts().sessions_deleted < far {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(SOON, given_back).await.expect("a session is not given back");
    let counts = fixture.fixture.counts();
    assert_eq!((counts.initializes, counts.sessions_deleted), (1 + far, far), "{counts:?}");
    up.end();
}

/// Issue, "idle cost": a thousand live sessions, each with an open stream.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s31_a_thousand_idle_sessions_cost_little() {
    // A build for tests keeps more in its futures; the 32 KiB that are aimed at are measured by the
    // benchmark.
    const MOST: u64 = 40 * 1024;
    let mut found = Vec::new();
    // On a busy machine many are opened at one moment, for which the allocator keeps more than they
    // have afterwards: the least of the findings is a session's size.
    while found.len() < 3 && found.last().is_none_or(|each| *each > MOST) {
        let up = Up::start(&json!({}), 2000);
        let target = Target {
            url: format!("http://{}/mcp", up.address).parse().unwrap(),
            authorization: Some(format!("Bearer {}", up.token).parse().unwrap()),
            era: Era::Legacy,
        };
        let watched = vec![up.daemon.pid()];
        let plan = IdlePlan { target, sessions: 1000, has_streams: true, watched };
        // A thousand sessions take a busy machine longer than anything else here.
        let outcome = tokio::time::timeout(10 * SOON, plan.run()).await;
        let outcome = outcome.unwrap().unwrap();
        let each = outcome.after_bytes.saturating_sub(outcome.before_bytes) / 1000;
        println!("{each} bytes for each idle session");
        found.push(each);
        up.end();
    }
    assert!(found.last().is_some_and(|each| *each <= MOST), "{found:?} bytes for each session");
}

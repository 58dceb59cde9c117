//! Calls to servers that are lost, hang, or were disabled: their times, and their errors (D30).
#![expect(clippy::excessive_nesting, reason = "the loop of a server on a bare socket")]

use std::{net::SocketAddr, sync::Arc, time::Duration};

use narthex_gateway::{Caller, Endpoint, GatewayOptions, RunToken, RunView};
use narthex_model::{ServerDefinition, ServerState};
use narthex_policy::RunPolicy;
use narthex_registry::{Snapshot, config::Entry};
use narthex_testkit::fixture::{Eras, Options, Quirk, Running};
use serde_json::{Value, json};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::Instant,
};

use super::{
    scripted::Scripts,
    world::{SOON, World, hastened, http_server, request, transparent},
};

const LIMIT: Duration = Duration::from_secs(4);

/// A fixture behind an address of its own, which can disappear and return.
struct Server {
    address: SocketAddr,
    fixture: Running,
    open: JoinSet<()>,
}

impl Server {
    async fn start(options: Options) -> Self {
        let fixture = Running::http(options).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut server = Self { address, fixture, open: JoinSet::new() };
        server.serve(listener);
        server
    }

    fn serve(&mut self, listener: TcpListener) {
        let behind = self.fixture.url.trim_start_matches("http://");
        let behind = behind.split('/').next().unwrap().to_owned();
        self.open.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((mut near, _)) = listener.accept().await {
                let mut far = TcpStream::connect(&behind).await.unwrap();
                connections
                    .spawn(async move { drop(copy_bidirectional(&mut near, &mut far).await) });
            }
        });
    }

    /// Ends the address and every connection to it.
    async fn leave(&mut self) {
        self.open.shutdown().await;
    }

    async fn come_back(&mut self) {
        let listener = TcpListener::bind(self.address).await.unwrap();
        self.serve(listener);
    }

    fn definition(&self) -> ServerDefinition {
        let mut definition = http_server("one", &format!("http://{}/mcp", self.address));
        definition.timeout = Some(LIMIT);
        definition
    }

    async fn world(&self, change: impl Fn(&mut ServerDefinition)) -> World {
        let mut definition = self.definition();
        change(&mut definition);
        World::settled(vec![Entry::Server(definition)], GatewayOptions::default()).await
    }
}

fn legacy() -> Options {
    Options { eras: Eras::Legacy, ..Options::default() }
}

async fn call(world: &World, caller: &Caller, tool: &str) -> Value {
    let prefix = if caller.endpoint == Endpoint::Aggregated { "mcp__one__" } else { "" };
    let params = json!({"name": format!("{prefix}{tool}"), "arguments": {"message": "hello"}});
    world.call(caller, request(caller, "tools/call", params)).await
}

fn error(answer: &Value) -> (&str, &str) {
    let error = &answer["result"]["structuredContent"]["error"];
    (error["kind"].as_str().unwrap_or_default(), error["message"].as_str().unwrap_or_default())
}

fn is_fine(answer: &Value) -> bool {
    answer["result"]["content"][0]["text"].as_str().is_some_and(|text| text.contains("hello"))
}

async fn fails_within_its_limit(world: &World, caller: &Caller) {
    let since = Instant::now();
    let answer = call(world, caller, "echo").await;
    let (kind, message) = error(&answer);
    assert_eq!(kind, "transport_error", "{answer}");
    assert!(message.contains("connection refused"), "{answer}");
    assert!(since.elapsed() <= LIMIT + Duration::from_millis(100), "{:?}", since.elapsed());
    let row = world.gateway.registry().get("one").unwrap();
    assert_ne!(row.state, ServerState::Ready);
    assert!(row.health.last_failure().is_some());
}

/// D30: waiting for a lost server counts into the limit of the call, whose error then names the
/// cause. The row is not `ready`, and the server returns by itself.
#[tokio::test]
async fn d30_a_call_to_a_lost_server_fails_within_its_timeout() {
    for eras in [Eras::Legacy, Eras::Modern] {
        for endpoint in [transparent("one"), Endpoint::Aggregated] {
            let mut server = Server::start(Options { eras, ..Options::default() }).await;
            let world = server.world(|_| {}).await;
            for caller in world.both_callers(&endpoint).await {
                let list = world.ask(&caller, "tools/list", json!({})).await;
                assert!(list["result"]["tools"].is_array(), "{list}");
                assert!(is_fine(&call(&world, &caller, "echo").await));
                server.leave().await;
                let failing = async {
                    for _ in 0..3 {
                        fails_within_its_limit(&world, &caller).await;
                    }
                };
                hastened(failing).await;
                server.come_back().await;
                let is_up = |all: &Snapshot| all.get("one").unwrap().is_ready();
                world.gateway.registry().wait_until(SOON, is_up).await;
                let answer = call(&world, &caller, "echo").await;
                assert!(is_fine(&answer), "{eras:?} {answer}");
            }
            world.gateway.drain().await;
        }
    }
}

/// D30: a call waits for the attempt to reconnect that is due first. While the next attempt is not
/// due yet, the call fails at once, with the cause.
#[tokio::test]
async fn d30_a_call_waits_for_at_most_one_attempt_to_reconnect() {
    let mut server = Server::start(legacy()).await;
    let world = server.world(|definition| definition.timeout = None).await;
    for caller in world.both_callers(&transparent("one")).await {
        assert!(is_fine(&call(&world, &caller, "echo").await));
    }
    let caller = world.modern_caller(transparent("one"));
    let failing = async {
        // The first attempt is due a second after the loss.
        let mut since = Instant::now();
        server.leave().await;
        for wanted in [1, 0, 0] {
            let answer = call(&world, &caller, "echo").await;
            assert_eq!(since.elapsed().as_secs(), wanted, "{answer}");
            let (kind, message) = error(&answer);
            assert_eq!(kind, "transport_error", "{answer}");
            assert!(message.contains("connection refused"), "{answer}");
            assert!(message.contains("narthex tries again by itself"), "{answer}");
            since = Instant::now();
        }
    };
    hastened(failing).await;
    world.gateway.drain().await;
}

/// D37: no error of a call that its server had taken claims that the server was not reached.
#[tokio::test]
async fn d37_the_error_of_a_delivered_call_states_that_it_may_have_taken_effect() {
    for eras in [Eras::Legacy, Eras::Modern] {
        let mut server = Server::start(Options { eras, ..Options::default() }).await;
        let world = server.world(|definition| definition.timeout = None).await;
        let caller = world.modern_caller(transparent("one"));
        let params = json!({"name": "sleep", "arguments": {"ms": 600_000}});
        let calling = world.call(&caller, request(&caller, "tools/call", params));
        let leaving = async {
            while server.fixture.fixture.counts().calls == 0 {
                tokio::task::yield_now().await;
            }
            server.leave().await;
        };
        let (answer, ()) = tokio::join!(calling, leaving);
        let (kind, message) = error(&answer);
        assert_eq!(kind, "transport_error", "{answer}");
        assert!(!message.contains("connection refused"), "{answer}");
        assert!(message.contains("may have taken effect at the server"), "{answer}");
        world.gateway.drain().await;
    }
}

/// D30: without recovery an error stays, and a call reports it at once.
#[tokio::test]
async fn e34_without_recovery_calls_fail_at_once() {
    let mut server = Server::start(legacy()).await;
    let world = server.world(|definition| definition.recovers = false).await;
    let caller = world.modern_caller(transparent("one"));
    server.leave().await;
    let failed = |snapshot: &Snapshot| snapshot.get("one").unwrap().state == ServerState::Error;
    let failing = async {
        for _ in 0..2 {
            call(&world, &caller, "echo").await;
        }
        world.gateway.registry().wait_until(SOON, failed).await;
    };
    hastened(failing).await;
    // No message is in transit any more, so that the clock moves only if the call waits.
    tokio::time::pause();
    let since = Instant::now();
    let answer = call(&world, &caller, "echo").await;
    assert_eq!(error(&answer).0, "transport_error", "{answer}");
    assert!(error(&answer).1.contains("gave up after 3 attempts"), "{answer}");
    assert_eq!(since.elapsed(), Duration::ZERO);
    world.gateway.drain().await;
}

/// D30: connecting for one client alone counts into the limit of its call.
#[tokio::test]
async fn d30_connecting_counts_into_the_limit() {
    let quirks = vec![Quirk::HangLaterInitialize];
    let server = Server::start(Options { quirks, ..legacy() }).await;
    let world = server.world(|_| {}).await;
    let endpoint = transparent("one");
    let session = world.session(&endpoint, json!({"sampling": {}})).await;
    let caller = Caller::new(world.run.clone(), endpoint, Some(session));
    tokio::time::pause();
    let since = Instant::now();
    let answer = call(&world, &caller, "echo").await;
    assert_eq!(error(&answer).0, "timeout", "{answer}");
    assert!(since.elapsed() <= LIMIT + Duration::from_millis(100), "{:?}", since.elapsed());
    tokio::time::resume();
    world.gateway.drain().await;
}

/// D30: `timeoutMs` limits the call from its acceptance to its answer, whatever the server sends
/// before the answer. Progress extends the limit only where the entry asks.
#[tokio::test]
async fn d30_progress_extends_a_call_only_where_the_entry_asks() {
    for (extends, wanted) in [(None, "timeout"), (Some(Duration::from_secs(60)), "")] {
        let server = Server::start(legacy()).await;
        let world = server.world(|definition| definition.progress_extends = extends).await;
        let caller = world.modern_caller(transparent("one"));
        // The call takes longer than the limit in all, and each pause is much shorter than the
        // limit.
        let params = json!({"name": "progress", "arguments": {"count": 6, "pause_ms": 1000},
            "_meta": {"progressToken": "p"}});
        let calling = world.call(&caller, request(&caller, "tools/call", params));
        let answer = hastened(calling).await;
        assert_eq!(error(&answer).0, wanted, "{extends:?} {answer}");
        world.gateway.drain().await;
    }
}

/// E133: a program that ends after each answer fails no call: the gateway repeats a call that the
/// program has not read at the next process.
#[tokio::test]
async fn e133_calls_succeed_at_a_program_that_ends_after_each_answer() {
    let scripts = Scripts::new();
    let gate = scripts.pipe("gate");
    // The program reads nothing more, and ends when the test has written to the gate.
    let each = format!(
        r#"case $line in *'"method":"tools/call"'*) answer '{{"content":[{{"type":"text","text":
        "hello"}}]}}'; read -r _ < {}; exit 0 ;; esac"#,
        gate.display()
    );
    let each = each.replace("\n        ", "");
    let entry = scripts.entry("one", ["", &each, ""]);
    let world = World::settled(vec![entry], GatewayOptions::default()).await;
    for caller in world.both_callers(&transparent("one")).await {
        for _ in 0..3 {
            assert!(is_fine(&call(&world, &caller, "act").await));
            let next = call(&world, &caller, "act");
            let open = async {
                let gate = gate.clone();
                tokio::task::spawn_blocking(move || fs_err::write(gate, "\n")).await
            };
            let (answer, opened) = tokio::join!(next, open);
            opened.unwrap().unwrap();
            assert!(is_fine(&answer), "{answer}");
            let gate = gate.clone();
            tokio::task::spawn_blocking(move || fs_err::write(gate, "\n")).await.unwrap().unwrap();
        }
    }
    // The last process has just ended: the row shows that until the next process is ready.
    let is_ready = |snapshot: &Snapshot| snapshot.get("one").unwrap().state == ServerState::Ready;
    let last = world.gateway.registry().wait_until(SOON, is_ready).await;
    assert!(is_ready(&last), "{last:?}");
    world.gateway.drain().await;
}

/// D30: an item that a run was shown is not reported as absent to this run when its server is
/// disabled or fails, at either endpoint. For a run that never saw the item, it is absent.
#[tokio::test]
async fn d30_a_listed_item_is_not_reported_as_absent_while_its_server_is_disabled_or_down() {
    let mut server = Server::start(legacy()).await;
    let mut world = server.world(|definition| definition.recovers = false).await;
    let callers = world.both_callers(&Endpoint::Aggregated).await;
    for caller in &callers {
        world.ask(caller, "tools/list", json!({})).await;
    }
    let registry = world.gateway.registry().clone();
    let settled = |snapshot: &Snapshot| snapshot.is_settled();
    registry.disable("one").unwrap();
    for caller in &callers {
        let answer = call(&world, caller, "echo").await;
        assert_eq!(error(&answer).0, "server_disabled", "{answer}");
        let params = json!({"name": "mcp__one__test_simple_prompt"});
        let answer = world.ask(caller, "prompts/get", params).await;
        assert_eq!(answer["error"]["data"]["kind"], "server_disabled", "{answer}");
        let params = json!({"uri": "test://static-text"});
        let answer = world.ask(caller, "resources/read", params).await;
        assert_eq!(answer["error"]["data"]["kind"], "server_disabled", "{answer}");
        let answer = call(&world, caller, "never_there").await;
        assert_eq!(error(&answer).0, "tool_not_found", "{answer}");
    }
    server.leave().await;
    drop(registry.enable("one").unwrap());
    registry.wait_until(SOON, settled).await;
    for caller in &callers {
        let answer = call(&world, caller, "echo").await;
        assert_eq!(error(&answer).0, "transport_error", "{answer}");
    }
    let token = RunToken::generate().unwrap();
    world.run = Arc::new(RunView::new(&token, RunPolicy::AllAttached));
    world.gateway.begin_run(&world.run).unwrap();
    for caller in world.both_callers(&Endpoint::Aggregated).await {
        let answer = call(&world, &caller, "echo").await;
        assert_eq!(error(&answer).0, "tool_not_found", "{answer}");
    }
    world.gateway.drain().await;
}

/// A server that counts pings, and answers a call with their number. After a call with `mute` it
/// ignores pings.
const COUNTS_PINGS: &str = r#"case $line in
  *'"method":"ping"'*)
    pings=$((pings + 1))
    if [ -n "$mute" ]; then continue; fi ;;
  *'"method":"tools/call"'*)
    case $line in *'"mute":true'*) mute=1 ;; esac
    answer "{\"content\":[{\"type\":\"text\",\"text\":\"${pings:-0}\"}]}"; continue ;;
esac"#;

/// R-E13: before a call to a server that had no call for 30 s, the gateway pings it: on the shared
/// link, on a client's own link, and on a bridged link. If the server does not answer within 2 s,
/// its next process gets the call.
#[tokio::test]
async fn r_e13_a_call_pings_a_server_that_was_long_unused() {
    let scripts = Scripts::new();
    let entry = scripts.entry("one", ["", COUNTS_PINGS, ""]);
    let world = World::settled(vec![entry], GatewayOptions::default()).await;
    let asks = json!({"sampling": {}});
    let able = json!({"_meta": {"io.modelcontextprotocol/clientCapabilities": asks.clone()}});
    let shared = world.modern_caller(transparent("one"));
    let own = world.legacy_caller_with(transparent("one"), asks).await;
    for (link, caller, meta) in
        [("shared", &shared, json!({})), ("own", &own, json!({})), ("bridge", &shared, able)]
    {
        let pings = async |mute: bool| {
            let mut params = json!({"name": "act", "arguments": {"mute": mute}});
            params.as_object_mut().unwrap().extend(meta.as_object().unwrap().clone());
            let answer = world.ask(caller, "tools/call", params).await;
            let text = answer["result"]["content"][0]["text"].as_str();
            text.unwrap_or_else(|| panic!("{link}: {answer}")).parse::<u32>().unwrap()
        };
        let leap = async || {
            tokio::time::pause();
            tokio::time::advance(Duration::from_secs(31)).await;
            tokio::time::resume();
        };
        assert_eq!((pings(false).await, pings(false).await), (0, 0), "{link}: used a moment ago");
        leap().await;
        assert_eq!((pings(false).await, pings(true).await), (1, 1), "{link}: asked once");
        leap().await;
        let before = scripts.started("one").len();
        assert_eq!(hastened(pings(false)).await, 0, "{link}: another process");
        assert_eq!(scripts.started("one").len(), before + 1, "{link}");
    }
    world.gateway.drain().await;
}

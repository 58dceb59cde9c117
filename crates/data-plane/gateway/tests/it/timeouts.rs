//! Calls past their time limit, over every transport.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use narthex_gateway::{Caller, GatewayOptions, Step};
use narthex_model::{ServerDefinition, Target};
use narthex_registry::config::Entry;
use narthex_testkit::{
    clock::SteppedClock,
    fixture::{Eras, Fixture, Options, Running, sse},
    peer::{Peer, event, events, result},
};
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::mpsc, task::JoinSet, time::timeout};

use super::{
    fixture_process,
    world::{SOON, World, hastened, http_server, request, transparent},
};

const NAMES: [&str; 5] = ["stdio-legacy", "stdio-modern", "http-legacy", "http-modern", "sse"];

/// The fixture on every transport and in every era.
struct Everywhere {
    definitions: Vec<ServerDefinition>,
    running: Vec<Running>,
    over_sse: Arc<Fixture>,
    _tasks: JoinSet<()>,
}

impl Everywhere {
    async fn start() -> Self {
        let mut tasks = JoinSet::new();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let sse_url = format!("http://{}/sse", listener.local_addr().unwrap());
        let fixture = Fixture::new(Options::default());
        tasks.spawn(sse::serve(fixture.clone(), listener));
        let mut running = Vec::new();
        for eras in [Eras::Legacy, Eras::Modern] {
            running.push(Running::http(Options { eras, ..Options::default() }).await.unwrap());
        }
        let mut over_sse = http_server(NAMES[4], &sse_url);
        if let Target::Http(target) = &mut over_sse.target {
            target.is_sse = true;
        }
        let definitions = vec![
            fixture_process::server(NAMES[0], "legacy"),
            fixture_process::server(NAMES[1], "modern"),
            http_server(NAMES[2], &running[0].url),
            http_server(NAMES[3], &running[1].url),
            over_sse,
        ];
        Self { definitions, running, over_sse: fixture, _tasks: tasks }
    }

    /// Number of calls that arrived at the servers of this process.
    fn calls(&self) -> u64 {
        let over_http = self.running.iter().map(|one| one.fixture.counts().calls);
        over_http.sum::<u64>() + self.over_sse.counts().calls
    }

    /// A gateway with the `wanted` servers, whose calls may take `limit`.
    async fn world(&self, limit: Duration, wanted: impl Fn(&str) -> bool) -> World {
        let mut definitions = self.definitions.clone();
        definitions.retain(|definition| wanted(definition.alias.as_str()));
        for definition in &mut definitions {
            definition.timeout = Some(limit);
        }
        let entries = definitions.into_iter().map(Entry::Server).collect();
        World::settled(entries, GatewayOptions::default()).await
    }
}

async fn sleep_for(world: &World, caller: &Caller, ms: u64) -> Value {
    let params = json!({"name": "sleep", "arguments": {"ms": ms}});
    world.ask(caller, "tools/call", params).await
}

/// Waits until a server has counted one cancelled call.
async fn wait_for_one_cancelled(world: &World, caller: &Caller) {
    loop {
        let params = json!({"name": "fixture_stats", "arguments": {}});
        let answer = world.ask(caller, "tools/call", params).await;
        let counts = answer["result"]["content"][0]["text"].as_str().unwrap_or_default();
        let counts: Value = serde_json::from_str(counts).unwrap_or_else(|_| panic!("{answer}"));
        if counts["cancelled"] == 1 {
            return;
        }
    }
}

/// E44, E87: past its time limit a call fails as `timeout`, and the server is notified. Servers
/// over stdio and legacy servers get a notification, and modern servers over HTTP the end of the
/// stream.
#[tokio::test]
async fn e44_a_call_past_its_timeout_is_cancelled_over_every_transport() {
    let everywhere = Everywhere::start().await;
    // The time is long enough for the counts of a server on a busy machine.
    let world = everywhere.world(Duration::from_secs(10), |_| true).await;
    let late = async |name: &str| {
        let caller = world.modern_caller(transparent(name));
        let answer = timeout(SOON, sleep_for(&world, &caller, 600_000)).await.unwrap();
        let error = &answer["result"]["structuredContent"]["error"];
        assert_eq!(error["kind"], "timeout", "{name}: {answer}");
        assert_eq!(error["message"], "no answer within 10000 ms", "{name}");
    };
    let [a, b, c, d, e] = NAMES.map(late);
    hastened(Box::pin(async { tokio::join!(a, b, c, d, e) })).await;
    let cancelled = async |name: &str| {
        let caller = world.modern_caller(transparent(name));
        timeout(SOON, wait_for_one_cancelled(&world, &caller)).await.expect(name);
    };
    let [a, b, c, d, e] = NAMES.map(cancelled);
    tokio::join!(a, b, c, d, e);
    world.gateway.drain().await;
}

/// Polls tasks and sockets until this time has passed.
async fn polls(time: Duration) {
    let since = SystemTime::now();
    while since.elapsed().is_ok_and(|passed| passed < time) {
        tokio::task::yield_now().await;
    }
}

/// The answer of a server in this process to a call that sleeps for this time. The clock moves by
/// `passes` in all, only after the server sleeps, and in steps between which messages arrive.
async fn slept(
    everywhere: &Everywhere,
    (world, caller): (&World, &Caller),
    ms: u64,
    passes: Duration,
) -> Value {
    let before = everywhere.calls();
    let _stands_still = SteppedClock::by(Duration::ZERO);
    let passing = async {
        while everywhere.calls() == before {
            tokio::task::yield_now().await;
        }
        // A message that has arrived is handled here, and earlier checks end.
        for _ in 0..1000 {
            tokio::task::yield_now().await;
        }
        polls(Duration::from_millis(50)).await;
        let mut left = passes;
        while !left.is_zero() {
            let step = left.min(Duration::from_secs(20));
            tokio::time::advance(step).await;
            left -= step;
            polls(Duration::from_millis(4)).await;
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        biased;
        answer = sleep_for(world, caller, ms) => answer,
        () = passing => unreachable!("the clock stands still until there is an answer"),
    }
}

/// E86: no inner limit ends a call before its own limit, the longest included.
#[tokio::test]
async fn e86_no_inner_limit_ends_a_call_before_its_timeout() {
    let everywhere = Everywhere::start().await;
    let longest = Duration::from_millis(600_000);
    // A child process has its own clock.
    let world = everywhere.world(longest, |name| !name.starts_with("stdio")).await;
    for name in &NAMES[2..] {
        for caller in world.both_callers(&transparent(name)).await {
            let calling = (&world, &caller);
            let half = Duration::from_millis(500);
            let answer = slept(&everywhere, calling, 599_000, longest - half).await;
            let text = answer["result"]["content"][0]["text"].as_str();
            assert_eq!(text, Some("Slept 599000 ms"), "{name}: {answer}");
            let answer = slept(&everywhere, calling, 601_000, longest + half).await;
            let error = &answer["result"]["structuredContent"]["error"];
            assert_eq!(error["message"], "no answer within 600000 ms", "{name}: {answer}");
        }
    }
    world.gateway.drain().await;
}

/// E44: messages of a server before its answer, however fast, keep no call open beyond its limit.
/// Messages that it has sent already count against the limit like later ones.
#[tokio::test]
async fn e44_messages_of_a_server_do_not_extend_a_call_beyond_its_timeout() {
    let limit = Duration::from_secs(5);
    let (hands, mut given) = mpsc::channel(1);
    let peer = Peer::modern(move |seen| match seen.rpc() {
        "tools/list" => {
            let tool = json!({"name": "any", "inputSchema": {"type": "object"}});
            Some(result(seen, &json!({"tools": [tool]})))
        }
        "tools/call" => {
            let (hand, reply) = events();
            hands.try_send((seen.body.clone(), hand)).unwrap();
            Some(reply)
        }
        _ => None,
    })
    .await;
    let mut definition = http_server("raw", &peer.url);
    definition.timeout = Some(limit);
    let world = World::settled(vec![Entry::Server(definition)], GatewayOptions::default()).await;
    tokio::time::pause();
    // This task keeps the clock from moving by itself.
    let mut busy = JoinSet::new();
    busy.spawn(async {
        loop {
            tokio::task::yield_now().await;
        }
    });
    let caller = world.modern_caller(transparent("raw"));
    let call = request(
        &caller,
        "tools/call",
        json!({"name": "any", "arguments": {}, "_meta": {"progressToken": 1}}),
    );
    let calling = async { world.gateway.call(&caller, call).await };
    let (mut answering, given) = tokio::join!(calling, given.recv());
    let (asked, hand) = given.unwrap();
    let token = &asked["params"]["_meta"]["progressToken"];
    let progress = |done: u32| {
        event(&json!({"jsonrpc": "2.0", "method": "notifications/progress",
            "params": {"progressToken": token, "progress": done}}))
    };
    let answer = event(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"content": []}}));
    // All messages arrive at once.
    hand.send([progress(1), progress(2), progress(3), answer].concat()).await.unwrap();
    assert!(matches!(answering.next().await, Some(Step::Message(_))));
    tokio::time::advance(limit).await;
    let Some(Step::Answer(late)) = answering.next().await else {
        panic!("it goes on past its limit");
    };
    let late: Value = serde_json::from_slice(&late.payload.into_bytes()).unwrap();
    assert_eq!(late["result"]["structuredContent"]["error"]["kind"], "timeout", "{late}");
    drop((answering, busy));
    tokio::time::resume();
    timeout(SOON, hand.closed()).await.expect("the connection stays open");
    world.gateway.drain().await;
}

//! Limits of traffic (O100): the calls that count, the refusals, and the places that become free
//! again.

use std::{
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use narthex_gateway::{Answer, Caller, Endpoint, GatewayOptions, RunToken, RunView, Step};
use narthex_model::{TrafficLimits, WorkspaceId, WorkspaceLimits};
use narthex_policy::RunPolicy;
use narthex_registry::config::Entry;
use narthex_testkit::fixture::{Eras, Options, Running};
use narthex_traffic::{MeterKey, MeterKind, Meters, RunMeters};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::world::{World, http_server, request, transparent};

/// Noon of a fixed day: no test runs into midnight.
const NOON: Duration = Duration::from_secs(20_000 * 24 * 60 * 60 + 12 * 60 * 60);
const DAY: u32 = 20_000;

pub(crate) fn limits(value: &Value) -> TrafficLimits {
    let read = WorkspaceLimits::parse(value.to_string().as_bytes(), &mut |place, problem| {
        panic!("{place}: {problem}");
    });
    read.expect("JSON").traffic
}

/// Two servers, `one` with these limits; callers belong to an agent and a workspace.
struct Limited {
    world: World,
    meters: Meters,
}

impl Limited {
    async fn with(of_server: &Value) -> Self {
        let meters = Meters::with_clock(WorkspaceId::default(), Arc::new(|| UNIX_EPOCH + NOON));
        let (mut fixtures, mut entries) = (Vec::new(), Vec::new());
        for name in ["one", "two"] {
            let options = Options { eras: Eras::Both, ..Options::default() };
            let fixture = Running::http(options).await.expect("a fixture");
            let mut definition = http_server(name, &fixture.url);
            if name == "one" {
                definition.traffic = limits(of_server);
            }
            entries.push(Entry::Server(definition));
            fixtures.push(fixture);
        }
        let options = GatewayOptions { meters: meters.clone(), ..GatewayOptions::default() };
        let world = World { fixtures, ..World::settled(entries, options).await };
        let mut limited = Self { world, meters };
        limited.world.run = limited.run();
        limited
    }

    fn key(kind: MeterKind, name: &str) -> MeterKey {
        MeterKey { workspace: WorkspaceId::default(), kind, name: name.into() }
    }

    fn set(&self, kind: MeterKind, name: &str, value: &Value) {
        self.meters.get(&Self::key(kind, name)).set_limits(limits(value));
    }

    fn calls(&self, kind: MeterKind, name: &str) -> u64 {
        self.meters.get(&Self::key(kind, name)).calls(DAY)
    }

    fn open(&self, kind: MeterKind, name: &str) -> u32 {
        self.meters.get(&Self::key(kind, name)).open()
    }

    /// A further run of the agent.
    fn run(&self) -> Arc<RunView> {
        let meter = |kind, name| Some(self.meters.get(&Self::key(kind, name)));
        let meters = RunMeters {
            workspace: meter(MeterKind::Workspace, "default"),
            agent: meter(MeterKind::Agent, "reader"),
            servers: Vec::new(),
        };
        let token = RunToken::generate().expect("randomness");
        let run = Arc::new(RunView::new(&token, RunPolicy::AllAttached).with_meters(meters));
        self.world.gateway.begin_run(&run).expect("a record");
        run
    }

    async fn echo(&self, caller: &Caller, server: &str) -> Value {
        let name = match caller.endpoint {
            Endpoint::Aggregated => format!("mcp__{server}__echo"),
            Endpoint::Transparent(_) => "echo".to_owned(),
        };
        let params = json!({"name": name, "arguments": {"message": "x"}});
        self.world.ask(caller, "tools/call", params).await
    }
}

/// The clock runs from noon while a test runs.
fn is_until_midnight(wait_ms: u64) -> bool {
    (40_000_000..=43_200_000).contains(&wait_ms)
}

fn is_done(answer: &Value) -> bool {
    answer["result"]["content"][0]["text"] == "x"
}

/// The details of a call that a limit refused (D16).
fn refused(answer: &Value) -> &Value {
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    let error = &answer["result"]["structuredContent"]["error"];
    assert_eq!(error["kind"], "limit_exceeded", "{answer}");
    assert!(error["details"]["retry_after_ms"].as_u64() > Some(0), "{answer}");
    &error["details"]
}

/// O100: the limits of a server hold at both of its endpoints and for both eras together. A refusal
/// names the limit and the time after which to try again.
#[tokio::test]
async fn o100_a_servers_quota_holds_for_all_its_callers() {
    let limited = Limited::with(&json!({"calls_per_day": 4})).await;
    let mut callers = Vec::new();
    for endpoint in [transparent("one"), Endpoint::Aggregated] {
        callers.extend(limited.world.both_callers(&endpoint).await);
    }
    for caller in &callers {
        assert!(is_done(&limited.echo(caller, "one").await));
    }
    for caller in &callers {
        let answer = limited.echo(caller, "one").await;
        let details = refused(&answer);
        assert_eq!((&details["limit"], &details["scope"]), (&json!("daily"), &json!("server")));
        assert!(is_until_midnight(details["retry_after_ms"].as_u64().unwrap()), "{details}");
    }
    assert!(is_done(&limited.echo(&callers[2], "two").await), "another server has none");
    let metrics = limited.world.gateway.metrics().render();
    let line = "narthex_calls_limited_total{scope=\"server\",limit=\"daily\"} 4\n";
    assert!(metrics.contains(line), "{metrics}");
    // The error of a tool with an output schema is in a place that no schema describes (D16).
    let params = json!({"name": "add", "arguments": {"a": 1, "b": 2}});
    let shaped = limited.world.ask(&callers[0], "tools/call", params).await;
    assert_eq!(shaped["result"]["structuredContent"], Value::Null, "{shaped}");
    let error = &shaped["result"]["_meta"]["narthex/error"];
    assert_eq!(error["details"]["scope"], "server", "{shaped}");
    limited.world.gateway.drain().await;
}

/// O100, D16: a request other than a tool call is refused by an error with the same details, and
/// 429.
#[tokio::test]
async fn o100_requests_that_are_no_tool_calls_are_refused_by_an_error() {
    let limited = Limited::with(&json!({"calls_per_day": 1})).await;
    let caller = limited.world.modern_caller(transparent("one"));
    let params = || json!({"uri": "test://static-text"});
    let answer = limited.world.ask(&caller, "resources/read", params()).await;
    assert!(answer["result"]["contents"].is_array(), "{answer}");
    let asked = request(&caller, "resources/read", params());
    let mut answering = limited.world.gateway.call(&caller, asked).await;
    let Some(Step::Answer(answer)) = answering.next().await else { panic!("no answer") };
    let Answer { payload, status, retry_after, refused: _ } = answer;
    let wait = retry_after.unwrap().as_millis().try_into().unwrap();
    assert!(status == 429 && is_until_midnight(wait), "{status} {wait}");
    let answer: Value = serde_json::from_slice(&payload.into_bytes()).unwrap();
    let data = &answer["error"]["data"];
    assert_eq!(
        (&data["kind"], &data["details"]["scope"]),
        (&json!("limit_exceeded"), &json!("server"))
    );
    limited.world.gateway.drain().await;
}

/// O100: the gateway's own lists, pings, and calls that no server sees do not count.
#[tokio::test]
async fn o100_only_calls_that_reach_a_server_count() {
    let limited = Limited::with(&json!({"calls_per_day": 2})).await;
    for caller in limited.world.both_callers(&Endpoint::Aggregated).await {
        for method in ["tools/list", "prompts/list", "resources/list"] {
            let answer = limited.world.ask(&caller, method, json!({})).await;
            assert!(answer["result"].is_object(), "{answer}");
        }
    }
    for caller in limited.world.both_callers(&transparent("one")).await {
        let absent = json!({"name": "no_such_tool", "arguments": {}});
        let answer = limited.world.ask(&caller, "tools/call", absent).await;
        assert_eq!(answer["result"]["structuredContent"]["error"]["kind"], "tool_not_found");
    }
    let legacy = limited.world.legacy_caller(transparent("one")).await;
    assert!(limited.world.ask(&legacy, "ping", json!({})).await["result"].is_object());
    assert_eq!(limited.calls(MeterKind::LocalServer, "one"), 0);
    assert_eq!(limited.calls(MeterKind::Agent, "reader"), 0);
    let prompt = json!({"name": "test_simple_prompt"});
    let answer = limited.world.ask(&legacy, "prompts/get", prompt).await;
    assert!(answer["result"].is_object(), "{answer}");
    assert!(is_done(&limited.echo(&legacy, "one").await));
    refused(&limited.echo(&legacy, "one").await);
    assert_eq!(limited.calls(MeterKind::LocalServer, "one"), 2);
    assert_eq!(limited.open(MeterKind::LocalServer, "one"), 0);
    limited.world.gateway.drain().await;
}

/// O100: an agent's limits hold for all of its runs together, and a workspace's limits for all
/// calls in it. Both change while runs are active.
#[tokio::test]
async fn o100_limits_hold_across_runs_and_change_while_runs_live() {
    let limited = Limited::with(&json!({})).await;
    let callers: Vec<_> = [limited.world.run.clone(), limited.run()]
        .map(|run| Caller::new(run, Endpoint::Aggregated, None))
        .into();
    limited.set(MeterKind::Agent, "reader", &json!({"calls_per_day": 2}));
    assert!(is_done(&limited.echo(&callers[0], "one").await));
    assert!(is_done(&limited.echo(&callers[1], "two").await));
    for caller in &callers {
        assert_eq!(refused(&limited.echo(caller, "one").await)["scope"], "agent");
    }
    limited.set(MeterKind::Agent, "reader", &json!({"calls_per_day": 3}));
    assert!(is_done(&limited.echo(&callers[1], "one").await), "counted on, not anew");
    assert_eq!(refused(&limited.echo(&callers[0], "one").await)["scope"], "agent");
    limited.set(MeterKind::Agent, "reader", &json!({}));
    limited.set(MeterKind::Workspace, "default", &json!({"calls_per_day": 3}));
    assert_eq!(refused(&limited.echo(&callers[0], "one").await)["scope"], "workspace");
    assert_eq!(limited.calls(MeterKind::Workspace, "default"), 3);
    limited.world.gateway.drain().await;
}

/// O100: a place among the open calls becomes free by the answer, and by a caller that disconnects:
/// before it reads the answer, or in the middle of sending.
#[tokio::test]
async fn o100_an_answered_or_dropped_call_gives_its_place_back() {
    let limited = Limited::with(&json!({"concurrent_calls": 1})).await;
    let caller = limited.world.modern_caller(transparent("one"));
    let slow =
        || request(&caller, "tools/call", json!({"name": "sleep", "arguments": {"ms": 600_000}}));
    for round in 0..10_usize {
        let mut calling = Box::pin(limited.world.gateway.call(&caller, slow()));
        let place = || limited.open(MeterKind::LocalServer, "one");
        // Some calls are dropped in the middle of being sent, and the others while they are
        // answered.
        if round % 2 == 0 {
            let answering = calling.await;
            assert_eq!(place(), 1);
            assert_eq!(refused(&limited.echo(&caller, "one").await)["limit"], "concurrency");
            drop(answering);
        } else {
            for _ in 0..round {
                tokio::select! {
                    biased;
                    answering = &mut calling => { drop(answering); break }
                    () = tokio::task::yield_now() => {}
                }
            }
            drop(calling);
        }
        assert_eq!(place(), 0, "round {round}");
        assert!(is_done(&limited.echo(&caller, "one").await), "round {round}");
    }
    limited.world.gateway.drain().await;
}

/// O100: a client that cancels its call frees the call's place, too.
#[tokio::test]
async fn o100_a_cancelled_call_gives_its_place_back() {
    let limited = Limited::with(&json!({"concurrent_calls": 1})).await;
    let caller = limited.world.legacy_caller(transparent("one")).await;
    let slow =
        request(&caller, "tools/call", json!({"name": "sleep", "arguments": {"ms": 600_000}}));
    let mut answering = limited.world.gateway.call(&caller, slow).await;
    assert_eq!(limited.open(MeterKind::LocalServer, "one"), 1);
    let cancel =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}});
    limited.world.gateway.notify(&caller, super::world::parse(&cancel)).await;
    assert!(answering.next().await.is_none());
    assert_eq!(limited.open(MeterKind::LocalServer, "one"), 0);
    limited.world.gateway.drain().await;
}

/// O100: with many callers at once, exactly a day's calls are made, and all others are refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn o100_a_quota_is_exact_under_many_callers() {
    let limited = Arc::new(Limited::with(&json!({"calls_per_day": 25})).await);
    let mut tasks = JoinSet::new();
    for _ in 0..64 {
        let limited = limited.clone();
        tasks.spawn(async move {
            let caller = limited.world.modern_caller(transparent("one"));
            let answer = limited.echo(&caller, "one").await;
            if is_done(&answer) { true } else { refused(&answer)["limit"] != "daily" }
        });
    }
    let done = tasks.join_all().await.into_iter().filter(|is_done| *is_done).count();
    assert_eq!(done, 25);
    assert_eq!(limited.calls(MeterKind::LocalServer, "one"), 25);
    limited.world.gateway.drain().await;
}

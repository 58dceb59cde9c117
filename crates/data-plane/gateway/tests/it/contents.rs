//! Contents of calls, in the record of workspaces that ask for them (X-M64).

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::STANDARD};
use narthex_audit::{Audit, AuditSettings};
use narthex_gateway::{Caller, Endpoint, GatewayOptions, RunToken, RunView};
use narthex_model::{Secret, WorkspaceId};
use narthex_policy::RunPolicy;
use narthex_registry::config::Entry;
use narthex_testkit::fixture::{Eras, Options, Running};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::world::{SOON, World, http_server, legacy, modern, transparent};

/// The secret of the server `one`.
const SECRET: &str = "hunter2-of-the-server";
/// The secret of the run's agent.
const AGENTS: &str = "hunter3-of-the-agent";

/// A gateway over the fixtures `one` and `two` that records all calls.
struct Recorded {
    world: World,
    audit: Audit,
    dir: TempDir,
    _fixtures: Vec<Running>,
}

impl Recorded {
    async fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let audit = Audit::open(dir.path(), &AuditSettings::default()).unwrap();
        let (mut fixtures, mut entries) = (Vec::new(), Vec::new());
        for name in ["one", "two"] {
            let options = Options { eras: Eras::Both, ..Options::default() };
            let fixture = Running::http(options).await.unwrap();
            let mut definition = http_server(name, &fixture.url);
            if name == "one" {
                definition.filled_in.push(Secret::new(SECRET));
            }
            entries.push(Entry::Server(definition));
            fixtures.push(fixture);
        }
        let mut world = World::recorded(entries, GatewayOptions::default(), None, audit.clone());
        let token = RunToken::generate().unwrap();
        let run = RunView::new(&token, RunPolicy::AllAttached);
        world.run = Arc::new(run.with_secrets(vec![Secret::new(AGENTS)]));
        world.gateway.begin_run(&world.run).unwrap();
        let settled = |snapshot: &narthex_registry::Snapshot| snapshot.is_settled();
        world.gateway.registry().wait_until(SOON, settled).await;
        Self { world, audit, dir, _fixtures: fixtures }
    }

    fn switch(&self, is_on: bool) {
        let on = is_on.then(WorkspaceId::default);
        self.audit.keep_contents_of(&on.into_iter().collect());
    }

    /// Calls a tool of the server and an absent tool as the caller, and returns the stored
    /// contents.
    async fn calls_carry(
        &self,
        caller: &Caller,
        (echo, word): (&str, &str),
        is_on: bool,
        seen: &mut usize,
    ) {
        let said = |name| json!({"name": name, "arguments": {"message": word}});
        let answer = self.world.ask(caller, "tools/call", said(echo)).await;
        assert_eq!(answer["result"]["content"][0]["text"], word, "{answer}");
        self.world.ask(caller, "tools/call", said("absent")).await;
        self.world.ask(caller, "tools/list", json!({})).await;
        let calls = self.calls(seen).await;
        let is_tool = |call: &Value| call["resource"]["kind"] == "tool";
        let about: Vec<_> = calls.iter().filter(|call| is_tool(call)).collect();
        assert_eq!(about.len(), 2, "{calls:?}");
        for call in &calls {
            assert_eq!(has_contents(call), is_on && is_tool(call), "{call}");
            assert!(is_on || !call.to_string().contains(word), "{call}");
        }
        if is_on {
            let asked = text(about[0], "request");
            assert!(asked.contains(&format!(r#""message":"{word}""#)), "{asked}");
            let kept: Value = serde_json::from_str(text(about[0], "answer")).unwrap();
            assert_eq!(kept, answer);
            assert!(text(about[1], "answer").contains("there is no tool"), "{calls:?}");
        }
    }

    /// The calls that were recorded since the last call of this function.
    async fn calls(&self, seen: &mut usize) -> Vec<Value> {
        self.audit.flush().await;
        let text = fs_err::read_to_string(self.dir.path().join("audit.jsonl")).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let calls: Vec<_> = lines.filter(|line| line["details"]["method"].is_string()).collect();
        let new = calls[*seen..].to_vec();
        *seen = calls.len();
        new
    }
}

fn text<'v>(call: &'v Value, side: &str) -> &'v str {
    let text = call["details"]["contents"][side]["text"].as_str();
    text.unwrap_or_else(|| panic!("there is no {side} in {call}"))
}

fn has_contents(call: &Value) -> bool {
    call["details"].get("contents").is_some()
}

/// X-M64, A-8: in a live run, calls are recorded without contents before the switch is on, and
/// after it is off. This holds at either kind of endpoint, for clients of either era.
#[tokio::test]
async fn x_m64_the_switch_for_contents_applies_to_live_runs() {
    let recorded = Recorded::start().await;
    let (world, mut seen) = (&recorded.world, 0);
    for (endpoint, prefix) in [(transparent("one"), ""), (Endpoint::Aggregated, "mcp__one__")] {
        for caller in world.both_callers(&endpoint).await {
            let echo = format!("{prefix}echo");
            for (is_on, word) in [(false, "before"), (true, "during"), (false, "after")] {
                recorded.switch(is_on);
                recorded.calls_carry(&caller, (&echo, word), is_on, &mut seen).await;
            }
        }
    }
    world.gateway.drain().await;
}

/// X-M64: contents of prompts and resources are stored like those of tools, also for the gateway's
/// own tools. Both rounds of a request with a question of the server are stored, too.
#[tokio::test]
async fn x_m64_contents_of_prompts_resources_and_rounds_are_recorded() {
    let recorded = Recorded::start().await;
    let (world, mut seen) = (&recorded.world, 0);
    recorded.switch(true);
    let caller = world.modern_caller(Endpoint::Aggregated);
    let one = transparent("one");
    let direct = world.modern_caller(one);
    world.ask(&direct, "resources/read", json!({"uri": "test://static-text"})).await;
    world.ask(&direct, "prompts/get", json!({"name": "test_simple_prompt"})).await;
    world.ask(&direct, "prompts/get", json!({"name": "no_such_prompt"})).await;
    let uri = json!({"uri": "test://static-text"});
    let own = json!({"name": "mcp__one__read_resource", "arguments": uri});
    world.ask(&caller, "tools/call", own).await;
    let calls = recorded.calls(&mut seen).await;
    let expected = [
        ("test://static-text", "contents"),
        ("test_simple_prompt", "messages"),
        ("no_such_prompt", "error"),
        ("test://static-text", "content"),
    ];
    assert_eq!(calls.len(), expected.len(), "{calls:?}");
    for (call, (asked, answered)) in calls.iter().zip(expected) {
        assert!(text(call, "request").contains(asked), "{call}");
        assert!(text(call, "answer").contains(&format!("\"{answered}\":")), "{call}");
    }

    let capabilities = json!({"io.modelcontextprotocol/clientCapabilities":
        {"elicitation": {}, "sampling": {}, "roots": {}}});
    let name = "test_input_required_result_request_state";
    let mut params = json!({"name": name, "arguments": {}, "_meta": capabilities});
    let first = world.call(&direct, modern(1, "tools/call", params.clone())).await;
    let key = first["result"]["inputRequests"].as_object().unwrap().keys().next().unwrap();
    let content = json!({"confirmed": true, "name": "x", "ok": true, "confirm": true});
    params["inputResponses"] = json!({key: {"action": "accept", "content": content}});
    params["requestState"] = first["result"]["requestState"].clone();
    let second = world.call(&direct, modern(2, "tools/call", params)).await;
    assert_eq!(second["result"]["resultType"], "complete", "{second}");
    let calls = recorded.calls(&mut seen).await;
    // The answer is stored as the caller got it, so that the server's state is sealed.
    assert_eq!(serde_json::from_str::<Value>(text(&calls[0], "answer")).unwrap(), first);
    assert!(text(&calls[1], "request").contains("inputResponses"), "{calls:?}");

    let task = super::tasks::start(world, &direct, "slow_compute", json!({"seconds": 1})).await;
    world.ask(&direct, "tasks/cancel", json!({"taskId": task})).await;
    let calls = recorded.calls(&mut seen).await;
    assert!(text(&calls[0], "answer").contains(&task), "{calls:?}");
    assert!(text(&calls[1], "request").contains(&task), "{calls:?}");
    world.gateway.drain().await;
}

/// X-M64: secrets of any server of the run and of its agent are removed from arguments and answers
/// of every server, as they are and in base64. Tokens of runs are removed, too.
#[tokio::test]
async fn x_m64_secrets_are_redacted_in_recorded_contents() {
    let recorded = Recorded::start().await;
    let (world, mut seen) = (&recorded.world, 0);
    recorded.switch(true);
    let token = RunToken::generate().unwrap();
    let said = [SECRET, AGENTS, token.expose(), &STANDARD.encode(SECRET), &STANDARD.encode(AGENTS)];
    let caller: Caller = world.modern_caller(Endpoint::Aggregated);
    let params = json!({"name": "mcp__two__echo", "arguments": {"message": said.join(" ")}});
    let answer = world.ask(&caller, "tools/call", params).await;
    assert!(answer.to_string().contains(AGENTS), "it is not the gateway that takes them out");
    let calls = recorded.calls(&mut seen).await;
    for side in ["request", "answer"] {
        let kept = text(&calls[0], side);
        assert_eq!(kept.matches("[redacted]").count(), said.len(), "{kept}");
        assert_eq!(calls[0]["details"]["contents"][side]["redacted"], true);
    }
    let text = calls[0].to_string();
    for secret in said {
        assert!(!text.contains(&secret[..10]), "{text}");
    }
    world.gateway.drain().await;
}

/// X-M64: the beginning of a long text is stored, with its size and a digest.
#[tokio::test]
async fn x_m64_long_arguments_and_answers_are_recorded_in_part() {
    let recorded = Recorded::start().await;
    let (world, mut seen) = (&recorded.world, 0);
    recorded.switch(true);
    let caller = world.modern_caller(transparent("two"));
    let long = "ä".repeat(100_000);
    let params = json!({"name": "echo", "arguments": {"message": long}});
    let answer = world.ask(&caller, "tools/call", params).await;
    assert_eq!(answer["result"]["content"][0]["text"], long);
    let calls = recorded.calls(&mut seen).await;
    for side in ["request", "answer"] {
        let kept = &calls[0]["details"]["contents"][side];
        let length = text(&calls[0], side).len();
        assert!((16_000..=16_384).contains(&length), "{length}");
        assert!(kept["bytes"].as_u64().unwrap() > 200_000, "{kept}");
        assert_eq!(kept["truncated"], true);
        assert!(kept["digest"].as_str().unwrap().starts_with("sha256:"), "{kept}");
    }
    world.gateway.drain().await;
}

/// S27: a secret that a caller puts into a URI or any other name stays out of the record. This
/// holds for an existing item and an absent one, and for each spelling in a URI.
#[tokio::test]
async fn s27_secrets_in_names_and_uris_of_callers_are_not_recorded() {
    let recorded = Recorded::start().await;
    let world = &recorded.world;
    let template = "test://template/ID/data";
    let uris = [
        template.replace("ID", SECRET),
        template.replace("ID", "%68unter2-of-the-server"),
        format!("absent://{AGENTS}"),
    ];
    let mut expected = 0;
    for endpoint in [transparent("one"), Endpoint::Aggregated] {
        for caller in world.both_callers(&endpoint).await {
            let named = [
                ("prompts/get", json!({"name": SECRET})),
                ("tools/call", json!({"name": SECRET, "arguments": {}})),
                (&*format!("vendor/{AGENTS}"), json!({})),
                ("resources/subscribe", json!({"uri": uris[0]})),
                ("tasks/get", json!({"taskId": SECRET})),
            ];
            let reads = uris.iter().map(|uri| ("resources/read", json!({"uri": uri})));
            for (method, params) in reads.chain(named) {
                let request = match caller.session.is_some() {
                    true => legacy(7, method, params),
                    false => modern(7, method, params),
                };
                world.call(&caller, request).await;
                expected += 1;
            }
        }
    }
    let calls = recorded.calls(&mut 0).await;
    // A method that an era does not have is answered without a record.
    assert!(calls.len() > expected / 2, "{} of {expected}", calls.len());
    let text = serde_json::to_string(&calls).unwrap();
    for secret in [SECRET, AGENTS, "%68unter2", "hunter2"] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
    assert!(text.contains("test://template/[redacted]/data"), "{text}");
    world.gateway.drain().await;
}

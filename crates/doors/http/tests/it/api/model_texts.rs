//! Checks that texts for models at MCP doors name nothing that only operators can use (D28).

use narthex_store::Store;
use serde_json::{Map, Value, json};
use tokio::time::timeout;

use super::{
    built_in::{Run, agent_with_a_gated_tool, with_tools},
    world::{Api, SOON},
};
use crate::world::whole;

/// Strings that occur only in commands and addresses of operators.
const MARKS: [&str; 3] = ["narthex ", "grants create", "/api/"];

fn is_for_models(text: &str) {
    for mark in MARKS {
        assert!(!text.contains(mark), "`{mark}` in {text}");
    }
}

/// Arguments that match a tool's schema and refer to nothing that exists.
fn arguments(schema: &Value) -> Value {
    let names = schema["required"].as_array().cloned().unwrap_or_default();
    let member = |name: &Value| {
        let name = name.as_str().unwrap().to_owned();
        let value = of_type(&schema["properties"][&name]);
        (name, value)
    };
    names.iter().map(member).collect::<Map<_, _>>().into()
}

fn of_type(schema: &Value) -> Value {
    if let Some(first) = schema["enum"].get(0) {
        return first.clone();
    }
    match schema["type"].as_str() {
        Some("integer" | "number") => json!(1),
        Some("boolean") => json!(true),
        Some("array") => json!([of_type(&schema["items"])]),
        Some("object") => json!({ "scope": "a.b", "child_agent_id": "absent" }),
        _ => json!("absent"),
    }
}

/// D28: each built-in tool is called without arguments, with matching ones and with wrong ones. The
/// runs have servers; one of them may not ask humans. Gated, absent and disabled items are called
/// too.
#[tokio::test]
async fn d28_no_answer_to_a_model_names_a_command_or_route_of_operators() {
    let place = tempfile::tempdir().unwrap();
    let store = Store::open(&place.path().join("store.db")).await.unwrap();
    let api = Api::with_all(&json!({}), store, &place.path().join("master.key")).await;
    agent_with_a_gated_tool(&api).await;
    let here = "/api/workspaces/default";
    for asks in [true, false] {
        let settings = json!({ "runtime_requests": asks }).to_string();
        api.send("PATCH", here, settings).await.succeeded();
        let run = Run::begin(&api).await;
        let listed = run.ask("/mcp/narthex", "tools/list", json!({})).await.json();
        is_for_models(&listed.to_string());
        is_for_models(&run.ask("/mcp", "server/discover", json!({})).await.json().to_string());
        let tools = listed["result"]["tools"].as_array().unwrap();
        // The tool that ends the run is called last.
        let (last, others): (Vec<_>, Vec<_>) =
            tools.iter().partition(|tool| tool["name"] == "end_session");
        assert!(others.len() > 10, "{listed}");
        for tool in others.into_iter().chain(last) {
            let name = tool["name"].as_str().unwrap();
            for given in [json!({}), json!({ "\u{e9}": 1 }), arguments(&tool["inputSchema"])] {
                is_for_models(&run.call(name, given).await.to_string());
            }
        }
        let run = Run::begin(&api).await;
        let refused = run.echo().await;
        is_for_models(&refused.to_string());
        let text = refused["content"][0]["text"].as_str().unwrap();
        assert!(text.len() <= 300, "{text}");
        let is_named = text.contains("`mcp__narthex__request_grant`");
        assert_eq!((is_named, text.contains("a human must allow it")), (asks, !asks), "{text}");
        for (method, params) in [
            ("tools/call", json!({ "name": "mcp__demo__absent", "arguments": {} })),
            ("resources/read", json!({ "uri": "absent://x" })),
            ("prompts/get", json!({ "name": "absent" })),
            ("absent/method", json!({})),
        ] {
            for path in ["/mcp", "/mcp/demo", "/mcp/absent"] {
                is_for_models(run.ask(path, method, params.clone()).await.text());
            }
        }
    }
}

/// The refusal of a request for a run that is no JSON object has a fault with its place, and no
/// empty quotes.
#[tokio::test]
async fn a_fault_of_an_unreadable_request_names_the_body() {
    let place = tempfile::tempdir().unwrap();
    let store = Store::open(&place.path().join("store.db")).await.unwrap();
    let api = Api::with_all(&json!({}), store, &place.path().join("master.key")).await;
    for body in ["{", "[]"] {
        let refused = api.send("POST", "/api/workspaces/default/runs", body).await;
        let problem = refused.json();
        assert_eq!(problem["errors"][0]["path"], "body", "{body}: {problem}");
        assert!(!refused.text().contains("``"), "{body}: {problem}");
    }
}

/// D28: a run's token reads no secret, key, command, path, program output or catalog id, whether
/// the failing server is required or optional. Operators read them.
#[tokio::test]
async fn d28_the_token_of_a_run_does_not_read_the_configuration_of_servers() {
    const SET_UP: [&str; 4] = ["hush", "api_key", "default_config", "config."];
    let place = tempfile::tempdir().unwrap();
    let store = Store::open(&place.path().join("store.db")).await.unwrap();
    let api = Api::with_all(&json!({}), store, &place.path().join("master.key")).await;
    let here = "/api/workspaces/default";
    let server = json!({ "command": "/absent/hush-server", "args": ["@hush/package"],
        "config_schema": { "api_key": { "sensitive": true }, "other": {} },
        "default_config": { "api_key": "a literal value" } });
    api.send("PUT", &format!("{here}/mcp-servers/hush-id"), server.to_string()).await.succeeded();
    for (name, agent) in [
        ("strict", json!({ "mcpServers": { "docs": { "ref": "hush-id" } } })),
        ("lenient", json!({ "mcpServers": { "docs": { "ref": "hush-id", "optional": true } } })),
        (
            "lead",
            json!({ "agent_type": "orchestrator",
                         "spawnable_agents": ["strict", "lenient"] }),
        ),
    ] {
        let path = format!("{here}/agents/{name}");
        api.send("PUT", &path, with_tools(agent)).await.succeeded();
    }
    let lead = Run::of(&api, "lead").await;
    let bearer = format!("Bearer {}", lead.token);
    let asked = |agent: &str| json!({ "type": "start_session", "agent_name": agent }).to_string();
    let as_run = |method: &str, path: &str| {
        let request = api.world.request(method.parse().unwrap(), path);
        request.header("authorization", &bearer).header("content-type", "application/json")
    };
    let runs = format!("{here}/runs");

    let refused = as_run("POST", &runs).body(whole(asked("strict"))).send().await;
    let detail = "no run was created: its servers fail to start; a human must repair it";
    let told = json!({ "type": "about:blank", "title": "Service Unavailable", "status": 503,
        "kind": "unavailable", "detail": detail, "error": detail, "code": "child_not_started" });
    assert_eq!(refused.json(), told);
    let by_operator = api.send("POST", &runs, asked("strict")).await;
    assert!(by_operator.text().contains("hush-server"), "{}", by_operator.text());

    let began = as_run("POST", &runs).body(whole(asked("lenient"))).send().await.succeeded();
    for mark in SET_UP {
        assert!(!began.to_string().contains(mark), "`{mark}` in {began}");
    }
    assert_eq!(began["servers"][0]["alias"], "docs", "{began}");
    let by_operator = api.send("POST", &runs, asked("lenient")).await.succeeded();
    let warning = "servers.hush-id.default_config.api_key: a sensitive key has a literal value";
    assert!(by_operator["warnings"].to_string().contains(warning), "{by_operator}");
    let error = by_operator["servers"][0]["error"].to_string();
    assert!(error.contains("hush-server"), "{error}");

    // Events of sessions, as a run reads its own and those of its child.
    let events = format!("{here}/sessions/{}/events", lead.session);
    let own = as_run("GET", &events).send().await.json();
    let items = own["items"].as_array().unwrap();
    let refused = items.iter().find(|one| one["type"] == "session.run_refused").unwrap();
    assert_eq!(refused["payload"]["faults"], json!([{ "code": "transport_error" }]), "{own}");
    let all = api.get(&events).await.to_string();
    assert!(all.contains(r#""server":"docs""#), "{all}");
    let of = began["session_id"].clone();
    let output = lead.called("read_child_output", json!({ "child_session_id": of })).await;
    for text in [own.to_string(), output.to_string()] {
        for mark in SET_UP {
            assert!(!text.contains(mark), "`{mark}` in {text}");
        }
    }
    assert!(output.to_string().contains("mcp.error"), "{output}");
}

/// A server that lists one tool, and exits at the first call after writing the reason to standard
/// error.
const ENDS: &str = r#"answer() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
capabilities='"capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}'
while read -r line; do
    id=$(printf '%s' "$line" | sed 's/.*"id"://; s/[,}].*//')
    case "$line" in
        *'"tools/call"'*) echo "Error: hush has no licence" >&2; exit 7;;
        *'"initialize"'*)
            answer '"result":{"protocolVersion":"2025-11-25",'"$capabilities"'}';;
        *'"tools/list"'*)
            answer '"result":{"tools":[{"name":"act","inputSchema":{"type":"object"}}]}';;
        *'"id"'*) answer '"error":{"code":-32601,"message":"no"}';;
    esac
done"#;

/// Reads until the text contains `mark`, while the run's server is down. If the server was
/// restarted in between, a call ends it again.
async fn while_away(run: &Run<'_>, mark: &str, read: impl AsyncFn() -> String) -> String {
    let reading = async {
        loop {
            let text = read().await;
            if text.contains(mark) {
                return text;
            }
            run.ask("/mcp/docs", "tools/call", json!({ "name": "act", "arguments": {} })).await;
        }
    };
    let found = timeout(SOON, Box::pin(reading)).await;
    found.unwrap_or_else(|_late| panic!("`{mark}` is nowhere"))
}

/// D28: after a run's own server has ended, the run reads neither its command nor its standard
/// error: not in the answer of the call, in later answers or in rows. Operators read them.
#[tokio::test]
async fn d28_a_run_does_not_read_the_cause_of_an_ended_server() {
    let place = tempfile::tempdir().unwrap();
    let store = Store::open(&place.path().join("store.db")).await.unwrap();
    let api = Api::with_all(&json!({}), store, &place.path().join("master.key")).await;
    let here = "/api/workspaces/default";
    let script = place.path().join("hush.sh");
    fs_err::write(&script, ENDS).unwrap();
    let server = json!({ "command": "sh", "args": [script, "hush-argument"] });
    api.send("PUT", &format!("{here}/mcp-servers/ends"), server.to_string()).await.succeeded();
    let agent = json!({ "mcpServers": { "docs": { "ref": "ends" } } }).to_string();
    api.send("PUT", &format!("{here}/agents/reader"), agent).await.succeeded();
    let run = Run::of(&api, "reader").await;
    let call = json!({ "name": "act", "arguments": {} });
    for (path, method, params) in [
        ("/mcp/docs", "tools/call", call.clone()),
        ("/mcp/docs", "tools/list", json!({})),
        ("/mcp/docs", "server/discover", json!({})),
        ("/mcp", "tools/call", json!({ "name": "mcp__docs__act", "arguments": {} })),
    ] {
        let answer = run.ask(path, method, params).await;
        let text = answer.text();
        assert!(!text.contains("hush") && !text.contains("exit"), "{method} at {path}: {text}");
        if method == "tools/call" {
            assert!(text.contains("server `docs` failed: "), "{path}: {text}");
            assert!(text.contains("an operator can read its logs"), "{path}: {text}");
        }
    }
    for path in ["/api/servers", "/api/servers/docs", "/api/status"] {
        let read = async || {
            let request = api.world.request(http::Method::GET, path);
            let bearer = format!("Bearer {}", run.token);
            request.header("authorization", &bearer).send().await.succeeded().to_string()
        };
        let row = while_away(&run, "an operator can read its logs", read).await;
        assert!(!row.contains("hush") && !row.contains("exit"), "{path}: {row}");
    }
    let by_operator = async || api.get(&format!("{here}/runs")).await.to_string();
    while_away(&run, "hush has no licence", by_operator).await;
}

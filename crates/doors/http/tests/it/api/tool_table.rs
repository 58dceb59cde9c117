//! Tests of the built-in tools, row by row: their parameters, and outcomes that no other test
//! covers.

use std::collections::BTreeMap;

use narthex_store::Store;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{
    built_in::{Run, with_tools},
    world::Api,
};

const HERE: &str = "/api/workspaces/default";

/// Each tool with its parameters: the name, with `*` if it is required, and the type. The type of
/// an enumeration lists its words.
const TABLE: &[(&str, &[(&str, &str)])] = &[
    (
        "emit_status",
        &[
            ("status*", "starting researching analyzing writing reviewing waiting done"),
            ("detail", "string"),
        ],
    ),
    (
        "emit_artifact",
        &[
            ("artifact_type*", "code analysis summary document diff other"),
            ("title*", "string"),
            ("content*", "string"),
            ("language", "string"),
            ("metadata", "object"),
        ],
    ),
    ("request_input", &[("question*", "string"), ("request_id*", "string"), ("options", "array")]),
    ("emit_error", &[("message*", "string"), ("recoverable*", "boolean")]),
    ("share", &[("path*", "string"), ("title", "string"), ("share_id", "string")]),
    ("read_share", &[("share_id*", "string"), ("path", "string")]),
    (
        "share_comment",
        &[
            ("text*", "string"),
            ("thread_id", "string"),
            ("share_id", "string"),
            ("scope", "share passage"),
            ("anchor", "string"),
        ],
    ),
    ("share_comment_resolve", &[("thread_id*", "string"), ("unresolve", "boolean")]),
    (
        "request_permission",
        &[
            ("scopes*", "array"),
            ("justification*", "string"),
            ("requested_tool", "string"),
            ("requested_args", "object"),
        ],
    ),
    ("end_session", &[("summary*", "string")]),
    (
        "post_message",
        &[
            ("channel*", "string"),
            ("text*", "string"),
            ("thread_id", "string"),
            ("username", "string"),
        ],
    ),
    (
        "request_grant",
        &[
            ("request_id*", "string"),
            ("grant_type*", "tool_scope spawn"),
            ("details*", "object"),
            ("scope*", "once run session persistent"),
            ("justification*", "string"),
        ],
    ),
    ("list_spawnable_agents", &[]),
    (
        "spawn_session",
        &[
            ("child_agent_id*", "string"),
            ("prompt", "string"),
            ("params", "object"),
            ("model", "string"),
            ("runtime_type", "string"),
        ],
    ),
    (
        "start_agent",
        &[
            ("agent_name*", "string"),
            ("prompt", "string"),
            ("params", "object"),
            ("model", "string"),
        ],
    ),
    (
        "read_child_output",
        &[("child_session_id*", "string"), ("after_seq", "integer"), ("limit", "integer")],
    ),
    (
        "inject_message",
        &[
            ("child_session_id*", "string"),
            ("text*", "string"),
            ("message_id", "string"),
            ("expires_at", "string"),
        ],
    ),
    ("cancel_session", &[("child_session_id*", "string"), ("reason", "string")]),
    ("pull_from_child", &[("child_session_id*", "string"), ("paths", "array")]),
    (
        "share_to_child",
        &[("child_session_id*", "string"), ("source_path*", "string"), ("dest_path", "string")],
    ),
    ("expect_quiet_for", &[("seconds*", "number"), ("reason", "string")]),
    (
        "message_caller",
        &[
            ("summary*", "string"),
            ("body", "string"),
            ("needs_response", "boolean"),
            ("expires_at", "string"),
        ],
    ),
    (
        "read_messages",
        &[("acknowledge", "integer"), ("wait_seconds", "integer"), ("limit", "integer")],
    ),
    ("get_session_cost", &[]),
    ("get_session_tree_cost", &[]),
    ("get_agent_cost", &[("window", "24h 7d 30d all")]),
];

/// Rows of the platform's table whose tools do not exist here.
const ABSENT: [&str; 10] = [
    "list_collections",
    "graph_query",
    "graph_write",
    "graph_relate",
    "graph_resolve",
    "graph_discover",
    "vector_upsert",
    "vector_search",
    "vector_delete",
    "preview_deploy",
];

async fn daemon(place: &TempDir, agents: &[(&str, Value)]) -> Api {
    let store = Store::open(&place.path().join("store.db")).await.unwrap();
    let api = Api::with_secrets(store, &place.path().join("master.key")).await;
    for (name, agent) in agents {
        api.send("PUT", &format!("{HERE}/agents/{name}"), with_tools(agent.clone()))
            .await
            .succeeded();
    }
    api
}

/// The parameters of a tool in the form of the table.
fn parameters(tool: &Value) -> BTreeMap<String, String> {
    let schema = &tool["inputSchema"];
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let words = |words: &[Value]| {
        words.iter().map(|word| word.as_str().unwrap()).collect::<Vec<_>>().join(" ")
    };
    let read = |(name, of): (&String, &Value)| {
        let star = if required.contains(&json!(name)) { "*" } else { "" };
        let shape = of["enum"].as_array().map(|all| words(all));
        (format!("{name}{star}"), shape.unwrap_or_else(|| of["type"].as_str().unwrap().to_owned()))
    };
    schema["properties"].as_object().unwrap().iter().map(read).collect()
}

/// X-M2, X-M3: every tool has the parameters and types of the table, and no other tool exists.
#[tokio::test]
async fn x_m3_built_in_tools_take_the_parameters_of_the_table() {
    let place = tempfile::tempdir().unwrap();
    let api = daemon(&place, &[("writer", json!({}))]).await;
    let run = Run::begin(&api).await;
    let request = api.world.modern("/mcp/narthex", "tools/list", json!({}));
    let request = request.header("authorization", &format!("Bearer {}", run.token));
    let listed = request.send().await.json()["result"]["tools"].as_array().unwrap().clone();
    let found: BTreeMap<_, _> = listed
        .iter()
        .map(|tool| (tool["name"].as_str().unwrap().to_owned(), parameters(tool)))
        .collect();
    let of = |(name, shape): &(&str, &str)| ((*name).to_owned(), (*shape).to_owned());
    let table: BTreeMap<_, BTreeMap<_, _>> = TABLE
        .iter()
        .map(|(name, rows)| ((*name).to_owned(), rows.iter().map(of).collect()))
        .collect();
    for (name, expected) in &table {
        assert_eq!(found.get(name), Some(expected), "{name}");
    }
    assert_eq!(found.len(), table.len(), "{:?}", found.keys());
    for name in ABSENT {
        assert_eq!(run.refused(name, json!({})).await["kind"], "tool_not_found", "{name}");
    }
}

/// X-M2: an equal second question is the same question. A different question under the same id is
/// refused, and the first one stays.
#[tokio::test]
async fn x_m2_a_request_id_belongs_to_one_question() {
    let place = tempfile::tempdir().unwrap();
    let api = daemon(&place, &[("writer", json!({}))]).await;
    let run = Run::begin(&api).await;
    let asked = json!({ "question": "blue?", "request_id": "q1", "options": ["yes", "no"] });
    let first = run.called("request_input", asked.clone()).await;
    assert_eq!(run.called("request_input", asked).await, first);
    for other in [
        json!({ "question": "red?", "request_id": "q1", "options": ["yes", "no"] }),
        json!({ "question": "blue?", "request_id": "q1" }),
    ] {
        let error = run.refused("request_input", other).await;
        assert_eq!(error["details"]["code"], "request_id_conflict", "{error}");
    }
    run.called("request_input", json!({ "question": "red?", "request_id": "q2" })).await;
    let events = run.events().await;
    let told = events.iter().filter(|event| event["type"] == "agent.input_request");
    let told: Vec<_> = told.map(|event| &event["payload"]["question"]).collect();
    assert_eq!(told, ["blue?", "red?"]);
}

/// X-M2: an agent that reports a failure must state if its work can continue.
#[tokio::test]
async fn x_m2_a_reported_failure_must_state_whether_it_is_recoverable() {
    let place = tempfile::tempdir().unwrap();
    let api = daemon(&place, &[("writer", json!({}))]).await;
    let run = Run::begin(&api).await;
    let error = run.refused("emit_error", json!({ "message": "no disk" })).await;
    assert_eq!(error["kind"], "invalid_arguments", "{error}");
    run.called("emit_error", json!({ "message": "no disk", "recoverable": false })).await;
    let events = run.events().await;
    let told: Vec<_> = events.iter().filter(|event| event["type"] == "agent.error").collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0]["payload"], json!({ "message": "no disk", "recoverable": false }));
}

/// X-M2: an agent whose document rejects `end_session` cannot end its session; people can.
#[tokio::test]
async fn x_m2_an_agent_set_to_reject_end_session_cannot_end_its_session() {
    let place = tempfile::tempdir().unwrap();
    let agents = [
        ("guide", json!({ "end_session": "reject" })),
        ("writer", json!({ "end_session": "accept" })),
    ];
    let api = daemon(&place, &agents).await;
    let wrong = json!({ "end_session": "later" }).to_string();
    let answer = api.send("PUT", &format!("{HERE}/agents/guide"), wrong).await;
    assert!(answer.status.is_client_error(), "{}", answer.text());
    assert!(answer.text().contains("end_session"), "{}", answer.text());
    let run = Run::of(&api, "guide").await;
    let error = run.refused("end_session", json!({ "summary": "done" })).await;
    assert_eq!(error["details"]["code"], "end_session_rejected", "{error}");
    // The session is active, and no end was reported.
    run.called("emit_status", json!({ "status": "done" })).await;
    let types: Vec<_> = run.events().await.iter().map(|event| event["type"].clone()).collect();
    assert_eq!(types, ["session.created", "agent.status"]);
    let run = Run::of(&api, "writer").await;
    assert_eq!(run.called("end_session", json!({ "summary": "done" })).await["status"], "ending");
}

/// X-M3, X-E99: a child's message to its caller is stored as an event of the child's session, even
/// if it is not delivered. It is not delivered to a caller that is no orchestrator, which is no
/// failure.
#[tokio::test]
async fn x_m3_a_message_is_not_delivered_to_a_caller_that_is_no_orchestrator() {
    let place = tempfile::tempdir().unwrap();
    let agents = [
        ("reader", json!({})),
        ("worker", json!({ "spawnable_agents": ["reader"] })),
        ("lead", json!({ "agent_type": "orchestrator", "spawnable_agents": ["reader"] })),
    ];
    let api = daemon(&place, &agents).await;
    let named = json!([{ "id": "reader", "slug": "reader", "name": "reader" }]);
    for (agent, delivered) in [("worker", false), ("lead", true)] {
        let caller = Run::of(&api, agent).await;
        assert_eq!(caller.called("list_spawnable_agents", json!({})).await["spawnable"], named);
        let child = caller.called("spawn_session", json!({ "child_agent_id": "reader" })).await;
        let path = format!("{HERE}/runs/{}/claim", child["session"]["run_id"].as_str().unwrap());
        let claim = api.send("POST", &path, "{}").await.succeeded();
        let text = |name: &str| claim["run"][name].as_str().unwrap().to_owned();
        let run = Run { api: &api, token: text("token"), session: text("session_id") };
        let said = json!({ "summary": "42 words", "body": "at length", "needs_response": true });
        let answer = run.called("message_caller", said).await;
        assert_eq!((&answer["ok"], &answer["delivered"]), (&json!(true), &json!(delivered)));
        let reason = if delivered { Value::Null } else { json!("parent_not_orchestrator") };
        assert_eq!(answer["reason"], reason, "{answer}");
        let heard = caller.events().await;
        let heard = heard.iter().filter(|event| event["type"] == "user.message").count();
        assert_eq!(heard, usize::from(delivered));
        let events = run.events().await;
        let own: Vec<_> = events.iter().filter(|one| one["type"] == "agent.message").collect();
        let expected = json!({ "summary": "42 words", "body": "at length", "needs_response": true,
                               "to_session_id": caller.session, "delivered": delivered });
        assert_eq!((own.len(), &own[0]["payload"]), (1, &expected));
    }
}

/// X-M3: without a folder no file of a child can reach its caller; the refusal has a separate code.
#[tokio::test]
async fn x_m3_files_are_not_exchanged_with_a_child_without_a_folder() {
    let place = tempfile::tempdir().unwrap();
    let lead = json!({ "agent_type": "orchestrator", "spawnable_agents": ["reader"] });
    let api = daemon(&place, &[("reader", json!({})), ("lead", lead)]).await;
    let lead = Run::of(&api, "lead").await;
    let child = lead.called("spawn_session", json!({ "child_agent_id": "reader" })).await;
    let of = json!({ "child_session_id": child["session"]["id"] });
    let error = lead.refused("pull_from_child", of.clone()).await;
    assert_eq!(error["details"]["code"], "parent_pod_missing", "{error}");
    let given = json!({ "child_session_id": child["session"]["id"], "source_path": "a" });
    let error = lead.refused("share_to_child", given).await;
    assert_eq!(error["details"]["code"], "no_workspace_folder", "{error}");
}

/// X-E113: if a child is refused for a secret that was cleared, its caller is informed. The refusal
/// is in the audit, and among the events of the caller's session.
#[tokio::test]
async fn x_e113_a_stale_secret_is_an_event_of_the_session() {
    let place = tempfile::tempdir().unwrap();
    let lead = json!({ "agent_type": "orchestrator", "spawnable_agents": ["reader"] });
    let api = daemon(&place, &[("lead", lead)]).await;
    api.set_secret("DOCS_KEY", "a-key-of-docs").await;
    let server = json!({ "name": "Docs", "command": "docs-server", "manifest": { "env": {
        "API_KEY": { "kind": "secret", "label": "API key", "required": true } } } });
    api.send("PUT", &format!("{HERE}/mcp-servers/docs"), server.to_string()).await.succeeded();
    api.send("PUT", &format!("{HERE}/agents/reader"), with_tools(json!({}))).await.succeeded();
    let attached = json!({ "name": "docs", "env": { "API_KEY": "${DOCS_KEY}" } }).to_string();
    let path = format!("{HERE}/agents/reader/mcp-attachments");
    let attached = api.send("PUT", &path, attached).await;
    assert!(attached.status.is_success(), "{}", attached.text());
    let cleared = api.ask("DELETE", &format!("{HERE}/secrets/DOCS_KEY")).send().await;
    assert!(cleared.status.is_success(), "{}", cleared.text());

    let run = Run::of(&api, "lead").await;
    let error = run.refused("spawn_session", json!({ "child_agent_id": "reader" })).await;
    assert_eq!(error["details"]["code"], "secret_not_set", "{error}");
    assert!(!error.to_string().contains("DOCS_KEY"), "{error}");
    let events = run.events().await;
    let told: Vec<_> = events.iter().filter(|one| one["type"] == "session.run_refused").collect();
    assert_eq!(told.len(), 1, "{events:?}");
    let payload = &told[0]["payload"];
    let path = payload["faults"][0]["path"].as_str().unwrap();
    assert!(path.starts_with("agents.reader."), "{path}");
    let fault = json!({ "code": "secret_not_set", "server": "docs", "field": "API_KEY", "ref": null,
                        "secret": "DOCS_KEY", "path": path });
    assert_eq!((&payload["agent_name"], &payload["faults"]), (&json!("reader"), &json!([fault])));
    let audit = api.get(&format!("{HERE}/audit?kind=session.run.refused")).await;
    let items = audit["items"].as_array().unwrap();
    assert_eq!(items.len(), 1, "{audit}");
    assert_eq!(items[0]["session"], json!(run.session), "{audit}");
    assert_eq!(items[0]["details"]["faults"], json!([fault]), "{audit}");
    assert_eq!(items[0]["resource"], json!({ "kind": "agent", "id": "reader" }));
    // A child that is refused at once stores nothing, including its prompt.
    assert!(!audit.to_string().contains("a-key-of-docs"));
}

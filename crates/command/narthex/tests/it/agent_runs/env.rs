//! Secrets in the agent's own environment: the callers that get them, and their records (zone 2).

use fs_err as fs;
use hyper::StatusCode;
use serde_json::{Value, json};

use super::{HOME, reader, request};
use crate::{
    runs::{Operator, RUNS},
    world::World,
};

impl Operator<'_> {
    async fn injected(&self) -> Vec<Value> {
        let page = self.get(&format!("{HOME}/audit?kind=session.run.env_injected")).await;
        page["items"].as_array().unwrap().clone()
    }

    /// Gives the reader two variables: one of all agents, and one of its own that replaces another.
    async fn has_bindings(&self) {
        self.has_reader("canary-library").await;
        for (name, value) in [("FIRST", "canary-first"), ("SECOND", "canary-second")] {
            self.put(&format!("secrets/{name}"), &json!({ "value": value })).await;
        }
        for (id, secret) in [
            ("workspace:SHARED", "FIRST"),
            ("workspace:GITHUB_TOKEN", "FIRST"),
            ("agent:reader:GITHUB_TOKEN", "SECOND"),
            ("preview_environment:reader:PREVIEW", "FIRST"),
        ] {
            self.put(&format!("env-bindings/{id}"), &json!({ "secret": secret })).await;
        }
    }
}

/// X-M32, X-E60, X-E61: the creator of a run gets the values once; names say that the run holds
/// them, before and after a restart; a new value is for the next run.
#[tokio::test(flavor = "multi_thread")]
async fn x_e61_the_creator_of_a_run_gets_the_values_once() {
    let world = World::operated(&json!({})).await;
    let operator = Operator(&world);
    operator.has_bindings().await;
    let begun = operator.begin(&request()).await;
    let values = json!({ "GITHUB_TOKEN": "canary-second", "SHARED": "canary-first" });
    assert_eq!(begun["agent_env"], values);
    let names = json!(["GITHUB_TOKEN", "SHARED"]);
    assert_eq!(begun["agent_env_names"], names);
    let events = operator.injected().await;
    assert_eq!((events.len(), &events[0]["run"]), (1, &begun["run_id"]));
    assert_eq!((&events[0]["details"]["names"], &events[0]["outcome"]), (&names, &json!("ok")));
    // A server gets only the variables that it names.
    assert!(operator.notes().iter().all(|told| !told.contains("canary-second")));

    operator.put("secrets/SECOND", &json!({ "value": "canary-rotated" })).await;
    let mut shown = Vec::new();
    let (run, session) = (begun["run_id"].as_str().unwrap(), begun["session_id"].as_str().unwrap());
    for path in
        ["agents", "runs", &format!("runs/{run}"), "sessions", &format!("sessions/{session}")]
    {
        let text = operator.get(&format!("{HOME}/{path}")).await.to_string();
        assert!(text.contains(r#""agent_env_names":["GITHUB_TOKEN","SHARED"]"#), "{path} {text}");
        shown.push(text);
    }
    let resumed = json!({ "type": "resume_session", "session_id": session,
                          "scope": { "context_id": "x" } });
    let resumed = operator.begin(&resumed).await;
    assert_eq!(resumed["agent_env"]["GITHUB_TOKEN"], "canary-rotated");
    operator.works(begun["token"].as_str().unwrap()).await;
    let dir = world.stop().await;
    for file in ["store.db", "audit/audit.jsonl"] {
        let bytes = fs::read(dir.path().join(file)).unwrap();
        shown.push(String::from_utf8_lossy(&bytes).into_owned());
    }
    for canary in ["canary-first", "canary-second", "canary-rotated"] {
        assert!(shown.iter().all(|text| !text.contains(canary)), "{canary}");
    }
}

/// X-M32, X-M42: a bound secret that is not set refuses the run, with all else that is wrong.
#[tokio::test(flavor = "multi_thread")]
async fn x_m42_a_bound_secret_that_is_not_set_refuses_the_run() {
    let world = World::operated(&json!({})).await;
    let operator = Operator(&world);
    operator.has_bindings().await;
    let cleared = operator.ask("DELETE", &format!("{HOME}/secrets/FIRST"), "").await;
    assert_eq!(cleared.status, StatusCode::OK, "{cleared:?}");
    let mut asked = request();
    asked["scope"] = json!({});
    let problem = operator.refused(&asked.to_string(), StatusCode::BAD_REQUEST, "invalid").await;
    let errors = problem["errors"].as_array().unwrap();
    let codes: Vec<_> = errors.iter().filter_map(|one| one["code"].as_str()).collect();
    assert!(codes.contains(&"secret_not_set"), "{problem}");
    assert!(codes.contains(&"missing_required_mcp_config"), "{problem}");
    let text = problem.to_string();
    for word in ["reader", "FIRST", "SHARED", "env-bindings"] {
        assert!(text.contains(word), "{word} {problem}");
    }
    assert_eq!(operator.notes().len(), 0, "something was started");
    assert_eq!(operator.injected().await, Vec::<Value>::new());
    operator.has_none().await;
}

/// X-M32, X-E62: a run that creates another gets no values, and neither needs them: its token is
/// the agent's.
#[tokio::test(flavor = "multi_thread")]
async fn x_m32_a_run_gets_no_values_for_its_child() {
    let world = World::operated(&json!({})).await;
    let operator = Operator(&world);
    operator.has_bindings().await;
    let mut lead = reader();
    lead["spawnable_agents"] = json!(["reader"]);
    operator.put("agents/reader", &lead).await;
    let begun = operator.begin(&request()).await;
    operator.ask("DELETE", &format!("{HOME}/secrets/FIRST"), "").await;
    let child = json!({ "agent_name": "reader", "params": { "topic": "x" } });
    let client = world.client_as(RUNS, begun["token"].as_str().unwrap());
    let reply = client.whole("POST", &[], child.to_string()).await;
    assert_eq!(reply.status, StatusCode::CREATED, "{reply:?}");
    let made = reply.json();
    assert_eq!((made.get("agent_env"), &made["agent_env_names"]), (None, &json!([])), "{made}");
    assert_eq!(operator.injected().await.len(), 1, "only for the first");
    // A run without an agent has no environment of one.
    let own = json!({ "servers": { "x": super::plain() } });
    let made = operator.begin(&own).await;
    assert_eq!((made.get("agent_env"), &made["agent_env_names"]), (None, &json!([])), "{made}");
}

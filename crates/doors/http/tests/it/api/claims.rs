//! Tests of answers to claims of runs. They have all that an executor needs, and values of secrets
//! in direct mode only.

use http::StatusCode;
use narthex_store::Store;
use narthex_testkit::planted;
use serde_json::{Value, json};

use super::{built_in::Run, world::Api};
use crate::world::{Answer, whole};

const HERE: &str = "/api/workspaces/default";
const SECRET: &str = "canary-of-a-claim";
/// The members of each answer to a new claim.
const MEMBERS: [&str; 8] =
    ["claim", "claimed_until", "model", "params", "prompt", "run", "runtime_type", "system_prompt"];

/// Starts a run of `lead`, which may start `reader`; the reader's server requires a secret.
async fn lead(api: &Api) -> Run<'_> {
    api.set_secret("DOCS_KEY", SECRET).await;
    let docs = json!({
        "url": api.fixture_url(),
        "config_schema": { "api_key": { "type": "string", "required": true, "sensitive": true },
                           "topic": { "type": "string" } },
    });
    let reader = json!({
        "system_prompt": "Be brief.",
        "params_schema": { "topic": { "type": "string", "required": true } },
        "mcpServers": { "docs": { "ref": "docs", "config": {
            "api_key": "${DOCS_KEY}", "topic": "${params.topic}" } } },
    });
    let lead = json!({ "builtin": "all", "spawnable_agents": ["reader"] });
    for (path, object) in
        [("mcp-servers/docs", docs), ("agents/reader", reader), ("agents/lead", lead)]
    {
        api.send("PUT", &format!("{HERE}/{path}"), object.to_string()).await.succeeded();
    }
    Run::of(api, "lead").await
}

/// The run of a new child; `more` may select a model and a runtime.
async fn child(lead: &Run<'_>, more: Value) -> String {
    let mut asked = json!({ "child_agent_id": "reader", "prompt": "count the words",
                            "params": { "topic": "words" } });
    asked.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let spawned = lead.called("spawn_session", asked).await;
    spawned["session"]["run_id"].as_str().unwrap().to_owned()
}

/// The token of a new service with this role.
async fn service(api: &Api, role: &str) -> String {
    let asked = json!({ "service": role, "roles": [role] }).to_string();
    let made = api.send("POST", &format!("{HERE}/service-tokens"), asked).await.succeeded();
    made["token"].as_str().unwrap().to_owned()
}

async fn claim(api: &Api, token: &str, run: &str, body: Value) -> Answer {
    let request = api.ask("POST", &format!("{HERE}/runs/{run}/claim"));
    let request = request.header("authorization", &format!("Bearer {token}"));
    let request = request.header("content-type", "application/json");
    request.body(whole(body.to_string())).send().await
}

fn members(answer: &Value) -> Vec<&str> {
    let mut members: Vec<_> = answer.as_object().unwrap().keys().map(String::as_str).collect();
    members.sort_unstable();
    members
}

/// Checks the parts of a claim that are the same with and without direct mode.
fn tells_all(claim: &Value, run: &str) {
    assert!(claim["claim"].as_str().unwrap().starts_with("clm_"), "{claim}");
    assert_eq!(claim["prompt"], "count the words");
    assert_eq!(claim["params"], json!({ "topic": "words" }));
    assert_eq!(claim["system_prompt"], "Be brief.");
    let shown = &claim["run"];
    assert_eq!((&shown["run_id"], &shown["status"]), (&json!(run), &json!("running")));
    assert_eq!(shown["agent_name"], "reader");
    assert!(shown["token"].as_str().unwrap().starts_with("nxt_"), "{shown}");
    let docs = shown["endpoints"]["servers"]["docs"].as_str().unwrap();
    assert!(docs.ends_with("/mcp/docs"), "{docs}");
}

/// O81, X-M3: the executor that claims a run receives its prompt, parameters, system prompt, model,
/// runtime and endpoints. Values of secrets are sent in direct mode only, once, and only with a new
/// claim.
#[tokio::test]
async fn o81_a_claim_contains_secrets_only_in_direct_mode() {
    let place = tempfile::tempdir().unwrap();
    let store = Store::open(&place.path().join("store.db")).await.unwrap();
    let api = Api::with_all(&json!({}), store, &place.path().join("master.key")).await;
    let lead = lead(&api).await;
    let runner = service(&api, "runner").await;

    // The test world checks that no answer here contains the secret.
    for body in [json!({}), json!({ "direct": false })] {
        let asked = json!({ "model": "small", "runtime_type": "container" });
        let run = child(&lead, asked).await;
        let claimed = claim(&api, &runner, &run, body).await.succeeded();
        assert_eq!(members(&claimed), MEMBERS);
        tells_all(&claimed, &run);
        let wanted = (&json!("small"), &json!("container"));
        assert_eq!((&claimed["model"], &claimed["runtime_type"]), wanted);
        assert!(!claimed.to_string().contains(SECRET), "{claimed}");
        // An executor that extends its claim receives only the new time.
        let mut longer = json!({ "claim": claimed["claim"] });
        let held = claim(&api, &runner, &run, longer.clone()).await.succeeded();
        assert_eq!(members(&held), ["claim", "claimed_until"]);
        longer["direct"] = json!(true);
        let refused = claim(&api, &runner, &run, longer).await;
        refused.problem(StatusCode::BAD_REQUEST, "invalid");
    }

    let run = child(&lead, json!({})).await;
    // Services with other roles are refused, and the run can still be claimed.
    for role in ["author", "auditor"] {
        let token = service(&api, role).await;
        let refused = claim(&api, &token, &run, json!({ "direct": true })).await;
        refused.problem(StatusCode::FORBIDDEN, "denied");
    }
    planted::lets_next_claim_tell();
    let claimed = claim(&api, &runner, &run, json!({ "direct": true })).await.succeeded();
    let mut wanted = MEMBERS.to_vec();
    wanted.insert(5, "resolved_mcp_servers");
    assert_eq!(members(&claimed), wanted);
    tells_all(&claimed, &run);
    assert_eq!((&claimed["model"], &claimed["runtime_type"]), (&Value::Null, &Value::Null));
    let servers = &claimed["resolved_mcp_servers"];
    let docs = json!({ "type": "http", "url": api.fixture_url(),
                       "config": { "api_key": SECRET, "topic": "words" } });
    assert_eq!((members(servers), &servers["docs"]), (vec!["docs", "narthex"], &docs));
    assert_eq!(claimed.to_string().matches(SECRET).count(), 1, "{claimed}");
    let events = api.get(&format!("{HERE}/audit?kind=session.run.direct")).await;
    assert_eq!(events["items"].as_array().unwrap().len(), 1, "{events}");
    assert_eq!(events["items"][0]["run"], json!(run));
}

//! Contents of runs' calls, in the audit of a workspace that asks for them (X-M64).

use base64::{Engine, engine::general_purpose::STANDARD};
use narthex_testkit::planted;
use serde_json::{Value, json};

use super::{HOME, reader, request};
use crate::{
    runs::Operator,
    world::{Reply, World, call, modern},
};

impl Operator<'_> {
    async fn audits_contents(&self, is_on: bool) {
        let body = json!({ "audits_contents": is_on }).to_string();
        let client = self.0.client_as(HOME, crate::world::ADMIN);
        let headers = [("content-type", "application/merge-patch+json")];
        let reply = client.whole("PATCH", &headers, body).await;
        assert_eq!(reply.json()["audits_contents"], is_on, "{reply:?}");
    }

    async fn is_told(&self, token: &str, words: &str) -> Reply {
        let mut client = self.0.client_as("/mcp", token);
        let said = call("mcp__library__echo", json!({ "message": words }));
        client.modern(&modern(1, "tools/call", said)).await
    }

    /// The stored contents of the calls so far, the oldest first; `null` for calls without any.
    async fn kept(&self) -> Vec<Value> {
        let path = format!("{HOME}/audit?kind=session.mcp.tool_called&order=oldest");
        let page = self.get(&path).await;
        let contents = |event: &Value| event["details"]["contents"].clone();
        page["items"].as_array().unwrap().iter().map(contents).collect()
    }
}

/// X-M64: an active run follows the switch of its workspace, also after a restart. The stored
/// contents have no secrets of the run's servers or of its agent's environment.
#[tokio::test(flavor = "multi_thread")]
async fn x_m64_a_run_follows_the_audit_contents_setting_of_its_workspace() {
    let world = World::operated(&json!({})).await;
    let operator = Operator(&world);
    operator.has_reader("canary-library").await;
    operator.put("secrets/BOUND", &json!({ "value": "canary-bound" })).await;
    operator.put("env-bindings/workspace:BOUND", &json!({ "secret": "BOUND" })).await;
    operator.put("agents/reader", &reader()).await;
    let begun = operator.begin(&request()).await;
    let token = begun["token"].as_str().unwrap().to_owned();
    assert_eq!(begun["agent_env"]["BOUND"], "canary-bound");
    planted::is_told("canary-bound");
    let secrets = ["canary-library", "canary-bound"];
    let words =
        format!("{} {}", secrets.join(" "), secrets.map(|one| STANDARD.encode(one)).join(" "));
    operator.is_told(&token, &words).await;
    operator.audits_contents(true).await;
    operator.is_told(&token, &words).await;
    let dir = world.stop().await;

    // The run was stored, and begins again from its frozen document.
    let world = World::operated_in(dir).await;
    let operator = Operator(&world);
    operator.is_told(&token, &words).await;
    operator.audits_contents(false).await;
    operator.is_told(&token, "nothing of this").await;
    let kept = operator.kept().await;
    assert_eq!(kept.len(), 4, "{kept:?}");
    assert_eq!((&kept[0], &kept[3]), (&Value::Null, &Value::Null));
    for kept in &kept[1..3] {
        for side in ["request", "answer"] {
            let text = kept[side]["text"].as_str().unwrap();
            assert_eq!(text.matches("[redacted]").count(), 4, "{text}");
        }
    }
    let client = world.client_as(&format!("{HOME}/audit"), crate::world::ADMIN);
    let exported = client.whole("GET", &[("accept", "application/x-ndjson")], String::new()).await;
    let exported = String::from_utf8_lossy(&exported.body).into_owned();
    assert!(exported.contains("workspace.audit_contents.enabled"), "{exported}");
    let mut verifier = narthex_audit::Verifier::new();
    exported.lines().for_each(|line| verifier.line(line));
    let report = verifier.finish();
    assert!(report.is_whole(), "{:?}", report.broken);
    let mut left = vec![exported, world.audit_text()];
    let dir = world.stop().await;
    let stored = fs_err::read(dir.path().join("store.db")).unwrap();
    left.push(String::from_utf8_lossy(&stored).into_owned());
    for secret in secrets {
        for spelling in [secret.to_owned(), STANDARD.encode(secret)] {
            let spelling = spelling.trim_end_matches('=');
            assert!(left.iter().all(|text| !text.contains(spelling)), "{spelling}");
        }
    }
    assert!(left.iter().all(|text| !text.contains("nothing of this")));
}

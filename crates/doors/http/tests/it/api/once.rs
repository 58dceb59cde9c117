//! Checks that writes with an idempotency key are done once (X-E104 to X-E106).

use std::{pin::pin, sync::Arc, task::Poll};

use http::StatusCode;
use narthex_model::WorkspaceId;
use narthex_store::Store;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::catalog::{Place, faults, of};
use crate::world::{Answer, whole};

const AGENTS: &str = "/api/workspaces/default/agents";
const WRITER: &str = "/api/workspaces/default/agents/writer";
const KEY: &str = "idempotency-key";
const REPLAYED: &str = "idempotency-replayed";

impl Place {
    /// Sends a write with a key.
    async fn once(&self, (method, path): (&str, &str), key: &str, body: &Value) -> Answer {
        let request = self.api.ask(method, path).header("content-type", "application/json");
        request.header(KEY, key).body(whole(body.to_string())).send().await
    }

    async fn replays(&self) -> Vec<Value> {
        let page = self.get("/api/workspaces/default/audit?kind=request.replayed").await;
        page["items"].as_array().unwrap().clone()
    }
}

fn writer(prompt: &str) -> Value {
    json!({ "name": "writer", "description": prompt })
}

#[track_caller]
fn code(answer: &Answer) -> Value {
    answer.problem(StatusCode::CONFLICT, "conflict");
    answer.json()["code"].clone()
}

/// X-E105: a repeated write gets the same answer with the same body and headers, and is in the
/// audit, but is not done again. A key is valid for one request, and a refused request does not use
/// it up.
#[tokio::test]
async fn x_e105_a_write_is_done_once() {
    let place = Place::new().await;
    let create = ("POST", AGENTS);
    let refused = place.once(create, "k1", &json!({ "name": "writer", "nonsense": 1 })).await;
    assert!(!faults(&refused).is_empty());
    let first = place.once(create, "k1", &writer("one")).await;
    assert_eq!(first.status, StatusCode::CREATED, "{}", first.text());
    assert!(!first.headers.contains_key(REPLAYED));
    place.patch(WRITER, &json!({ "description": "two" })).await.succeeded();
    let again = place.once(create, "k1", &writer("one")).await;
    assert_eq!((again.status, again.body), (first.status, first.body));
    assert_eq!(again.headers[REPLAYED], "true");
    for header in ["etag", "location", "content-type"] {
        assert_eq!(again.headers.get(header), first.headers.get(header), "{header}");
    }
    assert_eq!(
        place.get(WRITER).await["definition"]["description"],
        "two",
        "nothing was done again"
    );
    let replays = place.replays().await;
    assert_eq!(replays.len(), 1, "{replays:?}");
    assert_eq!(replays[0]["resource"]["id"], format!("POST {AGENTS}"));
    for other in [("POST", AGENTS, writer("three")), ("PUT", WRITER, writer("one"))] {
        let answer = place.once((other.0, other.1), "k1", &other.2).await;
        assert_eq!(code(&answer), "idempotency_conflict");
    }
    let removed = ("DELETE", WRITER);
    for replayed in [false, true] {
        let answer = place.once(removed, "k2", &json!({})).await;
        assert_eq!(answer.status, StatusCode::NO_CONTENT);
        assert_eq!(answer.headers.contains_key(REPLAYED), replayed);
    }
}

/// X-E104, X-E106: a key belongs to the caller that used it. Another caller does not get its
/// answer, and a caller that has lost its permission gets none either.
#[tokio::test]
async fn x_e106_an_idempotency_key_belongs_to_one_caller() {
    let place = Place::new().await;
    let asked = json!({ "service": "ci", "roles": ["author"] }).to_string();
    let tokens = "/api/workspaces/default/service-tokens";
    let service = place.api.send("POST", tokens, asked).await.succeeded();
    let bearer = format!("Bearer {}", service["token"].as_str().unwrap());
    let ask = async || {
        let request = place.api.world.request("POST".parse().unwrap(), AGENTS);
        let request = request.header("authorization", &bearer).header(KEY, "k1");
        let request = request.header("content-type", "application/json");
        request.body(whole(writer("one").to_string())).send().await
    };
    assert_eq!(ask().await.status, StatusCode::CREATED);
    assert_eq!(ask().await.headers[REPLAYED], "true");
    let operator = place.once(("POST", AGENTS), "k1", &writer("one")).await;
    operator.problem(StatusCode::CONFLICT, "conflict");
    assert!(operator.json().get("code").is_none(), "the object is there: {}", operator.text());
    let roles = json!({ "roles": ["auditor"] }).to_string();
    let member = format!("/api/workspaces/default/members/{}", "default%2Fci");
    place.api.send("PUT", &member, roles).await.succeeded();
    ask().await.problem(StatusCode::FORBIDDEN, "denied");
}

/// X-E105: of several concurrent writes with one key, one is done. The others learn that it is in
/// progress, or get its answer.
#[tokio::test(flavor = "multi_thread")]
async fn x_e105_concurrent_writes_with_one_key_are_done_once() {
    let place = Arc::new(Place::new().await);
    let body = writer("one");
    let mut asking = JoinSet::new();
    for _ in 0..16 {
        let (place, body) = (place.clone(), body.clone());
        asking.spawn(async move { place.once(("PUT", WRITER), "k1", &body).await });
    }
    let answers = asking.join_all().await;
    let mut first = 0;
    for answer in &answers {
        match answer.status {
            StatusCode::CREATED => first += usize::from(!answer.headers.contains_key(REPLAYED)),
            _ => assert_eq!(code(answer), "idempotency_in_progress"),
        }
    }
    assert_eq!(first, 1);
    let last = place.once(("PUT", WRITER), "k1", &body).await;
    assert_eq!(
        (last.status, &last.headers[REPLAYED]),
        (StatusCode::CREATED, &"true".parse().unwrap())
    );
    assert_eq!(place.get(WRITER).await["revision"], 1);
}

/// If a client disconnects in the middle of a write, the write is still done, once.
#[tokio::test(flavor = "multi_thread")]
async fn a_write_completes_without_its_client() {
    let place = Place::new().await;
    for round in 0..8 {
        let body = writer(&round.to_string());
        let key = format!("k{round}");
        {
            let mut request = pin!(place.once(("PUT", WRITER), &key, &body));
            let mut polls = 0;
            std::future::poll_fn(|context| {
                polls += 1;
                match request.as_mut().poll(context) {
                    Poll::Pending if polls <= round => Poll::Pending,
                    _ => Poll::Ready(()),
                }
            })
            .await;
        }
        let answer = loop {
            let answer = place.once(("PUT", WRITER), &key, &body).await;
            if answer.status.is_success() {
                break answer;
            }
            assert_eq!(code(&answer), "idempotency_in_progress");
            tokio::task::yield_now().await;
        };
        answer.succeeded();
        assert_eq!(place.get(WRITER).await["revision"], round + 1, "once each");
    }
}

/// X-E104: keys have a fixed form. In a request that changes nothing, the header is ignored.
#[tokio::test]
async fn x_e104_keys_have_1_to_200_characters() {
    let place = Place::new().await;
    for key in ["with space", "ä", &"k".repeat(201)] {
        let answer = place.once(("PUT", WRITER), key, &writer("one")).await;
        assert_eq!(faults(&answer), [of("Idempotency-Key", "value_invalid")], "{key}");
    }
    let answer = place.once(("PUT", WRITER), &"k".repeat(200), &writer("one")).await;
    assert_eq!(answer.status, StatusCode::CREATED);
    let read = place.api.ask("GET", WRITER).header(KEY, "").send().await;
    assert!(!read.succeeded().is_null());
}

/// The value of a secret that was set with a key is not in the stored answer. Setting it again with
/// the key creates no further version.
#[tokio::test]
async fn a_secret_set_with_a_key_is_set_once_and_its_value_is_not_stored() {
    let place = Place::new().await;
    let path = "/api/workspaces/default/secrets/TOKEN";
    let body = json!({ "value": "canary-7731-once" });
    let first = place.once(("PUT", path), "k1", &body).await.succeeded();
    assert_eq!(place.once(("PUT", path), "k1", &body).await.succeeded(), first);
    assert_eq!(first["version"], 1);
    let other = place.once(("PUT", path), "k1", &json!({ "value": "other" })).await;
    assert_eq!(code(&other), "idempotency_conflict");
    let files = place.files();
    for secret in ["canary-7731-once", "k1-of-nobody"] {
        assert!(!files.iter().any(|bytes| has(bytes, secret)), "{secret}");
    }
    assert!(files.iter().any(|bytes| has(bytes, "kept_answers")), "the search finds what is there");
}

/// The stored answer to a workspace's deletion outlives the workspace, and stored answers outlive
/// the daemon.
#[tokio::test]
async fn a_deleted_workspace_is_deleted_once() {
    let place = Place::new().await;
    let path = "/api/workspaces/team";
    for replayed in [false, true] {
        let answer = place.once(("DELETE", path), "k1", &json!({})).await;
        assert_eq!(answer.status, StatusCode::NO_CONTENT, "{}", answer.text());
        assert_eq!(answer.headers.contains_key(REPLAYED), replayed);
    }
    let store = Store::open(&place.store_file()).await.unwrap();
    let team = WorkspaceId::new("team").unwrap();
    assert_eq!(store.workspaces().find(&team).await.unwrap(), None);
    store.close().await;
}

fn has(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

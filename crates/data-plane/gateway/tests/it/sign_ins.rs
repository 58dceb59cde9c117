//! Calls to servers that wait for the sign-in of a person (R9).

use std::sync::{Arc, Mutex};

use http::HeaderValue;
use narthex_gateway::{Caller, Endpoint, Step};
use narthex_model::{
    Alias, AuthorizationCodeAuth, OAuth, ServerAuth, ServerDefinition, ServerState, Target,
};
use narthex_registry::{CredentialSource, config::Entry};
use narthex_testkit::peer::{Peer, Seen, result, text};
use narthex_upstream::{
    AtHand, CredentialFault, CredentialQuery, Credentials, Obtaining, RefusedRequest,
};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::world::{SOON, World, http_server, legacy, modern};

const ADDRESS: &str = "https://as.example.com/api/authorize?state=s";
const DECLARED: &str = "io.modelcontextprotocol/clientCapabilities";
const TOKEN: &str = "Bearer token-1";

/// A credential that a person gives by [`Waiting::sign_in`].
#[derive(Debug, Default)]
struct Waiting(Mutex<Option<HeaderValue>>);

impl Waiting {
    fn sign_in(&self) {
        *self.0.lock().unwrap() = Some(HeaderValue::from_static(TOKEN));
    }
}

impl Credentials for Waiting {
    fn at_hand(&self) -> AtHand {
        AtHand::Ready(self.0.lock().unwrap().clone())
    }

    fn obtain(&self) -> Obtaining<'_> {
        Box::pin(std::future::ready(Ok(self.0.lock().unwrap().clone())))
    }

    fn refused(&self, refusal: RefusedRequest) -> Obtaining<'_> {
        let scopes = match refusal.status {
            403 => vec!["write".to_owned()],
            _ => Vec::new(),
        };
        let why = "sign in with `narthex mcp authorize one`".to_owned();
        let address = Some(ADDRESS.to_owned());
        let fault = CredentialFault::NeedsConsent { why, address, scopes };
        Box::pin(std::future::ready(Err(fault)))
    }
}

#[derive(Debug, Default)]
struct Source(Arc<Waiting>);

impl CredentialSource for Source {
    fn credentials(&self, _query: CredentialQuery<'_>) -> Option<Arc<dyn Credentials>> {
        Some(self.0.clone())
    }
}

/// A server that waits for a sign-in, and its gateway.
struct Signing {
    world: World,
    peer: Peer,
    waiting: Arc<Waiting>,
}

impl Signing {
    async fn new() -> Self {
        let peer = Peer::session(|seen: &Seen| {
            if seen.header("authorization") != Some(TOKEN) {
                return Some(text(401, "text/plain", "no"));
            }
            match (seen.rpc(), seen.body["params"]["name"].as_str()) {
                ("tools/list", _) => {
                    let tools = json!([{"name": "x"}, {"name": "write"}]);
                    Some(result(seen, &json!({"tools": tools})))
                }
                ("tools/call", Some("write")) => Some(text(403, "text/plain", "no")),
                _ => None,
            }
        })
        .await;
        let mut definition: ServerDefinition = http_server("one", &peer.url);
        if let Target::Http(target) = &mut definition.target {
            let oauth = OAuth::AuthorizationCode(AuthorizationCodeAuth::default());
            target.auth = ServerAuth::OAuth(Box::new(oauth));
        }
        let source = Arc::new(Source::default());
        let waiting = source.0.clone();
        let world = World::signing_in(vec![Entry::Server(definition)], source);
        world.gateway.registry().wait_until(SOON, |snapshot| snapshot.is_settled()).await;
        Self { world, peer, waiting }
    }

    async fn sign_in(&self) {
        self.waiting.sign_in();
        let registry = self.world.gateway.registry();
        registry.credential_changed(&Alias::new("one").unwrap());
        let is_ready = |snapshot: &narthex_registry::Snapshot| {
            snapshot.get("one").is_some_and(|row| row.state == ServerState::Ready)
        };
        assert!(is_ready(&*registry.wait_until(SOON, is_ready).await));
    }

    fn calls(&self) -> Vec<Seen> {
        let mut seen = self.peer.seen();
        seen.retain(|seen| seen.rpc() == "tools/call");
        seen
    }
}

fn params(tool: &str) -> Value {
    json!({"name": format!("mcp__one__{tool}"), "arguments": {}})
}

/// Checks the error for a client that cannot lead its user anywhere.
fn assert_told(answer: &Value, details: &Value) {
    let error = &answer["result"]["structuredContent"]["error"];
    assert_eq!(error["kind"], "auth_unavailable", "{answer}");
    assert_eq!(error["details"], *details, "{answer}");
    let said = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert!(said.ends_with(ADDRESS), "{said}");
    assert!(!said.contains("narthex mcp"), "models read no command of operators: {said}");
}

/// R9: the error names the server and the address, for each era, and no HTTP 401 of the door.
#[tokio::test]
async fn door_r9_a_call_to_a_server_that_waits_names_the_way_to_the_sign_in() {
    let signing = Signing::new().await;
    let world = &signing.world;
    let callers = [
        world.modern_caller(Endpoint::Aggregated),
        world.legacy_caller(Endpoint::Aggregated).await,
    ];
    let details = json!({"server": "one", "auth_url": ADDRESS});
    for caller in &callers {
        let answer = world.ask(caller, "tools/call", params("x")).await;
        assert_told(&answer, &details);
    }
    signing.sign_in().await;
    for caller in &callers {
        let answer = world.ask(caller, "tools/call", params("x")).await;
        assert_eq!(answer["result"]["content"], json!([]), "{answer}");
    }
    // C22: further scopes for one tool leave the server ready.
    let details = json!({"server": "one", "auth_url": ADDRESS, "scopes": ["write"]});
    for caller in &callers {
        let answer = world.ask(caller, "tools/call", params("write")).await;
        assert_told(&answer, &details);
    }
    let row = world.gateway.registry().get("one").unwrap();
    assert_eq!(row.state, ServerState::Ready);
    world.gateway.drain().await;
}

/// R9: a modern client that can lead its user to a page is asked to, once. Its next call goes to
/// the server without the answer to that question.
#[tokio::test]
async fn door_r9_a_modern_client_leads_its_user_to_the_sign_in() {
    let signing = Signing::new().await;
    let world = &signing.world;
    let caller = world.modern_caller(Endpoint::Aggregated);
    let mut first = params("x");
    first["_meta"] = json!({DECLARED: {"elicitation": {"url": {}}}});
    let answer = world.call(&caller, modern(1, "tools/call", first.clone())).await;
    assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
    assert!(answer["result"].get("requestState").is_none(), "{answer}");
    let questions = answer["result"]["inputRequests"].as_object().unwrap();
    let (key, question) = questions.iter().next().unwrap();
    assert_eq!(question["method"], "elicitation/create");
    let asked = &question["params"];
    assert_eq!((&asked["mode"], &asked["url"]), (&json!("url"), &json!(ADDRESS)));

    let mut again = first;
    again["inputResponses"] = json!({key: {"action": "accept"}});
    let answer = world.call(&caller, modern(2, "tools/call", again.clone())).await;
    assert_told(&answer, &json!({"server": "one", "auth_url": ADDRESS}));
    signing.sign_in().await;
    let answer = world.call(&caller, modern(3, "tools/call", again)).await;
    assert_eq!(answer["result"]["content"], json!([]), "{answer}");
    let calls = signing.calls();
    assert_eq!(calls.len(), 1, "{calls:?}");
    assert!(calls[0].body["params"].get("inputResponses").is_none(), "{calls:?}");
    world.gateway.drain().await;
}

/// R9: a legacy client gets the question on the stream of its call, which fails, and then the end.
#[tokio::test]
async fn door_r9_a_legacy_client_leads_its_user_to_the_sign_in() {
    let signing = Signing::new().await;
    let world = &signing.world;
    let can = json!({"elicitation": {"url": {}}});
    let caller = world.legacy_caller_with(Endpoint::Aggregated, can).await;
    let session = caller.session.clone().unwrap();
    let mut outbox = session.take_outbox().unwrap();
    let question = question_and_error(world, &caller).await;
    assert_eq!(question["method"], "elicitation/create");
    assert_eq!(question["params"]["url"], ADDRESS);
    signing.sign_in().await;
    let id = &question["params"]["elicitationId"];
    let told = async {
        loop {
            let payload = outbox.recv().await.unwrap();
            let message: Value = serde_json::from_slice(&payload.into_bytes()).unwrap();
            if message["method"] == "notifications/elicitation/complete" {
                return message["params"]["elicitationId"].clone();
            }
        }
    };
    assert_eq!(timeout(SOON, told).await.unwrap(), *id);
    world.gateway.drain().await;
}

/// The question before the answer of a call that fails.
async fn question_and_error(world: &World, caller: &Caller) -> Value {
    let request = legacy(5, "tools/call", params("x"));
    let mut answering = world.gateway.call(caller, request).await;
    let Some(Step::Message(question)) = answering.next().await else { panic!("no question") };
    let Some(Step::Answer(answer)) = answering.next().await else { panic!("no answer") };
    let answer: Value = serde_json::from_slice(&answer.payload.into_bytes()).unwrap();
    assert_told(&answer, &json!({"server": "one", "auth_url": ADDRESS}));
    serde_json::from_slice(&question.into_bytes()).unwrap()
}

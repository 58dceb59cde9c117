//! Credentials that change while a link is open.

use std::sync::{Arc, Mutex};

use http::HeaderValue;
use narthex_model::{
    AuthorizationCodeAuth, CallErrorKind, OAuth, Secret, ServerAuth, ServerDefinition, Target,
};
use narthex_upstream::{CredentialFault, Dialect, Doubt, LinkError};
use serde_json::{Value, json};

use super::{
    fake_credentials::FakeCredentials,
    peer::{Peer, Reply, Seen, event, events, events_of, result, text},
    world::{World, call, call_to_end, finish, forward, http, in_time, initialize_result},
};

const CHALLENGE: &str = r#"Bearer error="invalid_token""#;

/// The token that a server accepts now.
#[derive(Clone)]
struct Accepted(Arc<Mutex<Option<&'static str>>>);

impl Accepted {
    fn new(token: &'static str) -> Self {
        Self(Arc::new(Mutex::new(Some(token))))
    }

    fn change(&self, token: Option<&'static str>) {
        *self.0.lock().unwrap() = token;
    }

    fn refuses(&self, seen: &Seen) -> bool {
        let sent = seen.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
        sent.is_none() || sent != *self.0.lock().unwrap()
    }
}

/// An answer with a challenge.
fn challenge(status: u16, value: &'static str) -> Reply {
    let Reply::Now(mut reply) = text(status, "text/plain", "no") else { unreachable!() };
    reply.headers_mut().insert("www-authenticate", HeaderValue::from_static(value));
    Reply::Now(reply)
}

/// A legacy server with a session that takes the accepted token only.
async fn guarded(accepted: &Accepted) -> Peer {
    let accepted = accepted.clone();
    Peer::session(move |seen| accepted.refuses(seen).then(|| challenge(401, CHALLENGE))).await
}

fn world(fake: &Arc<FakeCredentials>) -> World {
    let mut world = World::new();
    world.context.credentials = Some(fake.clone());
    world
}

fn oauth(url: &str) -> ServerDefinition {
    let mut definition = http(url);
    if let Target::Http(target) = &mut definition.target {
        let auth = OAuth::AuthorizationCode(AuthorizationCodeAuth::default());
        target.auth = ServerAuth::OAuth(Box::new(auth));
    }
    definition
}

fn consent(scopes: &[&str]) -> CredentialFault {
    CredentialFault::NeedsConsent {
        why: "a person must sign in".to_owned(),
        address: Some("https://as.example.com/authorize".to_owned()),
        scopes: scopes.iter().map(|&scope| scope.to_owned()).collect(),
    }
}

fn calls(peer: &Peer) -> usize {
    peer.seen().iter().filter(|seen| seen.rpc() == "tools/call").count()
}

/// C27, E161: POST, the GET of the server's own stream, DELETE, and each message of the handshake.
/// The definition's own header gives way.
#[tokio::test]
async fn oauth_c27_every_request_of_a_link_carries_the_credential() {
    let peer = Peer::session(|seen| {
        let change = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
        (seen.method == "GET").then(|| events_of(&[event(&change)]))
    })
    .await;
    let fake = FakeCredentials::new(Some("token-1"));
    let mut world = world(&fake);
    let mut definition = oauth(&peer.url);
    if let Target::Http(target) = &mut definition.target {
        target.headers.insert("Authorization".to_owned(), Secret::new("Basic b2xkOm9uZQ=="));
    }
    let link = world.link(&definition).await;
    world.event().await;
    call_to_end(&link, "x", json!({})).await.unwrap();
    link.stop().await;
    let seen = peer.seen();
    let methods: Vec<_> = seen.iter().map(|seen| seen.method.as_str()).collect();
    assert!(methods.contains(&"GET") && methods.contains(&"DELETE"), "{methods:?}");
    for seen in &seen {
        assert_eq!(seen.header("authorization"), Some("Bearer token-1"), "{seen:?}");
    }
    assert!(!format!("{link:?}").contains("token-1"));
}

/// C27: every method carries the credential in both eras, also one that the server does not know.
#[tokio::test]
async fn oauth_c27_every_method_carries_the_credential() {
    let methods = [
        "tools/call",
        "tools/list",
        "prompts/get",
        "prompts/list",
        "resources/read",
        "resources/list",
        "resources/templates/list",
        "completion/complete",
        "tasks/get",
        "x/y",
    ];
    for peer in [Peer::session(|_seen| None).await, Peer::modern(|_seen| None).await] {
        let fake = FakeCredentials::new(Some("token-1"));
        let world = world(&fake);
        let link = world.link(&oauth(&peer.url)).await;
        for method in methods {
            let params = json!({"name": "x", "uri": "x:y", "taskId": "t"});
            finish(&mut forward(&link, method, params).await.unwrap()).await.unwrap();
        }
        link.stop().await;
        let seen = peer.seen();
        for method in methods {
            assert!(seen.iter().any(|seen| seen.rpc() == method), "{method} was not sent");
        }
        for seen in &seen {
            assert_eq!(seen.header("authorization"), Some("Bearer token-1"), "{seen:?}");
        }
    }
}

/// C27: the older transport carries the credential on its stream and on each message, and a
/// message that is refused is sent once more.
#[tokio::test]
async fn oauth_c27_every_request_over_http_sse_carries_the_credential() {
    let (sender, stream) = events();
    let stream = Arc::new(Mutex::new(Some(stream)));
    let (accepted, answers) = (Accepted::new("token-1"), sender.clone());
    let now = accepted.clone();
    let peer = Peer::start(move |seen| {
        let answer = |result: Value| {
            let message = json!({"jsonrpc": "2.0", "id": seen.body["id"], "result": result});
            answers.try_send(event(&message)).unwrap();
            text(202, "text/plain", "Accepted")
        };
        match (seen.method.as_str(), seen.rpc()) {
            _ if now.refuses(seen) => challenge(401, CHALLENGE),
            ("GET", _) => stream.lock().unwrap().take().unwrap_or(Reply::Never),
            ("POST", "initialize") => answer(initialize_result()),
            ("POST", "tools/call") => answer(json!({"content": []})),
            _ => text(202, "text/plain", ""),
        }
    })
    .await;
    sender.send("event: endpoint\ndata: /messages\n\n".to_owned()).await.unwrap();
    let mut definition = oauth(&peer.url);
    if let Target::Http(target) = &mut definition.target {
        target.is_sse = true;
    }
    let fake = FakeCredentials::new(Some("token-1"));
    let world = world(&fake);
    let link = world.link(&definition).await;
    call_to_end(&link, "x", json!({})).await.unwrap();
    for seen in peer.seen() {
        assert_eq!(seen.header("authorization"), Some("Bearer token-1"), "{seen:?}");
    }
    accepted.change(Some("token-2"));
    fake.answer(Ok(Some("token-2")));
    call_to_end(&link, "x", json!({})).await.unwrap();
    assert_eq!((calls(&peer), fake.refusals().len()), (3, 1));
    // A message without a credential fails alone.
    accepted.change(None);
    fake.answer(Err(consent(&[])));
    let error = call_to_end(&link, "x", json!({})).await.unwrap_err();
    assert!(error.needs_sign_in(), "{error}");
    assert!(!link.closed().is_cancelled());
}

/// C24: a token that the server refuses is renewed, and the request is sent once more.
#[tokio::test]
async fn oauth_c24_a_refused_request_is_sent_once_more_with_another_token() {
    let accepted = Accepted::new("token-1");
    let peer = guarded(&accepted).await;
    let fake = FakeCredentials::new(Some("token-1"));
    let world = world(&fake);
    let link = world.link(&oauth(&peer.url)).await;
    accepted.change(Some("token-2"));
    fake.answer(Ok(Some("token-2")));
    call_to_end(&link, "pay", json!({})).await.unwrap();
    call_to_end(&link, "pay", json!({})).await.unwrap();
    assert_eq!(calls(&peer), 3);
    let refusals = fake.refusals();
    let [refusal] = &refusals[..] else { panic!("{refusals:?}") };
    assert_eq!((refusal.status, refusal.is_repeated), (401, false));
    assert_eq!(refusal.challenges, [CHALLENGE]);
    assert_eq!(refusal.sent, Some(HeaderValue::from_static("Bearer token-1")));
    assert_eq!(refusal.operation, "tools/call pay");
    assert!(!format!("{refusal:?}").contains("token-1"), "the header is marked as a secret");
}

/// C24, C25: after a second refusal the request is not sent again, whatever the credential says.
#[tokio::test]
async fn oauth_c24_a_request_that_is_refused_twice_is_not_sent_again() {
    for second in [Err(consent(&[])), Ok(Some("token-3"))] {
        let accepted = Accepted::new("token-1");
        let peer = guarded(&accepted).await;
        let fake = FakeCredentials::new(Some("token-1"));
        let world = world(&fake);
        let link = world.link(&oauth(&peer.url)).await;
        accepted.change(None);
        fake.answer(Ok(Some("token-2")));
        let is_consent = second.is_err();
        fake.answer(second);
        let error = call(&link, "x", json!({})).await.unwrap_err();
        assert_eq!(error.call_kind(), CallErrorKind::AuthUnavailable);
        assert_eq!(error.needs_sign_in(), is_consent, "{error}");
        assert!(is_consent || matches!(error, LinkError::AuthRejected { status: 401 }), "{error}");
        assert_eq!(calls(&peer), 2);
        let repeated: Vec<_> = fake.refusals().iter().map(|one| one.is_repeated).collect();
        assert_eq!(repeated, [false, true]);
        assert_eq!(link.health().doubt(), Doubt::Grave, "no request works any more");
    }
}

/// C22: further scopes for one operation are no fault of the link; each of the two kinds of
/// refusal has its own repeat.
#[tokio::test]
async fn oauth_c22_a_step_up_fails_one_operation_only() {
    let needs = r#"Bearer error="insufficient_scope", scope="read write""#;
    let accepted = Accepted::new("token-1");
    let now = accepted.clone();
    let peer = Peer::session(move |seen| {
        if now.refuses(seen) {
            return Some(challenge(401, CHALLENGE));
        }
        let is_write = seen.body["params"]["name"] == "write";
        let may_write = seen.header("authorization") == Some("Bearer token-3");
        (is_write && !may_write).then(|| challenge(403, needs))
    })
    .await;
    let fake = FakeCredentials::new(Some("token-1"));
    let world = world(&fake);
    let link = world.link(&oauth(&peer.url)).await;
    fake.answer(Err(consent(&["read", "write"])));
    let error = call(&link, "write", json!({})).await.unwrap_err();
    assert!(!error.needs_sign_in(), "{error}");
    let wanted = error.wanted_sign_in().unwrap();
    assert_eq!(wanted.scopes, ["read", "write"]);
    assert_eq!(wanted.address.as_deref(), Some("https://as.example.com/authorize"));
    assert_eq!(fake.refusals()[0].challenges, [needs]);
    assert_eq!(link.health().doubt(), Doubt::None);
    call_to_end(&link, "read", json!({})).await.unwrap();

    // A client without a person gets both from its authorization server.
    accepted.change(Some("token-2"));
    fake.answer(Ok(Some("token-2")));
    fake.answer(Ok(Some("token-3")));
    let before = calls(&peer);
    let error = call(&link, "write", json!({})).await.unwrap_err();
    assert!(matches!(error, LinkError::AuthRejected { status: 401 }), "{error}");
    assert_eq!(calls(&peer) - before, 3, "one repeat after the 401, one after the 403");
}

/// D30: a refusal that no token changes is one of the credential, as with a key.
#[tokio::test]
async fn e62_a_refusal_that_no_token_changes_is_a_refused_credential() {
    let accepted = Accepted::new("token-1");
    let peer = guarded(&accepted).await;
    let fake = FakeCredentials::new(Some("token-1"));
    let world = world(&fake);
    let link = world.link(&oauth(&peer.url)).await;
    accepted.change(None);
    let error = call(&link, "x", json!({})).await.unwrap_err();
    assert!(matches!(error, LinkError::AuthRejected { status: 401 }), "{error}");
    assert_eq!((calls(&peer), fake.refusals().len()), (1, 1));
}

/// C1: a refused probe goes to the credential, so that the search for the authorization server
/// begins once.
#[tokio::test]
async fn oauth_c1_a_refused_probe_starts_the_sign_in_once() {
    let peer = Peer::start(|_| challenge(401, CHALLENGE)).await;
    let fake = FakeCredentials::new(None);
    fake.answer(Err(consent(&[])));
    let error = world(&fake).connect(&oauth(&peer.url)).await.unwrap_err();
    assert!(error.wanted_sign_in().is_some(), "{error}");
    assert_eq!(error.to_string(), "a person must sign in");
    assert_eq!(error.call_kind(), CallErrorKind::AuthUnavailable);
    assert_eq!((peer.seen().len(), fake.refusals().len()), (1, 1));
    assert_eq!(peer.seen()[0].header("authorization"), None);
}

/// C1: a server of an older revision may answer an unknown method with 401. The handshake that
/// follows shows that it needs no sign-in.
#[tokio::test]
async fn oauth_c1_a_refused_probe_alone_is_no_fault() {
    let peer =
        Peer::legacy(|seen| (seen.rpc() == "server/discover").then(|| text(401, "text/plain", "")));
    let peer = peer.await;
    let mut definition = http(&peer.url);
    if let Target::Http(target) = &mut definition.target {
        target.auth = ServerAuth::Unstated;
    }
    for fault in [
        CredentialFault::Rejected { status: 401 },
        CredentialFault::Unusable { why: "no authorization server was found".to_owned() },
    ] {
        let fake = FakeCredentials::new(None);
        fake.answer(Err(fault));
        let (link, dialect) = world(&fake).connect(&definition).await.unwrap();
        assert_eq!(dialect, Dialect::Legacy);
        call_to_end(&link, "x", json!({})).await.unwrap();
        assert!(peer.seen().iter().all(|seen| seen.header("authorization").is_none()));
    }
}

/// C30: a token that must be requested first is there before the first message. A fault of the
/// request is one of the connection, and a later attempt may succeed.
#[tokio::test]
async fn oauth_c30_a_token_is_obtained_before_the_first_request() {
    let accepted = Accepted::new("token-1");
    let peer = guarded(&accepted).await;
    let fake = FakeCredentials::to_obtain(Ok(Some("token-1")));
    let link = world(&fake).link(&oauth(&peer.url)).await;
    call_to_end(&link, "x", json!({})).await.unwrap();
    assert_eq!((fake.obtained(), fake.refusals().len()), (1, 0));
    peer.forget();

    let why = "the token endpoint answered HTTP 503".to_owned();
    let away = CredentialFault::Unavailable { why, retry_after: None };
    let fake = FakeCredentials::to_obtain(Err(away));
    let error = world(&fake).connect(&oauth(&peer.url)).await.unwrap_err();
    assert!(error.is_unreachable() && error.wanted_sign_in().is_none(), "{error}");
    assert_eq!(error.call_kind(), CallErrorKind::AuthUnavailable);
    let seen = peer.seen().into_iter().filter(|seen| seen.method != "DELETE");
    assert_eq!(seen.count(), 0, "nothing is sent without the token");
}

/// E26: without a source of sign-ins an entry with OAuth cannot be used.
#[tokio::test]
async fn e26_oauth_needs_a_source_of_sign_ins() {
    let peer = Peer::legacy(|_| None).await;
    let error = World::new().connect(&oauth(&peer.url)).await.unwrap_err();
    assert_eq!(error.call_kind(), CallErrorKind::AuthUnavailable);
    assert!(error.to_string().contains("`authorizationCode` needs a sign-in"), "{error}");
    assert!(peer.seen().is_empty());
}

/// Q11: a caller that stops waiting for a renewal stops nothing, and the link goes on.
#[tokio::test]
async fn oauth_q11_a_canceled_call_leaves_the_credential_to_others() {
    let accepted = Accepted::new("token-1");
    let peer = guarded(&accepted).await;
    let fake = FakeCredentials::new(Some("token-1"));
    let world = world(&fake);
    let link = world.link(&oauth(&peer.url)).await;
    accepted.change(Some("token-2"));
    fake.hang(true);
    tokio::select! {
        _ = call(&link, "x", json!({})) => panic!("nothing has renewed the token"),
        () = in_time(fake.wait(1)) => {}
    }
    fake.hang(false);
    // The cancellation of the first call may be refused as well.
    fake.answer(Ok(Some("token-2")));
    fake.answer(Ok(Some("token-2")));
    call_to_end(&link, "y", json!({})).await.unwrap();
    assert!(!link.closed().is_cancelled());
}

/// R-E45: a 401 that says that the session is over is no matter of the credential.
#[tokio::test]
async fn r_e45_a_lost_session_asks_for_no_sign_in() {
    let peer = Peer::session(|seen| {
        let is_lost = matches!(seen.rpc(), "tools/call" | "ping");
        is_lost.then(|| text(401, "text/plain", "Unauthorized: Session not found"))
    })
    .await;
    let fake = FakeCredentials::new(Some("token-1"));
    let link = world(&fake).link(&oauth(&peer.url)).await;
    let error = call(&link, "x", json!({})).await.unwrap_err();
    assert!(matches!(error, LinkError::SessionEnded), "{error}");
    assert!(fake.refusals().is_empty());
}

/// C28: the token goes to the server's origin only.
#[tokio::test]
async fn oauth_c28_no_token_follows_a_redirect_to_another_origin() {
    let other = Peer::legacy(|_| None).await;
    let target = other.url.clone();
    let peer = Peer::legacy(move |seen| {
        (seen.rpc() == "tools/call").then(|| {
            let Reply::Now(mut reply) = text(307, "text/plain", "") else { unreachable!() };
            reply.headers_mut().insert("location", target.parse().unwrap());
            Reply::Now(reply)
        })
    })
    .await;
    let fake = FakeCredentials::new(Some("token-1"));
    let link = world(&fake).link(&oauth(&peer.url)).await;
    let error = call(&link, "x", json!({})).await.unwrap_err();
    assert!(matches!(error, LinkError::Client(_)), "{error}");
    assert!(other.seen().is_empty());
}

/// S27: a server that repeats its token shows it in no answer.
#[tokio::test]
async fn s27_no_answer_and_no_error_shows_the_token() {
    let accepted = Accepted::new("token-1-secret");
    let now = accepted.clone();
    let peer = Peer::session(move |seen| {
        if now.refuses(seen) {
            return Some(challenge(401, CHALLENGE));
        }
        let sent = seen.header("authorization").unwrap_or_default();
        match (seen.rpc(), &seen.body["params"]["name"]) {
            ("tools/call", name) if name == "status" => {
                Some(text(500, "text/plain", sent.to_owned()))
            }
            ("tools/call", _) => {
                let said = json!({"type": "text", "text": format!("you sent {sent}")});
                Some(result(seen, &json!({"content": [said]})))
            }
            _ => None,
        }
    })
    .await;
    let fake = FakeCredentials::new(Some("token-1-secret"));
    let world = world(&fake);
    let link = world.link(&oauth(&peer.url)).await;
    for token in ["token-1-secret", "token-2-secret"] {
        let (_, answer) = call_to_end(&link, "x", json!({})).await.unwrap();
        let text = &answer["result"]["content"][0]["text"];
        assert_eq!(*text, "you sent Bearer [redacted]", "{token}");
        let error = call(&link, "status", json!({})).await.unwrap_err();
        assert!(!error.to_string().contains("secret"), "{error}");
        accepted.change(Some("token-2-secret"));
        // After the failure the link checks its session, which may be refused as well.
        fake.answer(Ok(Some("token-2-secret")));
        fake.answer(Ok(Some("token-2-secret")));
    }
    let message = link.health().last_failure().unwrap();
    assert!(!message.what.operator_cause().contains("secret"));
}

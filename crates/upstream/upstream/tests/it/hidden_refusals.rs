//! Refusals of a credential that a server hides in a tool error with HTTP 200 (Q18).

use std::sync::Arc;

use narthex_model::{
    AuthErrorPattern, AuthorizationCodeAuth, OAuth, ServerAuth, ServerDefinition, Target,
};
use narthex_upstream::{CredentialFault, Link};
use serde_json::{Value, json};

use super::{
    fake_credentials::FakeCredentials,
    peer::{Peer, Reply, Seen, event, events_of, result},
    world::{World, call, call_to_end, http},
};

const PATTERN: &str = "not logged in";

/// The form of the server's answers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Json,
    Stream,
    /// A stream in which a notification comes before the answer.
    LateInStream,
}

fn reply(seen: &Seen, form: Form, body: &Value) -> Reply {
    let answer = json!({"jsonrpc": "2.0", "id": seen.body["id"], "result": body});
    let said = json!({"jsonrpc": "2.0", "method": "notifications/message",
        "params": {"level": "info", "data": "at work"}});
    match form {
        Form::Json => result(seen, body),
        Form::Stream => events_of(&[event(&answer)]),
        Form::LateInStream => events_of(&[event(&said), event(&answer)]),
    }
}

/// A server that answers calls without this token with a tool error.
async fn server(token: &'static str, form: Form) -> Peer {
    Peer::session(move |seen| {
        let is_fine = seen.header("authorization").and_then(|value| value.strip_prefix("Bearer "))
            == Some(token);
        let text = if is_fine { "fine" } else { "You are not logged in." };
        let body = json!({"isError": !is_fine, "content": [{"type": "text", "text": text}]});
        (seen.rpc() == "tools/call").then(|| reply(seen, form, &body))
    })
    .await
}

fn world(fake: &Arc<FakeCredentials>) -> World {
    let mut world = World::new();
    world.context.credentials = Some(fake.clone());
    world
}

/// A link to a server whose entry has this pattern, with the world that it lives in.
async fn connected(
    peer: &Peer,
    fake: &Arc<FakeCredentials>,
    pattern: Option<&str>,
) -> (World, Link) {
    let world = world(fake);
    let link = world.link(&definition(&peer.url, pattern)).await;
    (world, link)
}

fn definition(url: &str, pattern: Option<&str>) -> ServerDefinition {
    let mut definition = http(url);
    if let Target::Http(target) = &mut definition.target {
        let auth_error = pattern.map(|text| AuthErrorPattern::new(text).unwrap());
        let auth = AuthorizationCodeAuth { auth_error, ..AuthorizationCodeAuth::default() };
        target.auth = ServerAuth::OAuth(Box::new(OAuth::AuthorizationCode(auth)));
    }
    definition
}

fn calls(peer: &Peer) -> usize {
    peer.seen().iter().filter(|seen| seen.rpc() == "tools/call").count()
}

fn consent() -> CredentialFault {
    CredentialFault::NeedsConsent {
        why: "a person must sign in".to_owned(),
        address: Some("https://as.example.com/authorize".to_owned()),
        scopes: Vec::new(),
    }
}

/// Q18: the call is sent once more with a renewed token, and the caller gets that answer alone.
#[tokio::test]
async fn q18_a_call_that_is_refused_in_an_error_is_sent_once_more() {
    for form in [Form::Json, Form::Stream] {
        let peer = server("token-2", form).await;
        let fake = FakeCredentials::new(Some("token-1"));
        let (_world, link) = connected(&peer, &fake, Some(PATTERN)).await;
        fake.answer(Ok(Some("token-2")));
        let (_, answer) = call_to_end(&link, "read", json!({})).await.unwrap();
        assert_eq!(answer["result"]["content"][0]["text"], "fine");
        assert_eq!(calls(&peer), 2);
        let refusals = fake.refusals();
        let [refusal] = &refusals[..] else { panic!("{refusals:?}") };
        assert_eq!((refusal.status, refusal.is_repeated), (401, false));
        assert_eq!(refusal.operation, "tools/call read");
        assert!(refusal.challenges.is_empty() && refusal.sent.is_some());
        call_to_end(&link, "read", json!({})).await.unwrap();
        assert_eq!((calls(&peer), fake.refusals().len()), (3, 1));
    }
}

/// Q18: without the setting, and for other errors, the tool error is an answer as any other.
#[tokio::test]
async fn q18_an_error_that_the_entry_does_not_name_is_an_answer() {
    for pattern in [None, Some("$.structuredContent.code=401")] {
        let peer = server("token-2", Form::Json).await;
        let fake = FakeCredentials::new(Some("token-1"));
        let (_world, link) = connected(&peer, &fake, pattern).await;
        fake.answer(Ok(Some("token-2")));
        let (_, answer) = call_to_end(&link, "read", json!({})).await.unwrap();
        assert_eq!(answer["result"]["isError"], true);
        assert_eq!((calls(&peer), fake.refusals().len()), (1, 0));
    }
}

/// Q18: a person who must sign in is asked to, and a token that is refused twice is not sent a
/// third time. If no token helps, the caller gets the tool error.
#[tokio::test]
async fn q18_a_refusal_in_an_error_ends_as_a_401_does() {
    let peer = server("none", Form::Json).await;
    let fake = FakeCredentials::new(Some("token-1"));
    let (_world, link) = connected(&peer, &fake, Some(PATTERN)).await;
    fake.answer(Err(consent()));
    let error = call(&link, "read", json!({})).await.unwrap_err();
    assert!(error.needs_sign_in(), "{error}");
    assert_eq!(calls(&peer), 1);

    let peer = server("none", Form::Json).await;
    let fake = FakeCredentials::new(Some("token-1"));
    let (_world, link) = connected(&peer, &fake, Some(PATTERN)).await;
    fake.answer(Ok(Some("token-2")));
    fake.answer(Ok(Some("token-3")));
    let (_, answer) = call_to_end(&link, "read", json!({})).await.unwrap();
    assert_eq!(answer["result"]["isError"], true);
    let repeated: Vec<_> = fake.refusals().iter().map(|one| one.is_repeated).collect();
    assert_eq!((calls(&peer), &repeated[..]), (2, &[false, true][..]));

    let peer = server("none", Form::Json).await;
    let fake = FakeCredentials::new(Some("token-1"));
    let (_world, link) = connected(&peer, &fake, Some(PATTERN)).await;
    let (_, answer) = call_to_end(&link, "read", json!({})).await.unwrap();
    assert_eq!(answer["result"]["isError"], true);
    assert_eq!((calls(&peer), fake.refusals().len()), (1, 1));
}

/// Q18: an answer behind a notification is not asked for again, as its caller has seen a part. The
/// next call has another token, or the sign-in is asked for.
#[tokio::test]
async fn q18_a_late_answer_counts_for_the_next_call() {
    let peer = server("token-2", Form::LateInStream).await;
    let fake = FakeCredentials::new(Some("token-1"));
    let (_world, link) = connected(&peer, &fake, Some(PATTERN)).await;
    fake.answer(Ok(Some("token-2")));
    let (notifications, answer) = call_to_end(&link, "read", json!({})).await.unwrap();
    assert_eq!((notifications.len(), &answer["result"]["isError"]), (1, &json!(true)));
    assert_eq!((calls(&peer), fake.refusals().len()), (1, 1));
    let (_, answer) = call_to_end(&link, "read", json!({})).await.unwrap();
    assert_eq!(answer["result"]["content"][0]["text"], "fine");

    let peer = server("none", Form::LateInStream).await;
    let fake = FakeCredentials::new(Some("token-1"));
    let (_world, link) = connected(&peer, &fake, Some(PATTERN)).await;
    fake.answer(Err(consent()));
    let error = call_to_end(&link, "read", json!({})).await.unwrap_err();
    assert!(error.needs_sign_in(), "{error}");
}

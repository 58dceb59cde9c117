//! No secret is shown anywhere but in requests to the authorization server (S27).

use std::fmt::Debug;

use narthex_model::ServerAuth;
use narthex_oauth_client::BeginAs;
use narthex_testkit::{
    authorization::{Endpoint, Quirks, TokenFailure},
    canary::Everything,
    warnings::Warnings,
};
use narthex_upstream::CredentialFault;

use crate::world::{World, answer, key, parameter};

fn note(everything: &mut Everything, label: &str, value: &dyn Debug) {
    everything.note(label, format!("{value:?}").as_bytes());
}

#[tokio::test]
async fn s27_nothing_shown_has_a_token_a_code_or_a_secret() {
    let warnings = Warnings::follow();
    let world = World::quirky(Quirks { odd_client_ids: true, ..Quirks::default() });
    let server = world.server(ServerAuth::Unstated);
    let mut everything = Everything::default();
    let address = server.address("whoami").await;
    everything.note("address", address.as_bytes());
    let finished = server.browse(&address).await.unwrap();
    note(&mut everything, "finished", &finished);
    server.works().await;
    note(&mut everything, "grant", &world.store.grant(key()).await.unwrap());
    world.fixture.quirks(|quirks| {
        quirks.failing_token_requests = 2;
        quirks.token_failure = TokenFailure::Html;
    });
    world.advance(3601);
    for _ in 0..3 {
        if let Err(fault) = server.call("whoami").await {
            note(&mut everything, "fault", &fault);
            everything.note("fault", fault.to_string().as_bytes());
        }
        note(&mut everything, "status", &server.sign_ins.status(&key()));
        world.advance(6);
    }
    world.fixture.end_all_tokens();
    if let Err(CredentialFault::NeedsConsent { why, .. }) = server.call("whoami").await {
        everything.note("why", why.as_bytes());
    }
    let begun = server.sign_ins.begin(&server.target(), BeginAs::Anew).await.unwrap();
    let back = world.fixture.browse(begun.url.as_str()).unwrap();
    let (_, query) = back.split_once('?').unwrap();
    server.sign_ins.finish(answer(query)).await.unwrap();
    let error = server.sign_ins.finish(answer(query)).await.unwrap_err().error;
    note(&mut everything, "error", &error);
    everything.note("error", error.to_string().as_bytes());
    note(&mut everything, "sign-out", &server.sign_ins.sign_out(&key()).await.unwrap());
    note(&mut everything, "sign-ins", &server.sign_ins);
    note(&mut everything, "credential", &server.credential);
    note(&mut everything, "options", &world.options("two"));
    note(&mut everything, "hooks", &world.recorder);
    for warning in warnings.take() {
        everything.note("log", warning.as_bytes());
    }
    let canaries = world.fixture.canaries();
    assert!(canaries.len() > 6, "{canaries:?}");
    assert_eq!(everything.leaks(&canaries), [""; 0]);
    // The search finds secrets: the fixture itself was sent some.
    let mut sent = Everything::default();
    for asked in world.fixture.asked_of(Endpoint::Token) {
        sent.note("sent", asked.text().as_bytes());
    }
    assert_ne!(sent.leaks(&canaries), [""; 0]);
    assert!(parameter(&address, "client_secret").is_none());
}

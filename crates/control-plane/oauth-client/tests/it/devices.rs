//! Sign-ins on another device (RFC 8628).

use std::time::Duration;

use narthex_model::ServerAuth;
use narthex_oauth_client::{DeviceBegun, DeviceState, SignInError};
use narthex_testkit::{
    authorization::{ClientSettings, DEVICE_CODE, Endpoint, Quirks, Settings},
    clock::SteppedClock,
};
use narthex_upstream::AtHand;

use crate::world::{REDIRECT, Server, World, key, preregistered};

/// A server at which a device has begun.
async fn begun(world: &World, auth: ServerAuth) -> (Server, DeviceBegun) {
    let server = world.server(auth);
    let begun = server.sign_ins.begin_device(&server.target()).await.unwrap();
    assert_eq!(server.sign_ins.device_state(&begun.id), DeviceState::Pending);
    assert_eq!(begun.expires_at, world.fixture.now_s() + 600);
    (server, begun)
}

/// Waits for the end of a consent.
async fn end(server: &Server, id: &str) -> DeviceState {
    loop {
        match server.sign_ins.device_state(id) {
            DeviceState::Pending => tokio::task::yield_now().await,
            end => return end,
        }
    }
}

/// Waits for this number of polls.
async fn polled(world: &World, number: usize) {
    while world.fixture.asked_of(Endpoint::Token).len() < number {
        tokio::task::yield_now().await;
    }
}

/// The clock takes small steps, as requests have deadlines.
fn clock() -> SteppedClock {
    SteppedClock::by(Duration::from_millis(50))
}

/// E153.
#[tokio::test]
async fn a_consent_on_another_device_gives_tokens() {
    let world = World::new();
    let _clock = clock();
    // Narthex registers itself for devices, too.
    let (server, begun) = begun(&world, ServerAuth::Unstated).await;
    polled(&world, 1).await;
    assert!(world.fixture.approve_device(&begun.user_code));
    let mut changes = server.sign_ins.changes();
    assert_eq!(end(&server, &begun.id).await, DeviceState::Done);
    assert!(changes.try_recv().is_ok());
    server.works().await;
    world.advance(3601);
    server.works().await;
    assert_eq!(world.fixture.counts().refreshes, 1);
    let registered = world.fixture.asked_of(Endpoint::Registration);
    assert_eq!(registered[0].json()["grant_types"][0], DEVICE_CODE);
}

/// E153.
#[tokio::test]
async fn a_client_of_the_settings_polls_less_often_when_it_is_told_so() {
    let quirks = Quirks { slow_down_polls: 2, ..Quirks::default() };
    let mut settings = Settings::with(quirks);
    settings.clients = vec![ClientSettings::public("known", &[REDIRECT])];
    let world = World::with(settings);
    let _clock = clock();
    let (server, begun) = begun(&world, preregistered("known", None)).await;
    let started = tokio::time::Instant::now();
    polled(&world, 3).await;
    // 5 s, then 10 s, then 15 s.
    assert!(started.elapsed() >= Duration::from_secs(30), "{:?}", started.elapsed());
    assert!(world.fixture.approve_device(&begun.user_code));
    assert_eq!(end(&server, &begun.id).await, DeviceState::Done);
}

#[tokio::test]
async fn a_declined_consent_says_so() {
    let world = World::new();
    let _clock = clock();
    let (server, begun) = begun(&world, ServerAuth::Unstated).await;
    assert!(world.fixture.deny_device(&begun.user_code));
    assert_eq!(end(&server, &begun.id).await, DeviceState::Denied);
}

/// E153.
#[tokio::test]
async fn a_code_that_nobody_enters_ends() {
    let world = World::new();
    let _clock = clock();
    let (server, begun) = begun(&world, ServerAuth::Unstated).await;
    world.advance(601);
    assert_eq!(end(&server, &begun.id).await, DeviceState::Expired);
    assert_eq!(server.sign_ins.device_state("another"), DeviceState::Expired);
}

#[tokio::test]
async fn a_client_that_may_not_use_devices_is_told_the_reason() {
    let clients = vec![ClientSettings {
        grant_types: vec!["authorization_code".to_owned()],
        ..ClientSettings::public("known", &[REDIRECT])
    }];
    let world = World::with(Settings { clients, ..Settings::default() });
    let server = world.server(preregistered("known", None));
    let error = server.sign_ins.begin_device(&server.target()).await.unwrap_err();
    assert!(matches!(error, SignInError::Token { .. }), "{error}");
    assert!(error.to_string().contains("unauthorized_client"), "{error}");
}

#[tokio::test]
async fn polling_ends_with_the_process() {
    let world = World::new();
    let _clock = clock();
    let (server, begun) = begun(&world, ServerAuth::Unstated).await;
    server.sign_ins.close().await;
    assert!(matches!(end(&server, &begun.id).await, DeviceState::Failed(_)));
}

/// C29: a code that was shown before a sign-out.
#[tokio::test]
async fn oauth_c29_a_code_of_before_a_sign_out_gives_no_tokens() {
    let world = World::new();
    let _clock = clock();
    let (server, begun) = begun(&world, ServerAuth::Unstated).await;
    polled(&world, 1).await;
    server.sign_ins.sign_out(&key()).await.unwrap();
    assert!(world.fixture.approve_device(&begun.user_code));
    assert_eq!(end(&server, &begun.id).await, DeviceState::Expired);
    assert!(matches!(server.credential.at_hand(), AtHand::Ready(None)));
    assert!(world.store.grant(key()).await.unwrap().is_none());
}

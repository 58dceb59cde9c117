//! Tests of request bodies of the API: all bodies share a buffer, of which one principal may use a
//! part.

use std::{future::poll_fn, task::Poll};

use http::StatusCode;
use http_body_util::BodyExt;
use narthex_http::HttpOptions;
use narthex_store::Store;
use serde_json::json;

use super::world::Api;
use crate::{
    boundary::Unfinished,
    world::{ADMIN, Builder, World, whole},
};

const HERE: &str = "/api/workspaces/default";

/// S31: unfinished long bodies of one principal, or of visitors who sign in, take at most half of
/// the buffer. Other requests are still answered. A cancelled request frees its bytes.
#[tokio::test]
async fn s31_unfinished_bodies_of_one_principal_cannot_take_all_room_of_the_api() {
    let place = tempfile::tempdir().unwrap();
    let store = Store::open(&place.path().join("store.db")).await.unwrap();
    let api = Api::with_all(&json!({}), store, &place.path().join("master.key")).await;
    let asked = json!({ "service": "ci", "roles": ["author"] }).to_string();
    let made = api.send("POST", &format!("{HERE}/service-tokens"), asked).await.succeeded();
    let service = made["token"].as_str().unwrap().to_owned();
    // The buffer has room for 16 bodies of 64 KiB; one principal may use half of it.
    let options = HttpOptions { api_body_bytes: 1 << 20, ..api.world.options.clone() };
    let world = World::around(api.world.gateway.clone(), |changed| *changed = options);
    let put = |token: &str| -> Builder<'_> {
        let request = world.request(http::Method::PUT, &format!("{HERE}/agents/writer"));
        let request = request.header("content-type", "application/json");
        request.header("authorization", &format!("Bearer {token}"))
    };
    let unfinished = || Unfinished(vec![vec![b' '; 10].into()]).boxed_unsync();
    let mut open: Vec<_> = (0..8).map(|_| Box::pin(put(ADMIN).body(unfinished()).send())).collect();
    for request in &mut open {
        let begun = poll_fn(|cx| Poll::Ready(request.as_mut().poll(cx).is_pending()));
        assert!(begun.await, "it waits for the rest");
    }
    let refused = put(ADMIN).body(unfinished()).send().await;
    let told = refused.problem(StatusCode::TOO_MANY_REQUESTS, "exhausted");
    assert!(told.contains("you have 524288 bytes"), "{told}");
    // Even a short body reserves one step, so that the number of open bodies is limited.
    let refused = put(ADMIN).body(whole("{}")).send().await;
    refused.problem(StatusCode::TOO_MANY_REQUESTS, "exhausted");
    let get = world.request(http::Method::GET, &format!("{HERE}/agents"));
    let get = get.header("authorization", &format!("Bearer {ADMIN}")).send().await;
    assert_eq!(get.status, StatusCode::OK, "what has no body needs no room");
    let padded = format!("{{}}{}", " ".repeat(300_000));
    put(&service).body(whole(padded.clone())).send().await.succeeded();
    drop(open);
    put(ADMIN).body(whole(padded)).send().await.succeeded();
    // A body that is longer than one principal's part is always refused.
    let long = format!("{{}}{}", " ".repeat(600_000));
    let refused = put(ADMIN).body(whole(long)).send().await;
    refused.problem(StatusCode::TOO_MANY_REQUESTS, "exhausted");
}

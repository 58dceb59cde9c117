//! The example of embedding with sign-ins works unchanged.

#[path = "../../examples/sign_in.rs"]
#[expect(dead_code, reason = "it is a program of its own")]
mod sign_in;

use std::sync::Arc;

use http::Request;
use narthex_http_client::{ClientSettings, HttpClient};
use narthex_oauth_client::FileStore;
use narthex_registry::ServerResult;
use narthex_testkit::authorization::Endpoint;
use narthex_wire::Payload;
use serde_json::json;
use tokio::net::TcpListener;
use url::{Position, Url};

use crate::world::{Recorder, World};

/// Plays the browser, once the program has shown an address.
async fn signs_in(world: &World, shown: &Recorder) {
    let address = loop {
        let opened = shown.opened.lock().unwrap().first().cloned();
        if let Some(opened) = opened {
            break opened;
        }
        tokio::task::yield_now().await;
    };
    let (server, address) = address.split_once(' ').unwrap();
    assert_eq!(server, "linear");
    let back = Url::parse(&world.fixture.browse(address).unwrap()).unwrap();
    let mut request = Request::new(Payload::default());
    *request.uri_mut() = back[Position::BeforePath..Position::AfterQuery].parse().unwrap();
    let client = HttpClient::new(&back, ClientSettings::default()).unwrap();
    let response = client.send(request).await.unwrap();
    assert_eq!(response.status.as_u16(), 200);
    let page = response.body.collect(1 << 20).await.unwrap();
    assert_eq!(page, "You are signed in to linear.");
}

/// E25, E28, E31: the example shows the address, takes the browser back, and needs no browser the
/// next time.
#[tokio::test]
async fn e31_the_example_of_sign_ins_runs() {
    let world = World::new();
    let dir = tempfile::tempdir().unwrap();
    let (file, tokens) = (dir.path().join("mcp.json"), dir.path().join("sign-ins.json"));
    let linear = json!({ "transport": "http", "url": world.fixture.url });
    fs_err::write(&file, json!({ "servers": { "linear": linear } }).to_string()).unwrap();
    let start = async |shown: &Arc<Recorder>| {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let hooks = Arc::<Recorder>::clone(shown);
        let tokens = FileStore::new(&tokens);
        Box::pin(sign_in::run(&file, tokens, listener, hooks)).await.unwrap()
    };
    let shown = Arc::<Recorder>::default();
    let (results, ()) = tokio::join!(start(&shown), signs_in(&world, &shown));
    assert!(matches!(&*results, [ServerResult::Authenticating { .. }]), "{results:?}");
    let shown = Arc::<Recorder>::default();
    let results = start(&shown).await;
    assert!(matches!(&*results, [ServerResult::Ready { .. }]), "{results:?}");
    assert_eq!(shown.opened.lock().unwrap().len(), 0);
    assert_eq!(world.fixture.asked_of(Endpoint::Authorize).len(), 1);
}

//! Behaviour that is the same for every transport.

use narthex_testkit::fixture::{Eras, Fixture, Options, Running, sse};
use narthex_upstream::{Ended, Link, LinkError};
use serde_json::json;
use tokio::net::TcpListener;

use super::world::{World, call, fixture_process, http, in_time, text_of};

async fn link_of(world: &World, transport: &str) -> (Link, Option<Running>) {
    match transport {
        "stdio" => (world.link(&fixture_process("legacy")).await, None),
        "http" => {
            let options = Options { eras: Eras::Legacy, ..Options::default() };
            let server = Running::http(options).await.unwrap();
            (world.link(&http(&server.url)).await, Some(server))
        }
        _ => {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = format!("http://{}/sse", listener.local_addr().unwrap());
            let fixture = Fixture::new(Options { eras: Eras::Legacy, ..Options::default() });
            world.tasks.spawn(async move {
                tokio::select! {
                    () = sse::serve(fixture, listener) => {}
                    () = tokio::time::sleep(super::world::DEADLINE) => {}
                }
            });
            (world.link(&http(url)).await, None)
        }
    }
}

/// R-M26: connect, call, ping and close work over each transport, and nothing after the close.
#[tokio::test]
async fn r_m26_every_transport_has_the_same_four_operations() {
    for transport in ["stdio", "http", "sse"] {
        let world = World::new();
        let (link, server) = link_of(&world, transport).await;
        let text = text_of(&link, "echo", json!({"message": "hello"})).await;
        assert!(text.contains("hello"), "{transport}: {text}");
        in_time(link.ping()).await.unwrap();
        let (one, other) = tokio::join!(in_time(link.stop()), in_time(link.stop()));
        assert_eq!((one, other), (Ended::Gracefully, Ended::Gracefully), "{transport}, R-M20");
        assert!(link.closed().is_cancelled(), "{transport}");
        let error = call(&link, "echo", json!({"message": "hello"})).await.unwrap_err();
        assert!(matches!(error, LinkError::Closed(_)), "{transport}: {error}");
        if let Some(server) = server {
            let deleted = server.fixture.counts().sessions_deleted;
            assert_eq!(deleted, 1, "R-E46: the session is given back exactly once");
        }
    }
}

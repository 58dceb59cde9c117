//! The redirects that the HTTP client follows.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use http::Response;
use narthex_http_client::{ClientError, ClientSettings, HttpClient};
use narthex_model::ErrorKind;

use super::{
    LIMIT, call,
    server::{Answer, Server, answer, post},
};

fn redirect(status: u16, location: &str) -> Answer {
    Response::builder().status(status).header("location", location).body("gone".into()).unwrap()
}

#[tokio::test]
async fn redirects_within_the_origin_are_followed_and_remembered() {
    for status in [307, 308] {
        let server = Server::start(move |request| match request.uri().path() {
            "/mcp" => redirect(status, "/mcp/"),
            "/mcp/" => {
                assert_eq!(request.headers()["authorization"], "Bearer hush");
                answer(request.into_body())
            }
            other => panic!("{other}"),
        })
        .await;
        let client = server.client();
        for _ in 0..3 {
            let response = client.send(post("/mcp")).await.unwrap();
            assert_eq!(response.body.collect(LIMIT).await.unwrap(), "{}");
        }
        assert_eq!((server.connections(), server.requests()), (1, 4));
    }
}

#[tokio::test]
async fn a_remembered_redirect_is_forgotten_after_a_404() {
    let is_gone = Arc::<AtomicBool>::default();
    let gone = Arc::clone(&is_gone);
    let server = Server::start(move |request| match request.uri().path() {
        "/mcp" if gone.load(Ordering::SeqCst) => answer("back"),
        "/mcp" => redirect(308, "/old"),
        _ if gone.load(Ordering::SeqCst) => {
            Response::builder().status(404).body("gone".into()).unwrap()
        }
        _ => answer("old"),
    })
    .await;
    let client = server.client();
    assert_eq!(call(&client).await, "old");
    is_gone.store(true, Ordering::SeqCst);
    assert_eq!(client.send(post("/mcp")).await.unwrap().status, 404);
    assert_eq!(call(&client).await, "back");
}

#[tokio::test]
async fn a_new_redirect_fails_one_request_and_is_followed_afterwards() {
    let has_moved = Arc::<AtomicBool>::default();
    let moved = Arc::clone(&has_moved);
    let server = Server::start(move |request| match request.uri().path() {
        "/mcp" if moved.load(Ordering::SeqCst) => redirect(307, "/new"),
        other => answer(other.to_owned()),
    })
    .await;
    let client = server.client();
    assert_eq!(call(&client).await, "/mcp");
    has_moved.store(true, Ordering::SeqCst);
    let error = client.send(post("/mcp")).await.unwrap_err();
    assert!(matches!(error, ClientError::Moved { .. }), "{error}");
    assert!(!error.may_have_arrived());
    assert_eq!(call(&client).await, "/new");
    assert_eq!(call(&client).await, "/new");
    assert_eq!(server.requests(), 4);
}

/// S16.
#[tokio::test]
async fn credentials_do_not_follow_a_redirect_elsewhere() {
    let other = Server::start(|_| answer("caught")).await;
    let target = format!("{}?token=hush", other.url);
    let server = Server::start(move |_| redirect(307, &target)).await;
    let error = server.client().send(post("/mcp")).await.unwrap_err();
    assert_eq!((error.kind(), error.may_have_arrived()), (ErrorKind::Invalid, true));
    assert!(error.to_string().contains(other.url.as_str()), "{error}");
    assert!(!error.to_string().contains("hush"), "{error}");
    assert_eq!(other.requests(), 0);
}

#[tokio::test]
async fn redirects_that_change_the_method_are_errors() {
    for status in [301, 302, 303, 300] {
        let server = Server::start(move |_| redirect(status, "/login?next=hush")).await;
        let error = server.client().send(post("/mcp")).await.unwrap_err();
        assert!(matches!(error, ClientError::Redirected { .. }), "{error}");
        assert!(error.to_string().contains("/login,"), "{error}");
        assert_eq!(server.requests(), 1);
    }
}

#[tokio::test]
async fn redirects_in_a_circle_end() {
    let server = Server::start(|request| {
        let path = request.uri().path();
        redirect(307, &format!("{path}x"))
    })
    .await;
    let error = server.client().send(post("/mcp")).await.unwrap_err();
    assert!(matches!(error, ClientError::TooManyRedirects { limit: 3, .. }), "{error}");
    assert_eq!(server.requests(), 4);
}

/// A path that redirects to itself, or back to one before it, gets nothing a second time.
#[tokio::test]
async fn a_path_that_redirected_is_not_asked_again() {
    for (next, requests) in [("/mcp", 1), ("/other", 2)] {
        let server = Server::start(move |request| {
            redirect(307, if request.uri().path() == "/mcp" { next } else { "/mcp" })
        })
        .await;
        let error = server.client().send(post("/mcp")).await.unwrap_err();
        assert!(matches!(error, ClientError::TooManyRedirects { .. }), "{error}");
        assert_eq!(server.requests(), requests, "{next}");
    }
}

/// A caller that asks for them gets redirects as they are, wherever they lead.
#[tokio::test]
async fn redirects_are_returned_to_a_caller_that_follows_them() {
    let target = "https://elsewhere.example/file?key=1";
    let server = Server::start(move |_request| redirect(302, target)).await;
    let settings = ClientSettings { returns_redirects: true, ..ClientSettings::default() };
    let client = HttpClient::new(&server.url, settings).unwrap();
    for _ in 0..2 {
        let response = client.send(post("/mcp")).await.unwrap();
        assert_eq!(response.status.as_u16(), 302);
        assert_eq!(response.headers["location"], target);
    }
}

//! Tests of a registry that answers late, with another version, or with harmful texts.

use std::{
    io::{Read, Write},
    net::TcpListener,
    thread,
};

use serde_json::json;

use super::*;
use crate::terminal::is_harmful;

/// A registry that gives each request the next of these answers, and leaves later ones waiting.
fn registry(answers: Vec<(u16, String)>) -> PublicRegistry {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for (status, body) in answers {
            let Ok((mut stream, _)) = listener.accept() else { return };
            let mut head = [0; 4096];
            drop(stream.read(&mut head));
            let length = body.len();
            let text = format!(
                "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: \
                 {length}\r\nconnection: close\r\n\r\n{body}"
            );
            drop(stream.write_all(text.as_bytes()));
        }
        drop(listener.incoming().collect::<Vec<_>>());
    });
    let address = RegistryAddress::new(&address, "--registry").unwrap();
    PublicRegistry::new(address, Arc::default()).unwrap()
}

fn at_once(status: u16, body: &str) -> PublicRegistry {
    registry(vec![(status, body.to_owned())])
}

/// E202: a registry that answers with another server or version than was asked for is refused.
#[tokio::test]
async fn e202_another_version_than_the_asked_one_is_refused() {
    let server = json!({ "server": { "name": "a/b", "version": "9.9.9\nnew line" } }).to_string();
    let failure = at_once(200, &server).version("a/b", "1.0.0").await.unwrap_err();
    let told = "answered with `a/b` 9.9.9\u{fffd}new line instead of `a/b` 1.0.0";
    assert!(failure.message.contains(told), "{failure:?}");
    let other = at_once(200, &server).version("a/c", "latest").await.unwrap_err();
    assert!(other.message.contains("instead of `a/c` latest"), "{other:?}");
    assert!(at_once(200, &server).version("a/b", "latest").await.is_ok());
    assert!(at_once(200, &server).version("a/b", "9.9.9\nnew line").await.is_ok());
}

/// E206: texts of a registry start no line in an error and move no cursor.
#[tokio::test]
async fn e206_texts_of_a_registry_are_harmless_in_errors() {
    let answers = [
        (500, json!({ "error": "a\nb\u{1b}[2J\u{202e}" }).to_string()),
        (404, json!({ "title": "a\r\nb" }).to_string()),
        (200, "{\"servers\": \"a\\nb\\u001b\"}".to_owned()),
        (200, "{ \u{1b}".to_owned()),
    ];
    for (status, body) in answers {
        let failure = at_once(status, &body).search(&["x".to_owned()]).await.unwrap_err();
        assert!(!failure.message.contains(is_harmful), "{:?}", failure.message);
    }
}

/// E202: a search ends, however many slow pages the registry has.
#[tokio::test]
async fn e202_a_search_is_limited_in_time() {
    let page = |at: usize| json!({ "servers": [], "metadata": { "nextCursor": at.to_string() } });
    let registry = registry((0..3).map(|at| (200, page(at).to_string())).collect());
    let words: Vec<_> = ["a", "b", "c", "d"].map(str::to_owned).to_vec();
    let asked = registry.search_within(&words, Duration::from_millis(250)).await;
    let failure = asked.unwrap_err();
    assert!(failure.message.contains("sent not all of its servers"), "{failure:?}");
}

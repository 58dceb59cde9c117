//! Tests of open streams of clients with access tokens of the door: each ends when its client, its
//! human or its tokens lose their right.

use http::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{Desk, ENDPOINT};
use crate::{
    browser::HOST,
    world::{SOON, Stream, initialize},
};

/// A client that ada let in, with an open stream.
struct Listening {
    desk: Desk,
    client: String,
    tokens: Value,
    stream: Stream,
}

impl Listening {
    async fn new() -> Self {
        let desk = Desk::new().await;
        let (client, tokens) = desk.let_in(ENDPOINT).await;
        let bearer = format!("Bearer {}", tokens["access_token"].as_str().unwrap());
        let opened = desk.api.world.post("/mcp", initialize("2025-11-25"));
        let opened = opened.header("host", HOST).header("authorization", &bearer).send().await;
        let session = opened.headers["mcp-session-id"].to_str().unwrap().to_owned();
        let listen = desk.request(Method::GET, "/mcp").header("authorization", &bearer);
        let listen = listen.header("accept", "text/event-stream");
        let stream = Stream::of(listen.header("mcp-session-id", &session).open().await);
        Self { desk, client, tokens, stream }
    }

    /// The path of the registered client.
    async fn path(&self) -> String {
        let id = self.desk.clients().await[0]["id"].as_str().unwrap().to_owned();
        format!("/api/workspaces/default/mcp-clients/{id}")
    }

    async fn revoke(&self, token: &str) {
        let token = self.tokens[token].as_str().unwrap();
        let fields = [("token", token), ("client_id", &*self.client)];
        let answer = self.desk.posted("/revoke", &fields).send().await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    }

    /// Waits for the end of the stream, after which the token opens nothing.
    async fn ends(mut self) {
        let end = async { while self.stream.next().await.is_some() {} };
        timeout(SOON, end).await.expect("the stream is open");
        let called = self.desk.call("/mcp", &self.tokens["access_token"]).await;
        assert_eq!(called.status, StatusCode::UNAUTHORIZED, "{}", called.text());
    }
}

#[tokio::test]
async fn door_r8_the_stream_of_a_revoked_client_ends() {
    let listening = Listening::new().await;
    let path = listening.path().await;
    let ended = listening.desk.api.ask("DELETE", &path).send().await;
    assert_eq!(ended.status, StatusCode::NO_CONTENT);
    listening.ends().await;
}

#[tokio::test]
async fn door_r8_the_stream_of_a_disabled_human_ends() {
    let listening = Listening::new().await;
    let body = json!({"is_disabled": true}).to_string();
    listening.desk.api.send("PATCH", "/api/principals/ada", body).await.succeeded();
    listening.ends().await;
}

#[tokio::test]
async fn door_r8_the_stream_of_a_human_without_the_right_ends() {
    let listening = Listening::new().await;
    let body = json!({"is_operator": false}).to_string();
    listening.desk.api.send("PATCH", "/api/principals/ada", body).await.succeeded();
    listening.ends().await;
}

/// R8, A13: a client that signs out ends its streams, by whichever of its tokens.
#[tokio::test]
async fn door_r8_a13_the_stream_of_a_client_that_signs_out_ends() {
    for token in ["access_token", "refresh_token"] {
        let listening = Listening::new().await;
        listening.revoke(token).await;
        listening.ends().await;
    }
}

/// R8, A9: a thief's stream ends when the stolen refresh token is used again.
#[tokio::test]
async fn door_r8_a9_the_stream_of_a_reused_family_ends() {
    let listening = Listening::new().await;
    let Listening { desk, client, tokens, .. } = &listening;
    let second = desk.refresh(client, &tokens["refresh_token"]).await.succeeded();
    desk.refresh(client, &second["refresh_token"]).await.succeeded();
    let reused = desk.refresh(client, &tokens["refresh_token"]).await;
    assert_eq!(reused.json()["error"], "invalid_grant");
    listening.ends().await;
}

/// A13: one access token of a client ends. Its refresh token gives another one.
#[tokio::test]
async fn door_a13_a_revoked_access_token_leaves_the_family() {
    let listening = Listening::new().await;
    listening.revoke("access_token").await;
    let Listening { desk, client, tokens, .. } = &listening;
    let second = desk.refresh(client, &tokens["refresh_token"]).await.succeeded();
    let called = desk.call("/mcp", &second["access_token"]).await;
    assert_eq!(called.status, StatusCode::OK, "{}", called.text());
}

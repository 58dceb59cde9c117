//! Tests of questions about access tokens (RFC 7662): the callers that get an answer, and the
//! tokens that they see.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::{Desk, ENDPOINT};
use crate::{
    browser::ORIGIN,
    world::{ADMIN, Answer},
};

/// A client with a secret, by the answer to its registration.
struct Confidential {
    id: String,
    secret: String,
}

impl Confidential {
    async fn new(desk: &Desk, name: &str) -> Self {
        let proof = json!({"token_endpoint_auth_method": "client_secret_post"});
        let registered = desk.register(name, proof).await;
        let text = |name: &str| registered[name].as_str().unwrap().to_owned();
        Self { id: text("client_id"), secret: text("client_secret") }
    }

    /// The access token that a human gives the client.
    async fn token(&self, desk: &Desk) -> String {
        let code = desk.code(&desk.sign_in("ada").await, &self.id, ENDPOINT).await;
        let fields = [
            ("grant_type", "authorization_code"),
            ("client_id", &*self.id),
            ("client_secret", &*self.secret),
            ("code", &*code),
            ("code_verifier", super::VERIFIER),
            ("redirect_uri", super::REDIRECT),
        ];
        let tokens = desk.posted("/token", &fields).send().await.succeeded();
        tokens["access_token"].as_str().unwrap().to_owned()
    }

    async fn asks(&self, desk: &Desk, token: &str) -> Answer {
        let fields = [("token", token), ("client_id", &*self.id), ("client_secret", &*self.secret)];
        desk.posted("/introspect", &fields).send().await
    }
}

/// Asks with a bearer token.
async fn ask(desk: &Desk, bearer: &str, token: &str) -> Answer {
    let request = desk.posted("/introspect", &[("token", token)]);
    request.header("authorization", &format!("Bearer {bearer}")).send().await
}

/// The token of a service with a role in a workspace.
async fn service(desk: &Desk, workspace: &str, role: &str) -> String {
    let body = json!({ "service": format!("a-{role}"), "roles": [role] }).to_string();
    let path = format!("/api/workspaces/{workspace}/service-tokens");
    let made = desk.api.send("POST", &path, body).await.succeeded();
    made["token"].as_str().unwrap().to_owned()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

#[tokio::test]
async fn door_a13_operators_and_services_of_the_workspace_learn_about_a_token() {
    let desk = Desk::new().await;
    let known = "/.well-known/oauth-authorization-server";
    let server = desk.request(Method::GET, known).send().await.succeeded();
    assert_eq!(server["introspection_endpoint"], format!("{ORIGIN}/introspect"));
    let (client, tokens) = desk.let_in(ENDPOINT).await;
    let token = text(&tokens["access_token"]);
    let auditor = service(&desk, "default", "auditor").await;
    for bearer in [ADMIN, &auditor] {
        let found = ask(&desk, bearer, token).await;
        assert_eq!(found.headers["cache-control"], "no-store");
        let found = found.succeeded();
        assert_eq!(found["active"], true, "{found}");
        assert_eq!((&found["client_id"], &found["aud"]), (&json!(client), &json!(ENDPOINT)));
        assert_eq!(
            (&found["iss"], &found["scope"]),
            (&json!(ORIGIN), &json!("mcp offline_access"))
        );
        // The endpoint answers about access tokens alone.
        for other in [text(&tokens["refresh_token"]), "nxa_x", "a.b.c", ADMIN, &auditor] {
            let found = ask(&desk, bearer, other).await.succeeded();
            assert_eq!(found, json!({"active": false}));
        }
    }
    let fields = [("token", text(&tokens["refresh_token"])), ("client_id", &*client)];
    desk.posted("/revoke", &fields).send().await;
    let found = ask(&desk, ADMIN, token).await.succeeded();
    assert_eq!(found, json!({"active": false}), "a revoked one");
}

/// S18: what the sender of a question may not see looks like what does not exist.
#[tokio::test]
async fn s18_door_a13_tokens_of_others_are_inactive() {
    let desk = Desk::new().await;
    let (_, tokens) = desk.let_in(ENDPOINT).await;
    let token = text(&tokens["access_token"]);
    let team = json!({ "id": "team" }).to_string();
    desk.api.send("POST", "/api/workspaces", team).await.succeeded();
    let elsewhere = service(&desk, "team", "admin").await;
    let runner = service(&desk, "default", "runner").await;
    for bearer in [&elsewhere, &runner] {
        let found = ask(&desk, bearer, token).await.succeeded();
        assert_eq!(found, json!({"active": false}));
    }
    // Anyone can register a client with a secret. It sees its own tokens.
    let (one, other) =
        (Confidential::new(&desk, "One").await, Confidential::new(&desk, "Other").await);
    let own = one.token(&desk).await;
    assert_eq!(one.asks(&desk, &own).await.succeeded()["active"], true);
    for (client, token) in [(&other, &*own), (&one, token)] {
        assert_eq!(client.asks(&desk, token).await.succeeded(), json!({"active": false}));
    }
}

/// A13: other callers get no answer, whatever the token.
#[tokio::test]
async fn door_a13_strangers_and_public_clients_are_refused() {
    let desk = Desk::new().await;
    let (client, tokens) = desk.let_in(ENDPOINT).await;
    let token = text(&tokens["access_token"]);
    let run = desk.api.world.token.trim_start_matches("Bearer ").to_owned();
    for bearer in [token, "nxs_x", "x", &*run] {
        let refused = ask(&desk, bearer, token).await;
        assert_eq!(refused.status, StatusCode::UNAUTHORIZED, "{}", refused.text());
        assert_eq!(refused.json()["error"], "invalid_token");
        assert!(super::challenge(&refused).starts_with("Bearer "));
    }
    let one = Confidential::new(&desk, "One").await;
    let wrong = Confidential { secret: "nxp_wrong".to_owned(), ..one };
    let no_one = desk.posted("/introspect", &[("token", token)]).send().await;
    let public = desk.posted("/introspect", &[("token", token), ("client_id", &client)]);
    for refused in [wrong.asks(&desk, token).await, no_one, public.send().await] {
        assert_eq!(refused.status, StatusCode::UNAUTHORIZED, "{}", refused.text());
        assert_eq!(refused.json()["error"], "invalid_client");
    }
    // A human's cookie is no proof of a service.
    let cookie = desk.sign_in("ada").await;
    let human = desk.form("/introspect", &[("token", token)], &cookie).send().await;
    assert_eq!(human.json()["error"], "invalid_client", "{}", human.text());
}

/// S31: one sender asks a bounded number of times, and others are not slowed.
#[tokio::test]
async fn s31_door_a13_questions_are_bounded() {
    let desk = Desk::new().await;
    let one = Confidential::new(&desk, "One").await;
    let mut refused = None;
    for _ in 0..=600 {
        let answer = one.asks(&desk, "nxa_x").await;
        if answer.status != StatusCode::OK {
            refused = Some(answer);
            break;
        }
    }
    let refused = refused.expect("there is no bound");
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS, "{}", refused.text());
    assert_eq!(refused.json()["error"], "temporarily_unavailable");
    assert_eq!(ask(&desk, ADMIN, "nxa_x").await.succeeded(), json!({"active": false}));
}

//! Each switch of the token endpoint changes its answers.

use serde_json::{Value, json};

use super::client::Peer;
use crate::authorization::{ExpiresIn, Quirks, TokenFailure, form};

#[tokio::test]
async fn token_answers_have_the_shape_that_switches_say() {
    let peer = Peer::with(Quirks::default());
    for (switch, expected) in [
        (ExpiresIn::Number, Some(json!(3600))),
        (ExpiresIn::Text, Some(json!("3600"))),
        (ExpiresIn::Zero, Some(json!(0))),
        (ExpiresIn::Null, Some(Value::Null)),
        (ExpiresIn::Missing, None),
        (ExpiresIn::Junk, Some(json!("soon"))),
    ] {
        peer.fixture.quirks(|all| all.expires_in = switch);
        assert_eq!(peer.tokens().await.get("expires_in"), expected.as_ref(), "{switch:?}");
    }
    peer.fixture.quirks(|all| all.token_type_lower_case = true);
    assert_eq!(peer.tokens().await["token_type"], "bearer");
    peer.fixture.quirks(|all| all.token_type_missing = true);
    assert!(peer.tokens().await["token_type"].is_null());
    assert_eq!(peer.tokens().await["scope"], "mcp");
    peer.fixture.quirks(|all| all.scope_missing = true);
    assert!(peer.tokens().await["scope"].is_null());
    peer.fixture.quirks(|all| all.errors_with_200 = true);
    let refused = peer.redeem_code("none", "narthex").await;
    assert_eq!((refused.status, &refused.json()["error"]), (200, &json!("invalid_grant")));
    peer.fixture.quirks(|all| all.no_refresh_token = true);
    assert!(peer.tokens().await["refresh_token"].is_null());
    peer.fixture.quirks(|all| all.jwt_access_tokens = true);
    let token = peer.tokens().await["access_token"].clone();
    assert_eq!(token.as_str().unwrap().split('.').count(), 3);
    assert_eq!(peer.call(&token, "whoami").await.status, 200);
    peer.fixture.quirks(|all| all.form_encoded_answers = true);
    let link = peer.link("narthex", &[("resource", &peer.fixture.url)]);
    let answer = peer.redeem(&link).await;
    assert_eq!(answer.header("content-type"), "application/x-www-form-urlencoded");
    assert_eq!(form(&answer.text)[0].0, "access_token");
    let refused = peer.redeem_code("none", "narthex").await;
    assert_eq!(form(&refused.text)[0].1, "invalid_grant");
}

#[tokio::test]
async fn an_answer_like_slacks_is_always_200() {
    let peer = Peer::with(Quirks { slack_like: true, ..Quirks::default() });
    let link = peer.link("narthex", &[("scope", "mcp,admin")]);
    let answer = peer.redeem(&link).await.json();
    assert!(answer["ok"] == true && answer["access_token"].is_null());
    let user = &answer["authed_user"];
    assert_eq!(user["scope"], "mcp,admin");
    assert_eq!(peer.call(&user["access_token"], "admin").await.status, 200);
    let refused = peer.redeem_code("none", "narthex").await;
    assert_eq!(
        (refused.status, refused.json()),
        (200, json!({"ok": false, "error": "invalid_code"}))
    );
}

#[tokio::test]
async fn refreshes_need_what_switches_demand() {
    let peer = Peer::with(Quirks { never_rotates: true, ..Quirks::default() });
    let tokens = peer.tokens().await;
    let token = &tokens["refresh_token"];
    for _ in 0..2 {
        let again = peer.refresh(token, &[]).await.json();
        assert!(again["access_token"].is_string() && again["refresh_token"].is_null());
    }
    peer.fixture.quirks(|all| all.resource_needed_on_refresh = true);
    assert_eq!(peer.refresh(token, &[]).await.json()["error"], "invalid_target");
    let resource = [("resource", peer.fixture.url.as_str())];
    assert_eq!(peer.refresh(token, &resource).await.status, 200);
    peer.fixture.quirks(|all| *all = Quirks { never_rotates: true, ..Quirks::default() });
    peer.fixture.quirks(|all| all.scope_needed_on_refresh = true);
    let other = peer.refresh(token, &[]).await.json();
    assert_eq!(other["scope"], "profile");
    assert_eq!(peer.call(&other["access_token"], "whoami").await.status, 403);
    assert_eq!(peer.refresh(token, &[("scope", "mcp")]).await.json()["scope"], "mcp");
    peer.fixture.quirks(|all| all.scope_refused_on_refresh = true);
    assert_eq!(peer.refresh(token, &[("scope", "mcp")]).await.json()["error"], "invalid_scope");
}

#[tokio::test]
async fn grants_are_smaller_where_switches_say_so() {
    let peer = Peer::with(Quirks { refuses_resource_with_scope: true, ..Quirks::default() });
    let both = peer.link("narthex", &[("resource", &peer.fixture.url), ("scope", "mcp")]);
    let text = peer.back(&both, "error_description").unwrap();
    assert!(text.starts_with("AADSTS9010010"), "{text}");
    let tokens = peer.redeem(&peer.link("narthex", &[("scope", "mcp")])).await.json();
    assert_eq!(peer.call(&tokens["access_token"], "whoami").await.status, 200);
    let resource = [("resource", peer.fixture.url.as_str())];
    assert_eq!(peer.refresh(&tokens["refresh_token"], &resource).await.status, 400);
    assert_eq!(peer.refresh(&tokens["refresh_token"], &[]).await.status, 200);

    peer.fixture.quirks(|all| {
        *all = Quirks { ignores_resource: true, offline_access_needed: true, ..Quirks::default() };
        all.grants_only = Some(vec!["mcp".to_owned(), "offline_access".to_owned()]);
    });
    peer.fixture.change(|settings| {
        settings.scopes.extend(["offline_access".to_owned(), "openid".to_owned()]);
    });
    let tokens = peer.redeem(&peer.link("narthex", &[("scope", "mcp admin")])).await.json();
    assert!(tokens["scope"] == "mcp" && tokens["refresh_token"].is_null());
    let scope = [("scope", "mcp offline_access")];
    let tokens = peer.redeem(&peer.link("narthex", &scope)).await.json();
    assert!(tokens["refresh_token"].is_string());
    peer.fixture.quirks(|all| all.grants_only = None);
    let tokens = peer.redeem(&peer.link("narthex", &[("scope", "openid")])).await.json();
    assert!(tokens["id_token"].is_string());
}

#[tokio::test]
async fn the_token_endpoint_fails_as_often_as_it_is_told() {
    let peer = Peer::with(Quirks::default());
    let tokens = peer.tokens().await;
    for (failure, status) in [
        (TokenFailure::Unavailable, 503),
        (TokenFailure::Html, 500),
        (TokenFailure::HtmlAsSuccess, 200),
        (TokenFailure::TooMany, 429),
        (TokenFailure::BrokenJson, 200),
    ] {
        peer.fixture.quirks(|all| {
            all.token_failure = failure;
            all.failing_token_requests = 1;
        });
        let answer = peer.refresh(&tokens["refresh_token"], &[]).await;
        assert_eq!(answer.status, status, "{failure:?}");
        assert!(serde_json::from_str::<Value>(&answer.text).is_err() || status > 400);
    }
    let url = format!("{}/token", peer.fixture.issuer(0));
    peer.fixture.quirks(|all| {
        all.token_failure = TokenFailure::Hangup;
        all.failing_token_requests = 2;
    });
    for is_hung_up in [true, true, false] {
        assert_eq!(peer.is_hung_up("POST", &url).await, is_hung_up);
    }
    assert_eq!(peer.refresh(&tokens["refresh_token"], &[]).await.status, 200);
}

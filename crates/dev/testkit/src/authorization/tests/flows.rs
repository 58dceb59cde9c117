//! Whole flows: registration, sign-in, refresh, and the marks that tests have on them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::json;

use super::client::{Peer, REDIRECT, basic, code_fields, origin, parameter};
use crate::{
    authorization::{AuthorizationFixture, Endpoint, Issuer, Moment, Quirks, Settings},
    canary::Everything,
};

/// A client that knows nothing but the address of the MCP server gets in, and its token went to
/// that server only.
#[tokio::test]
async fn a_client_finds_its_way_from_the_first_401() {
    let quirks = Quirks { odd_client_ids: true, ..Quirks::default() };
    let peer = Peer::start(Settings::with(quirks));
    let refused = peer.rpc(None, "initialize", json!({})).await;
    assert_eq!(refused.status, 401);
    let challenge = refused.header("www-authenticate");
    assert!(challenge.ends_with(", scope=\"mcp\""), "{challenge}");
    let address = challenge.split('"').nth(1).unwrap();
    let resource = peer.get(address).await.json();
    assert_eq!(resource["resource"], peer.fixture.url.as_str());
    let issuer = resource["authorization_servers"][0].as_str().unwrap();
    let server = peer.well_known(issuer, "oauth-authorization-server").await.json();
    assert_eq!(server["issuer"], issuer);
    assert_eq!(server["code_challenge_methods_supported"], json!(["S256"]));

    let grants = ["authorization_code", "refresh_token"];
    let body = json!({"redirect_uris": [REDIRECT], "grant_types": grants, "client_name": "x"});
    let client = peer.register(&body).await;
    assert_eq!(client.status, 201);
    let client = client.json();
    assert_eq!(client["redirect_uris"], json!([REDIRECT]));
    let (id, secret) = (client["client_id"].as_str().unwrap(), &client["client_secret"]);
    let proof = basic(id, secret.as_str().unwrap());

    let link = peer.link(id, &[("resource", &peer.fixture.url), ("scope", "mcp")]);
    let back = peer.get(&link).await;
    assert_eq!(back.status, 302);
    let back = back.header("location");
    assert_eq!(parameter(back, "state").as_deref(), Some("s-1"));
    assert_eq!(parameter(back, "iss").as_deref(), Some(issuer));
    let code = parameter(back, "code").unwrap();
    let url = server["token_endpoint"].as_str().unwrap();
    let tokens = peer.form_at(url, &code_fields(&code), Some(&proof)).await;
    assert_eq!(tokens.status, 200, "{}", tokens.text);
    let tokens = tokens.json();
    assert_eq!(tokens["expires_in"], 3600);

    let called = peer.call(&tokens["access_token"], "whoami").await.json();
    assert_eq!(called["result"]["content"][0]["text"], "ada");
    assert_eq!(called["result"]["structuredContent"]["client"], id);
    let refresh = tokens["refresh_token"].as_str().unwrap();
    let fields = [("grant_type", "refresh_token"), ("refresh_token", refresh)];
    let again = peer.form_at(url, &fields, Some(&proof)).await.json();
    assert_ne!(again["access_token"], tokens["access_token"]);
    assert_eq!(peer.call(&again["access_token"], "echo").await.status, 200);

    let counts = peer.fixture.counts();
    assert_eq!((counts.registrations, counts.codes, counts.refreshes), (1, 1, 1));
    assert_eq!((counts.access_tokens, counts.calls, counts.families_revoked), (2, 2, 0));
    let mut everything = Everything::default();
    for asked in peer.fixture.asked() {
        let label = if asked.endpoint == Endpoint::Mcp { "MCP" } else { "issuer" };
        everything.note(label, asked.text().as_bytes());
    }
    let tokens: Vec<_> = peer.fixture.canaries();
    let tokens: Vec<_> = tokens.into_iter().filter(|one| one.name == "access token").collect();
    assert_eq!(tokens.len(), 2);
    for token in tokens {
        let places = everything.finds(&token);
        assert!(places.iter().all(|place| place.0 == "MCP"), "{places:?}");
        assert_ne!(places, []);
    }
    assert_eq!(peer.fixture.asked_of(Endpoint::Token)[0].basic().unwrap().id, id);
}

/// A refresh token that is used twice ends its family; within a grace it does not.
#[tokio::test]
async fn a_second_use_revokes_the_family() {
    let peer = Peer::with(Quirks { rotates_with_grace: Some(30_000), ..Quirks::default() });
    let first = peer.tokens().await;
    let second = peer.refresh(&first["refresh_token"], &[]).await.json();
    let graced = peer.refresh(&first["refresh_token"], &[]).await.json();
    assert!(graced["access_token"].is_string() && graced["refresh_token"].is_null());
    assert_eq!(peer.fixture.counts().families_revoked, 0);
    peer.fixture.advance(Duration::from_millis(30_001));
    let punished = peer.refresh(&first["refresh_token"], &[]).await;
    assert_eq!((punished.status, &punished.json()["error"]), (400, &json!("invalid_grant")));
    let counts = peer.fixture.counts();
    assert_eq!((counts.families_revoked, counts.refreshes, counts.refused_refreshes), (1, 2, 1));
    for tokens in [&first, &second, &graced] {
        assert_eq!(peer.call(&tokens["access_token"], "whoami").await.status, 401);
    }
    assert_eq!(peer.refresh(&second["refresh_token"], &[]).await.status, 400);
    assert_eq!(peer.fixture.counts().families_revoked, 1);
}

/// A grace that gives refresh tokens begins with the first use, and ends as another one does.
#[tokio::test]
async fn a_grace_may_give_refresh_tokens() {
    let grace = Quirks { rotates_with_grace: Some(30_000), ..Quirks::default() };
    let peer = Peer::with(Quirks { grace_rotates: true, ..grace });
    let first = peer.tokens().await;
    peer.refresh(&first["refresh_token"], &[]).await;
    peer.fixture.advance(Duration::from_secs(20));
    let again = peer.refresh(&first["refresh_token"], &[]).await.json();
    let next = peer.refresh(&again["refresh_token"], &[]).await.json();
    assert!(next["refresh_token"].is_string(), "{next}");
    peer.fixture.advance(Duration::from_secs(11));
    assert_eq!(peer.refresh(&first["refresh_token"], &[]).await.status, 400);
    assert_eq!(peer.fixture.counts().families_revoked, 1);
}

/// A clock that runs is the machine's, whatever time the settings begin with.
#[test]
fn a_running_clock_is_that_of_the_machine() {
    let settings = Settings { now_s: Some(1), clock_runs: true, ..Settings::default() };
    let fixture = AuthorizationFixture::start(settings);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    assert!((now - 60..now + 60).contains(&fixture.now_s()));
}

/// Without a grace, at once; and a code is for once, too.
#[tokio::test]
async fn codes_and_refresh_tokens_are_for_one_use() {
    let peer = Peer::with(Quirks::default());
    let tokens = peer.tokens().await;
    peer.refresh(&tokens["refresh_token"], &[]).await;
    assert_eq!(peer.refresh(&tokens["refresh_token"], &[]).await.status, 400);
    assert_eq!(peer.fixture.counts().families_revoked, 1);

    let link = peer.link("narthex", &[("resource", &peer.fixture.url)]);
    let code = peer.back(&link, "code").unwrap();
    let tokens = peer.redeem_code(&code, "narthex").await.json();
    assert!(peer.fixture.holder(tokens["access_token"].as_str().unwrap()).is_some());
    assert_eq!(peer.redeem_code(&code, "narthex").await.status, 400);
    assert_eq!(peer.call(&tokens["access_token"], "whoami").await.status, 401);
    assert_eq!(peer.fixture.counts().families_revoked, 2);

    let code = peer.back(&link, "code").unwrap();
    let mut fields = code_fields(&code).to_vec();
    fields.push(("client_id", "narthex"));
    fields[3].1 = "another-verifier-of-at-least-forty-three-chars";
    let wrong = peer.form("token", &fields).await;
    assert!(wrong.text.contains("code_verifier does not fit"), "{}", wrong.text);
    peer.fixture.advance(Duration::from_secs(60));
    assert!(peer.redeem_code(&code, "narthex").await.text.contains("has expired"));
}

/// The clock of the fixture alone ends tokens.
#[tokio::test]
async fn tokens_end_by_the_fixtures_clock() {
    let peer = Peer::with(Quirks::default());
    peer.fixture.change(|settings| {
        settings.access_lives_s = 100;
        settings.refresh_lives_s = Some(1000);
    });
    let (tokens, began) = (peer.fixture.give(0, "narthex", &["mcp"]), peer.fixture.now_s());
    peer.fixture.advance(Duration::from_secs(99));
    assert_eq!(peer.fixture.now_s() - began, 99);
    assert_eq!(peer.call(&tokens["access_token"], "whoami").await.status, 200);
    peer.fixture.advance(Duration::from_secs(1));
    let refused = peer.call(&tokens["access_token"], "whoami").await;
    assert_eq!(refused.status, 401);
    assert!(refused.header("www-authenticate").contains("error=\"invalid_token\""));
    peer.fixture.advance(Duration::from_secs(900));
    assert!(peer.refresh(&tokens["refresh_token"], &[]).await.text.contains("has expired"));
}

/// A request waits at a gate, with its work done or not.
#[tokio::test]
async fn gates_hold_requests_until_the_test_opens_them() {
    let peer = Peer::with(Quirks::default());
    let tokens = peer.tokens().await;
    for (moment, done) in [(Moment::After, 1), (Moment::Before, 1)] {
        let gate = peer.fixture.hold(Endpoint::Token, moment);
        let refresh = peer.refresh(&tokens["refresh_token"], &[]);
        let watched = async {
            gate.until(1).await;
            assert_eq!((gate.arrived(), peer.fixture.counts().refreshes), (1, done));
            gate.open();
        };
        tokio::join!(refresh, watched);
    }
    assert_eq!(peer.fixture.counts().refused_refreshes, 1);
    assert_eq!(peer.fixture.wait(|asked| asked.endpoint == Endpoint::Token).await.method, "POST");
}

/// The MCP server moves to another issuer, which knows none of the clients.
#[tokio::test]
async fn issuers_are_strangers_to_each_other() {
    let issuers = vec![Issuer::at(1, ""), Issuer::at(2, "/tenant")];
    let peer = Peer::start(Settings { issuers, ..Settings::default() });
    let resource = || async {
        let rest = "oauth-protected-resource/mcp";
        peer.well_known(&origin(&peer.fixture), rest).await.json()["authorization_servers"].clone()
    };
    assert_eq!(resource().await, json!([peer.fixture.issuer(0)]));
    peer.fixture.change(|settings| settings.advertised = vec![1]);
    let tenant = peer.fixture.issuer(1);
    assert_eq!(resource().await, json!([tenant]));
    let base = tenant.trim_end_matches("/tenant");
    for address in [
        format!("{base}/.well-known/oauth-authorization-server/tenant"),
        format!("{base}/.well-known/openid-configuration/tenant"),
        format!("{tenant}/.well-known/openid-configuration"),
    ] {
        assert_eq!(peer.get(&address).await.json()["issuer"], tenant.as_str(), "{address}");
    }
    assert_eq!(peer.well_known(base, "oauth-authorization-server").await.status, 404);

    let body = json!({"redirect_uris": [REDIRECT], "token_endpoint_auth_method": "none"});
    let id = peer.register(&body).await.json()["client_id"].as_str().unwrap().to_owned();
    let link = peer.link(&id, &[]);
    assert!(peer.fixture.browse(&link).is_ok());
    let elsewhere = link.replace(&peer.fixture.issuer(0), &tenant);
    assert!(peer.fixture.browse(&elsewhere).unwrap_err().contains("Unknown client"));
    peer.fixture.forget_clients();
    assert!(peer.fixture.browse(&link).unwrap_err().contains("Unknown client"));
}

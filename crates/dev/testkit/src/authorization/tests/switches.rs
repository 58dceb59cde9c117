//! Each switch of metadata, registration and the MCP server changes the answers.

use serde_json::{Value, json};

use super::client::{Peer, REDIRECT, origin};
use crate::authorization::{
    AuthMethod, CallbackIss, Endpoint, Issuer, Quirks, Settings, WrongResource,
};

const RESOURCE: &str = "oauth-protected-resource";
const SERVER: &str = "oauth-authorization-server";
const OPENID: &str = "openid-configuration";

/// A switch that is turned.
type Turn = fn(&mut Quirks);

fn quirks(change: impl FnOnce(&mut Quirks)) -> Quirks {
    let mut quirks = Quirks::default();
    change(&mut quirks);
    quirks
}

async fn resource(peer: &Peer, rest: &str) -> Value {
    peer.well_known(&origin(&peer.fixture), &format!("{RESOURCE}{rest}")).await.json()
}

async fn server(peer: &Peer) -> Value {
    peer.well_known(&peer.fixture.issuer(0), SERVER).await.json()
}

#[tokio::test]
async fn metadata_is_missing_where_a_switch_says_so() {
    let settings = Settings { issuers: vec![Issuer::at(1, "/tenant")], ..Settings::default() };
    let peer = Peer::start(settings);
    let (own, issuer) = (origin(&peer.fixture), peer.fixture.issuer(0));
    let base = issuer.trim_end_matches("/tenant");
    let addresses = [
        format!("{own}/.well-known/{RESOURCE}/mcp"),
        format!("{own}/.well-known/{RESOURCE}"),
        format!("{own}/mcp/.well-known/{RESOURCE}"),
        format!("{base}/.well-known/{SERVER}/tenant"),
        format!("{base}/.well-known/{OPENID}/tenant"),
        format!("{issuer}/.well-known/{OPENID}"),
        format!("{base}/.well-known/{SERVER}"),
    ];
    let table: [(&str, Turn, [u16; 7]); 7] = [
        ("none", |_| {}, [200, 200, 404, 200, 200, 200, 404]),
        ("root", |all| all.metadata_only_at_root = true, [404, 200, 404, 404, 404, 404, 200]),
        (
            "appended",
            |all| all.resource_metadata_appended = true,
            [404, 404, 200, 200, 200, 200, 404],
        ),
        ("no resource", |all| all.no_resource_metadata = true, [404, 404, 404, 200, 200, 200, 404]),
        ("no server", |all| all.no_server_metadata = true, [200, 200, 404, 404, 404, 404, 404]),
        ("status", |all| all.miss_status = Some(403), [200, 200, 403, 200, 200, 200, 403]),
        // A number that is no status: HTML with 200.
        ("HTML", |all| all.html_at_well_known = true, [1, 200, 1, 1, 200, 200, 1]),
    ];
    for (name, change, expected) in table {
        peer.fixture.change(|settings| settings.quirks = quirks(change));
        for (address, expected) in addresses.iter().zip(expected) {
            let answer = peer.get(address).await;
            let is_html = answer.header("content-type").starts_with("text/html");
            let found = if is_html { 1 } else { answer.status };
            assert_eq!(found, expected, "{name}: {address}");
        }
    }
}

#[tokio::test]
async fn metadata_says_what_its_switches_say() {
    let peer = Peer::with(quirks(|all| all.issuer_trailing_slash = true));
    let issuer = peer.fixture.issuer(0);
    assert_eq!(resource(&peer, "").await["authorization_servers"][0], format!("{issuer}/"));
    assert_eq!(server(&peer).await["issuer"], issuer);
    let set = |change: Turn| {
        peer.fixture.change(|settings| settings.quirks = quirks(change));
    };
    set(|all| all.metadata_trailing_slash = true);
    assert_eq!(server(&peer).await["issuer"], format!("{issuer}/"));
    assert_eq!(peer.back(&peer.link("narthex", &[]), "iss"), Some(format!("{issuer}/")));
    set(|all| all.wrong_issuer_in_metadata = true);
    assert_eq!(server(&peer).await["issuer"], "https://other.example");
    set(|all| all.no_s256_advertised = true);
    assert!(server(&peer).await["code_challenge_methods_supported"].is_null());
    set(|all| all.no_dcr = true);
    assert!(server(&peer).await["registration_endpoint"].is_null());
    set(|all| all.slack_like = true);
    assert!(server(&peer).await["registration_endpoint"].is_null());
    set(|all| all.unknown_scopes = true);
    assert_eq!(resource(&peer, "").await["scopes_supported"], json!(["mcp", "mcp:unknown"]));
    let unknown = peer.link("narthex", &[("scope", "mcp mcp:unknown")]);
    assert_eq!(peer.back(&unknown, "error").as_deref(), Some("invalid_scope"));
    let url = peer.fixture.url.clone();
    for (wrong, expected) in [
        (WrongResource::OtherOrigin, format!("{}/mcp", peer.fixture.elsewhere)),
        (WrongResource::OtherPath, url.replace("/mcp", "/other")),
        (WrongResource::Parent, url.replace("/mcp", "")),
    ] {
        peer.fixture.quirks(|all| all.wrong_resource = Some(wrong));
        assert_eq!(resource(&peer, "/mcp").await["resource"], expected);
    }
    assert!(server(&peer).await["client_id_metadata_document_supported"].is_null());
    peer.fixture.change(|settings| {
        settings.takes_client_documents = true;
        settings.auth_methods.clear();
        let id = "https://narthex.example/client.json";
        settings.client_documents = vec![json!({"client_id": id, "redirect_uris": [REDIRECT]})];
    });
    let document = server(&peer).await;
    assert_eq!(document["client_id_metadata_document_supported"], true);
    assert!(document["token_endpoint_auth_methods_supported"].is_null());
    assert!(peer.fixture.browse(&peer.link("https://narthex.example/client.json", &[])).is_ok());
}

#[tokio::test]
async fn the_redirect_back_has_the_issuer_that_its_switch_says() {
    let peer = Peer::with(Quirks::default());
    let (issuer, other) = (peer.fixture.issuer(0), "https://other.example");
    for (switch, is_announced, expected) in [
        (CallbackIss::Supported, true, Some(issuer.clone())),
        (CallbackIss::NotAdvertised, false, None),
        (CallbackIss::SupportedMissing, true, None),
        (CallbackIss::WrongIssuer, true, Some(other.to_owned())),
        (CallbackIss::Unexpected, false, Some(other.to_owned())),
        (CallbackIss::Normalized, true, Some(issuer.replace("http:", "HTTP:") + "/")),
    ] {
        peer.fixture.quirks(|all| all.wrong_iss_in_callback = switch);
        let metadata = server(&peer).await;
        let announced = &metadata["authorization_response_iss_parameter_supported"];
        assert_eq!(announced == true, is_announced, "{switch:?}");
        assert_eq!(peer.back(&peer.link("narthex", &[]), "iss"), expected, "{switch:?}");
    }
    assert_eq!(CallbackIss::ALL.len(), 6);
    peer.fixture.quirks(|all| {
        all.denies = Some("access_denied".to_owned());
        all.wrong_state_in_callback = true;
    });
    let link = peer.link("narthex", &[]);
    assert_eq!(peer.back(&link, "error").as_deref(), Some("access_denied"));
    assert_eq!(peer.back(&link, "state").as_deref(), Some("s-1x"));
    assert_eq!(peer.back(&link, "code"), None);
    let port = peer.link("narthex", &[]).replace("127.0.0.1%3A1%2F", "127.0.0.1%3A2%2F");
    assert!(peer.back(&port, "state").is_some());
    peer.fixture.quirks(|all| all.loopback_ports_matter = true);
    assert!(peer.fixture.browse(&port).unwrap_err().contains("not registered"));
}

#[tokio::test]
async fn registration_refuses_what_its_switches_refuse() {
    let peer = Peer::with(Quirks::default());
    let public = "https://narthex.example/callback";
    let body = |address: &str| {
        json!({"redirect_uris": [address], "client_name": "narthex", "scope": "mcp",
               "application_type": "native", "token_endpoint_auth_method": "none"})
    };
    let table: [(Turn, [u16; 2]); 8] = [
        (|_| {}, [201, 201]),
        (|all| all.no_dcr = true, [404, 404]),
        (|all| all.dcr_refuses = Some(422), [422, 422]),
        (|all| all.dcr_refuses_without_loopback = true, [201, 400]),
        (|all| all.dcr_refuses_loopback = true, [400, 201]),
        (|all| all.dcr_refuses_scope = true, [400, 400]),
        (|all| all.dcr_refuses_application_type = Some("native".to_owned()), [400, 400]),
        (|all| all.dcr_only_named = Some("Claude Code".to_owned()), [403, 403]),
    ];
    for (number, (change, expected)) in table.into_iter().enumerate() {
        peer.fixture.change(|settings| settings.quirks = quirks(change));
        for (address, expected) in [REDIRECT, public].into_iter().zip(expected) {
            let answer = peer.register(&body(address)).await;
            assert_eq!(answer.status, expected, "{number}: {}", answer.text);
        }
    }
    assert_eq!(peer.fixture.counts().registrations, 4);

    let set = |change: Turn| {
        peer.fixture.change(|settings| settings.quirks = quirks(change));
    };
    set(|all| all.returns_secret_for_none = true);
    let client = peer.register(&body(REDIRECT)).await.json();
    let secret = client["client_secret"].as_str().unwrap();
    assert_eq!(client["token_endpoint_auth_method"], "none");
    let id = client["client_id"].as_str().unwrap();
    let fields = |secret| [("grant_type", "x"), ("client_id", id), ("client_secret", secret)];
    assert_eq!(peer.form("token", &fields("wrong")).await.status, 401);
    assert_eq!(peer.form("token", &fields(secret)).await.status, 400);
    assert_eq!(peer.form("token", &[("client_id", id)]).await.status, 401);

    set(|all| {
        all.dcr_answers_200 = true;
        all.dcr_forces_redirects = Some(vec!["https://narthex.example/fixed".to_owned()]);
    });
    let client = peer.register(&body(REDIRECT)).await;
    assert_eq!(client.status, 200);
    assert_eq!(client.json()["redirect_uris"], json!(["https://narthex.example/fixed"]));
    let id = client.json()["client_id"].as_str().unwrap().to_owned();
    assert!(peer.fixture.browse(&peer.link(&id, &[])).unwrap_err().contains("not registered"));

    set(|all| {
        all.dcr_forces_method = Some(AuthMethod::Post);
        all.secret_lives_s = Some(10);
        all.purged_clients = Some(20);
    });
    let client = peer.register(&body(REDIRECT)).await.json();
    assert_eq!(client["token_endpoint_auth_method"], "client_secret_post");
    assert_eq!(client["client_secret_expires_at"], peer.fixture.now_s() + 10);
    let (id, secret) = (client["client_id"].clone(), client["client_secret"].clone());
    let (id, secret) = (id.as_str().unwrap(), secret.as_str().unwrap());
    let fields = [("grant_type", "x"), ("client_id", id), ("client_secret", secret)];
    for text in ["may not use", "secret has expired", "unknown client"] {
        let answer = peer.form("token", &fields).await;
        assert!(answer.text.contains(text), "{}", answer.text);
        peer.fixture.advance(std::time::Duration::from_secs(10));
    }
}

#[tokio::test]
async fn the_mcp_server_answers_as_its_switches_say() {
    let peer = Peer::with(Quirks::default());
    let challenge = async |change: Turn| {
        peer.fixture.change(|settings| settings.quirks = quirks(change));
        let answer = peer.rpc(Some("dead"), "tools/list", json!({})).await;
        assert_eq!(answer.status, 401);
        let lines = answer.headers.get_all("www-authenticate").iter();
        lines.map(|line| line.to_str().unwrap()).collect::<Vec<_>>().join("\n")
    };
    let plain = challenge(|_| {}).await;
    assert!(plain.starts_with("Bearer resource_metadata=\"") && plain.contains("scope=\"mcp\""));
    assert_eq!(challenge(|all| all.no_challenge = true).await, "");
    let several = challenge(|all| all.several_challenges = true).await;
    assert!(several.starts_with("Negotiate\nDigest") && several.contains(", Bearer resource_"));
    assert!(!challenge(|all| all.no_bearer_challenge = true).await.contains("Bearer"));
    let without = challenge(|all| all.challenge_without_metadata = true).await;
    assert!(!without.contains("resource_metadata"), "{without}");
    assert!(!challenge(|all| all.challenge_without_scope = true).await.contains("scope"));
    for method in ["GET", "DELETE"] {
        let answer = peer.send(method, &peer.fixture.url, &[], String::new()).await;
        assert_eq!(answer.status, 401);
    }
    peer.fixture.change(|settings| settings.quirks = quirks(|all| all.hides_401_in_200 = true));
    assert_eq!(peer.rpc(None, "tools/list", json!({})).await.status, 200);
    let hidden = peer.call(&json!("dead"), "whoami").await;
    assert_eq!((hidden.status, &hidden.json()["result"]["isError"]), (200, &json!(true)));
    peer.fixture.change(|settings| settings.quirks = quirks(|all| all.handshake_is_open = true));
    let open = peer.rpc(None, "initialize", json!({"protocolVersion": "2025-06-18"})).await;
    assert_eq!(open.json()["result"]["protocolVersion"], "2025-06-18");
    assert_eq!(peer.call(&json!("dead"), "whoami").await.status, 401);
    peer.fixture.quirks(|all| all.challenge_names_missing_only = true);
    let tokens = peer.tokens().await;
    let refused = peer.call(&tokens["access_token"], "admin").await;
    assert!(refused.header("www-authenticate").contains("scope=\"admin\""));
    peer.fixture.quirks(|all| all.refuses_all_tokens = true);
    assert_eq!(peer.call(&tokens["access_token"], "whoami").await.status, 401);
    peer.fixture.quirks(|all| all.refuses_all_tokens = false);
    peer.fixture.change(|settings| settings.is_stateless = true);
    let found = peer.rpc(tokens["access_token"].as_str(), "server/discover", json!({})).await;
    assert_eq!(found.json()["result"]["supportedVersions"], json!(["2026-07-28"]));
}

#[tokio::test]
async fn endpoints_redirect_and_grow() {
    let peer = Peer::with(quirks(|all| all.redirects = vec![Endpoint::ServerMetadata]));
    let issuer = peer.fixture.issuer(0);
    let moved = peer.well_known(&issuer, SERVER).await;
    assert_eq!(moved.status, 307);
    let target = moved.header("location");
    assert!(target.starts_with(&peer.fixture.elsewhere), "{target}");
    assert_eq!(peer.get(target).await.json()["issuer"], issuer.as_str());
    let origins: Vec<_> = peer.fixture.asked().into_iter().map(|asked| asked.origin).collect();
    assert_eq!(origins, [issuer.as_str(), peer.fixture.elsewhere.as_str()]);
    peer.fixture.forget_asked();
    assert_eq!(peer.fixture.asked().len(), 0);
    peer.fixture.quirks(|all| {
        all.redirects_to_itself = vec![Endpoint::ServerMetadata];
        all.oversized = vec![Endpoint::ResourceMetadata];
    });
    let own = peer.well_known(&issuer, SERVER).await;
    assert_eq!(own.header("location"), format!("{issuer}/.well-known/{SERVER}"));
    peer.fixture.quirks(|all| all.unavailable = vec![Endpoint::Keys]);
    assert_eq!(peer.get(&format!("{issuer}/keys")).await.status, 503);
    let large = peer.well_known(&origin(&peer.fixture), RESOURCE).await;
    assert!(large.text.len() > 1 << 20 && large.json()["resource"].is_string());
}

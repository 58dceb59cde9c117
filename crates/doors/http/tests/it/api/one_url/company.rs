//! Tests of a door whose company has an issuer of its own: access tokens and assertions of people.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};

use http::{Method, StatusCode};
use narthex_login::{DoorOptions, IssuerOptions, LoginOptions};
use narthex_model::{PrincipalId, PrincipalKind, PrincipalName};
use narthex_oauth::{
    jwt::Algorithms,
    scopes::Scopes,
    server::{AuthorizationServers, Door, TrustedIssuer},
    urns::JWT_BEARER,
};
use narthex_store::NewPrincipal;
use narthex_testkit::{
    authorization::Signer,
    peer::{Peer, text},
};
use serde_json::{Value, json};

use super::{Desk, ENDPOINT, challenge};
use crate::{
    browser::{HOST, ORIGIN, options},
    world::{Answer, Stream, initialize},
};

/// The published keys of an issuer.
type Published = Arc<Mutex<Vec<Value>>>;

/// A door with an issuer, and a person who has signed in by it before.
struct Company {
    desk: Desk,
    idp: Peer,
    issuer: String,
    keys: Published,
    signer: Signer,
}

fn lock(keys: &Published) -> MutexGuard<'_, Vec<Value>> {
    keys.lock().unwrap_or_else(PoisonError::into_inner)
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs()
}

/// An issuer that publishes these keys.
async fn issuer_with(keys: &Published) -> Peer {
    let keys = keys.clone();
    Peer::start(move |seen| {
        let issuer = format!("http://{}", seen.header("host").unwrap_or_default());
        let document = match &*seen.path {
            "/.well-known/openid-configuration" => json!({
                "issuer": issuer,
                "authorization_endpoint": format!("{issuer}/authorize"),
                "token_endpoint": format!("{issuer}/token"),
                "jwks_uri": format!("{issuer}/keys"),
            }),
            _ => json!({ "keys": *lock(&keys) }),
        };
        text(200, "application/json", document.to_string())
    })
    .await
}

impl Company {
    async fn external() -> Self {
        Self::with(true, |_| {}).await
    }

    async fn with(is_external: bool, change: impl FnOnce(&mut IssuerOptions)) -> Self {
        let signer = Signer::new("k1");
        let keys = Published::default();
        lock(&keys).push(signer.jwk());
        let idp = issuer_with(&keys).await;
        let issuer = idp.url.strip_suffix("/mcp").unwrap().to_owned();
        let trusted = TrustedIssuer { issuer: issuer.clone(), algorithms: Algorithms::default() };
        let mut rules = IssuerOptions::new("corp".to_owned(), trusted);
        change(&mut rules);
        let mut door = DoorOptions::new(Door::new(ORIGIN).unwrap());
        door.issuers = vec![Arc::new(rules)];
        if is_external {
            door.servers = AuthorizationServers::External(vec![issuer.clone()]);
        }
        let desk = Desk::of(LoginOptions { door: Some(door), ..options() }).await;
        let company = Self { desk, idp, issuer, keys, signer };
        company.admit("eve", "u1", true).await;
        company
    }

    /// A human who signed in by the issuer.
    async fn admit(&self, name: &str, subject: &str, is_operator: bool) {
        let number: u64 = subject.bytes().map(u64::from).sum();
        let id = PrincipalId::new(&format!("prn_{number:016x}")).unwrap();
        let name = PrincipalName::new(name).unwrap();
        let (kind, workspace) = (PrincipalKind::Human, None);
        let new = NewPrincipal { id: &id, name: &name, kind, workspace, is_operator, by: "test" };
        let store = self.desk.api.control.store().unwrap();
        store.proofs().admit(&self.issuer, subject, new, &[]).await.unwrap();
    }

    /// Claims of a good access token, with these in place of the usual ones.
    fn claims(&self, more: Value) -> Value {
        let mut claims = json!({
            "iss": self.issuer, "sub": "u1", "aud": ENDPOINT, "client_id": "desk",
            "iat": now_s(), "exp": now_s() + 300,
        });
        claims.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        claims
    }

    fn token(&self, more: Value) -> Value {
        self.signer.sign("at+jwt", &self.claims(more)).into()
    }

    async fn call(&self, token: &Value) -> Answer {
        self.desk.call("/mcp", token).await
    }

    /// Number of requests for keys so far.
    fn fetches(&self) -> usize {
        self.idp.seen().iter().filter(|seen| seen.path == "/keys").count()
    }
}

/// I-M7, R3, R5: the documents name the company's issuer, and its token opens the endpoint.
#[tokio::test]
async fn i_m7_door_r3_r5_a_token_of_the_companys_issuer_opens_its_endpoint() {
    let company = Company::external().await;
    let desk = &company.desk;
    let refused = desk.request(Method::POST, "/mcp").send().await;
    assert_eq!(refused.status, StatusCode::UNAUTHORIZED);
    let path = "/.well-known/oauth-protected-resource/mcp";
    assert_eq!(challenge(&refused), format!("Bearer resource_metadata=\"{ORIGIN}{path}\""));
    let resource = desk.request(Method::GET, path).send().await.succeeded();
    assert_eq!(resource["authorization_servers"], json!([company.issuer]));
    assert_eq!(resource.get("scopes_supported"), None);
    let called = company.call(&company.token(json!({}))).await;
    assert_eq!(called.status, StatusCode::OK, "{}", called.text());
    let clients = desk.clients().await;
    assert_eq!(clients.len(), 1, "{clients:?}");
    assert_eq!(
        (&clients[0]["program"], &clients[0]["created_by"]),
        (&json!("desk"), &json!("eve"))
    );
}

/// R3: narthex is no authorization server beside the company's.
#[tokio::test]
async fn door_r3_the_mode_external_has_no_own_server() {
    let company = Company::external().await;
    for path in ["/.well-known/oauth-authorization-server", "/authorize?client_id=x"] {
        let answer = company.desk.request(Method::GET, path).send().await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{path}: {}", answer.text());
    }
    for path in ["/token", "/register", "/revoke"] {
        let answer = company.desk.posted(path, &[("grant_type", "refresh_token")]).send().await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{path}: {}", answer.text());
    }
}

#[tokio::test]
async fn door_r5_other_tokens_of_the_issuer_open_nothing() {
    let company = Company::external().await;
    let stranger = Signer::new("k1");
    for (token, word) in [
        (company.token(json!({"aud": "https://other.example/mcp"})), "for another resource"),
        (company.token(json!({"aud": format!("{ENDPOINT}/git")})), "for another resource"),
        (company.token(json!({"exp": now_s() - 61})), "has expired"),
        (company.token(json!({"nbf": now_s() + 120})), "not valid yet"),
        (company.token(json!({"iss": "https://evil.example"})), "unknown"),
        (company.token(json!({"sub": "u2"})), "no account here"),
        (company.signer.sign("oauth-id-jag+jwt", &company.claims(json!({}))).into(), "no access"),
        (stranger.sign("at+jwt", &company.claims(json!({}))).into(), "cannot be verified"),
        (Value::from("a.b.c"), "unknown"),
    ] {
        let refused = company.call(&token).await;
        assert_eq!(refused.status, StatusCode::UNAUTHORIZED, "{word}: {}", refused.text());
        assert!(challenge(&refused).contains("error=\"invalid_token\""), "{}", challenge(&refused));
        assert!(challenge(&refused).contains(word), "{word}: {}", challenge(&refused));
    }
    let good = company.token(json!({}));
    let header = format!("Bearer {}", good.as_str().unwrap());
    for path in ["/api/servers", "/vfs/mnt"] {
        let request = company.desk.request(Method::GET, path).header("authorization", &header);
        let refused = request.send().await;
        assert_eq!(refused.status, StatusCode::UNAUTHORIZED, "{path}: {}", refused.text());
    }
    assert!(company.desk.clients().await.is_empty());
}

/// R6: the answer lists all scopes of the operation.
#[tokio::test]
async fn door_r6_a_token_without_the_scopes_of_the_issuer_is_told_all() {
    let scopes = Scopes::read("narthex.use tools").unwrap();
    let company = Company::with(false, |issuer| issuer.scopes = scopes).await;
    let refused = company.call(&company.token(json!({"scope": "tools"}))).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.text());
    let wanted = "scope=\"narthex.use tools\", error=\"insufficient_scope\"";
    assert!(challenge(&refused).contains(wanted), "{}", challenge(&refused));
    let called = company.call(&company.token(json!({"scp": ["tools", "narthex.use"]}))).await;
    assert_eq!(called.status, StatusCode::OK, "{}", called.text());
}

#[tokio::test]
async fn door_r5_the_settings_bound_clients_and_name_the_audience() {
    let company = Company::with(true, |issuer| {
        issuer.clients = Some(vec!["desk".to_owned()]);
        issuer.audience = Some("api://narthex".to_owned());
    })
    .await;
    let with = |client: &str| company.token(json!({"aud": "api://narthex", "client_id": client}));
    let refused = company.call(&with("other")).await;
    assert_eq!(refused.status, StatusCode::UNAUTHORIZED, "{}", refused.text());
    assert!(challenge(&refused).contains("is not admitted"), "{}", challenge(&refused));
    let called = company.call(&with("desk")).await;
    assert_eq!(called.status, StatusCode::OK, "{}", called.text());
}

/// R5: keys are fetched once, and once more for a key that is not among them.
#[tokio::test]
async fn door_r5_keys_are_cached_and_fetched_again_for_an_unknown_key() {
    let mut company = Company::external().await;
    for _ in 0..3 {
        let called = company.call(&company.token(json!({}))).await;
        assert_eq!(called.status, StatusCode::OK, "{}", called.text());
    }
    assert_eq!(company.fetches(), 1);
    company.signer = Signer::ed25519("k2");
    *lock(&company.keys) = vec![company.signer.jwk()];
    let called = company.call(&company.token(json!({}))).await;
    assert_eq!(called.status, StatusCode::OK, "{}", called.text());
    assert_eq!(company.fetches(), 2);
    company.signer = Signer::ed25519("k3");
    for _ in 0..3 {
        let refused = company.call(&company.token(json!({}))).await;
        assert_eq!(refused.status, StatusCode::UNAUTHORIZED, "{}", refused.text());
    }
    assert_eq!(company.fetches(), 3, "one for each unknown key and minute");
}

/// R7: a session belongs to person and client, whatever the bytes of the token.
#[tokio::test]
async fn door_r7_another_token_of_person_and_client_keeps_the_session() {
    let company = Company::external().await;
    let bearer = |token: &Value| format!("Bearer {}", token.as_str().unwrap());
    let first = company.token(json!({"jti": "1"}));
    let world = &company.desk.api.world;
    let opened = world.post("/mcp", initialize("2025-11-25")).header("host", HOST);
    let opened = opened.header("authorization", &bearer(&first)).send().await;
    let session = opened.headers["mcp-session-id"].to_str().unwrap().to_owned();
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}});
    let ask = async |token: &Value| {
        let called = world.legacy("/mcp", &session, &list).header("host", HOST);
        called.header("authorization", &bearer(token)).send().await
    };
    let second = ask(&company.token(json!({"jti": "2"}))).await;
    assert_eq!(second.status, StatusCode::OK, "{}", second.text());
    let other = ask(&company.token(json!({"client_id": "other"}))).await;
    assert_eq!(other.status, StatusCode::NOT_FOUND, "{}", other.text());
    assert_eq!(company.desk.clients().await.len(), 2);
}

/// R8: the streams of a disabled person end, and so do those of a revoked client, which stays out.
#[tokio::test]
async fn door_r8_streams_end_with_the_person_and_with_the_client() {
    for is_person in [true, false] {
        let company = Company::external().await;
        let desk = &company.desk;
        let token = company.token(json!({}));
        let bearer = format!("Bearer {}", token.as_str().unwrap());
        let opened = desk.api.world.post("/mcp", initialize("2025-11-25"));
        let opened = opened.header("host", HOST).header("authorization", &bearer).send().await;
        let session = opened.headers["mcp-session-id"].to_str().unwrap().to_owned();
        let listen = desk.request(Method::GET, "/mcp").header("authorization", &bearer);
        let listen = listen.header("accept", "text/event-stream");
        let mut stream = Stream::of(listen.header("mcp-session-id", &session).open().await);
        let wanted = if is_person {
            let body = json!({"is_disabled": true}).to_string();
            desk.api.send("PATCH", "/api/principals/eve", body).await.succeeded();
            StatusCode::UNAUTHORIZED
        } else {
            let id = desk.clients().await[0]["id"].as_str().unwrap().to_owned();
            let path = format!("/api/workspaces/default/mcp-clients/{id}");
            let ended = desk.api.ask("DELETE", &path).send().await;
            assert_eq!(ended.status, StatusCode::NO_CONTENT);
            StatusCode::FORBIDDEN
        };
        while stream.next().await.is_some() {}
        for token in [token, company.token(json!({"jti": "new"}))] {
            let refused = company.call(&token).await;
            assert_eq!(refused.status, wanted, "{}", refused.text());
        }
    }
}

/// A person without the rights for the servers lets nothing in.
#[tokio::test]
async fn door_r5_a_person_needs_the_role_for_the_servers() {
    let company = Company::external().await;
    company.admit("joe", "u3", false).await;
    let refused = company.call(&company.token(json!({"sub": "u3"}))).await;
    refused.problem(StatusCode::FORBIDDEN, "denied");
    assert!(company.desk.clients().await.is_empty());
}

/// I-M7, A11: an assertion of the issuer gives a client with a secret one short access token.
#[tokio::test]
async fn i_m7_door_a11_an_assertion_gives_one_access_token() {
    let company = Company::with(false, |_| {}).await;
    let desk = &company.desk;
    let known = "/.well-known/oauth-authorization-server";
    let grants = desk.request(Method::GET, known).send().await.succeeded();
    let grants = grants["grant_types_supported"].as_array().unwrap().clone();
    assert!(grants.contains(&json!(JWT_BEARER)), "{grants:?}");
    let proof = json!({"token_endpoint_auth_method": "client_secret_post"});
    let registered = desk.register("Agent", proof).await;
    let (client, secret) =
        (registered["client_id"].as_str().unwrap(), &registered["client_secret"]);
    let assertion = |jti: &str, more: Value| {
        let mut claims = company.claims(json!({
            "aud": ORIGIN, "client_id": client, "resource": ENDPOINT, "jti": jti, "scope": "mcp",
        }));
        claims.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        company.signer.sign("oauth-id-jag+jwt", &claims)
    };
    let ask = async |assertion: &str| {
        let fields = [
            ("grant_type", JWT_BEARER),
            ("assertion", assertion),
            ("client_id", client),
            ("client_secret", secret.as_str().unwrap()),
        ];
        desk.posted("/token", &fields).send().await
    };
    for (more, error) in [
        (json!({"aud": ENDPOINT}), "invalid_grant"),
        (json!({"client_id": "dcr-other"}), "invalid_grant"),
        (json!({"iss": "https://evil.example"}), "invalid_grant"),
        (json!({"sub": "u2"}), "invalid_grant"),
        (json!({"resource": "https://other.example/mcp"}), "invalid_target"),
    ] {
        let refused = ask(&assertion("bad", more.clone())).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{more}: {}", refused.text());
        assert_eq!(refused.json()["error"], error, "{more}");
    }
    let first = assertion("j1", json!({}));
    let tokens = ask(&first).await.succeeded();
    assert_eq!(tokens.get("refresh_token"), None);
    let called = company.call(&tokens["access_token"]).await;
    assert_eq!(called.status, StatusCode::OK, "{}", called.text());
    assert_eq!(ask(&first).await.json()["error"], "invalid_grant");
    ask(&assertion("j2", json!({}))).await.succeeded();
    let clients = desk.clients().await;
    assert_eq!(clients.len(), 1, "{clients:?}");
    assert_eq!(
        (&clients[0]["program"], &clients[0]["created_by"]),
        (&json!(client), &json!("eve"))
    );
    // A stolen assertion is of no use to a client without a secret.
    let public = desk.register_as("Desk").await;
    let stolen = assertion("j3", json!({"client_id": public}));
    let fields = [("grant_type", JWT_BEARER), ("assertion", &*stolen), ("client_id", &*public)];
    let refused = desk.posted("/token", &fields).send().await;
    assert_eq!(refused.json()["error"], "unauthorized_client", "{}", refused.text());
}

/// A11: a request that gives no token leaves its assertion unused, also one of another client.
#[tokio::test]
async fn door_a11_a_refused_request_leaves_the_assertion_unused() {
    let company = Company::with(false, |_| {}).await;
    let desk = &company.desk;
    let proof = json!({"token_endpoint_auth_method": "client_secret_post"});
    let own = desk.register("Agent", proof.clone()).await;
    let other = desk.register("Other", proof).await;
    let assertion = company.claims(json!({
        "aud": ORIGIN, "client_id": own["client_id"], "resource": ENDPOINT, "jti": "j1",
        "scope": "mcp",
    }));
    let assertion = company.signer.sign("oauth-id-jag+jwt", &assertion);
    let ask = async |client: &Value, scope: &str| {
        let fields = [
            ("grant_type", JWT_BEARER),
            ("assertion", &*assertion),
            ("client_id", client["client_id"].as_str().unwrap()),
            ("client_secret", client["client_secret"].as_str().unwrap()),
            ("scope", scope),
        ];
        desk.posted("/token", &fields).send().await
    };
    assert_eq!(ask(&other, "mcp").await.json()["error"], "invalid_grant");
    assert_eq!(ask(&own, "other").await.json()["error"], "invalid_scope");
    ask(&own, "mcp").await.succeeded();
    assert_eq!(ask(&own, "mcp").await.json()["error"], "invalid_grant");
}

/// Without issuers of the company there are no assertions.
#[tokio::test]
async fn door_a11_a_door_without_issuers_takes_no_assertion() {
    let desk = Desk::new().await;
    let client = desk.register_as("Desk").await;
    let fields = [("grant_type", JWT_BEARER), ("assertion", "a.b.c"), ("client_id", &*client)];
    let refused = desk.posted("/token", &fields).send().await;
    assert_eq!(refused.json()["error"], "unsupported_grant_type", "{}", refused.text());
}

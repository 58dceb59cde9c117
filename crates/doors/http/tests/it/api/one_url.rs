//! Tests of clients that sign their human in at the door: challenges, documents, registration,
//! consent, tokens, and their ends. A scripted browser follows the pages.

mod attacks;
mod company;
mod consent;
mod questions;
mod streams;
mod workspaces;

use std::{sync::Arc, time::SystemTime};

use http::{Method, StatusCode};
use http_body_util::Either;
use narthex_gateway::RunView;
use narthex_http::HttpOptions;
use narthex_login::{DoorOptions, LocalConsent, LoginOptions, PublicOrigin};
use narthex_oauth::{server::Door, urns::JWT_BEARER_ASSERTION};
use narthex_policy::RunPolicy;
use narthex_store::Store;
use narthex_testkit::authorization::Signer;
use serde_json::{Value, json};
use tempfile::TempDir;
use url::Url;

use super::world::Api;
use crate::{
    browser::{HOST, ORIGIN, options},
    world::{Answer, Builder, whole},
};

/// The example of RFC 7636, appendix B.
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
const REDIRECT: &str = "http://localhost:51234/callback";
const FORM: &str = "application/x-www-form-urlencoded";
const ENDPOINT: &str = "http://localhost:7717/mcp";

/// A door that gives tokens, with an account for one operator.
struct Desk {
    api: Api,
    store: Store,
    dir: TempDir,
}

/// The page of consent in a browser.
struct Page {
    text: String,
    path: String,
    csrf: String,
    cookie: String,
}

fn encoded(fields: &[(&str, &str)]) -> String {
    form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish()
}

/// The text between two others.
fn between<'t>(text: &'t str, start: &str, end: &str) -> &'t str {
    let (_, rest) = text.split_once(start).unwrap_or_else(|| panic!("no {start} in {text}"));
    rest.split(end).next().unwrap()
}

/// The cookie of this name that an answer sets.
fn cookie(answer: &Answer, name: &str) -> String {
    let lines = answer.headers.get_all("set-cookie").iter().map(|line| line.to_str().unwrap());
    let pairs = lines.filter_map(|line| line.split(';').next());
    let mut named = pairs.filter(|pair| pair.starts_with(&format!("{name}=")));
    named.next().unwrap_or_else(|| panic!("no cookie {name}")).to_owned()
}

fn location(answer: &Answer) -> Url {
    assert_eq!(answer.status, StatusCode::SEE_OTHER, "{}", answer.text());
    Url::parse(answer.headers["location"].to_str().unwrap()).unwrap()
}

fn parameter(url: &Url, name: &str) -> Option<String> {
    url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

fn login(consent: LocalConsent) -> LoginOptions {
    let door = Door::new(ORIGIN).unwrap().with_names(["http://127.0.0.1:7717".to_owned()]);
    let door = DoorOptions { consent, ..DoorOptions::new(door) };
    LoginOptions { door: Some(door), ..options() }
}

/// Has the live run follow the profiles, as a daemon does.
fn follow(api: &Api) {
    let run = Arc::new(RunView::new(&api.local, RunPolicy::AllAttached));
    api.world.gateway.begin_run(&run).unwrap();
    api.world.gateway.follow_profiles(&run);
}

impl Desk {
    async fn new() -> Self {
        Self::with(LocalConsent::SignIn).await
    }

    async fn with(consent: LocalConsent) -> Self {
        Self::of(login(consent)).await
    }

    async fn of(login: LoginOptions) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("store.db")).await.unwrap();
        let keys = dir.path().join("master.key");
        let api = Api::with_login(store.clone(), login, Some(&keys)).await;
        follow(&api);
        let ada = json!({"name": "ada", "is_operator": true}).to_string();
        api.send("POST", "/api/principals", ada).await.succeeded();
        Self { api, store, dir }
    }

    /// The same door after a start at which only proved humans count.
    async fn needing_proof(self) -> Self {
        let Self { api, store, dir } = self;
        drop(api);
        let (login, keys) = (login(LocalConsent::SignIn), dir.path().join("master.key"));
        let api = Api::with_proofs(store.clone(), login, Some(&keys), Some(true)).await;
        follow(&api);
        Self { api, store, dir }
    }

    /// A request without a token.
    fn request(&self, method: Method, path: &str) -> Builder<'_> {
        self.api.world.request(method, path).header("authorization", "").header("host", HOST)
    }

    fn posted(&self, path: &str, fields: &[(&str, &str)]) -> Builder<'_> {
        let request = self.request(Method::POST, path).header("content-type", FORM);
        request.body(whole(encoded(fields)))
    }

    /// A form of a page of ours.
    fn form(&self, path: &str, fields: &[(&str, &str)], cookie: &str) -> Builder<'_> {
        let request = self.posted(path, fields).header("origin", ORIGIN);
        request.header("sec-fetch-site", "same-origin").header("cookie", cookie)
    }

    /// Signs a human in; returns the session's cookie.
    async fn sign_in(&self, name: &str) -> String {
        let made = self.api.post(&format!("/api/principals/{name}/sign-in-links")).await;
        let url = made.succeeded()["url"].as_str().unwrap().to_owned();
        let answer = self.form(url.strip_prefix(ORIGIN).unwrap(), &[], "").send().await;
        assert_eq!(answer.status, StatusCode::SEE_OTHER, "{}", answer.text());
        cookie(&answer, "narthex")
    }

    async fn register_as(&self, name: &str) -> String {
        let proof = json!({"token_endpoint_auth_method": "none"});
        self.register(name, proof).await["client_id"].as_str().unwrap().to_owned()
    }

    /// Registers a client with members that say how it proves itself.
    async fn register(&self, name: &str, proof: Value) -> Value {
        let mut body = json!({
            "client_name": name,
            "redirect_uris": ["http://localhost/callback", "https://app.example/callback"],
            "grant_types": ["authorization_code", "refresh_token"],
        });
        body.as_object_mut().unwrap().extend(proof.as_object().unwrap().clone());
        let request = self.request(Method::POST, "/register");
        let request = request.header("content-type", "application/json");
        let answer = request.body(whole(body.to_string())).send().await;
        assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text());
        answer.json()
    }

    /// Sends the browser of a client to the door.
    async fn authorize(&self, cookie: &str, client: &str, more: &[(&str, &str)]) -> Answer {
        let mut fields = vec![
            ("response_type", "code"),
            ("client_id", client),
            ("redirect_uri", REDIRECT),
            ("code_challenge", CHALLENGE),
            ("code_challenge_method", "S256"),
            ("state", "s1"),
        ];
        for &(name, value) in more {
            fields.retain(|(known, _)| *known != name);
            if !value.is_empty() {
                fields.push((name, value));
            }
        }
        let path = format!("/authorize?{}", encoded(&fields));
        self.request(Method::GET, &path).header("cookie", cookie).send().await
    }

    fn page(&self, answer: &Answer, cookie: &str) -> Page {
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
        let text = answer.text().to_owned();
        Page {
            path: format!("/consent/{}", between(&text, "action=\"/consent/", "\"")),
            csrf: between(&text, "name=\"csrf\" value=\"", "\"").to_owned(),
            cookie: cookie.to_owned(),
            text,
        }
    }

    async fn answer(&self, page: &Page, decision: &str, servers: &str) -> Answer {
        let fields = [("csrf", &*page.csrf), ("decision", decision), ("servers", servers)];
        self.form(&page.path, &fields, &page.cookie).send().await
    }

    /// Goes through the page as ada; returns the code.
    async fn code(&self, cookie: &str, client: &str, resource: &str) -> String {
        let shown = self.authorize(cookie, client, &[("resource", resource)]).await;
        let page = self.page(&shown, cookie);
        let url = location(&self.answer(&page, "approve", "live").await);
        assert_eq!(parameter(&url, "state").as_deref(), Some("s1"));
        assert_eq!(parameter(&url, "iss").as_deref(), Some(ORIGIN));
        parameter(&url, "code").unwrap()
    }

    async fn redeem(&self, client: &str, code: &str) -> Answer {
        let fields = [
            ("grant_type", "authorization_code"),
            ("client_id", client),
            ("code", code),
            ("code_verifier", VERIFIER),
            ("redirect_uri", REDIRECT),
        ];
        self.posted("/token", &fields).send().await
    }

    async fn refresh(&self, client: &str, token: &Value) -> Answer {
        let token = token.as_str().unwrap();
        let fields =
            [("grant_type", "refresh_token"), ("client_id", client), ("refresh_token", token)];
        self.posted("/token", &fields).send().await
    }

    /// A client that ada let in at an endpoint; returns its id and its tokens.
    async fn let_in(&self, resource: &str) -> (String, Value) {
        let (cookie, client) = (self.sign_in("ada").await, self.register_as("Desk").await);
        let code = self.code(&cookie, &client, resource).await;
        (client.clone(), self.redeem(&client, &code).await.succeeded())
    }

    /// A call with an access token.
    async fn call(&self, path: &str, token: &Value) -> Answer {
        let header = format!("Bearer {}", token.as_str().unwrap());
        let request = self.api.world.modern(path, "tools/list", json!({}));
        request.header("host", HOST).header("authorization", &header).send().await
    }

    async fn clients(&self) -> Vec<Value> {
        let all = self.api.get("/api/workspaces/default/mcp-clients").await;
        all["items"].as_array().unwrap().clone()
    }
}

fn challenge(answer: &Answer) -> &str {
    answer.headers["www-authenticate"].to_str().unwrap()
}

/// I-M7: a client without a token finds its way to one, and calls with it.
#[tokio::test]
async fn i_m7_door_a6_a_client_signs_its_human_in_and_calls() {
    let desk = Desk::new().await;
    let refused = desk.request(Method::POST, "/mcp").send().await;
    assert_eq!(refused.status, StatusCode::UNAUTHORIZED);
    let at = between(challenge(&refused), "resource_metadata=\"", "\"").to_owned();
    let path = at.strip_prefix(ORIGIN).unwrap();
    let resource = desk.request(Method::GET, path).send().await.succeeded();
    assert_eq!(resource["resource"], ENDPOINT);
    assert_eq!(resource["authorization_servers"], json!([ORIGIN]));
    let known = "/.well-known/oauth-authorization-server";
    let server = desk.request(Method::GET, known).send().await.succeeded();
    assert_eq!(server["issuer"], ORIGIN);
    assert_eq!(server["authorization_endpoint"], format!("{ORIGIN}/authorize"));
    let (client, tokens) = desk.let_in(resource["resource"].as_str().unwrap()).await;
    assert_eq!(tokens["token_type"], "Bearer");
    let called = desk.call("/mcp", &tokens["access_token"]).await;
    assert_eq!(called.status, StatusCode::OK, "{}", called.text());
    let clients = desk.clients().await;
    assert_eq!(clients.len(), 1);
    assert_eq!(clients[0]["program"], client);
    assert_eq!(clients[0]["created_by"], "ada");
    assert_eq!(clients[0]["is_live"], true);
}

#[tokio::test]
async fn door_r1_each_method_of_an_endpoint_names_the_metadata() {
    let desk = Desk::new().await;
    for path in ["/mcp", "/mcp/git", "/mcp/p/work", "/mcp/w/team", "/mcp/w/team/git"] {
        for method in [Method::GET, Method::POST, Method::DELETE, Method::PUT] {
            let metadata = format!(
                "Bearer resource_metadata=\"{ORIGIN}/.well-known/oauth-protected-resource{path}\", \
                 scope=\"mcp\""
            );
            let without = desk.request(method.clone(), path).send().await;
            assert_eq!(without.status, StatusCode::UNAUTHORIZED, "{method} {path}");
            assert_eq!(challenge(&without), metadata, "{method} {path}");
            let bad = desk.request(method.clone(), path).header("authorization", "Bearer nxa_x");
            let bad = bad.send().await;
            assert!(challenge(&bad).starts_with(&metadata), "{}", challenge(&bad));
            assert!(challenge(&bad).contains("error=\"invalid_token\""), "{}", challenge(&bad));
        }
    }
    let api = desk.request(Method::GET, "/api/status").send().await;
    assert_eq!(challenge(&api), "Bearer");
}

#[tokio::test]
async fn door_r2_documents_name_the_endpoint_as_its_client_typed_it() {
    let desk = Desk::new().await;
    let known = "/.well-known/oauth-protected-resource";
    let paths = ["/mcp", "/mcp/git", "/mcp/p/work", "/mcp/w/team", "/mcp/w/team/git"];
    let paths = paths.into_iter().chain(["/mcp/w/team/p/work"]).map(|path| (path, path));
    for (path, endpoint) in paths.chain([("", "/mcp")]) {
        for host in [HOST, "127.0.0.1:7717"] {
            let asked = desk.request(Method::GET, &format!("{known}{path}")).header("host", host);
            let document = asked.send().await.succeeded();
            assert_eq!(document["resource"], format!("http://{host}{endpoint}"));
            assert_eq!(document["authorization_servers"], json!([ORIGIN]));
        }
    }
    for bad in ["/api", "/mcp/a/b", "/mcp/w/team/a/b", "/mcp/git/tools/log"] {
        let answer = desk.request(Method::GET, &format!("{known}{bad}")).send().await;
        answer.problem(StatusCode::NOT_FOUND, "not_found");
    }
    for known in ["oauth-authorization-server", "openid-configuration"] {
        for rest in ["", "/mcp", "/mcp/git"] {
            let path = format!("/.well-known/{known}{rest}");
            let document = desk.request(Method::GET, &path).send().await.succeeded();
            assert_eq!(document["issuer"], ORIGIN, "{path}");
            let methods = document["token_endpoint_auth_methods_supported"].as_array().unwrap();
            assert_eq!(methods[0], "none");
            assert!(methods.contains(&json!("private_key_jwt")));
        }
    }
}

/// C12, S27: documents of the door are kept by caches for a while, and nothing else is. A copy that
/// is still right is not sent again.
#[tokio::test]
async fn oauth_c12_s27_caches_keep_documents_and_nothing_else() {
    let desk = Desk::new().await;
    for known in ["oauth-protected-resource/mcp", "oauth-authorization-server"] {
        let path = format!("/.well-known/{known}");
        let first = desk.request(Method::GET, &path).send().await;
        assert_eq!(first.status, StatusCode::OK, "{path}");
        assert_eq!(first.headers["cache-control"], "public, max-age=300", "{path}");
        let tag = first.headers["etag"].to_str().unwrap().to_owned();
        let again = desk.request(Method::GET, &path).header("if-none-match", &tag).send().await;
        assert_eq!(again.status, StatusCode::NOT_MODIFIED, "{path}");
        assert_eq!(again.text(), "", "{path}");
        assert_eq!(again.headers["etag"], tag, "{path}");
    }
    for (method, path) in [
        (Method::GET, "/.well-known/oauth-protected-resource/api"),
        (Method::PUT, "/.well-known/oauth-authorization-server"),
        (Method::GET, "/oauth/client-metadata.json"),
        (Method::GET, "/authorize"),
        (Method::POST, "/register"),
    ] {
        let answer = desk.request(method, path).send().await;
        assert_eq!(answer.headers["cache-control"], "no-store", "{path}");
        assert_eq!(answer.headers.get("etag"), None, "{path}");
    }
}

/// R4: at a public address, programs in any web page read documents and get tokens. On loopback,
/// foreign pages get nothing.
#[tokio::test]
async fn door_r4_any_page_reads_documents_at_a_public_address() {
    let origin = "https://narthex.example";
    let door = DoorOptions::new(Door::new(origin).unwrap());
    let login = LoginOptions::new(PublicOrigin::parse(origin).unwrap());
    let desk = Desk::of(LoginOptions { door: Some(door), ..login }).await;
    let world = &desk.api.world;
    let allowed_hosts = vec!["narthex.example".to_owned()];
    let options = HttpOptions { allowed_hosts, ..world.options.clone() };
    let router = narthex_http::router(world.gateway.clone(), options);
    let ask = async |method: Method, path: &str, host: &str| {
        let request = desk.request(method, path).header("host", host);
        let request = request.header("origin", "https://page.example");
        let request = request.header("access-control-request-method", "POST").request;
        let answer = router.answer(request.map(Either::Right)).await;
        let allowed = answer.headers().get("access-control-allow-origin");
        (answer.status(), allowed.map(|value| value.to_str().unwrap().to_owned()))
    };
    let known = "/.well-known/oauth-protected-resource/mcp";
    let any = Some("*".to_owned());
    let public = "narthex.example";
    assert_eq!(ask(Method::GET, known, public).await, (StatusCode::OK, any.clone()));
    assert_eq!(ask(Method::OPTIONS, "/token", public).await, (StatusCode::NO_CONTENT, any.clone()));
    let (status, allowed) = ask(Method::POST, "/token", public).await;
    assert_eq!((status, allowed), (StatusCode::BAD_REQUEST, any));
    for (path, host) in [(known, HOST), ("/authorize", public), ("/mcp", public)] {
        let (status, allowed) = ask(Method::GET, path, host).await;
        assert_eq!((status, allowed), (StatusCode::FORBIDDEN, None), "{path} at {host}");
    }
}

/// S16.
#[tokio::test]
async fn door_r5_a_token_opens_one_endpoint_and_no_api() {
    let desk = Desk::new().await;
    let (_, tokens) = desk.let_in("http://127.0.0.1:7717/mcp").await;
    let token = &tokens["access_token"];
    assert_eq!(desk.call("/mcp", token).await.status, StatusCode::OK);
    let other = desk.call("/mcp/narthex", token).await;
    assert_eq!(other.status, StatusCode::UNAUTHORIZED);
    assert!(challenge(&other).contains("for another resource"), "{}", challenge(&other));
    let header = format!("Bearer {}", token.as_str().unwrap());
    let request = |method, path| desk.request(method, path).header("authorization", &header);
    let files = request(Method::GET, "/vfs/mnt").send().await;
    assert_eq!(files.status, StatusCode::UNAUTHORIZED, "{}", files.text());
    let api = request(Method::GET, "/api/servers").send().await;
    api.problem(StatusCode::FORBIDDEN, "denied");
    let path = format!("/mcp?access_token={}", token.as_str().unwrap());
    let in_query = desk.request(Method::POST, &path).send().await;
    assert_eq!(in_query.status, StatusCode::BAD_REQUEST, "{}", in_query.text());
    // The refresh token is no access token.
    let refresh = desk.call("/mcp", &tokens["refresh_token"]).await;
    assert_eq!(refresh.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn door_a7_a_second_use_of_a_code_revokes_what_the_first_gave() {
    let desk = Desk::new().await;
    let (cookie, client) = (desk.sign_in("ada").await, desk.register_as("Desk").await);
    let code = desk.code(&cookie, &client, ENDPOINT).await;
    let tokens = desk.redeem(&client, &code).await.succeeded();
    assert_eq!(desk.call("/mcp", &tokens["access_token"]).await.status, StatusCode::OK);
    let again = desk.redeem(&client, &code).await;
    assert_eq!(again.status, StatusCode::BAD_REQUEST);
    assert_eq!(again.json()["error"], "invalid_grant");
    let called = desk.call("/mcp", &tokens["access_token"]).await;
    assert_eq!(called.status, StatusCode::UNAUTHORIZED, "{}", called.text());
    let refreshed = desk.refresh(&client, &tokens["refresh_token"]).await;
    assert_eq!(refreshed.json()["error"], "invalid_grant");
    let kinds = desk.api.get("/api/workspaces/default/audit?kind=client.token").await;
    assert_eq!(kinds["items"].as_array().unwrap().len(), 1, "{kinds}");
}

#[tokio::test]
async fn door_a7_a_code_without_its_proof_gives_nothing() {
    let desk = Desk::new().await;
    let (cookie, client) = (desk.sign_in("ada").await, desk.register_as("Desk").await);
    for (name, value) in [("code_challenge", ""), ("code_challenge_method", "plain")] {
        let refused = desk.authorize(&cookie, &client, &[(name, value)]).await;
        let url = location(&refused);
        assert_eq!(parameter(&url, "error").as_deref(), Some("invalid_request"), "{name}");
        assert_eq!(parameter(&url, "code"), None);
    }
    let code = desk.code(&cookie, &client, ENDPOINT).await;
    let other = desk.register_as("Other").await;
    assert_eq!(desk.redeem(&other, &code).await.json()["error"], "invalid_grant");
    let fields = [
        ("grant_type", "authorization_code"),
        ("client_id", &*client),
        ("code", &*code),
        ("code_verifier", CHALLENGE),
    ];
    let wrong = desk.posted("/token", &fields).send().await;
    assert_eq!(wrong.json()["error"], "invalid_grant");
    // A wrong proof has spent the code.
    assert_eq!(desk.redeem(&client, &code).await.json()["error"], "invalid_grant");
}

/// S20.
#[tokio::test]
async fn door_a9_refresh_tokens_rotate_with_a_grace_and_reuse_revokes() {
    let desk = Desk::new().await;
    let (client, first) = desk.let_in(ENDPOINT).await;
    let second = desk.refresh(&client, &first["refresh_token"]).await.succeeded();
    assert_ne!(second["refresh_token"], first["refresh_token"]);
    // A second process of the client was late.
    let late = desk.refresh(&client, &first["refresh_token"]).await.succeeded();
    assert!(late["refresh_token"].is_null() && late["access_token"].is_string(), "{late}");
    let third = desk.refresh(&client, &second["refresh_token"]).await.succeeded();
    for token in [&first, &second, &late, &third] {
        let called = desk.call("/mcp", &token["access_token"]).await;
        assert_eq!(called.status, StatusCode::OK, "{}", called.text());
    }
    let reused = desk.refresh(&client, &first["refresh_token"]).await;
    assert_eq!(reused.json()["error"], "invalid_grant");
    for token in [&first, &late, &third] {
        let called = desk.call("/mcp", &token["access_token"]).await;
        assert_eq!(called.status, StatusCode::UNAUTHORIZED, "{}", called.text());
    }
    let ended = desk.refresh(&client, &third["refresh_token"]).await;
    assert_eq!(ended.json()["error"], "invalid_grant");
}

/// R7: an MCP session outlives the access token with which it was opened.
#[tokio::test]
async fn door_r7_a_refresh_keeps_the_session() {
    let desk = Desk::new().await;
    let (client, first) = desk.let_in(ENDPOINT).await;
    let bearer = |tokens: &Value| format!("Bearer {}", tokens["access_token"].as_str().unwrap());
    let opened = desk.api.world.post("/mcp", crate::world::initialize("2025-11-25"));
    let opened = opened.header("host", HOST).header("authorization", &bearer(&first)).send().await;
    let session = opened.headers["mcp-session-id"].to_str().unwrap().to_owned();
    let second = desk.refresh(&client, &first["refresh_token"]).await.succeeded();
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}});
    let called = desk.api.world.legacy("/mcp", &session, &list).header("host", HOST);
    let called = called.header("authorization", &bearer(&second)).send().await;
    assert_eq!(called.status, StatusCode::OK, "{}", called.text());
    assert!(called.json()["result"]["tools"].is_array(), "{}", called.text());
}

#[tokio::test]
async fn door_r8_a_client_ends_with_the_rights_of_its_human() {
    let desk = Desk::new().await;
    let (client, tokens) = desk.let_in(ENDPOINT).await;
    assert_eq!(desk.call("/mcp", &tokens["access_token"]).await.status, StatusCode::OK);
    let body = json!({"is_operator": false}).to_string();
    desk.api.send("PATCH", "/api/principals/ada", body).await.succeeded();
    let called = desk.call("/mcp", &tokens["access_token"]).await;
    assert_eq!(called.status, StatusCode::UNAUTHORIZED, "{}", called.text());
    let refreshed = desk.refresh(&client, &tokens["refresh_token"]).await;
    assert_eq!(refreshed.json()["error"], "invalid_grant");
    assert_eq!(desk.clients().await[0]["closed_because"], "human_lost");
}

#[tokio::test]
async fn door_a13_a_client_signs_out() {
    let desk = Desk::new().await;
    let (client, tokens) = desk.let_in(ENDPOINT).await;
    let token = tokens["refresh_token"].as_str().unwrap();
    let other = desk.register_as("Other").await;
    // The token of another client stays, and the answer is the same.
    for id in [&other, &client] {
        let called = desk.call("/mcp", &tokens["access_token"]).await;
        assert_eq!(called.status, StatusCode::OK, "{}", called.text());
        let answer = desk.posted("/revoke", &[("token", token), ("client_id", id)]).send().await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    }
    let called = desk.call("/mcp", &tokens["access_token"]).await;
    assert_eq!(called.status, StatusCode::UNAUTHORIZED, "{}", called.text());
}

/// A8: clients that are unknown register again on 401.
#[tokio::test]
async fn door_a8_an_unknown_client_is_invalid_client() {
    let desk = Desk::new().await;
    let answer = desk.redeem("dcr-unknown", "nxd_x").await;
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
    assert_eq!(answer.json()["error"], "invalid_client");
    assert_eq!(answer.headers["cache-control"], "no-store");
}

/// A client with a private key proves itself by it, and each proof counts once.
#[tokio::test]
async fn door_a8_a_client_proves_itself_with_its_key() {
    let desk = Desk::new().await;
    let signer = Signer::ed25519("k1");
    let keys = json!({"keys": [signer.jwk()]});
    let proof = json!({"token_endpoint_auth_method": "private_key_jwt", "jwks": keys});
    let registered = desk.register("Desk", proof).await;
    assert_eq!(registered.get("client_secret"), None);
    let client = registered["client_id"].as_str().unwrap();
    let code = desk.code(&desk.sign_in("ada").await, client, ENDPOINT).await;
    let start = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    let assertion = |signer: &Signer, jti: &str| {
        let claims = json!({
            "iss": client, "sub": client, "aud": ORIGIN, "jti": jti, "exp": start + 300,
        });
        signer.sign("JWT", &claims)
    };
    let redeem = async |assertion: &str| {
        let mut fields = vec![
            ("grant_type", "authorization_code"),
            ("code", &*code),
            ("code_verifier", VERIFIER),
            ("redirect_uri", REDIRECT),
        ];
        if assertion.is_empty() {
            fields.push(("client_id", client));
        } else {
            fields.push(("client_assertion_type", JWT_BEARER_ASSERTION));
            fields.push(("client_assertion", assertion));
        }
        desk.posted("/token", &fields).send().await
    };
    for bad in ["", &assertion(&Signer::ed25519("k1"), "j0")] {
        let refused = redeem(bad).await;
        assert_eq!(refused.status, StatusCode::UNAUTHORIZED, "{}", refused.text());
        assert_eq!(refused.json()["error"], "invalid_client");
    }
    let first = assertion(&signer, "j1");
    let tokens = redeem(&first).await.succeeded();
    let called = desk.call("/mcp", &tokens["access_token"]).await;
    assert_eq!(called.status, StatusCode::OK, "{}", called.text());
    let refresh = async |assertion: &str| {
        let fields = [
            ("grant_type", "refresh_token"),
            ("refresh_token", tokens["refresh_token"].as_str().unwrap()),
            ("client_assertion_type", JWT_BEARER_ASSERTION),
            ("client_assertion", assertion),
        ];
        desk.posted("/token", &fields).send().await
    };
    assert_eq!(refresh(&first).await.json()["error"], "invalid_client");
    refresh(&assertion(&signer, "j2")).await.succeeded();
}

/// S17: consent is given on a page of our own, by one browser, once.
#[tokio::test]
async fn s17_door_a6_a_page_of_consent_is_answered_once_by_its_browser() {
    let desk = Desk::new().await;
    let (cookie, client) = (desk.sign_in("ada").await, desk.register_as("Desk").await);
    let show = async || {
        let answer = desk.authorize(&cookie, &client, &[("resource", ENDPOINT)]).await;
        assert!(
            answer.headers["content-security-policy"]
                .to_str()
                .unwrap()
                .contains("form-action 'self' http://localhost:*;")
        );
        assert_eq!(answer.headers["x-frame-options"], "DENY");
        desk.page(&answer, &cookie)
    };
    let page = show().await;
    let wrong = Page { csrf: "x".to_owned(), ..show().await };
    let refused = desk.answer(&wrong, "approve", "live").await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.text());
    let fields = [("csrf", &*page.csrf), ("decision", "approve"), ("servers", "live")];
    let foreign = desk.posted(&page.path, &fields).header("cookie", &cookie);
    let foreign = foreign.header("origin", "https://evil.example").send().await;
    assert_eq!(foreign.status, StatusCode::FORBIDDEN, "{}", foreign.text());
    let cross = desk.form(&page.path, &fields, &cookie).header("sec-fetch-site", "cross-site");
    let cross = cross.send().await;
    assert_eq!(cross.status, StatusCode::FORBIDDEN, "{}", cross.text());
    // Another session of the same human did not see the page.
    let elsewhere = desk.sign_in("ada").await;
    let stolen = desk.request(Method::GET, &page.path).header("cookie", &elsewhere).send().await;
    assert_eq!(stolen.status, StatusCode::CONFLICT, "{}", stolen.text());
    let unfit = desk.answer(&page, "approve", "agent default absent").await;
    assert_eq!(unfit.status, StatusCode::FORBIDDEN, "{}", unfit.text());
    location(&desk.answer(&page, "approve", "live").await);
    let again = desk.answer(&page, "approve", "live").await;
    assert_eq!(again.status, StatusCode::CONFLICT, "{}", again.text());
    // A client that proved no host needs a page each time.
    let url = location(&desk.answer(&show().await, "deny", "").await);
    assert_eq!(parameter(&url, "error").as_deref(), Some("access_denied"));
    let silent = desk.authorize(&cookie, &client, &[("prompt", "none")]).await;
    let error = parameter(&location(&silent), "error");
    assert_eq!(error.as_deref(), Some("consent_required"));
    let unsigned = desk.authorize("", &client, &[("prompt", "none")]).await;
    assert_eq!(parameter(&location(&unsigned), "error").as_deref(), Some("login_required"));
}

/// The browser comes back to the page of consent after the sign-in.
#[tokio::test]
async fn door_a6_a_sign_in_leads_to_the_page_of_consent() {
    let desk = Desk::new().await;
    let client = desk.register_as("Desk").await;
    let shown = desk.authorize("", &client, &[]).await;
    assert!(shown.text().contains("<h1>Sign in</h1>"), "{}", shown.text());
    let onward = cookie(&shown, "narthex-onward");
    let made = desk.api.post("/api/principals/ada/sign-in-links").await.succeeded();
    let link = made["url"].as_str().unwrap().strip_prefix(ORIGIN).unwrap().to_owned();
    let signed_in = desk.form(&link, &[], &onward).send().await;
    assert_eq!(signed_in.status, StatusCode::SEE_OTHER);
    let path = signed_in.headers["location"].to_str().unwrap().to_owned();
    assert!(path.starts_with("/consent/"), "{path}");
    let session = cookie(&signed_in, "narthex");
    let page = desk.request(Method::GET, &path).header("cookie", &session).send().await;
    let page = desk.page(&page, &session);
    assert_eq!(page.path, path);
    location(&desk.answer(&page, "approve", "live").await);
}

/// A6: a human who has lost the right to give servers is offered none.
#[tokio::test]
async fn door_a6_a_human_who_lost_the_right_gives_nothing() {
    let desk = Desk::new().await;
    let (client, _) = desk.let_in(ENDPOINT).await;
    let session = desk.sign_in("ada").await;
    let again = async || desk.authorize(&session, &client, &[("resource", ENDPOINT)]).await;
    let offered = again().await;
    assert!(offered.text().contains("value=\"live\""), "{}", offered.text());
    let body = json!({"is_operator": false}).to_string();
    desk.api.send("PATCH", "/api/principals/ada", body).await.succeeded();
    let refused = again().await;
    assert!(!refused.text().contains("value=\"live\""), "{}", refused.text());
    let answered = desk.answer(&desk.page(&offered, &session), "approve", "live").await;
    assert_eq!(answered.status, StatusCode::FORBIDDEN, "{}", answered.text());
}

/// A14, S11: names of clients are shown without effect.
#[tokio::test]
async fn door_a14_hostile_names_have_no_effect() {
    let desk = Desk::new().await;
    let cookie = desk.sign_in("ada").await;
    let client = desk.register_as("<img src=x>\u{202e}narthex\u{0} \"admin\"").await;
    let shown = desk.authorize(&cookie, &client, &[]).await;
    let page = desk.page(&shown, &cookie);
    assert!(!page.text.contains("<img") && !page.text.contains('\u{202e}'), "{}", page.text);
    assert!(page.text.contains("&lt;img src=x&gt;narthex"), "{}", page.text);
    assert!(page.text.contains("the name is only its own claim"), "{}", page.text);
    location(&desk.answer(&page, "approve", "live").await);
    let clients = desk.clients().await;
    let name = clients[0]["client"].as_str().unwrap();
    assert!(name.starts_with("default/img-src-x-narthex-admin-"), "{name}");
}

/// A5: only a registered address gets a redirect; the port of loopback is free.
#[tokio::test]
async fn door_a5_other_addresses_get_a_page_and_no_redirect() {
    let desk = Desk::new().await;
    let (cookie, client) = (desk.sign_in("ada").await, desk.register_as("Desk").await);
    for good in ["http://localhost:1/callback", "https://app.example/callback"] {
        let shown = desk.authorize(&cookie, &client, &[("redirect_uri", good)]).await;
        assert_eq!(shown.status, StatusCode::OK, "{good}: {}", shown.text());
    }
    for bad in [
        "https://app.example/callback/../evil",
        "https://app.example.evil.example/callback",
        "http://localhost:1/callback?x=1",
        "http://127.0.0.1:1/callback",
        "javascript:alert(1)",
        "",
    ] {
        let shown = desk.authorize(&cookie, &client, &[("redirect_uri", bad)]).await;
        assert_eq!(shown.status, StatusCode::BAD_REQUEST, "{bad}");
        assert!(shown.headers.get("location").is_none(), "{bad}");
    }
    for bad in ["dcr-unknown", "a b", "https://10.0.0.1/client.json"] {
        let shown = desk.authorize(&cookie, bad, &[]).await;
        assert_eq!(shown.status, StatusCode::BAD_REQUEST, "{bad}");
        assert!(shown.headers.get("location").is_none(), "{bad}");
    }
    let body = json!({"redirect_uris": ["javascript:alert(1)"]}).to_string();
    let request = desk.request(Method::POST, "/register").body(whole(body));
    let refused = request.header("content-type", "application/json").send().await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    assert_eq!(refused.json()["error"], "invalid_redirect_uri");
}

/// D4: a click proves a human only where the settings say so, and only for programs of this
/// machine.
#[tokio::test]
async fn d4_door_a6_a_click_is_enough_where_the_settings_say_so() {
    let desk = Desk::new().await;
    let client = desk.register_as("Desk").await;
    let shown = desk.authorize("", &client, &[]).await;
    assert!(shown.text().contains("<h1>Sign in</h1>"), "{}", shown.text());
    let desk = Desk::with(LocalConsent::Click).await;
    let client = desk.register_as("Desk").await;
    let web = [("redirect_uri", "https://app.example/callback")];
    let shown = desk.authorize("", &client, &web).await;
    assert!(shown.text().contains("<h1>Sign in</h1>"), "{}", shown.text());
    let shown = desk.authorize("", &client, &[]).await;
    let visitor = cookie(&shown, "narthex-visitor");
    let page = desk.page(&shown, &visitor);
    let without = Page { cookie: String::new(), csrf: page.csrf.clone(), ..desk.page(&shown, "") };
    let refused = desk.answer(&without, "approve", "live").await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.text());
    let url = location(&desk.answer(&page, "approve", "live").await);
    let code = parameter(&url, "code").unwrap();
    let tokens = desk.redeem(&client, &code).await.succeeded();
    assert_eq!(desk.call("/mcp", &tokens["access_token"]).await.status, StatusCode::OK);
}

/// A human takes a client's access away on the page of the account.
#[tokio::test]
async fn door_a6_a_human_sees_and_revokes_their_clients() {
    let desk = Desk::new().await;
    let (_, tokens) = desk.let_in(ENDPOINT).await;
    let session = desk.sign_in("ada").await;
    let page = desk.request(Method::GET, "/signin").header("cookie", &session).send().await;
    let text = page.text();
    let id = between(text, "action=\"/signin/clients/", "/remove");
    let csrf = between(text, "data-csrf=\"", "\"");
    let path = format!("/signin/clients/{id}/remove");
    let removed = desk.form(&path, &[("csrf", csrf)], &session).send().await;
    assert_eq!(removed.status, StatusCode::SEE_OTHER, "{}", removed.text());
    let called = desk.call("/mcp", &tokens["access_token"]).await;
    assert_eq!(called.status, StatusCode::UNAUTHORIZED, "{}", called.text());
}

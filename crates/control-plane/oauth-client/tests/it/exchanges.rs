//! Tokens in exchange for the identity of a person at the company's provider (C31, C32).

mod attacks;
mod fallback;

use std::sync::Arc;

use narthex_model::{
    Alias, AuthorizationCodeAuth, ExchangeIdentity, ExchangeKind, GivenIdentity, HttpTarget,
    OAuthClient, OAuthExchange, Secret, ServerAuth, ServerId, SharedGrant, WorkspaceId,
};
use narthex_oauth::client::{ClientIdentity, Identity};
use narthex_oauth_client::{
    BeginAs, LoginIdentity, SignInError, SignInHooks, SignInOptions, SignIns, store::GrantKey,
};
use narthex_testkit::authorization::{
    Asked, AuthMethod, ClientSettings, Endpoint, Issuer, Settings, TokenFailure,
};
use narthex_upstream::{CredentialFault, CredentialQuery, CredentialSource, Credentials, Holder};
use url::Url;

use crate::world::{ALIAS, Server, World, key, person};

/// The authorization server of the server, and the company's provider.
const SERVER: usize = 0;
const IDP: usize = 1;
const HUMAN: &str = "prn_0011223344556677";

fn world() -> World {
    let client = |issuer, method| ClientSettings {
        issuer,
        ..ClientSettings::confidential("narthex", "s3cret", method)
    };
    World::with(Settings {
        issuers: vec![Issuer::at(1, ""), Issuer::at(2, "/idp")],
        clients: vec![client(SERVER, AuthMethod::Basic), client(IDP, AuthMethod::Basic)],
        ..Settings::default()
    })
}

fn token_url(world: &World) -> String {
    format!("{}/token", world.fixture.issuer(IDP))
}

fn id_token(world: &World) -> String {
    world.fixture.id_token(IDP, "narthex", "ada")
}

/// A refresh token at the provider. With the scope `openid`, its renewals give ID tokens.
fn refresh_token(world: &World, scope: &str) -> String {
    let given = world.fixture.give(IDP, "narthex", &[scope]);
    given["refresh_token"].as_str().unwrap().to_owned()
}

fn client() -> OAuthClient {
    OAuthClient { id: "narthex".to_owned(), secret: Some(Secret::new("s3cret")) }
}

fn auth(kind: ExchangeKind, identity: ExchangeIdentity) -> AuthorizationCodeAuth {
    AuthorizationCodeAuth {
        client: (kind == ExchangeKind::IdJag).then(client),
        exchange: Some(Box::new(OAuthExchange { kind, identity, audience: None, fallback: None })),
        ..AuthorizationCodeAuth::default()
    }
}

/// The entry with tokens of a person.
fn given(
    world: &World,
    kind: ExchangeKind,
    id_token: Option<String>,
    refresh_token: Option<String>,
) -> ServerAuth {
    let identity = GivenIdentity {
        token_url: token_url(world),
        client: client(),
        id_token: id_token.map(Secret::new),
        refresh_token: refresh_token.map(Secret::new),
    };
    person(auth(kind, ExchangeIdentity::Given(Box::new(identity))))
}

/// The token requests of one grant type, such as `jwt-bearer`.
fn asked(world: &World, grant_type: &str) -> Vec<Asked> {
    let is_it = |asked: &Asked| {
        asked.field("grant_type").is_some_and(|kind| kind.rsplit(':').next() == Some(grant_type))
    };
    world.fixture.asked_of(Endpoint::Token).into_iter().filter(is_it).collect()
}

fn counts(world: &World) -> [usize; 3] {
    ["token-exchange", "jwt-bearer", "refresh_token"].map(|kind| asked(world, kind).len())
}

#[tokio::test]
async fn oauth_c31_an_id_token_leads_to_a_token_without_a_browser() {
    let world = world();
    let server = world.server(given(&world, ExchangeKind::IdJag, Some(id_token(&world)), None));
    server.works().await;
    server.works().await;
    assert_eq!(counts(&world), [1, 1, 0]);
    let exchange = &asked(&world, "token-exchange")[0];
    let field = |asked: &Asked, name: &str| asked.field(name).unwrap_or_default();
    assert!(field(exchange, "requested_token_type").ends_with(":id-jag"));
    assert!(field(exchange, "subject_token_type").ends_with(":id_token"));
    assert_eq!(field(exchange, "audience"), world.fixture.issuer(SERVER));
    assert_eq!(field(exchange, "resource"), world.fixture.url);
    assert_eq!(field(exchange, "scope"), "mcp");
    let redeemed = &asked(&world, "jwt-bearer")[0];
    assert_eq!(redeemed.basic().unwrap().id, "narthex");
    assert_eq!(field(redeemed, "scope"), "mcp");
    // No person was asked.
    assert!(world.fixture.asked_of(Endpoint::Authorize).is_empty());
    assert!(world.fixture.asked_of(Endpoint::Registration).is_empty());
    let error = server.sign_ins.begin(&server.target(), BeginAs::Reuse).await.unwrap_err();
    assert!(matches!(error, SignInError::ByExchange { .. }), "{error}");
}

#[tokio::test]
async fn oauth_c31_a_renewal_is_the_same_again() {
    let world = world();
    let refresh = refresh_token(&world, "openid");
    let auth = given(&world, ExchangeKind::IdJag, Some(id_token(&world)), Some(refresh));
    let server = world.server(auth.clone());
    server.works().await;
    // The token and the ID token have ended.
    world.advance(3601);
    server.works().await;
    assert_eq!(counts(&world), [2, 2, 1]);
    // The rotated refresh token counts, also in another process.
    world.advance(3601);
    let other = world.server_of(&world.process("two"), auth);
    other.works().await;
    assert_eq!(counts(&world), [3, 3, 2]);
    assert_eq!(world.fixture.counts().families_revoked, 0);
}

#[tokio::test]
async fn oauth_c31_a_provider_without_new_id_tokens_exchanges_the_refresh_token() {
    let world = world();
    let refresh = refresh_token(&world, "mcp");
    let server = world.server(given(&world, ExchangeKind::IdJag, None, Some(refresh)));
    server.works().await;
    let kind = asked(&world, "token-exchange")[0].field("subject_token_type").unwrap();
    assert!(kind.ends_with(":refresh_token"), "{kind}");
}

#[tokio::test]
async fn oauth_c31_an_ended_identity_is_reported_and_another_one_works() {
    let world = world();
    let old = id_token(&world);
    world.advance(3601);
    let server = world.server(given(&world, ExchangeKind::IdJag, Some(old), None));
    let fault = server.call("whoami").await.unwrap_err();
    assert!(fault.needs_consent(), "{fault:?}");
    assert!(fault.to_string().contains("`auth.exchange`"), "{fault}");
    assert_eq!(counts(&world), [0, 0, 0]);
    let next = given(&world, ExchangeKind::IdJag, Some(id_token(&world)), None);
    world.server_of(&world.process("two"), next).works().await;
}

#[tokio::test]
async fn oauth_c31_a_token_of_one_person_is_never_used_for_another_one() {
    let world = world();
    let of = |subject: &str| {
        let id_token = world.fixture.id_token(IDP, "narthex", subject);
        given(&world, ExchangeKind::IdJag, Some(id_token), None)
    };
    world.server(of("ada")).works().await;
    let other = world.server_of(&world.process("two"), of("bob"));
    let body = other.call("whoami").await.unwrap();
    assert_eq!(body["result"]["structuredContent"]["subject"], "bob", "{body}");
}

#[tokio::test]
async fn oauth_c32_a_token_of_the_provider_itself_needs_no_second_step() {
    let world = world();
    let server = world.server(given(&world, ExchangeKind::Token, Some(id_token(&world)), None));
    server.works().await;
    assert_eq!(counts(&world), [1, 0, 0]);
    let kind = asked(&world, "token-exchange")[0].field("requested_token_type").unwrap();
    assert!(kind.ends_with(":access_token"), "{kind}");
}

#[tokio::test]
async fn oauth_c25_failures_of_an_exchange_keep_or_drop_the_token() {
    let world = world();
    let auth = given(&world, ExchangeKind::IdJag, Some(id_token(&world)), None);
    let server = world.server(auth);
    server.works().await;
    world.fixture.quirks(|quirks| {
        quirks.failing_token_requests = 1;
        quirks.token_failure = TokenFailure::Unavailable;
    });
    world.fixture.end_access_tokens();
    let fault = server.call("whoami").await.unwrap_err();
    assert!(matches!(fault, CredentialFault::Unavailable { .. }), "{fault:?}");
    assert!(world.store.grant(key()).await.unwrap().is_some());
    server.works().await;
    // The client is unknown now: an operator has to act.
    world.fixture.change(|settings| settings.clients.clear());
    world.fixture.end_access_tokens();
    let fault = server.call("whoami").await.unwrap_err();
    assert!(matches!(fault, CredentialFault::Unusable { .. }), "{fault:?}");
}

#[tokio::test]
async fn oauth_c21_the_client_is_not_sent_to_another_authorization_server() {
    let world = world();
    let server = world.server(given(&world, ExchangeKind::IdJag, Some(id_token(&world)), None));
    server.works().await;
    world.fixture.change(|settings| settings.advertised = vec![IDP]);
    world.fixture.end_access_tokens();
    let fault = server.call("whoami").await.unwrap_err();
    assert!(matches!(fault, CredentialFault::Unusable { .. }), "{fault:?}");
    assert!(fault.to_string().contains("another authorization server"), "{fault}");
    assert_eq!(counts(&world), [1, 1, 0]);
}

#[tokio::test]
async fn oauth_c22_more_scopes_come_by_another_exchange() {
    let world = world();
    let server = world.server(given(&world, ExchangeKind::IdJag, Some(id_token(&world)), None));
    server.works().await;
    assert!(server.call("admin").await.is_ok());
    assert_eq!(counts(&world), [2, 2, 0]);
    assert_eq!(asked(&world, "token-exchange")[1].field("scope").as_deref(), Some("admin mcp"));
    // A renewal asks for them again.
    world.advance(3500);
    world.fixture.end_access_tokens();
    server.works().await;
    assert_eq!(asked(&world, "token-exchange")[2].field("scope").as_deref(), Some("admin mcp"));
    // A provider that gives none leaves the token as it is.
    world.fixture.quirks(|quirks| quirks.grants_only = Some(vec!["mcp".to_owned()]));
    let other = given(&world, ExchangeKind::IdJag, Some(id_token(&world)), None);
    let other = world.server_of(&world.process("two"), other);
    other.works().await;
    let fault = other.call("admin").await.unwrap_err();
    assert_eq!(fault, CredentialFault::Rejected { status: 403 });
    other.works().await;
}

#[tokio::test]
async fn oauth_c19_the_scopes_of_the_settings_join_those_of_the_challenge_of_an_exchange() {
    let world = world();
    world.fixture.change(|settings| settings.scopes.push("offline_access".to_owned()));
    let identity = ExchangeIdentity::Given(Box::new(GivenIdentity {
        token_url: token_url(&world),
        client: client(),
        id_token: Some(Secret::new(id_token(&world))),
        refresh_token: None,
    }));
    let auth = AuthorizationCodeAuth {
        scopes: std::iter::once("admin".to_owned()).collect(),
        ..auth(ExchangeKind::IdJag, identity)
    };
    let server = world.server(person(auth));
    server.works().await;
    let exchange = &asked(&world, "token-exchange")[0];
    assert_eq!(exchange.field("scope").as_deref(), Some("admin mcp"));
    assert_eq!(counts(&world), [1, 1, 0]);
}

#[tokio::test]
async fn s27_no_token_of_an_identity_is_shown() {
    let world = world();
    let (id_token, refresh) = (id_token(&world), refresh_token(&world, "openid"));
    let auth = given(&world, ExchangeKind::IdJag, Some(id_token.clone()), Some(refresh.clone()));
    let server = world.server(auth);
    server.works().await;
    world.fixture.change(|settings| settings.clients.clear());
    world.fixture.end_access_tokens();
    let fault = server.call("whoami").await.unwrap_err();
    let row = world.store.grant(key()).await.unwrap();
    let shown = format!("{fault:?} {fault} {:?} {row:?} {:?}", server.auth, server.sign_ins);
    assert!(!shown.contains(&id_token) && !shown.contains(&refresh), "{shown}");
}

/// The login provider `okta` of the daemon.
#[derive(Debug, Default)]
struct Okta {
    /// The origins of servers that may have tokens, if the operator has a list.
    servers: Option<Vec<String>>,
}

impl SignInHooks for Okta {
    fn login_client(&self, provider: &str) -> Option<ClientIdentity> {
        let secret = Some(Secret::new("s3cret"));
        (provider == "okta").then(|| ClientIdentity::new("narthex", secret, None))
    }

    fn exchanges_for(&self, _: &str, server: &Url) -> Option<bool> {
        let servers = self.servers.as_ref()?;
        Some(servers.contains(&server.origin().ascii_serialization()))
    }

    fn login_page(&self, _: &str) -> Option<Url> {
        Url::parse("https://narthex.example/signin").ok()
    }
}

/// The servers `orders` and `bills` of the catalog, which a human drives.
struct Driven {
    sign_ins: SignIns,
}

impl Driven {
    fn new(world: &World, owner: &str) -> Self {
        Self::at(world, owner, Okta::default())
    }

    fn at(world: &World, owner: &str, okta: Okta) -> Self {
        let options = SignInOptions { hooks: Arc::new(okta), ..world.options(owner) };
        Self { sign_ins: SignIns::new(options) }
    }

    fn server(&self, world: &World, id: &str) -> Server {
        let okta = ExchangeIdentity::Login("okta".to_owned());
        self.server_of(world, id, auth(ExchangeKind::IdJag, okta))
    }

    /// The server of the catalog with these settings.
    fn server_of(&self, world: &World, id: &str, auth: AuthorizationCodeAuth) -> Server {
        let grant = SharedGrant::of_catalog(&WorkspaceId::default(), &ServerId::new(id).unwrap());
        let auth = person(AuthorizationCodeAuth { grant: Some(grant), ..auth });
        let target = HttpTarget {
            url: world.fixture.url.clone(),
            is_sse: false,
            headers: std::collections::BTreeMap::new(),
            auth: auth.clone(),
        };
        let alias = Alias::new(ALIAS).unwrap();
        let workspace = WorkspaceId::default().to_string();
        let holder = Holder { workspace, user: HUMAN.to_owned() };
        let query = CredentialQuery { alias: &alias, target: &target, holder: Some(&holder) };
        let credential: Arc<dyn Credentials> =
            CredentialSource::credentials(&self.sign_ins, query).unwrap();
        let (fixture, sign_ins) = (Arc::clone(&world.fixture), self.sign_ins.clone());
        Server { fixture, sign_ins, credential, auth }
    }

    /// The human signs in to narthex.
    async fn sign_in(&self, world: &World, id_token: Option<String>, refresh: Option<String>) {
        let login = LoginIdentity {
            provider: "okta".to_owned(),
            issuer: world.fixture.issuer(IDP),
            token_endpoint: Url::parse(&token_url(world)).unwrap(),
            auth_methods: None,
            client_id: "narthex".to_owned(),
            identity: Identity {
                id_token: id_token.map(Secret::new),
                refresh_token: refresh.map(Secret::new),
            },
        };
        self.sign_ins.keep_identity(HUMAN, login).await.unwrap();
    }
}

fn key_of(id: &str) -> GrantKey {
    GrantKey {
        workspace: WorkspaceId::default().to_string(),
        server: SharedGrant::name_of(id),
        user: Some(HUMAN.to_owned()),
    }
}

#[tokio::test]
async fn oauth_c31_the_sign_in_of_the_driving_human_counts() {
    let world = world();
    let driven = Driven::new(&world, "one");
    let server = driven.server(&world, "orders");
    let fault = server.call("whoami").await.unwrap_err();
    let CredentialFault::NeedsConsent { why, address, .. } = &fault else { panic!("{fault:?}") };
    assert!(why.contains("sign in to narthex") && why.contains("`okta`"), "{why}");
    assert_eq!(address.as_deref(), Some("https://narthex.example/signin"));
    let mut changes = driven.sign_ins.changes();
    driven.sign_in(&world, Some(id_token(&world)), None).await;
    assert_eq!(changes.recv().await.unwrap(), key_of("orders"));
    server.works().await;
    // One sign-in serves all servers.
    driven.server(&world, "bills").works().await;
    assert_eq!(counts(&world), [2, 2, 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn oauth_c23_servers_of_one_human_renew_the_identity_once() {
    let world = world();
    let (one, two) = (Driven::new(&world, "one"), Driven::new(&world, "two"));
    one.sign_in(&world, None, Some(refresh_token(&world, "openid"))).await;
    let servers = [
        one.server(&world, "orders"),
        one.server(&world, "bills"),
        two.server(&world, "orders"),
        two.server(&world, "bills"),
    ];
    let mut calls = tokio::task::JoinSet::new();
    for server in servers {
        calls.spawn(async move { server.works().await });
    }
    while let Some(done) = calls.join_next().await {
        done.unwrap();
    }
    assert_eq!(asked(&world, "refresh_token").len(), 1);
    assert_eq!(world.fixture.counts().families_revoked, 0);
}

#[tokio::test]
async fn oauth_c31_a_sign_out_ends_the_identity() {
    let world = world();
    let driven = Driven::new(&world, "one");
    driven.sign_in(&world, Some(id_token(&world)), None).await;
    let server = driven.server(&world, "orders");
    server.works().await;
    assert!(driven.sign_ins.forget_identities(HUMAN).await.unwrap());
    assert!(!driven.sign_ins.forget_identities(HUMAN).await.unwrap());
    // The token serves until its end.
    server.works().await;
    world.advance(3601);
    let fault = server.call("whoami").await.unwrap_err();
    assert!(fault.needs_consent(), "{fault:?}");
    assert!(world.store.grant(key_of("orders")).await.unwrap().is_none());
}

#[tokio::test]
async fn oauth_c31_an_identity_that_the_provider_refuses_ends() {
    let world = world();
    let driven = Driven::new(&world, "one");
    driven.sign_in(&world, None, Some("unknown".to_owned())).await;
    let fault = driven.server(&world, "orders").call("whoami").await.unwrap_err();
    assert!(fault.needs_consent(), "{fault:?}");
    let key = LoginIdentity::key("okta", HUMAN);
    assert!(world.store.grant(key).await.unwrap().is_none());
}

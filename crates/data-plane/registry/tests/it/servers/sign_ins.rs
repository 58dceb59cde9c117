//! Servers to which a person signs in: their states, and whose grant a connection uses.

use std::{
    collections::HashSet,
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use http::HeaderValue;
use narthex_model::{
    AuthorizationCodeAuth, CallErrorKind, OAuth, Reader, Secret, ServerAuth, ServerDefinition,
    ServerState, Target,
};
use narthex_registry::{
    Declared, FinishError, FinishFault, Holder, MountIdentity, MountOptions, MountSet, Mountable,
    Registry, RegistryOptions, ServerResult, SignInRedirect, VerbError,
    config::{Entry, Env, LoadContext, parse},
};
use narthex_supervisor::BaseEnvironment;
use narthex_testkit::clock::SteppedClock;
use narthex_upstream::{CredentialFault, Deadlines, LinkError};
use serde_json::json;

use super::losing::{call, call_tool};
use crate::{
    fake_source::{ADDRESS, FakeSource, consent, holder},
    peer::{Peer, Reply, result, text},
    world::{DEADLINE, http, identity, in_time, message, until, until_state},
};

/// A server that takes these tokens, and the tool `write` with none of them.
struct Guarded {
    peer: Peer,
    tokens: Arc<Mutex<HashSet<String>>>,
}

impl Guarded {
    async fn new() -> Self {
        let tokens = Arc::<Mutex<HashSet<String>>>::default();
        let now = tokens.clone();
        let peer = Peer::session(move |seen| {
            let sent = seen.header("authorization").and_then(|sent| sent.strip_prefix("Bearer "));
            if !sent.is_some_and(|sent| now.lock().unwrap().contains(sent)) {
                return Some(challenge(401, "Bearer"));
            }
            match (seen.rpc(), seen.body["params"]["name"].as_str()) {
                ("tools/list", _) => Some(result(seen, &json!({"tools": [{"name": "x"}]}))),
                ("tools/call", Some("write")) => {
                    Some(challenge(403, r#"Bearer error="insufficient_scope", scope="write""#))
                }
                ("tools/call", _) => Some(result(seen, &json!({"content": []}))),
                _ => None,
            }
        })
        .await;
        Self { peer, tokens }
    }

    fn take(&self, token: &str) {
        self.tokens.lock().unwrap().insert(token.to_owned());
    }

    fn refuse_all(&self) {
        self.tokens.lock().unwrap().clear();
    }

    /// The tokens of the requests so far.
    fn sent(&self) -> HashSet<String> {
        let header = |seen: &crate::peer::Seen| seen.header("authorization").map(str::to_owned);
        self.peer.seen().iter().filter_map(header).collect()
    }
}

fn challenge(status: u16, value: &'static str) -> Reply {
    let Reply::Now(mut reply) = text(status, "text/plain", "no") else { unreachable!() };
    reply.headers_mut().insert("www-authenticate", HeaderValue::from_static(value));
    Reply::Now(reply)
}

fn with_auth(url: &str, auth: ServerAuth) -> ServerDefinition {
    let mut definition = http("x", url);
    if let Target::Http(target) = &mut definition.target {
        target.auth = auth;
    }
    definition
}

fn sign_in(url: &str) -> ServerDefinition {
    let oauth = OAuth::AuthorizationCode(AuthorizationCodeAuth::default());
    with_auth(url, ServerAuth::OAuth(Box::new(oauth)))
}

/// A registry with this source, and these servers.
fn start(source: &Arc<FakeSource>, definitions: Vec<ServerDefinition>) -> Registry {
    let registry = Registry::new(RegistryOptions {
        deadlines: Deadlines { probe: DEADLINE / 2, connect: DEADLINE, ..Deadlines::default() },
        credentials: Some(source.clone()),
        ..RegistryOptions::new(identity(), BaseEnvironment::from_process())
    })
    .unwrap();
    let set = definitions.into_iter().map(|one| Declared::from(Entry::Server(one))).collect();
    registry.apply(set).unwrap();
    registry
}

/// E28, E31: an embedding program gives the registry the browser's way back, and gets the outcome
/// of the server.
#[tokio::test]
async fn e28_e31_the_registry_finishes_a_sign_in_and_connects_its_server() {
    let guarded = Guarded::new().await;
    let source = Arc::new(FakeSource::default());
    let registry = start(&source, vec![sign_in(&guarded.peer.url)]);
    until_state(&registry, "x", ServerState::Authenticating).await;
    let back = |query: &str| {
        let redirect = SignInRedirect { query: Secret::new(query), server: Some("x".to_owned()) };
        registry.finish_auth(redirect)
    };
    let refused = in_time(back("error=access_denied")).await.unwrap_err();
    assert_eq!(refused.to_string(), "it was refused");
    until_state(&registry, "x", ServerState::Authenticating).await;

    guarded.take("t-1");
    let result = in_time(back("code=t-1")).await.unwrap();
    assert_eq!(result, ServerResult::Ready { id: "x".to_owned(), tool_count: 1 });
    let row = until_state(&registry, "x", ServerState::Ready).await;
    call(&row).await.unwrap();

    // A code that gives a token which the server does not take is no success.
    let other = in_time(back("code=t-2")).await.unwrap();
    assert!(matches!(other, ServerResult::Authenticating { .. }), "{other:?}");
    assert!(registry.remove_server("x").unwrap());
    let gone = in_time(back("code=t-1")).await.unwrap_err();
    assert_eq!(gone, FinishError::Server(VerbError::Unknown("x".to_owned())));
    in_time(registry.close()).await;
}

/// A registry without a source of sign-ins says how it gets one.
#[tokio::test]
async fn e28_a_registry_without_sign_ins_finishes_none() {
    let options = RegistryOptions::new(identity(), BaseEnvironment::from_process());
    let registry = Registry::new(options).unwrap();
    let redirect = SignInRedirect { query: Secret::new("code=c"), server: None };
    let refused = in_time(registry.finish_auth(redirect)).await.unwrap_err();
    assert_eq!(refused, FinishError::SignIn(FinishFault::NoSignIns));
    assert!(refused.to_string().contains("RegistryOptions::credentials"), "{refused}");
    in_time(registry.close()).await;
}

/// E28, E30, D17: a server that asks for a sign-in waits, with the address, and is no failure.
/// After the sign-in it is ready without a restart.
#[tokio::test]
async fn e28_e30_a_server_waits_for_a_sign_in_and_is_ready_after_it() {
    for auth in [None, Some(ServerAuth::Unstated)] {
        let guarded = Guarded::new().await;
        let source = Arc::new(FakeSource::default());
        let definition = match auth {
            None => sign_in(&guarded.peer.url),
            Some(auth) => with_auth(&guarded.peer.url, auth),
        };
        let registry = start(&source, vec![definition]);
        let row = until_state(&registry, "x", ServerState::Authenticating).await;
        assert_eq!(row.auth_url.as_deref(), Some(ADDRESS));
        assert!(!row.is_probed && row.health.last_failure().is_none(), "it is no failure");
        let error = row.error.as_ref().unwrap();
        assert_eq!((error.kind, &*message(&row)), (CallErrorKind::AuthUnavailable, MESSAGE));
        assert_eq!(&*error.words(Reader::Run), "a person must sign in to it first");
        let result = in_time(registry.enable("x").unwrap().result()).await;
        let (id, auth_url) = ("x".to_owned(), ADDRESS.to_owned());
        assert_eq!(result, ServerResult::Authenticating { id, auth_url });
        assert_eq!(source.shared("x").refused_requests(), 1, "it is asked once");

        guarded.take("t-1");
        source.shared("x").set(Some("t-1"));
        registry.credential_changed(row.alias.as_ref().unwrap());
        let row = until_state(&registry, "x", ServerState::Ready).await;
        assert!(row.auth_url.is_none() && row.error.is_none());
        assert_eq!(row.inventory.tools.len(), 1);
        call(&row).await.unwrap();
        in_time(registry.close()).await;
    }
}

/// E28: addresses live for minutes, so a server that callers want gets another one after a while,
/// and is asked no more often.
#[tokio::test]
async fn e28_an_old_address_is_renewed_for_callers_alone() {
    let guarded = Guarded::new().await;
    let source = Arc::new(FakeSource::default());
    let registry = start(&source, vec![sign_in(&guarded.peer.url)]);
    let row = until_state(&registry, "x", ServerState::Authenticating).await;
    let asked = || source.shared("x").refused_requests();
    // No request is in transit: the clock may jump.
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(301)).await;
    tokio::time::resume();
    assert_eq!(asked(), 1, "no call wants the server");
    let seq = registry.snapshot().seq;
    registry.wake(&row);
    until(&registry, |snapshot| snapshot.seq > seq && asked() == 2).await;
    assert_eq!(registry.get("x").unwrap().state, ServerState::Authenticating);
    for _ in 0..100 {
        registry.wake(&row);
        tokio::task::yield_now().await;
    }
    assert_eq!(asked(), 2, "the new address is not old");
    in_time(registry.close()).await;
}

const MESSAGE: &str = "auth_unavailable: a person must sign in";

/// C25: a grant that ends while the server works makes it wait again, and its lists stay. A further
/// scope that one operation needs concerns that operation alone.
#[tokio::test]
async fn oauth_c25_a_grant_that_ends_makes_the_server_wait_again() {
    let guarded = Guarded::new().await;
    guarded.take("t-1");
    let source = Arc::new(FakeSource::default());
    let credentials = source.shared("x");
    credentials.set(Some("t-1"));
    let registry = start(&source, vec![sign_in(&guarded.peer.url)]);
    let row = until_state(&registry, "x", ServerState::Ready).await;

    credentials.fail(consent(&["write"]));
    let error = call_tool(&row, "write").await.unwrap_err();
    assert_eq!(error.wanted_sign_in().unwrap().scopes, ["write"]);
    call(&row).await.unwrap();
    assert_eq!(registry.get("x").unwrap().state, ServerState::Ready);

    guarded.refuse_all();
    let error = call(&row).await.unwrap_err();
    assert!(error.needs_sign_in(), "{error}");
    let row = until_state(&registry, "x", ServerState::Authenticating).await;
    assert_eq!((row.auth_url.as_deref(), row.losses), (Some(ADDRESS), 0));
    assert_eq!(row.inventory.tools.len(), 1, "clients still know its tools");

    guarded.take("t-2");
    credentials.set(Some("t-2"));
    registry.credential_changed(row.alias.as_ref().unwrap());
    let row = until_state(&registry, "x", ServerState::Ready).await;
    call(&row).await.unwrap();
    in_time(registry.close()).await;
}

/// E59: a server in use is connected anew when its grant is dropped or another is given; open
/// calls keep their link.
#[tokio::test]
async fn e59_a_dropped_grant_ends_the_use_of_its_link() {
    let guarded = Guarded::new().await;
    guarded.take("t-1");
    let source = Arc::new(FakeSource::default());
    source.shared("x").set(Some("t-1"));
    let registry = start(&source, vec![sign_in(&guarded.peer.url)]);
    let row = until_state(&registry, "x", ServerState::Ready).await;
    let used = row.link.clone().unwrap();
    let open = used.enter().unwrap();
    source.shared("x").set(None);
    registry.credential_changed(row.alias.as_ref().unwrap());
    until_state(&registry, "x", ServerState::Authenticating).await;
    assert!(used.enter().is_none() && !used.closed().is_cancelled());
    drop(open);
    in_time(used.closed().cancelled()).await;
    in_time(registry.close()).await;
}

/// E57: disabling and enabling keep the grant.
#[tokio::test]
async fn e57_a_disabled_server_keeps_its_grant() {
    let guarded = Guarded::new().await;
    guarded.take("t-1");
    let source = Arc::new(FakeSource::default());
    source.shared("x").set(Some("t-1"));
    let registry = start(&source, vec![sign_in(&guarded.peer.url)]);
    let row = until_state(&registry, "x", ServerState::Ready).await;
    registry.disable("x").unwrap();
    // The change of a grant starts nothing that a person has disabled.
    registry.credential_changed(row.alias.as_ref().unwrap());
    assert_eq!(registry.get("x").unwrap().state, ServerState::Disabled);
    assert!(in_time(registry.enable("x").unwrap().result()).await.is_ready());
    assert_eq!(source.shared("x").refused_requests(), 0);
    in_time(registry.close()).await;
}

/// C25: without a token for a passing reason the server is tried again by itself; a sign-in that
/// cannot work is an error until a person acts.
#[tokio::test]
async fn oauth_c25_faults_of_a_credential_are_passing_or_final() {
    let guarded = Guarded::new().await;
    guarded.take("t-1");
    let source = Arc::new(FakeSource::default());
    let credentials = source.shared("x");
    let why = "the token endpoint answered HTTP 503".to_owned();
    credentials.go_away(CredentialFault::Unavailable { why, retry_after: None });
    let registry = start(&source, vec![sign_in(&guarded.peer.url)]);
    let row = until_state(&registry, "x", ServerState::Error).await;
    assert!(row.is_probed && row.auth_url.is_none(), "{}", message(&row));
    assert_eq!(row.error.as_ref().unwrap().kind, CallErrorKind::AuthUnavailable);
    credentials.set(Some("t-1"));
    let clock = SteppedClock::by(Duration::from_millis(20));
    let is_up = |snapshot: &narthex_registry::Snapshot| snapshot.get("x").unwrap().is_ready();
    registry.wait_until(Duration::from_secs(60), is_up).await;
    drop(clock);

    let why = "there is no client id; set `auth.client`".to_owned();
    credentials.go_away(CredentialFault::Unusable { why });
    in_time(registry.reconnect("x")).await.unwrap();
    let row = until_state(&registry, "x", ServerState::Error).await;
    assert!(!row.is_probed && message(&row).contains("auth.client"), "{}", message(&row));
    // The person has mended it: also a failed server hears of the change.
    credentials.set(Some("t-1"));
    registry.credential_changed(row.alias.as_ref().unwrap());
    until_state(&registry, "x", ServerState::Ready).await;
    in_time(registry.close()).await;
}

/// E62: a server that answers the credential with a refusal that no token changes is an error, as
/// with a key.
#[tokio::test]
async fn e62_a_token_that_is_refused_for_good_is_an_error() {
    let guarded = Guarded::new().await;
    let source = Arc::new(FakeSource::default());
    source.shared("x").fail(CredentialFault::Rejected { status: 401 });
    let registry = start(&source, vec![sign_in(&guarded.peer.url)]);
    let row = until_state(&registry, "x", ServerState::Error).await;
    assert!(message(&row).contains("`narthex mcp reauthorize x`"), "{}", message(&row));
    in_time(registry.close()).await;
}

async fn mounted(registry: &Registry, url: &str, holder: Option<Holder>) -> MountSet {
    let options = MountOptions { timeout: DEADLINE, holder, ..MountOptions::default() };
    let set = vec![Mountable::new(Arc::new(sign_in(url)))];
    in_time(registry.mount(set, &options)).await.unwrap()
}

/// X-E47, D17: an authorization server that does not answer at a mount fails no strict set. The
/// server is ready once a token can be had; a sign-in that cannot work fails the set.
#[tokio::test]
async fn x_e47_a_mount_does_not_fail_for_an_authorization_server_that_is_away() {
    let guarded = Guarded::new().await;
    guarded.take("alice");
    let source = Arc::new(FakeSource::default());
    let registry = start(&source, Vec::new());
    let credentials = source.of("x", Some(&holder("alice")));
    let strict =
        || MountOptions { timeout: DEADLINE, is_strict: true, holder: Some(holder("alice")) };
    let wanted = || vec![Mountable::new(Arc::new(sign_in(&guarded.peer.url)))];
    let why = "the token endpoint answered HTTP 503".to_owned();
    credentials.go_away(CredentialFault::Unavailable { why, retry_after: None });
    let set = in_time(registry.mount(wanted(), &strict())).await.unwrap();
    let mount = set.get("x").unwrap();
    let found = mount.found();
    assert!(found.state == ServerState::Error && found.is_probed && set.faults().is_empty());
    assert_eq!(found.error.as_ref().unwrap().kind, CallErrorKind::AuthUnavailable);
    credentials.set(Some("alice"));
    let mut changes = mount.changes();
    registry.credential_changed_of(mount.alias(), &holder("alice"));
    in_time(async {
        while mount.found().state != ServerState::Ready {
            changes.changed().await.unwrap();
        }
    })
    .await;
    in_time(set.unmount()).await;
    let why = "there is no client id; set `auth.client`".to_owned();
    credentials.go_away(CredentialFault::Unusable { why });
    let failed = in_time(registry.mount(wanted(), &strict())).await.unwrap_err();
    assert!(failed.to_string().contains("auth.client"), "{failed}");
    in_time(registry.close()).await;
}

/// D12, X-M14, C27: the link of one human is never another's; two runs of one human share it.
/// Without a holder nothing is connected.
#[tokio::test]
async fn d12_the_link_of_one_human_is_never_given_to_another() {
    let guarded = Guarded::new().await;
    let source = Arc::new(FakeSource::default());
    for user in ["alice", "bob"] {
        guarded.take(user);
        source.of("x", Some(&holder(user))).set(Some(user));
    }
    let registry = start(&source, Vec::new());
    let mut sets = Vec::new();
    for user in ["alice", "bob", "alice"] {
        let set = mounted(&registry, &guarded.peer.url, Some(holder(user))).await;
        assert_eq!(set.get("x").unwrap().found().state, ServerState::Ready);
        sets.push(set);
    }
    let ids: Vec<_> = sets.iter().map(|set| set.get("x").unwrap().id()).collect();
    assert!(ids[0] != ids[1] && ids[0] == ids[2]);
    for (set, user) in sets.iter().zip(["alice", "bob"]) {
        guarded.peer.forget();
        call(&set.get("x").unwrap().row()).await.unwrap();
        assert_eq!(guarded.sent(), HashSet::from([format!("Bearer {user}")]));
    }

    guarded.peer.forget();
    let unheld = mounted(&registry, &guarded.peer.url, None).await;
    let found = unheld.get("x").unwrap().found();
    assert_eq!((found.state, &found.auth_url), (ServerState::Authenticating, &None));
    assert!(!ids.contains(&unheld.get("x").unwrap().id()));
    assert_eq!(source.holders(), ["alice", "bob"], "no run asked for a shared credential");
    assert!(guarded.peer.seen().is_empty());
    sets.push(unheld);
    for set in sets {
        in_time(set.unmount()).await;
    }
    in_time(registry.close()).await;
}

/// X-M14: a run waits for the sign-in of its own human, and that of another changes nothing.
#[tokio::test]
async fn x_m14_a_mount_follows_the_grant_of_its_own_human() {
    let guarded = Guarded::new().await;
    let source = Arc::new(FakeSource::default());
    let registry = start(&source, Vec::new());
    let mut sets = Vec::new();
    for user in ["alice", "bob"] {
        let set = mounted(&registry, &guarded.peer.url, Some(holder(user))).await;
        let found = set.get("x").unwrap().found();
        assert_eq!(found.state, ServerState::Authenticating);
        let sign_in = found.error.as_ref().unwrap().sign_in().unwrap();
        assert_eq!(sign_in.address_for(Reader::Run), Some(ADDRESS), "it is the run's own human");
        guarded.take(user);
        source.of("x", Some(&holder(user))).set(Some(user));
        sets.push(set);
    }
    let [alice, bob] = [0, 1].map(|index: usize| sets[index].get("x").unwrap());
    let mut changes = alice.changes();
    registry.credential_changed_of(alice.alias(), &holder("alice"));
    in_time(async {
        while alice.found().state != ServerState::Ready {
            changes.changed().await.unwrap();
        }
    })
    .await;
    assert_eq!(bob.found().state, ServerState::Authenticating);
    call(&alice.row()).await.unwrap();
    for set in sets {
        in_time(set.unmount()).await;
    }
    in_time(registry.close()).await;
}

/// A server whose tokens need no person.
fn machine(url: &str) -> ServerDefinition {
    let auth = json!({"mode": "clientCredentials", "tokenUrl": "https://id.example.com/token",
        "clientId": "c", "clientSecret": "s-123456"});
    let text = json!({"servers": {"x": {"transport": "http", "url": url, "auth": auth}}});
    let context = LoadContext {
        file: Path::new("/repo/mcp.json"),
        workspace_root: Path::new("/repo"),
        env: Env::Values(&no_variable),
    };
    let mut config = parse(text.to_string().as_bytes(), &context).unwrap();
    match config.entries.remove(0) {
        Entry::Server(definition) => definition,
        Entry::Fault(fault) => panic!("{}", fault.error),
    }
}

fn no_variable(_name: &str) -> Option<String> {
    None
}

/// O92, C30: a server of the catalog gets tokens without a person, whatever human drives the run.
/// An entry of the run's own with the same name gets none of them.
#[tokio::test]
async fn o92_tokens_of_a_client_are_for_servers_of_the_catalog() {
    let guarded = Guarded::new().await;
    guarded.take("m-1");
    let source = Arc::new(FakeSource::default());
    source.shared("x").set(Some("m-1"));
    let registry = start(&source, Vec::new());
    let holder = Some(holder("alice"));
    let options = MountOptions { timeout: DEADLINE, holder, is_strict: true };
    let own = Mountable::new(Arc::new(machine(&guarded.peer.url)));
    let identity = MountIdentity { server: Some("w/x".into()), ..MountIdentity::default() };
    let of_catalog = Mountable { identity: Arc::new(identity), ..own.clone() };
    let set = in_time(registry.mount(vec![of_catalog], &options)).await.unwrap();
    assert_eq!(set.get("x").unwrap().found().state, ServerState::Ready);
    assert_eq!(source.holders(), [""]);
    let error = in_time(registry.mount(vec![own], &options)).await.unwrap_err();
    assert_eq!(error.faults[0].error.kind, CallErrorKind::AuthUnavailable);
    assert_eq!(guarded.sent(), HashSet::from(["Bearer m-1".to_owned()]));
    in_time(set.unmount()).await;
    in_time(registry.close()).await;
}

/// E112: a server of a set whose entry names no authentication starts no sign-in.
#[tokio::test]
async fn e112_a_set_starts_no_sign_in_that_its_entry_does_not_name() {
    let guarded = Guarded::new().await;
    let source = Arc::new(FakeSource::default());
    let registry = start(&source, Vec::new());
    let options =
        MountOptions { timeout: DEADLINE, holder: Some(holder("alice")), is_strict: true };
    let plain = with_auth(&guarded.peer.url, ServerAuth::Unstated);
    let set = vec![Mountable::new(Arc::new(plain))];
    let error = in_time(registry.mount(set, &options)).await.unwrap_err();
    assert_eq!(error.faults[0].error.kind, CallErrorKind::AuthUnavailable);
    assert!(source.holders().is_empty());
    in_time(registry.close()).await;
}

/// A test of a server uses the grant of its row, and a definition of the same name gets none.
#[tokio::test]
async fn e35_a_test_beside_the_row_uses_its_grant() {
    let guarded = Guarded::new().await;
    guarded.take("t-1");
    let source = Arc::new(FakeSource::default());
    source.shared("x").set(Some("t-1"));
    let registry = start(&source, vec![sign_in(&guarded.peer.url)]);
    until(&registry, narthex_registry::Snapshot::is_settled).await;
    let (events, _received) = tokio::sync::mpsc::channel(8);
    let own = sign_in(&guarded.peer.url);
    let link = in_time(registry.open_apart(&own, events.clone())).await.unwrap();
    link.stop().await;
    let mut other = own;
    if let Target::Http(target) = &mut other.target {
        target.url.push_str("?other");
    }
    let failed = in_time(registry.open_apart(&other, events)).await.unwrap_err();
    assert_eq!(failed.kind, CallErrorKind::AuthUnavailable);
    in_time(registry.close()).await;
}

/// A link of a session shows the row that its credential has ended.
#[tokio::test]
async fn oauth_c25_a_further_link_without_a_credential_is_told_to_the_row() {
    let guarded = Guarded::new().await;
    guarded.take("t-1");
    let source = Arc::new(FakeSource::default());
    source.shared("x").set(Some("t-1"));
    let registry = start(&source, vec![sign_in(&guarded.peer.url)]);
    let row = until_state(&registry, "x", ServerState::Ready).await;
    guarded.refuse_all();
    let (events, _received) = tokio::sync::mpsc::channel(8);
    let opening = registry.open_link(row.alias.as_ref().unwrap(), identity(), None, events);
    let error = in_time(Box::pin(opening)).await.unwrap_err();
    let narthex_registry::OpenError::Failed(failure) = error else { panic!("{error:?}") };
    assert_eq!(failure.sign_in().unwrap().address.as_deref(), Some(ADDRESS));
    until_state(&registry, "x", ServerState::Authenticating).await;
    let gone = call(&row).await.unwrap_err();
    assert!(matches!(gone, LinkError::SignIn { .. } | LinkError::Closed(_)), "{gone}");
    in_time(registry.close()).await;
}

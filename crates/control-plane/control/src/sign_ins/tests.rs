//! Tests of changes of grants by other daemons on the store.

use std::{collections::BTreeMap, path::Path};

use bytes::Bytes;
use narthex_audit::Audit;
use narthex_model::{
    AuthorizationCodeAuth, HttpTarget, KnownExecutors, OAuthTokens, Secret, ServerId,
};
use narthex_oauth_client::{
    Clock, MemoryStore, NoHooks, RedirectBases, SharedClients, SignInOptions, SystemClock,
    store::TokenStore,
};
use narthex_registry::{Registry, RegistryOptions, watch::LayerOptions};
use narthex_supervisor::BaseEnvironment;
use narthex_traffic::Meters;
use narthex_upstream::{AtHand, ClientIdentity, CredentialQuery, CredentialSource, Credentials};
use narthex_wire::Revision;
use tokio::{runtime::Handle, task::yield_now};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::*;
use crate::{ControlOptions, GrantOptions, Variables};

/// Sign-ins over this store, which another daemon may change.
fn sign_ins(store: &Arc<MemoryStore>) -> ServerSignIns {
    let sign_ins = SignIns::new(SignInOptions {
        store: store.clone(),
        clock: Arc::new(SystemClock),
        proxies: Arc::default(),
        extra_roots: Vec::new(),
        redirect_base: RedirectBases {
            loopback: Url::parse("http://127.0.0.1:4711").unwrap(),
            public: None,
        },
        client_metadata_url: None,
        shared_clients: SharedClients::default(),
        client_name: CLIENT_NAME.to_owned(),
        workspace: WorkspaceId::default().to_string(),
        tasks: TaskTracker::new(),
        shutdown: CancellationToken::new(),
        owner: "one".to_owned(),
        hooks: Arc::new(NoHooks),
        runtime: Handle::current(),
    });
    ServerSignIns { sign_ins, counts: Arc::default() }
}

async fn control(folder: &Path, sign_ins: ServerSignIns) -> Control {
    let identity = ClientIdentity {
        info: Bytes::from_static(br#"{"name":"narthex-test","version":"0"}"#),
        capabilities: Bytes::from_static(b"{}"),
        revision: Revision::LEGACY_LATEST,
    };
    let registry = RegistryOptions::new(identity, BaseEnvironment::from_process());
    let registry = Registry::new(registry).unwrap();
    let options = ControlOptions {
        files: LayerOptions::new(folder, Arc::new(|_name| None)),
        store: None,
        vault: None,
        variables: Variables::default(),
        audit: Audit::disabled(),
        login: None,
        sign_ins: Some(sign_ins),
        meters: Meters::default(),
        grants: Arc::default(),
        granting: GrantOptions::default(),
        rules: Arc::default(),
        executors: KnownExecutors::default(),
        defaults: Vec::new(),
    };
    Control::start(registry, options).await.unwrap()
}

/// The credential of a human at a server, with tokens of its entry.
fn credential(sign_ins: &SignIns, grant: Option<SharedGrant>) -> Arc<dyn Credentials> {
    let auth = AuthorizationCodeAuth {
        tokens: Some(OAuthTokens {
            access_token: Secret::new("canary"),
            refresh_token: None,
            expires_at: Some(SystemClock.now() + 3600),
        }),
        grant,
        ..AuthorizationCodeAuth::default()
    };
    let target = HttpTarget {
        url: "https://mcp.example.com/mcp".to_owned(),
        is_sse: false,
        headers: BTreeMap::new(),
        auth: ServerAuth::OAuth(Box::new(OAuth::AuthorizationCode(auth))),
    };
    let alias = Alias::new("mail").unwrap();
    let holder =
        Holder { workspace: "default".to_owned(), user: "prn_00000000000000aa".to_owned() };
    let holder = target.auth.grant().is_some().then_some(&holder);
    let query = CredentialQuery { alias: &alias, target: &target, holder };
    CredentialSource::credentials(sign_ins, query).unwrap()
}

/// C29, X-E49: a grant that another daemon has removed is forgotten, whether it is one of the live
/// configuration, or a human's at a server of the catalog.
#[tokio::test]
async fn oauth_c29_a_grant_that_another_daemon_removed_is_forgotten() {
    let of_catalog = SharedGrant::of_catalog(&WorkspaceId::default(), &ServerId::new("x").unwrap());
    for grant in [None, Some(of_catalog)] {
        let (folder, clock) = (tempfile::tempdir().unwrap(), Arc::new(SystemClock));
        let store = Arc::new(MemoryStore::new(clock));
        let all = sign_ins(&store);
        let control = control(folder.path(), all.clone()).await;
        let credential = credential(&all.sign_ins, grant);
        assert!(credential.obtain().await.unwrap().is_some(), "the tokens of the entry");
        let has_token = || matches!(credential.at_hand(), AtHand::Ready(Some(_)));
        assert!(has_token());
        let (key, _) = all.sign_ins.statuses().pop().unwrap();
        let verbs = SignInVerbs::of(&control);
        verbs.was_stored(&key);
        turns().await;
        assert!(has_token(), "nothing has changed");
        assert!(store.drop_grant(key.clone(), None).await.unwrap());
        verbs.was_stored(&key);
        turns().await;
        assert!(!has_token());
        control.close().await;
    }
}

/// Gives other tasks many turns.
async fn turns() {
    for _ in 0..1000 {
        yield_now().await;
    }
}

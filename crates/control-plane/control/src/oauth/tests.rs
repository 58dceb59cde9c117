//! Tests of sign-ins in the store, over a vault, in files and on a PostgreSQL server.

mod followed;
mod renewals;

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use fs_err as fs;
use narthex_model::{Secret, WorkspaceId};
use narthex_oauth_client::store::{
    AttemptRow, ClientKey, GrantFacts, GrantKey, GrantRow, LeaseOutcome, TokenStore,
};
use narthex_store::Store;
use narthex_testkit::postgres;
use narthex_vault::{KeyFile, SealedBackend, Vault};
use tempfile::TempDir;

use super::{StoredTokens, Time, keys};
use crate::SecretRows;

/// The first time of each test, in seconds since 1970.
const START: u64 = 1_790_000_000;

/// A store that several daemons share, and their clock.
struct Place {
    dir: TempDir,
    url: Option<String>,
    time: Arc<AtomicU64>,
}

/// A daemon on the store of a place.
struct Daemon {
    store: Store,
    vault: Vault,
    tokens: StoredTokens,
}

impl Place {
    fn in_a_file() -> Self {
        let time = Arc::new(AtomicU64::new(START * 1000));
        Self { dir: tempfile::tempdir().unwrap(), url: None, time }
    }

    /// A place in a file, and one on a PostgreSQL server if that is installed.
    fn both() -> Vec<Self> {
        let on_server = postgres::database(&[]).map(|database| {
            let url = Some(database.url);
            Self { url, ..Self::in_a_file() }
        });
        std::iter::once(Self::in_a_file()).chain(on_server).collect()
    }

    async fn daemon(&self) -> Daemon {
        let store = match &self.url {
            None => Store::open(&self.file("store.db")).await.unwrap(),
            Some(url) => Store::connect(&Secret::new(url.clone())).await.unwrap(),
        };
        let rows = Arc::new(SecretRows::new(store.clone()));
        let keys = Arc::new(KeyFile::new(self.file("master.key")));
        let vault = Vault::new(Arc::new(SealedBackend::start(rows, keys).await.unwrap()));
        let tokens = StoredTokens {
            time: Time::Given(self.time.clone()),
            ..StoredTokens::new(store.clone(), vault.clone())
        };
        Daemon { store, vault, tokens }
    }

    fn file(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join(name)
    }

    fn pass(&self, seconds: u64) {
        self.time.fetch_add(seconds * 1000, Ordering::AcqRel);
    }
}

impl Daemon {
    async fn put(&self, key: &GrantKey, value: &str) -> GrantRow {
        self.tokens.put_grant(key.clone(), Secret::new(value), facts()).await.unwrap()
    }

    async fn value(&self, key: &GrantKey) -> Option<String> {
        let row = self.tokens.grant(key.clone()).await.unwrap();
        row.map(|row| row.value.expose().to_owned())
    }

    async fn lease(&self, key: &GrantKey, owner: &str) -> LeaseOutcome {
        self.tokens.lease(key.clone(), owner.to_owned(), 30_000).await.unwrap()
    }

    /// The row of a lease that must be free.
    async fn taken(&self, key: &GrantKey, owner: &str) -> GrantRow {
        match self.lease(key, owner).await {
            LeaseOutcome::Taken(row) => row,
            other => panic!("{owner} got {other:?}"),
        }
    }
}

fn docs() -> GrantKey {
    GrantKey { workspace: "default".to_owned(), server: "docs".to_owned(), user: None }
}

fn of_ada() -> GrantKey {
    GrantKey { user: Some("prn_00000000000000aa".to_owned()), ..docs() }
}

fn facts() -> GrantFacts {
    GrantFacts {
        issuer: "https://as.example".to_owned(),
        scopes: "read write".to_owned(),
        expires_at: Some(START + 3600),
        can_renew: true,
        succeeded_at: Some(START),
        failed_at: None,
        failure: None,
    }
}

fn client_key() -> ClientKey {
    ClientKey {
        workspace: "default".to_owned(),
        issuer: "https://as.example".to_owned(),
        redirect_base: "http://127.0.0.1:4711".to_owned(),
    }
}

fn attempt(value: &str) -> AttemptRow {
    AttemptRow { key: of_ada(), value: Secret::new(value), expires_at: START + 600 }
}

/// True if a file of the folder has this text.
fn has_text(dir: &Path, text: &str) -> bool {
    let files = fs::read_dir(dir).unwrap().map(|entry| fs::read(entry.unwrap().path()).unwrap());
    let has = |bytes: Vec<u8>| bytes.windows(text.len()).any(|part| part == text.as_bytes());
    files.into_iter().any(has)
}

/// X-E48: tokens outlive the daemon, and no file has them, or what else is sealed, in clear.
#[tokio::test]
async fn x_e48_tokens_outlive_a_daemon_and_are_in_no_file() {
    for place in Place::both() {
        let daemon = place.daemon().await;
        let stored = daemon.put(&docs(), "canary-of-grant").await;
        assert_eq!(stored.value.expose(), "canary-of-grant");
        let (client, open) = (Secret::new("canary-of-client"), attempt("canary-of-attempt"));
        daemon.tokens.put_client(client_key(), client, None).await.unwrap();
        daemon.tokens.put_attempt("h1".to_owned(), open).await.unwrap();
        assert!(!format!("{stored:?} {:?}", daemon.tokens).contains("canary"));
        daemon.store.close().await;
        if place.url.is_none() {
            assert!(has_text(place.dir.path(), "https://as.example"), "facts are in clear");
            assert!(!has_text(place.dir.path(), "canary"));
        }
        let daemon = place.daemon().await;
        let found = daemon.tokens.grant(docs()).await.unwrap().unwrap();
        assert_eq!((found.generation, &found.facts), (stored.generation, &facts()));
        assert_eq!(found.value, stored.value);
        let client = daemon.tokens.client(client_key()).await.unwrap().unwrap();
        assert_eq!(client.expose(), "canary-of-client");
        let open = daemon.tokens.take_attempt("h1".to_owned()).await.unwrap().unwrap();
        let is_same = open.value.expose() == "canary-of-attempt" && open.key == of_ada();
        assert!(is_same && open.expires_at == START + 600, "{open:?}");
        assert!(daemon.tokens.take_attempt("h1".to_owned()).await.unwrap().is_none());
    }
}

/// X-F6: after a change of the master key, and without the old key, everything opens as before.
#[tokio::test]
async fn x_f6_sign_ins_open_after_the_master_key_was_changed() {
    for place in Place::both() {
        let daemon = place.daemon().await;
        daemon.put(&docs(), "tokens").await;
        daemon.tokens.put_client(client_key(), Secret::new("client"), None).await.unwrap();
        daemon.tokens.put_attempt("h1".to_owned(), attempt("open")).await.unwrap();
        let rotation = daemon.vault.rotate_key().await.unwrap();
        assert_eq!((rotation.resealed, rotation.dropped.len()), (1, 1));
        for daemon in [daemon, place.daemon().await] {
            assert_eq!(daemon.value(&docs()).await.as_deref(), Some("tokens"));
            let client = daemon.tokens.client(client_key()).await.unwrap().unwrap();
            assert_eq!(client.expose(), "client");
        }
        let daemon = place.daemon().await;
        let open = daemon.tokens.take_attempt("h1".to_owned()).await.unwrap().unwrap();
        assert_eq!(open.value.expose(), "open");
    }
}

/// X-M25, X-E69: a value opens at its own row alone. A grant that does not open is reported, and a
/// new consent replaces it.
#[tokio::test]
async fn x_m25_a_grant_opens_at_its_own_row_alone() {
    for place in Place::both() {
        let daemon = place.daemon().await;
        daemon.put(&docs(), "of all").await;
        let grants = daemon.store.oauth_grants();
        let (shared, own) = (keys::grant(&docs()).unwrap(), keys::grant(&of_ada()).unwrap());
        let row = grants.find(&shared).await.unwrap().unwrap();
        grants.put(&own, &row.sealed, &row.facts).await.unwrap();
        let fault = daemon.tokens.grant(of_ada()).await.unwrap_err().to_string();
        assert!(fault.contains("`docs`") && fault.contains("sign in again"), "{fault}");
        assert!(daemon.tokens.lease(of_ada(), "a".to_owned(), 9).await.is_err());
        assert_eq!(daemon.tokens.grants("default".to_owned(), None).await.unwrap().len(), 2);
        daemon.put(&of_ada(), "of ada").await;
        assert_eq!(daemon.value(&of_ada()).await.as_deref(), Some("of ada"));
        let changed = row.sealed.replace('.', ".A");
        grants.put(&shared, &changed, &row.facts).await.unwrap();
        let fault = daemon.tokens.grant(docs()).await.unwrap_err().to_string();
        assert!(fault.contains("narthex mcp authorize docs"), "{fault}");
        assert!(daemon.tokens.drop_grant(docs(), None).await.unwrap());
        assert!(!daemon.tokens.drop_grant(docs(), None).await.unwrap());
        assert_eq!(daemon.value(&docs()).await, None);
    }
}

/// X-E45: the first of two registrations wins, a later one replaces what it has read, and a client
/// that does not open counts as none, as an attempt does.
#[tokio::test]
async fn x_e45_registered_clients_heal() {
    for place in Place::both() {
        let (one, other) = (place.daemon().await, place.daemon().await);
        let put = async |daemon: &Daemon, value: &str, replaces: Option<&str>| {
            let (value, replaces) = (Secret::new(value), replaces.map(Secret::new));
            let stored = daemon.tokens.put_client(client_key(), value, replaces).await;
            stored.unwrap().expose().to_owned()
        };
        assert_eq!(put(&one, "1", None).await, "1");
        assert_eq!(put(&other, "2", None).await, "1");
        assert_eq!(put(&other, "3", Some("0")).await, "1");
        assert_eq!(put(&other, "4", Some("1")).await, "4");
        assert_eq!(put(&one, "5", Some("1")).await, "4");
        let (clients, key) = (one.store.oauth_clients(), keys::client(&client_key()).unwrap());
        let sealed = clients.find(&key).await.unwrap().unwrap();
        assert!(clients.replace(&key, &sealed, "1.x").await.unwrap());
        assert_eq!(one.tokens.client(client_key()).await.unwrap(), None);
        assert_eq!(put(&one, "6", None).await, "6");
        one.tokens.drop_client(client_key()).await.unwrap();
        assert_eq!(other.tokens.client(client_key()).await.unwrap(), None);
        assert_eq!(put(&other, "7", Some("6")).await, "7");
        one.tokens.put_attempt("h1".to_owned(), attempt("a")).await.unwrap();
        let attempts = one.store.oauth_attempts();
        let moved = attempts.take("h1", std::time::UNIX_EPOCH).await.unwrap().unwrap();
        attempts.put("h2", &moved, std::time::UNIX_EPOCH).await.unwrap();
        assert!(other.tokens.take_attempt("h2".to_owned()).await.unwrap().is_none());
    }
}

/// C16: an attempt ends by the clock of the store.
#[tokio::test]
async fn c16_an_attempt_ends_in_time() {
    let place = Place::in_a_file();
    let daemon = place.daemon().await;
    for (hash, passed, is_open) in [("h1", 599, true), ("h2", 1, false)] {
        daemon.tokens.put_attempt(hash.to_owned(), attempt("a")).await.unwrap();
        place.pass(passed);
        let taken = daemon.tokens.take_attempt(hash.to_owned()).await.unwrap();
        assert_eq!(taken.is_some(), is_open, "{hash}");
    }
}

/// C16, C29: a daemon finds the open attempts of all daemons, and ends those of a grant.
#[tokio::test]
async fn c16_open_attempts_are_those_of_all_daemons() {
    let place = Place::in_a_file();
    let (one, other) = (place.daemon().await, place.daemon().await);
    one.tokens.put_attempt("h1".to_owned(), attempt("a")).await.unwrap();
    let open = async || {
        let here = WorkspaceId::default().to_string();
        other.tokens.open_attempts(here).await.unwrap()
    };
    assert_eq!(open().await, ["h1"]);
    let key = attempt("a").key;
    other.tokens.drop_attempts(key).await.unwrap();
    assert!(open().await.is_empty());
    one.tokens.put_attempt("h2".to_owned(), attempt("a")).await.unwrap();
    place.pass(600);
    assert!(open().await.is_empty(), "it has ended");
}

/// A sign-in of a workspace that does not exist, or of an empty name, is refused.
#[tokio::test]
async fn sign_ins_of_no_workspace_are_refused() {
    let place = Place::in_a_file();
    let tokens = place.daemon().await.tokens;
    let nowhere = GrantKey { workspace: "nowhere".to_owned(), ..docs() };
    let unnamed = GrantKey { user: Some(String::new()), ..docs() };
    for key in [nowhere, unnamed, GrantKey { workspace: "No!".to_owned(), ..docs() }] {
        assert!(tokens.put_grant(key, Secret::new("x"), facts()).await.is_err());
    }
    let here = WorkspaceId::default().to_string();
    assert!(tokens.grants(here, None).await.unwrap().is_empty());
}

//! Grants, clients and open attempts of narthex at authorization servers, as stored.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use narthex_model::{
    CatalogKind, ErrorKind, PrincipalId, PrincipalKind, PrincipalName, WorkspaceId,
};
use narthex_store::{
    NewPrincipal, OAUTH_ATTEMPTS_MAX, OAuthAttemptRow, OAuthClientKey, OAuthFacts, OAuthGrantKey,
    OAuthGrantRow, Store, Workspace,
};
use tokio::task::JoinSet;

use crate::support::{Place, id};

const ADA: &str = "prn_00000000000000aa";
const LEASE: Duration = Duration::from_secs(30);

fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_790_000_000 + seconds)
}

fn key(workspace: &str, server: &str, user: Option<&str>) -> OAuthGrantKey {
    let user = user.map(str::to_owned);
    OAuthGrantKey { workspace: id(workspace), server: server.to_owned(), user }
}

fn docs() -> OAuthGrantKey {
    key("default", "docs", None)
}

fn facts(scopes: &str) -> OAuthFacts {
    OAuthFacts {
        issuer: "https://as.example".to_owned(),
        scopes: scopes.to_owned(),
        expires_at: Some(1_790_003_600),
        can_renew: true,
        succeeded_at: Some(1_790_000_000),
        failed_at: None,
        failure: None,
    }
}

fn failure() -> OAuthFacts {
    let failure = Some("the token endpoint cannot be reached".to_owned());
    OAuthFacts { failed_at: Some(1_790_000_100), failure, ..facts("read") }
}

/// The owner of the lease after a request for it.
async fn lease(store: &Store, owner: &str, now: SystemTime) -> Option<String> {
    let row = store.oauth_grants().lease(&docs(), owner, now, LEASE).await.unwrap();
    row.unwrap().lease.map(|(owner, _)| owner)
}

async fn put(store: &Store, key: &OAuthGrantKey) -> OAuthGrantRow {
    store.oauth_grants().put(key, "sealed", &facts("read")).await.unwrap()
}

fn attempt(key: OAuthGrantKey, expires_at: SystemTime) -> OAuthAttemptRow {
    OAuthAttemptRow { key, sealed: "sealed".to_owned(), expires_at }
}

async fn has_attempt(place: &Place, hash: &str) -> bool {
    let sql = format!("SELECT state_hash FROM oauth_attempts WHERE state_hash = '{hash}'");
    !place.sql(&sql).await.is_empty()
}

/// C23: what is stored of a grant is found by its key alone, also after the store is opened again.
#[tokio::test]
async fn c23_a_grant_is_found_by_its_key_after_a_restart() {
    for place in Place::both() {
        let store = place.open().await;
        let mine = key("default", "docs", Some(ADA));
        let shared = put(&store, &docs()).await;
        let own = store.oauth_grants().put(&mine, "größe", &failure()).await.unwrap();
        assert!(own.generation > shared.generation);
        store.close().await;
        let store = place.open().await;
        let grants = store.oauth_grants();
        assert_eq!(grants.find(&docs()).await.unwrap(), Some(shared.clone()));
        assert_eq!(grants.find(&mine).await.unwrap(), Some(own.clone()));
        assert_eq!(grants.find(&key("default", "docs", Some("prn_b"))).await.unwrap(), None);
        assert_eq!(grants.find(&key("other", "docs", None)).await.unwrap(), None);
        let here = WorkspaceId::default();
        let both = vec![(docs(), shared.facts), (mine.clone(), own.facts.clone())];
        assert_eq!(grants.all(&here, None).await.unwrap(), both);
        assert_eq!(grants.all(&here, Some(ADA)).await.unwrap(), [(mine, own.facts)]);
        let error = grants.put(&key("other", "docs", None), "x", &facts("")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "there is no such workspace");
    }
}

/// C23: one owner at a time may renew a grant. A lease ends by time, by a renewal, by a failure and
/// by a new consent.
#[tokio::test]
async fn c23_a_lease_belongs_to_one_owner_until_it_ends() {
    for place in Place::both() {
        let store = place.open().await;
        let grants = store.oauth_grants();
        let absent = grants.lease(&docs(), "a", at(0), LEASE).await.unwrap();
        assert_eq!(absent, None);
        let first = put(&store, &docs()).await;
        assert_eq!(first.lease, None);
        assert_eq!(lease(&store, "a", at(0)).await.as_deref(), Some("a"));
        assert_eq!(lease(&store, "b", at(29)).await.as_deref(), Some("a"));
        // Its owner gets it again, and for longer.
        assert_eq!(lease(&store, "a", at(20)).await.as_deref(), Some("a"));
        assert_eq!(lease(&store, "b", at(49)).await.as_deref(), Some("a"));
        assert_eq!(lease(&store, "b", at(50)).await.as_deref(), Some("b"));
        assert_eq!(lease(&store, "a", at(51)).await.as_deref(), Some("b"));
        let renewed = grants.renew(&docs(), first.generation, "2", &facts("more")).await.unwrap();
        let renewed = renewed.unwrap();
        assert_eq!((renewed.lease.clone(), renewed.sealed.as_str()), (None, "2"));
        assert_eq!(lease(&store, "a", at(52)).await.as_deref(), Some("a"));
        grants.note_failure(&docs(), renewed.generation, &failure(), "a").await.unwrap();
        let found = grants.find(&docs()).await.unwrap().unwrap();
        assert_eq!((&found.facts, found.sealed.as_str()), (&failure(), "2"));
        assert_eq!((found.generation, found.lease), (renewed.generation, None));
        assert_eq!(lease(&store, "b", at(53)).await.as_deref(), Some("b"));
        let consent = put(&store, &docs()).await;
        assert_eq!(consent.lease, None);
        assert!(consent.generation > renewed.generation);
    }
}

/// C23: of many owners that ask at once, one gets the lease.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c23_of_many_owners_one_gets_the_lease() {
    for place in Place::both() {
        let stores = [place.open().await, place.open().await];
        put(&stores[0], &docs()).await;
        let mut asking = JoinSet::new();
        for number in 0..16 {
            let store = stores[number % 2].clone();
            asking.spawn(async move {
                let owner = number.to_string();
                lease(&store, &owner, at(0)).await.is_some_and(|holder| holder == owner)
            });
        }
        let taken = asking.join_all().await;
        assert_eq!(taken.into_iter().filter(|is_taken| *is_taken).count(), 1);
    }
}

/// C23: a late owner neither replaces what another has written since, nor ends another's lease.
#[tokio::test]
async fn c23_a_late_owner_changes_nothing() {
    for place in Place::both() {
        let store = place.open().await;
        let grants = store.oauth_grants();
        let first = put(&store, &docs()).await;
        assert_eq!(lease(&store, "a", at(0)).await.as_deref(), Some("a"));
        assert_eq!(lease(&store, "b", at(30)).await.as_deref(), Some("b"));
        grants.note_failure(&docs(), first.generation, &failure(), "a").await.unwrap();
        assert_eq!(lease(&store, "c", at(31)).await.as_deref(), Some("b"), "b still renews");
        let renewed = grants.renew(&docs(), first.generation, "b", &facts("")).await.unwrap();
        let late = grants.renew(&docs(), first.generation, "a", &facts("")).await.unwrap();
        assert_eq!(late, None);
        assert!(!grants.remove(&docs(), Some(first.generation)).await.unwrap());
        grants.note_failure(&docs(), first.generation, &failure(), "a").await.unwrap();
        assert_eq!(grants.find(&docs()).await.unwrap(), renewed);
        // A grant after a sign-out is another one, although its key is the same.
        let generation = renewed.unwrap().generation;
        assert!(grants.remove(&docs(), Some(generation)).await.unwrap());
        assert!(!grants.remove(&docs(), None).await.unwrap());
        let again = put(&store, &docs()).await;
        for old in [first.generation, generation] {
            assert_eq!(grants.renew(&docs(), old, "a", &facts("")).await.unwrap(), None);
        }
        assert_eq!(grants.find(&docs()).await.unwrap(), Some(again));
    }
}

/// C23: each write and each removal of a grant has a number, by which other daemons find it.
#[tokio::test]
async fn c23_changes_of_grants_are_numbered() {
    for place in Place::both() {
        let store = place.open().await;
        let grants = store.oauth_grants();
        assert_eq!(grants.changes().await.unwrap().last, 0);
        let first = put(&store, &docs()).await;
        let mine = key("default", "docs", Some(ADA));
        put(&store, &mine).await;
        let before = grants.changes().await.unwrap();
        assert_eq!((before.last, before.dropped), (2, 0));
        assert_eq!(grants.changed_since(1).await.unwrap(), [(mine.clone(), 2)]);
        // A lease is no change.
        lease(&store, "a", at(0)).await;
        assert_eq!(grants.changes().await.unwrap(), before);
        grants.renew(&docs(), first.generation, "2", &facts("")).await.unwrap().unwrap();
        assert_eq!(grants.changed_since(2).await.unwrap(), [(docs(), 3)]);
        assert!(grants.renew(&docs(), first.generation, "3", &facts("")).await.unwrap().is_none());
        assert_eq!(grants.changes().await.unwrap().last, 3, "what is not stored counts nothing");
        assert!(grants.remove(&docs(), None).await.unwrap());
        assert!(!grants.remove(&docs(), None).await.unwrap());
        let after = grants.changes().await.unwrap();
        assert_eq!((after.last, after.dropped), (4, 4));
        assert_eq!(grants.changed_since(0).await.unwrap(), [(mine, 2)]);
    }
}

/// C29: grants and open attempts go with their human, their server and their workspace, and
/// other daemons see it. Those of others stay.
#[tokio::test]
async fn c29_grants_go_with_their_human_server_and_workspace() {
    for place in Place::both() {
        let store = place.open().await;
        let (ada, name) = (PrincipalId::new(ADA).unwrap(), PrincipalName::new("ada").unwrap());
        let kind = PrincipalKind::Human;
        let new = NewPrincipal {
            id: &ada,
            name: &name,
            kind,
            workspace: None,
            is_operator: false,
            by: "admin",
        };
        store.principals().create(new, None).await.unwrap();
        let team = id("team");
        store.workspaces().create(&Workspace::new(team.clone(), "Team")).await.unwrap();
        let servers = store.catalog(CatalogKind::Server);
        let server = servers.create(&team, "docs", "{}", "ada").await.unwrap();
        let all = [
            docs(),
            key("default", "docs", Some(ADA)),
            key("team", "catalog/docs", Some(ADA)),
            key("team", "catalog/docs", Some("prn_b")),
            key("team", "wiki", Some("prn_b")),
        ];
        let client = OAuthClientKey {
            workspace: team.clone(),
            issuer: "https://as.example".to_owned(),
            redirect_base: "http://127.0.0.1:1".to_owned(),
        };
        assert!(store.oauth_clients().add(&client, "sealed").await.unwrap());
        for (number, key) in all.iter().enumerate() {
            put(&store, key).await;
            let open = attempt(key.clone(), at(600));
            let hash = format!("h{number}");
            store.oauth_attempts().put(&hash, &open, at(0)).await.unwrap();
        }
        let (grants, mut dropped) = (store.oauth_grants(), 0);
        let mut left = async |expected: &[usize]| {
            for (number, key) in all.iter().enumerate() {
                let is_left = expected.contains(&number);
                let found = store.oauth_grants().find(key).await.unwrap();
                assert_eq!(found.is_some(), is_left, "{key:?}");
                assert_eq!(has_attempt(&place, &format!("h{number}")).await, is_left, "{key:?}");
            }
            let now = store.oauth_grants().changes().await.unwrap().dropped;
            assert!(now > dropped, "other daemons see the removal");
            dropped = now;
        };
        grants.drop_user(&id("default"), ADA).await.unwrap();
        left(&[0, 2, 3, 4]).await;
        assert!(store.principals().set_disabled(&ada, true).await.unwrap());
        left(&[0, 3, 4]).await;
        assert!(servers.delete(&team, &server).await.unwrap());
        left(&[0, 4]).await;
        assert!(store.workspaces().delete(&team, true).await.unwrap());
        left(&[0]).await;
        assert_eq!(store.oauth_clients().find(&client).await.unwrap(), None);
        // No human has an empty id: a shared grant stays.
        grants.drop_user(&id("default"), "").await.unwrap();
        left(&[0]).await;
        grants.drop_server(&id("default"), "docs").await.unwrap();
        left(&[]).await;
    }
}

/// X-E45: of two that register at once, the first wins. A client is replaced only by one that has
/// read it.
#[tokio::test]
async fn x_e45_the_first_of_two_registered_clients_wins() {
    for place in Place::both() {
        let store = place.open().await;
        let clients = store.oauth_clients();
        let key = OAuthClientKey {
            workspace: WorkspaceId::default(),
            issuer: "https://as.example".to_owned(),
            redirect_base: "http://127.0.0.1:1".to_owned(),
        };
        assert!(clients.add(&key, "1").await.unwrap());
        assert!(!clients.add(&key, "2").await.unwrap());
        assert_eq!(clients.find(&key).await.unwrap().as_deref(), Some("1"));
        let other = OAuthClientKey { redirect_base: "https://n.example".to_owned(), ..key.clone() };
        assert_eq!(clients.find(&other).await.unwrap(), None);
        assert!(!clients.replace(&key, "0", "3").await.unwrap());
        assert!(clients.replace(&key, "1", "3").await.unwrap());
        assert!(!clients.replace(&key, "1", "4").await.unwrap());
        assert_eq!(clients.find(&key).await.unwrap().as_deref(), Some("3"));
        assert!(clients.remove(&key).await.unwrap() && !clients.remove(&key).await.unwrap());
        let nowhere = OAuthClientKey { workspace: id("nowhere"), ..key };
        let error = clients.add(&nowhere, "1").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
    }
}

/// C16: an attempt is taken once, before its end, by whichever daemon asks first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c16_an_attempt_is_taken_once() {
    for place in Place::both() {
        let stores = [place.open().await, place.open().await];
        let attempts = stores[0].oauth_attempts();
        let open = attempt(key("default", "docs", Some(ADA)), at(600));
        attempts.put("h1", &open, at(0)).await.unwrap();
        let taken_hash = attempts.put("h1", &open, at(0)).await.unwrap_err();
        assert_eq!(taken_hash.kind(), ErrorKind::Conflict);
        assert_eq!(attempts.take("h2", at(1)).await.unwrap(), None);
        let mut taking = JoinSet::new();
        for number in 0..8 {
            let store = stores[number % 2].clone();
            taking.spawn(async move { store.oauth_attempts().take("h1", at(599)).await.unwrap() });
        }
        let taken: Vec<_> = taking.join_all().await.into_iter().flatten().collect();
        assert_eq!(taken, std::slice::from_ref(&open));
        attempts.put("h3", &open, at(0)).await.unwrap();
        assert_eq!(attempts.take("h3", at(600)).await.unwrap(), None, "it has ended");
    }
}

/// C16: attempts that have ended are removed, and of too many open ones of a workspace those that
/// end first. Those of another workspace stay.
#[tokio::test]
async fn c16_ended_attempts_are_removed_and_open_ones_are_bounded() {
    for place in Place::both() {
        let store = place.open().await;
        store.workspaces().create(&Workspace::new(id("team"), "Team")).await.unwrap();
        let attempts = store.oauth_attempts();
        let team = attempt(key("team", "docs", None), at(300));
        attempts.put("team", &team, at(0)).await.unwrap();
        let here = attempt(docs(), at(300));
        attempts.put("old", &here, at(0)).await.unwrap();
        // As if so many more had been started.
        let rows: Vec<_> = (1..OAUTH_ATTEMPTS_MAX)
            .map(|n| format!("('n{n}', 'default', 'docs', '', 'sealed', 0, 1790000600000)"))
            .collect();
        place.sql(&format!("INSERT INTO oauth_attempts VALUES {}", rows.join(", "))).await;
        assert!(has_attempt(&place, "old").await);
        attempts.put("new", &attempt(docs(), at(600)), at(0)).await.unwrap();
        assert!(!has_attempt(&place, "old").await, "the one that ends first makes room");
        assert!(has_attempt(&place, "team").await);
        let count = "SELECT CAST(count(*) AS TEXT) FROM oauth_attempts";
        assert_eq!(place.sql(count).await, [(OAUTH_ATTEMPTS_MAX + 1).to_string()]);
        attempts.sweep(at(300)).await.unwrap();
        assert!(!has_attempt(&place, "team").await && has_attempt(&place, "new").await);
        attempts.put("last", &attempt(docs(), at(900)), at(600)).await.unwrap();
        assert_eq!(place.sql("SELECT state_hash FROM oauth_attempts").await, ["last"]);
    }
}

/// C16, C29: the open attempts of a workspace are listed, and those of one grant removed.
#[tokio::test]
async fn c16_c29_open_attempts_are_listed_and_removed_by_their_grant() {
    for place in Place::both() {
        let store = place.open().await;
        let attempts = store.oauth_attempts();
        let mine = key("default", "docs", Some(ADA));
        for (hash, of, end) in [("a", docs(), 300), ("b", mine.clone(), 300), ("c", docs(), 100)] {
            attempts.put(hash, &attempt(of, at(end)), at(0)).await.unwrap();
        }
        let open = async |now| {
            let mut open = attempts.open(&id("default"), at(now)).await.unwrap();
            open.sort_unstable();
            open
        };
        assert_eq!(open(0).await, ["a", "b", "c"]);
        assert_eq!(open(100).await, ["a", "b"], "one has ended");
        attempts.drop_of(&docs()).await.unwrap();
        assert_eq!(open(0).await, ["b"], "the human's own stays");
        attempts.drop_of(&mine).await.unwrap();
        assert!(open(0).await.is_empty());
    }
}

/// C23: the clock of leases is that of the database, and it proceeds.
#[tokio::test]
async fn c23_the_clock_of_leases_is_one_for_all() {
    for place in Place::both() {
        let store = place.open().await;
        let first = store.now().await.unwrap();
        assert!(first > at(0), "it is later than this test was written");
        assert!(store.now().await.unwrap() >= first);
    }
}

/// Copies have the grants, as sealed as they were.
#[tokio::test]
async fn c23_a_copy_of_the_store_has_the_grants() {
    let place = Place::new();
    let store = place.open().await;
    let stored = put(&store, &docs()).await;
    let file = place.dir().join("copy.db");
    store.backup(&file).await.unwrap();
    let copy = Store::open(&file).await.unwrap();
    assert_eq!(copy.oauth_grants().find(&docs()).await.unwrap(), Some(stored));
    copy.close().await;
}

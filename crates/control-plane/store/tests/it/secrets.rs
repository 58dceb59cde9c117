//! Secrets in the tables: versions, keys, pages, and simultaneous changes.

use narthex_model::{ErrorKind, KeyId, SealedSecret, SecretName, SecretVersion};
use narthex_store::{SecretHead, Store, Workspace};
use tokio::task::JoinSet;

use crate::support::{Place, id};

const OLD: &str = "00000000000000aa";
const NEW: &str = "00000000000000bb";

fn name(text: &str) -> SecretName {
    SecretName::new(text).unwrap()
}

fn version(number: u64) -> SecretVersion {
    SecretVersion::new(number).unwrap()
}

fn key(text: &str) -> KeyId {
    KeyId::new(text).unwrap()
}

fn sealed(workspace: &str, of: &str, number: u64) -> SealedSecret {
    SealedSecret {
        workspace: id(workspace),
        name: name(of),
        version: version(number),
        key: key(OLD),
        sealed: format!("{workspace}/{of}/{number}"),
    }
}

async fn add(store: &Store, secret: &SealedSecret) -> bool {
    store.secrets().add(secret, "admin", 3).await.unwrap()
}

async fn with_team(place: &Place) -> Store {
    let store = place.open().await;
    store.workspaces().create(&Workspace::new(id("team"), "")).await.unwrap();
    store
}

/// D10: versions are numbered in sequence, some are stored, and no number is used twice.
#[tokio::test]
async fn d10_versions_of_a_secret_are_never_reused() {
    for place in Place::both() {
        let store = with_team(&place).await;
        let (here, a) = (id("default"), name("A"));
        assert_eq!(store.secrets().head(&here, &a).await.unwrap(), None);
        assert!(!add(&store, &sealed("default", "A", 2)).await);
        for number in 1..=4 {
            assert!(add(&store, &sealed("default", "A", number)).await);
            assert!(!add(&store, &sealed("default", "A", number)).await);
        }
        assert!(add(&store, &sealed("team", "A", 1)).await);
        let find = async |number: Option<u64>| {
            let found = store.secrets().find(&here, &a, number.map(version)).await.unwrap();
            found.map(|found| found.sealed)
        };
        assert_eq!(find(None).await.as_deref(), Some("default/A/4"));
        assert_eq!(find(Some(2)).await.as_deref(), Some("default/A/2"));
        assert_eq!(find(Some(1)).await, None);
        assert!(store.secrets().clear(&here, &a, "author").await.unwrap());
        assert!(!store.secrets().clear(&here, &a, "another").await.unwrap());
        assert_eq!(find(None).await, None);
        let head = SecretHead { last: version(4), is_set: false };
        assert_eq!(store.secrets().head(&here, &a).await.unwrap(), Some(head));
        assert!(!add(&store, &sealed("default", "A", 4)).await);
        assert!(add(&store, &sealed("default", "A", 5)).await);
        assert!(store.secrets().find(&id("team"), &a, None).await.unwrap().is_some());
    }
}

/// X-M22: the summaries of set and cleared secrets, in order.
#[tokio::test]
async fn x_m22_all_secrets_of_a_workspace_are_listed() {
    for place in Place::both() {
        let store = with_team(&place).await;
        for (of, number) in [("B", 1), ("A", 1), ("B", 2), ("C", 1)] {
            assert!(add(&store, &sealed("default", of, number)).await);
        }
        store.secrets().clear(&id("default"), &name("C"), "author").await.unwrap();
        let all = store.secrets().all(&id("default")).await.unwrap();
        let told: Vec<_> = all
            .iter()
            .map(|one| (one.name.as_str(), one.is_set(), one.versions.len(), &*one.updated_by))
            .collect();
        assert_eq!(
            told,
            [("A", true, 1, "admin"), ("B", true, 2, "admin"), ("C", false, 0, "author")]
        );
        let numbers: Vec<_> = all[1].versions.iter().map(|one| one.version.get()).collect();
        assert_eq!((numbers, &all[1].versions[0].key), (vec![1, 2], &Some(key(OLD))));
        assert!(all[1].created_at <= all[1].updated_at);
        assert!(store.secrets().all(&id("team")).await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn a_secret_needs_a_workspace() {
    for place in Place::both() {
        let store = with_team(&place).await;
        let error = store.secrets().add(&sealed("nosuch", "A", 1), "x", 3).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert_eq!(place.sql("SELECT name FROM secrets").await, [""; 0]);
        // The secret is removed with its workspace.
        assert!(add(&store, &sealed("team", "A", 1)).await);
        place.sql("DELETE FROM workspaces WHERE id = 'team'").await;
        assert_eq!(place.sql("SELECT name FROM secret_versions").await, [""; 0]);
    }
}

/// X-F6: values under other keys are found page by page, and replaced only as they were read.
#[tokio::test]
async fn x_f6_values_under_an_old_key_are_found_page_by_page() {
    for place in Place::both() {
        let store = with_team(&place).await;
        for workspace in ["team", "default"] {
            for of in ["B", "A", "A_", "AB"] {
                assert!(add(&store, &sealed(workspace, of, 1)).await);
                assert!(add(&store, &sealed(workspace, of, 2)).await);
            }
        }
        assert_eq!(store.secrets().keys().await.unwrap(), [(key(OLD), 16)].into());
        let mut after = None;
        let mut seen = Vec::new();
        loop {
            let page =
                store.secrets().sealed_otherwise(&key(NEW), after.as_ref(), 3).await.unwrap();
            let Some(last) = page.last().cloned() else { break };
            assert!(page.len() <= 3);
            for old in &page {
                let new = SealedSecret { key: key(NEW), sealed: "anew".to_owned(), ..old.clone() };
                let wrong = SealedSecret { sealed: "other".to_owned(), ..old.clone() };
                assert!(!store.secrets().replace(&wrong, &new).await.unwrap());
                assert!(store.secrets().replace(old, &new).await.unwrap());
                assert!(!store.secrets().replace(old, &new).await.unwrap());
                seen.push(old.sealed.clone());
            }
            after = Some(last);
        }
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), 16);
        assert_eq!(store.secrets().keys().await.unwrap(), [(key(NEW), 16)].into());
        let found = store.secrets().find(&id("team"), &name("A"), None).await.unwrap().unwrap();
        assert_eq!((found.version, &*found.sealed), (version(2), "anew"));
    }
}

/// Of several writers that add the same version, one succeeds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_several_writers_adds_the_next_version() {
    for place in Place::both() {
        let store = with_team(&place).await;
        for number in 1..=5 {
            let adding: JoinSet<_> = (0..8).map(|_| add_in_task(store.clone(), number)).collect();
            let added = adding.join_all().await;
            assert_eq!(added.iter().filter(|added| **added).count(), 1, "version {number}");
        }
    }
}

async fn add_in_task(store: Store, number: u64) -> bool {
    add(&store, &sealed("default", "A", number)).await
}

/// Rows that were written by hand are reported as damage, not misread.
#[tokio::test]
async fn values_that_break_the_rules_are_damage() {
    for place in Place::both() {
        let store = with_team(&place).await;
        assert!(add(&store, &sealed("default", "A", 1)).await);
        place.sql("UPDATE secret_versions SET key_id = 'none'").await;
        let error = store.secrets().find(&id("default"), &name("A"), None).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        let error = store.secrets().keys().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        let error = store.secrets().all(&id("default")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
    }
}

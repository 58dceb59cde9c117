//! Limits of workspaces and the calls of days.

use narthex_model::ErrorKind;
use narthex_store::{CallCount, Workspace};

use crate::support::{Place, id};

fn count(workspace: &str, day: u32, name: &str, calls: i64) -> CallCount {
    let (workspace, kind) = (id(workspace), "agent".to_owned());
    CallCount { workspace, day, kind, name: name.to_owned(), calls }
}

/// O100: counts add up over several writers and over a restart, belong to one workspace and one
/// day, and go with their workspace and their time.
#[tokio::test]
async fn o100_counts_of_days_add_up() {
    for place in Place::both() {
        let (one, other) = (place.open().await, place.open().await);
        let team = Workspace::new(id("team"), "");
        one.workspaces().create(&team).await.unwrap();
        let first = [count("default", 7, "a", 3), count("team", 7, "a", 1)];
        one.traffic().add(&first).await.unwrap();
        let gone = count("gone", 7, "a", 9);
        let second = [gone, count("default", 7, "a", 4), count("default", 8, "b", -1)];
        other.traffic().add(&second).await.unwrap();
        other.close().await;
        one.close().await;
        let store = place.open().await;
        let mut all = store.traffic().of_day(7).await.unwrap();
        all.sort_by(|a, b| a.workspace.cmp(&b.workspace));
        assert_eq!(all, [count("default", 7, "a", 7), count("team", 7, "a", 1)]);
        let there = store.traffic().of_workspace(&id("default"), 8).await.unwrap();
        assert_eq!(there, [count("default", 8, "b", -1)]);
        store.traffic().forget_before(8).await.unwrap();
        assert!(store.traffic().of_day(7).await.unwrap().is_empty());
        assert_eq!(store.traffic().of_day(8).await.unwrap().len(), 1);
        store.close().await;
    }
}

/// O100: a workspace has the limits that were stored last, and no other has them.
#[tokio::test]
async fn o100_limits_belong_to_a_workspace() {
    for place in Place::both() {
        let (store, here) = (place.open().await, id("default"));
        assert_eq!(store.traffic().limits(&here).await.unwrap(), None);
        store.traffic().set_limits(&here, "{}", "ann").await.unwrap();
        store.traffic().set_limits(&here, r#"{"calls_per_day":1}"#, "bob").await.unwrap();
        let limits = store.traffic().limits(&here).await.unwrap();
        assert_eq!(limits.as_deref(), Some(r#"{"calls_per_day":1}"#));
        assert_eq!(store.traffic().limits(&id("team")).await.unwrap(), None);
        let unknown = store.traffic().set_limits(&id("team"), "{}", "ann").await;
        assert_eq!(unknown.unwrap_err().kind(), ErrorKind::NotFound);
        store.close().await;
    }
}

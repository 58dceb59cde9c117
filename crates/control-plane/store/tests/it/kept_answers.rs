//! Answers to writes that came with an idempotency key.

use std::time::{Duration, SystemTime};

use narthex_store::{KeptAnswer, NewRequest, StatementError, Workspace};

use crate::support::{Place, id};

const MINUTE: Duration = Duration::from_mins(1);

fn new<'a>(id: &'a str, claim: &'a str, begun_at: SystemTime) -> NewRequest<'a> {
    NewRequest { id, workspace: None, claim, sealed: "asked", begun_at }
}

/// X-E105: of several daemons that begin a request, one carries it out. It is taken over when it
/// was abandoned, and then only the new owner may answer. A day later it is forgotten.
#[tokio::test]
async fn x_e105_a_request_has_one_owner() {
    for place in Place::both() {
        let store = place.open().await;
        let (rows, now) = (store.kept_answers(), SystemTime::now());
        let long_ago = now - 60 * MINUTE;
        assert!(rows.begin(new("a", "first", now - 16 * MINUTE), long_ago).await.unwrap());
        assert!(!rows.begin(new("a", "second", now), long_ago).await.unwrap());
        let found = rows.find("a").await.unwrap();
        assert_eq!(found, Some(KeptAnswer { is_done: false, sealed: "asked".to_owned() }));
        assert!(!rows.reclaim("a", "second", (now, now - 17 * MINUTE)).await.unwrap(), "too soon");
        assert!(rows.reclaim("a", "second", (now, now - 15 * MINUTE)).await.unwrap());
        assert!(!rows.finish("a", "first", "late").await.unwrap());
        rows.release("a", "first").await.unwrap();
        assert!(rows.finish("a", "second", "answered").await.unwrap());
        let found = rows.find("a").await.unwrap();
        assert_eq!(found, Some(KeptAnswer { is_done: true, sealed: "answered".to_owned() }));
        let later = now + MINUTE;
        assert!(!rows.reclaim("a", "third", (later, later)).await.unwrap(), "it is done");
        assert!(rows.begin(new("b", "one", now), long_ago).await.unwrap());
        rows.release("b", "one").await.unwrap();
        assert_eq!(rows.find("b").await.unwrap(), None);
        assert!(rows.begin(new("b", "two", later), later).await.unwrap());
        assert_eq!(rows.find("a").await.unwrap(), None, "forgotten");
        store.close().await;
    }
}

/// Answers of a workspace are removed with it.
#[tokio::test]
async fn stored_answers_are_removed_with_their_workspace() {
    for place in Place::both() {
        let store = place.open().await;
        let (rows, now, team) = (store.kept_answers(), SystemTime::now(), id("team"));
        let of_team = NewRequest { workspace: Some(&team), ..new("a", "one", now) };
        let refused = rows.begin(of_team, now).await.unwrap_err();
        assert!(matches!(refused, StatementError::OwnerMissing { .. }), "{refused:?}");
        let workspace = Workspace::new(team.clone(), "");
        store.workspaces().create(&workspace).await.unwrap();
        assert!(rows.begin(of_team, now).await.unwrap());
        assert!(store.workspaces().delete(&team, true).await.unwrap());
        assert_eq!(rows.find("a").await.unwrap(), None);
        store.close().await;
    }
}

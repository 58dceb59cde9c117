//! Tests of changes of sign-ins by other daemons on the store.

use narthex_model::{Secret, WorkspaceId};
use narthex_oauth_client::store::{GrantKey, TokenStore};

use super::{Daemon, Place, docs, facts, of_ada};
use crate::oauth::watch::Watch;

fn watch(daemon: &Daemon) -> Watch {
    let tokens = &daemon.tokens;
    Watch::new(daemon.store.clone(), tokens.early.clone(), tokens.taken.clone())
}

async fn news(watch: &mut Watch) -> Vec<GrantKey> {
    let mut news = watch.news().await.unwrap();
    news.sort();
    news
}

/// C23: a daemon finds the consents, renewals and sign-outs of others at its next poll, and those
/// that came between its first reading of a grant and its first poll.
#[tokio::test]
async fn c23_changes_by_another_daemon_are_found() {
    for place in Place::both() {
        let (one, other) = (place.daemon().await, place.daemon().await);
        let mut watch = watch(&one);
        assert_eq!(one.value(&docs()).await, None);
        let row = other.put(&docs(), "1").await;
        other.put(&of_ada(), "1").await;
        assert_eq!(news(&mut watch).await, [docs()], "one has asked for this grant alone");
        assert!(news(&mut watch).await.is_empty());
        let renewed = other.tokens.renew_grant(docs(), row.generation, Secret::new("2"), facts());
        let renewed = renewed.await.unwrap().unwrap();
        assert_eq!(news(&mut watch).await, [docs()]);
        other.tokens.note_failure(docs(), renewed.generation, facts()).await.unwrap();
        assert_eq!(news(&mut watch).await, [docs()], "its facts have changed");
        assert!(other.tokens.drop_grant(of_ada(), None).await.unwrap());
        let wiki = GrantKey { server: "wiki".to_owned(), ..docs() };
        other.put(&wiki, "1").await;
        assert_eq!(news(&mut watch).await, [of_ada(), wiki.clone()]);
        assert_eq!(news(&mut watch).await, [of_ada()], "two calls report a removal");
        // Gone and back between two polls.
        assert!(other.tokens.drop_grant(docs(), None).await.unwrap());
        other.put(&docs(), "3").await;
        assert_eq!(news(&mut watch).await, [docs()]);
        let here = WorkspaceId::default();
        other.store.oauth_grants().drop_server(&here, "wiki").await.unwrap();
        assert_eq!(news(&mut watch).await, std::slice::from_ref(&wiki));
        assert_eq!(news(&mut watch).await, [wiki]);
        other.store.oauth_grants().drop_server(&here, "wiki").await.unwrap();
        assert!(news(&mut watch).await.is_empty(), "there was nothing to drop");
        assert_eq!(one.value(&docs()).await.as_deref(), Some("3"));
    }
}

/// C29: a grant that this daemon has, and that was stored and removed between two polls, is found.
#[tokio::test]
async fn oauth_c29_a_removal_between_two_polls_is_found() {
    for place in Place::both() {
        let (one, other) = (place.daemon().await, place.daemon().await);
        let mut watch = watch(&one);
        assert!(news(&mut watch).await.is_empty());
        one.put(&of_ada(), "1").await;
        other.put(&docs(), "1").await;
        assert_eq!(one.value(&docs()).await.as_deref(), Some("1"));
        for key in [docs(), of_ada()] {
            assert!(other.tokens.drop_grant(key, None).await.unwrap());
        }
        assert_eq!(news(&mut watch).await, [docs(), of_ada()]);
        assert_eq!(news(&mut watch).await, [docs(), of_ada()], "two calls report a removal");
        assert!(news(&mut watch).await.is_empty());
    }
}

/// C23: a store that fails is read again: nothing is lost meanwhile.
#[tokio::test]
async fn c23_no_change_is_lost_while_the_store_fails() {
    let place = Place::in_a_file();
    let (one, other) = (place.daemon().await, place.daemon().await);
    let mut watch = watch(&one);
    assert!(news(&mut watch).await.is_empty());
    one.store.close().await;
    other.put(&docs(), "1").await;
    assert!(watch.news().await.is_err());
    watch.store = other.store.clone();
    assert_eq!(news(&mut watch).await, [docs()]);
}

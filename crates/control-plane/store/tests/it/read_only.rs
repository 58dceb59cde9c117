//! A look at a store sees its contents, and makes or changes nothing (R-M33).

use std::os::unix::fs::PermissionsExt;

use fs_err as fs;
use narthex_store::{OpenError, Store};

use crate::support::{Place, id};

async fn trusted(store: &Store) -> Option<String> {
    store.trusted_files().find("/a").await.unwrap().map(|trusted| trusted.sha256)
}

#[tokio::test]
async fn r_m33_opening_a_missing_store_read_only_creates_no_file() {
    let place = Place::new();
    assert!(Store::look(&place.file()).await.unwrap().is_none());
    assert!(Store::look(&place.dir().join("none/store.db")).await.unwrap().is_none());
    assert!(place.files().is_empty());
    // The file of a process that has just begun to create a store.
    fs::write(place.file(), "").unwrap();
    fs::set_permissions(place.file(), PermissionsExt::from_mode(0o600)).unwrap();
    assert!(Store::look(&place.file()).await.unwrap().is_none());
    assert_eq!(place.files(), [("store.db".to_owned(), Vec::new())].into());
}

#[tokio::test]
async fn r_m33_a_store_opened_read_only_is_not_changed() {
    let place = Place::new();
    let store = place.open().await;
    store.trusted_files().approve("/a", "01").await.unwrap();
    store.close().await;
    let before = place.files();
    let looked = Store::look(&place.file()).await.unwrap().unwrap();
    assert_eq!(trusted(&looked).await.as_deref(), Some("01"));
    looked.trusted_files().approve("/a", "02").await.unwrap_err();
    looked.server_flags().set_disabled(&id("default"), "git", true).await.unwrap_err();
    looked.close().await;
    assert!(place.files() == before, "{:?}", place.files().keys());
}

/// Changes of a running daemon are seen, though they are not yet in the main file.
#[tokio::test]
async fn r_m33_a_read_only_store_shows_changes_of_a_running_daemon() {
    let place = Place::new();
    let store = place.open().await;
    store.trusted_files().approve("/a", "01").await.unwrap();
    let before = place.files();
    let looked = Store::look(&place.file()).await.unwrap().unwrap();
    assert_eq!(trusted(&looked).await.as_deref(), Some("01"));
    store.trusted_files().approve("/a", "02").await.unwrap();
    assert_eq!(trusted(&looked).await.as_deref(), Some("02"));
    looked.close().await;
    assert!(place.files().keys().eq(before.keys()));
    store.close().await;
}

#[tokio::test]
async fn a_store_that_cannot_be_opened_read_only_names_the_reason() {
    let place = Place::new();
    place.open().await.close().await;
    let refusal = async || Store::look(&place.file()).await.unwrap_err();
    fs::set_permissions(place.file(), PermissionsExt::from_mode(0o644)).unwrap();
    assert!(matches!(refusal().await, OpenError::NotPrivate { .. }));
    fs::set_permissions(place.file(), PermissionsExt::from_mode(0o600)).unwrap();
    place.sql("PRAGMA application_id = 7").await;
    assert!(matches!(refusal().await, OpenError::Foreign { .. }));
    place.sql("PRAGMA application_id = 1852994680").await;
    place.sql("UPDATE _sqlx_migrations SET version = 99 WHERE version = 1").await;
    let error = refusal().await;
    assert!(matches!(error, OpenError::Newer { version: 99, .. }), "{error:?}");
    fs::write(place.file(), "no database ".repeat(100)).unwrap();
    assert!(matches!(refusal().await, OpenError::Damaged { .. }));
}

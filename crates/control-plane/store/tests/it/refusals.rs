//! Files that are not opened, each with its remedy, and the files' permissions.

use std::os::unix::fs::{FileExt, PermissionsExt};

use fs_err as fs;
use narthex_model::ErrorKind;
use narthex_store::{OpenError, Store};

use crate::support::{Place, id};

#[tokio::test]
async fn store_files_are_readable_only_for_their_owner() {
    let place = Place::new();
    let store = place.open().await;
    store.server_flags().set_disabled(&id("default"), "git", true).await.unwrap();
    let names = || {
        let mut names: Vec<_> = fs::read_dir(place.dir())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    assert_eq!(names(), ["store.db", "store.db-shm", "store.db-wal"]);
    for name in names() {
        assert_eq!(place.mode(&name), 0o600, "{name}");
    }
    store.close().await;
    assert_eq!(names(), ["store.db"]);
}

#[tokio::test]
async fn a_store_file_with_rights_for_other_users_is_refused() {
    let place = Place::new();
    place.open().await.close().await;
    for mode in [0o640, 0o604, 0o620] {
        fs::set_permissions(place.file(), PermissionsExt::from_mode(mode)).unwrap();
        let error = place.refusal().await;
        assert_eq!(error.kind(), ErrorKind::Denied);
        let text = error.to_string();
        assert!(text.contains(&format!("{mode:04o}")) && text.contains("chmod 600"), "{text}");
    }
    fs::set_permissions(place.file(), PermissionsExt::from_mode(0o600)).unwrap();
    place.open().await.close().await;
}

#[tokio::test]
async fn a_store_file_of_a_newer_version_is_refused_unchanged() {
    let place = Place::new();
    place.open().await.close().await;
    place
        .sql(
            "INSERT INTO _sqlx_migrations (version, description, success, checksum, \
             execution_time) VALUES (99, 'to come', TRUE, x'00', 0)",
        )
        .await;
    let before = fs::read(place.file()).unwrap();
    let error = place.refusal().await;
    assert!(matches!(error, OpenError::Newer { version: 99, .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("store.db") && text.contains("update narthex"), "{text}");
    assert_eq!(fs::read(place.file()).unwrap(), before);
}

#[tokio::test]
async fn a_file_of_an_unpublished_build_is_refused() {
    let place = Place::new();
    place.open().await.close().await;
    place.sql("UPDATE _sqlx_migrations SET checksum = x'00' WHERE version = 2").await;
    let error = place.refusal().await;
    assert!(matches!(error, OpenError::OtherBuild { version: 2, .. }), "{error:?}");
}

#[tokio::test]
async fn the_database_of_another_program_is_refused_unchanged() {
    let place = Place::new();
    place.sql("CREATE TABLE theirs (a TEXT)").await;
    fs::set_permissions(place.file(), PermissionsExt::from_mode(0o600)).unwrap();
    let before = fs::read(place.file()).unwrap();
    let error = place.refusal().await;
    assert!(matches!(error, OpenError::Foreign { .. }), "{error:?}");
    assert_eq!(fs::read(place.file()).unwrap(), before);
}

#[tokio::test]
async fn a_damaged_file_is_refused() {
    let place = Place::new();
    let store = place.open().await;
    let names: Vec<String> = (0..3_000).map(|n| format!("server-{n}")).collect();
    let names = names.iter().map(String::as_str);
    store.seeded_defaults().mark(&id("default"), names).await.unwrap();
    store.close().await;
    let whole = fs::read(place.file()).unwrap();
    for what in ["a page is overwritten", "half is missing", "it is no database"] {
        fs::write(place.file(), &whole).unwrap();
        place.open().await.close().await;
        let file = fs::OpenOptions::new().write(true).open(place.file()).unwrap();
        match what {
            "a page is overwritten" => file.file().write_all_at(&[0x5a; 4096], 20 * 4096).unwrap(),
            "half is missing" => file.set_len(whole.len() as u64 / 2).unwrap(),
            _ => file.file().write_all_at(b"this is no database, but long enough", 0).unwrap(),
        }
        drop(file);
        let error = place.refusal().await;
        assert!(matches!(error, OpenError::Damaged { .. }), "{what}: {error:?}");
        assert!(error.to_string().contains("-wal"), "{error}");
    }
}

#[tokio::test]
async fn a_missing_folder_or_a_folder_in_place_of_the_store_is_refused() {
    let place = Place::new();
    let missing = Store::open(&place.dir().join("none/store.db")).await.unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    assert!(missing.to_string().contains("none/store.db"), "{missing}");
    fs::create_dir(place.file()).unwrap();
    let error = place.refusal().await;
    assert!(matches!(error, OpenError::NoFile { .. }), "{error:?}");
}

//! Copies of stores that are in use.

use std::os::unix::fs::PermissionsExt;

use fs_err as fs;
use narthex_model::ErrorKind;
use narthex_store::{BackupError, Store, Workspace};
use tokio::task::JoinSet;

use crate::support::{Place, id};

/// A copy is the store as it was at one moment, while others write; it opens like any store.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_in_use_is_copied_whole() {
    let place = Place::new();
    let store = place.open().await;
    let mut writing = JoinSet::new();
    for writer in 0..4 {
        let store = store.clone();
        writing.spawn(async move {
            for round in 0..20 {
                let name = format!("team-{writer}-{round}");
                let team = Workspace::new(id(&name), name);
                store.workspaces().create(&team).await.unwrap();
            }
        });
    }
    let first = place.dir().join("first.db");
    let backup = store.backup(&first).await.unwrap();
    let metadata = fs::metadata(&first).unwrap();
    assert_eq!((metadata.len(), metadata.permissions().mode() & 0o777), (backup.bytes, 0o600));
    writing.join_all().await;
    let second = place.dir().join("second.db");
    // The command opens the store in this way, which creates no files.
    let looked = Store::look(&place.file()).await.unwrap().unwrap();
    looked.backup(&second).await.unwrap();
    looked.close().await;
    store.close().await;
    for (path, is_all) in [(&first, false), (&second, true)] {
        let copy = Store::open(path).await.unwrap();
        let names = copy.workspaces().all().await.unwrap();
        // A copy with one row of a writer also has all earlier rows of that writer.
        for writer in 0..4 {
            let prefix = format!("team-{writer}-");
            let count = names.iter().filter(|one| one.name.starts_with(&prefix)).count();
            assert!(!is_all || count == 20);
            for round in 0..count {
                let name = format!("{prefix}{round}");
                assert!(names.iter().any(|one| one.name == name), "{name}");
            }
        }
        copy.close().await;
    }
}

/// Existing files stay, and no part of a failed copy remains.
#[tokio::test]
async fn a_failed_backup_names_its_reason_and_leaves_no_file() {
    let place = Place::new();
    let store = place.open().await;
    let taken = place.dir().join("taken");
    fs::write(&taken, "mine").unwrap();
    let refused = store.backup(&taken).await.unwrap_err();
    assert!(matches!(refused, BackupError::Exists { .. }), "{refused:?}");
    assert_eq!(fs::read_to_string(&taken).unwrap(), "mine");
    let nowhere = place.dir().join("no-folder/copy.db");
    assert_eq!(store.backup(&nowhere).await.unwrap_err().kind(), ErrorKind::NotFound);
    store.close().await;

    let broken = Place::new();
    broken.open().await.close().await;
    let mut bytes = fs::read(broken.file()).unwrap();
    let page = 4096 * 3;
    bytes[page..page + 4096].fill(0xff);
    let looked = Store::look(&broken.file()).await.unwrap().unwrap();
    fs::write(broken.file(), bytes).unwrap();
    let copy = broken.dir().join("copy.db");
    looked.backup(&copy).await.unwrap_err();
    assert!(!copy.exists());
    looked.close().await;
}

#[tokio::test]
async fn a_backup_of_a_postgres_store_is_refused_with_pg_dump() {
    let Some(place) = Place::on_server() else { return };
    let store = place.open().await;
    let copy = place.dir().join("copy.db");
    let refused = store.backup(&copy).await.unwrap_err();
    assert!(refused.to_string().contains("pg_dump"), "{refused}");
    assert!(!copy.exists());
    store.close().await;
}

//! Tests of opening a store that need its private items.

use std::os::unix::fs::FileExt;

use super::*;

/// The search for damage ends at its limit, and the unread rest does not delay the start.
#[tokio::test]
async fn the_search_for_damage_has_a_limit() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.db");
    let Database::Sqlite(database) = open(&path).await.unwrap() else { panic!("it is a file") };
    let mut writer = database.writer(Instant::now() + OPEN_LIMIT).await.unwrap();
    let fill = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200000) \
                INSERT INTO trusted_files SELECT 'place ' || i, '', 0 FROM n";
    sqlx::query(fill).execute(&mut *writer).await.unwrap();
    drop(writer);
    database.close().await;
    let pages = fs::metadata(&path).unwrap().len() / 4096;
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.file().write_all_at(&[0x5a; 4096], (pages - 5) * 4096).unwrap();

    let database = SqliteFile::new(&path);
    let mut writer = database.writer(Instant::now() + OPEN_LIMIT).await.unwrap();
    look_for_damage(&mut writer, Duration::ZERO).await.unwrap();
    let found = look_for_damage(&mut writer, OPEN_LIMIT).await;
    assert!(matches!(found, Err(Fault::Damaged)), "{found:?}");
}

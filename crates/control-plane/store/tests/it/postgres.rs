//! Behaviour of PostgreSQL alone: refused servers and URLs, and their error texts.

use std::error::Error;

use narthex_model::{ErrorKind, Secret};
use narthex_store::{ConnectError, Store};
use narthex_testkit::postgres;

use crate::support::{Place, id, set};

/// The password of the tests' server.
const PASSWORD: &str = "pw-of-tests";

async fn refusal(url: &str) -> ConnectError {
    let error = Store::connect(&Secret::new(url)).await.unwrap_err();
    assert!(!told(&error).contains(PASSWORD), "{error:?}");
    error
}

/// All that is ever shown of an error.
fn told(error: &ConnectError) -> String {
    let mut text = format!("{error:?} {error}");
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(&format!(" {cause}"));
        source = cause.source();
    }
    text
}

/// S27: the password goes to the server and nowhere else.
#[tokio::test]
async fn s27_a_store_shows_its_place_without_the_password() {
    let Some(place) = Place::on_server() else { return };
    let store = place.open().await;
    let (_, name) = place.url().rsplit_once('/').unwrap();
    assert!(store.place().ends_with(&format!(":5432/{name}")), "{}", store.place());
    let shown = format!("{store:?} {:?} {}", store.workspaces(), store.place());
    assert!(place.url().contains(PASSWORD) && !shown.contains(PASSWORD), "{shown}");
}

#[tokio::test]
async fn a_refused_connection_is_reported_with_its_remedy() {
    let Some(place) = Place::on_server() else { return };
    let wrong = place.url().replace(PASSWORD, "pw-hunter2");
    let error = refusal(&wrong).await;
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(told(&error).contains("password is wrong"), "{}", told(&error));
    assert!(!told(&error).contains("hunter2"), "{}", told(&error));
    let missing = refusal(&format!("{}x", place.url())).await;
    assert!(told(&missing).contains("no such database"), "{}", told(&missing));
    let absent = refusal("postgres://u:pw-of-tests@%2Fnone/db").await;
    assert_eq!(absent.kind(), ErrorKind::Unavailable);
    assert!(absent.to_string().contains("/none:5432/db"), "{absent}");
    let tls = refusal(&format!("{}?sslmode=require", place.url())).await;
    assert!(told(&tls).contains("TLS"), "{}", told(&tls));
}

#[tokio::test]
async fn a_url_that_is_wrong_is_not_repeated() {
    for url in ["pw-of-tests", "mysql://u:pw-of-tests@h/n", "postgres://u:1/pw-of-tests@h/n"] {
        let error = refusal(url).await;
        assert!(matches!(error, ConnectError::Url(_)), "{error:?}");
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains("postgres://user:password@host/database"), "{error}");
    }
}

#[tokio::test]
async fn the_database_of_another_program_is_refused_unchanged() {
    let Some(place) = Place::on_server() else { return };
    place.sql("CREATE TABLE theirs (a TEXT)").await;
    let tables = "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace";
    let error = refusal(place.url()).await;
    assert!(matches!(error, ConnectError::Foreign { .. }), "{error:?}");
    assert_eq!(place.sql(tables).await, ["theirs"]);
    // A table of the same name with another mark is theirs too.
    place.sql("ALTER TABLE theirs RENAME TO narthex_store").await;
    place.sql("ALTER TABLE narthex_store DROP COLUMN a, ADD COLUMN application_id BIGINT").await;
    place.sql("INSERT INTO narthex_store VALUES (7)").await;
    let error = refusal(place.url()).await;
    assert!(matches!(error, ConnectError::Foreign { .. }), "{error:?}");
    assert_eq!(place.sql(tables).await, ["narthex_store"]);
}

#[tokio::test]
async fn a_database_of_a_newer_version_or_another_build_is_refused_unchanged() {
    let Some(place) = Place::on_server() else { return };
    place.open().await.close().await;
    let steps = "SELECT version || ' ' || encode(checksum, 'hex') FROM _sqlx_migrations \
                 ORDER BY version";
    place.sql("UPDATE _sqlx_migrations SET checksum = '\\x00' WHERE version = 2").await;
    let before = place.sql(steps).await;
    let error = refusal(place.url()).await;
    assert!(matches!(error, ConnectError::OtherBuild { version: 2, .. }), "{error:?}");
    place
        .sql(
            "INSERT INTO _sqlx_migrations (version, description, success, checksum, \
             execution_time) VALUES (99, 'to come', TRUE, '\\x00', 0)",
        )
        .await;
    let error = refusal(place.url()).await;
    assert!(matches!(error, ConnectError::Newer { version: 99, .. }), "{error:?}");
    assert!(error.to_string().contains("update narthex"), "{error}");
    place.sql("DELETE FROM _sqlx_migrations WHERE version = 99").await;
    assert_eq!(place.sql(steps).await, before);
}

/// The steps are the same texts for both databases, so their checksums are too.
#[tokio::test]
async fn both_databases_have_the_same_migrations() {
    let Some(place) = Place::on_server() else { return };
    let file = Place::new();
    place.open().await.close().await;
    file.open().await.close().await;
    let hex = |checksum: &str| format!("SELECT version || ' ' || lower({checksum})");
    let from = " FROM _sqlx_migrations ORDER BY version";
    let here = place.sql(&(hex("encode(checksum, 'hex')") + from)).await;
    let there = file.sql(&(hex("hex(checksum)") + from)).await;
    assert!(here.len() >= 4 && here == there, "{here:?} {there:?}");
}

#[tokio::test]
async fn a_database_without_utf8_is_refused() {
    let options = ["--encoding", "LATIN1", "--locale", "C"];
    let Some(database) = postgres::database(&options) else { return };
    let error = refusal(&database.url).await;
    assert!(matches!(error, ConnectError::Encoding { .. }), "{error:?}");
    assert!(error.to_string().contains("LATIN1"), "{error}");
}

async fn look(place: &Place) -> Result<Option<Store>, ConnectError> {
    Store::connect_to_look(&Secret::new(place.url())).await
}

/// R-M33: a look makes no tables and brings nothing up to date, and a looking caller cannot write.
#[tokio::test]
async fn r_m33_a_database_opened_read_only_is_not_changed() {
    let Some(place) = Place::on_server() else { return };
    assert!(look(&place).await.unwrap().is_none());
    let tables = "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace";
    assert_eq!(place.sql(tables).await, [""; 0]);
    let store = place.open().await;
    store.trusted_files().approve("/a", "01").await.unwrap();
    let steps = "SELECT CAST(version AS TEXT) FROM _sqlx_migrations ORDER BY version";
    place.sql("DELETE FROM _sqlx_migrations WHERE version > 3").await;
    let looked = look(&place).await.unwrap().unwrap();
    assert_eq!(looked.place(), store.place());
    let trusted = async || looked.trusted_files().find("/a").await.unwrap().unwrap().sha256;
    assert_eq!(trusted().await, "01");
    looked.trusted_files().approve("/a", "02").await.unwrap_err();
    looked.server_flags().set_disabled(&id("default"), "git", true).await.unwrap_err();
    assert_eq!(trusted().await, "01");
    store.trusted_files().approve("/a", "03").await.unwrap();
    assert_eq!(trusted().await, "03");
    assert_eq!(place.sql(steps).await, ["1", "2", "3"]);
    // A database from before the approvals has none to read.
    place.sql("DELETE FROM _sqlx_migrations WHERE version > 2").await;
    assert!(look(&place).await.unwrap().is_none());
}

#[tokio::test]
async fn a_database_that_cannot_be_opened_read_only_names_the_reason() {
    let Some(place) = Place::on_server() else { return };
    place.open().await.close().await;
    place.sql("UPDATE _sqlx_migrations SET version = 99 WHERE version = 1").await;
    let error = look(&place).await.unwrap_err();
    assert!(matches!(error, ConnectError::Newer { version: 99, .. }), "{error:?}");
    place.sql("UPDATE narthex_store SET application_id = 7").await;
    let error = look(&place).await.unwrap_err();
    assert!(matches!(error, ConnectError::Foreign { .. }), "{error:?}");
    place.sql("DROP TABLE narthex_store").await;
    let error = look(&place).await.unwrap_err();
    assert!(matches!(error, ConnectError::Foreign { .. }), "{error:?}");
    let wrong = Secret::new(format!("{}x", place.url()));
    let error = Store::connect_to_look(&wrong).await.unwrap_err();
    assert!(told(&error).contains("no such database"), "{}", told(&error));
}

/// An empty database that many open at once gets its tables once.
#[tokio::test]
async fn many_open_an_empty_database_at_the_same_time() {
    let Some(place) = Place::on_server() else { return };
    let url = Secret::new(place.url());
    let open = async |number: u32| {
        let store = Store::connect(&url).await.unwrap();
        let name = format!("server-{number}");
        store.server_flags().set_disabled(&id("default"), &name, true).await.unwrap();
        store.close().await;
    };
    tokio::join!(open(0), open(1), open(2), open(3), open(4), open(5), open(6), open(7));
    let store = place.open().await;
    let names = (0..8).map(|number| format!("server-{number}"));
    assert_eq!(store.server_flags().disabled(&id("default")).await.unwrap(), set(names));
}

/// A connection that was lost, as when the server restarts, is opened again.
#[tokio::test]
async fn a_lost_database_connection_is_opened_again() {
    let Some(place) = Place::on_server() else { return };
    let store = place.open().await;
    let flags = store.server_flags();
    flags.set_disabled(&id("default"), "a", true).await.unwrap();
    assert_eq!(flags.disabled(&id("default")).await.unwrap(), set(["a"]));
    let ended = "SELECT CAST(count(pg_terminate_backend(pid, 60000)) AS TEXT) \
                 FROM pg_stat_activity WHERE datname = current_database() \
                 AND pid <> pg_backend_pid()";
    let count: u32 = place.sql(ended).await[0].parse().unwrap();
    assert!(count >= 2, "one that reads and one that writes: {count}");
    flags.set_disabled(&id("default"), "b", true).await.unwrap();
    assert_eq!(flags.disabled(&id("default")).await.unwrap(), set(["a", "b"]));
}

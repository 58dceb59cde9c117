//! Deadlines, whole transactions, and what errors tell.

use super::*;

const SPIN: Statement = Statement {
    name: "test.spin",
    sql: "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
};
const MAKE: Statement =
    Statement { name: "test.make", sql: "CREATE TABLE t (name TEXT PRIMARY KEY)" };
const ADD: Statement = Statement { name: "test.add", sql: "INSERT INTO t (name) VALUES ($1)" };
const FILL: Statement = Statement {
    name: "test.fill",
    sql: "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) \
          INSERT INTO t (name) SELECT 'x' || i FROM n",
};
const COUNT: Statement = Statement { name: "test.count", sql: "SELECT count(*) AS n FROM t" };

/// A file with the table `t`.
async fn database(limit_ms: u64, busy_ms: u64) -> (tempfile::TempDir, Database) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.db");
    fs_err::write(&path, "").unwrap();
    let (limit, busy) = (Duration::from_millis(limit_ms), Duration::from_millis(busy_ms));
    let database = Database::with_limits(&path, limit, busy);
    database.write(MAKE, &[]).await.unwrap();
    (dir, database)
}

async fn count(database: &Database) -> i64 {
    database.read(COUNT, &[]).await.unwrap()[0].integer("n").unwrap()
}

/// A statement without end is stopped, and so often that it would use up all connections if it
/// kept them.
#[tokio::test]
async fn a_statement_has_a_deadline_and_gives_its_connection_back() {
    let (_dir, database) = database(300, 100).await;
    for _ in 0..=READERS_MAX {
        let error = database.read(SPIN, &[]).await.unwrap_err();
        assert!(matches!(error, StatementError::Timeout { statement: "test.spin" }), "{error:?}");
    }
    let error = database.write(FILL, &[]).await.unwrap_err();
    assert!(matches!(error, StatementError::Timeout { statement: "test.fill" }), "{error:?}");
    database.write(ADD, &[Value::Text("a")]).await.unwrap();
    assert_eq!(count(&database).await, 1);
    database.close().await;
}

#[tokio::test]
async fn a_transaction_that_is_stopped_leaves_nothing() {
    let (_dir, database) = database(300, 100).await;
    let error = database.write_each(FILL, &[vec![], vec![]]).await.unwrap_err();
    assert!(matches!(error, StatementError::Timeout { .. }), "{error:?}");
    let texts = |names: &[&'static str]| {
        names.iter().map(|name| vec![Value::Text(name)]).collect::<Vec<_>>()
    };
    let error = database.write_each(ADD, &texts(&["a", "b", "a"])).await.unwrap_err();
    assert!(matches!(error, StatementError::Exists { statement: "test.add" }), "{error:?}");
    assert_eq!(count(&database).await, 0);
    database.write_each(ADD, &texts(&["a", "b"])).await.unwrap();
    assert_eq!(count(&database).await, 2);
}

#[tokio::test]
async fn another_process_that_writes_too_long_is_named_as_the_reason() {
    let (dir, database) = database(10_000, 20).await;
    let options = SqliteConnectOptions::new().filename(dir.path().join("x.db"));
    let mut other = options.connect().await.unwrap();
    let held = sqlx::Connection::begin_with(&mut other, BEGIN).await.unwrap();
    let error = database.write(ADD, &[Value::Text("a")]).await.unwrap_err();
    assert!(matches!(error, StatementError::Busy { statement: "test.add" }), "{error:?}");
    held.rollback().await.unwrap();
    database.write(ADD, &[Value::Text("a")]).await.unwrap();
}

#[tokio::test]
async fn errors_name_the_statement_and_show_neither_sql_nor_values() {
    let (_dir, database) = database(10_000, 100).await;
    database.write(ADD, &[Value::Text("hidden")]).await.unwrap();
    let wrong = Statement { name: "test.wrong", sql: "SELECT hidden FROM t" };
    let errors = [
        database.write(ADD, &[Value::Text("hidden")]).await.unwrap_err(),
        database.write(ADD, &[Value::Text("hidden\0")]).await.unwrap_err(),
        database.read(wrong, &[]).await.unwrap_err(),
        // Whoever reads cannot write.
        database.read(ADD, &[Value::Text("hidden-too")]).await.unwrap_err(),
        {
            database.close().await;
            database.read(COUNT, &[]).await.unwrap_err()
        },
    ];
    let kinds = errors.each_ref().map(StatementError::kind);
    use narthex_model::ErrorKind::{Bug, Conflict, Invalid, Unavailable};
    assert_eq!(kinds, [Conflict, Invalid, Bug, Unavailable, Unavailable]);
    for error in errors {
        let source = std::error::Error::source(&error).map(ToString::to_string);
        let text = format!("{error} {}", source.unwrap_or_default());
        assert!(text.contains("`test."), "{text}");
        assert!(!text.contains("hidden") && !text.contains("SELECT"), "{text}");
    }
}

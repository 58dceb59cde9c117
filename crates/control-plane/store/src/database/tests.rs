//! Deadlines, whole transactions, and error texts, of both databases.

use std::str::FromStr;

use narthex_testkit::postgres as testing;
use sqlx::{ConnectOptions, Connection, postgres::PgConnectOptions, sqlite::SqliteConnectOptions};
use tempfile::TempDir;

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
const SELECT: Statement = Statement { name: "test.select", sql: "SELECT name FROM t" };
const COUNT: Statement = Statement { name: "test.count", sql: "SELECT count(*) AS n FROM t" };
const HASTE: Duration = Duration::from_millis(300);
const PATIENCE: Duration = Duration::from_secs(600);

/// A database with the table `t`.
enum Place {
    File(TempDir),
    Server(Box<PgConnectOptions>),
}

impl Place {
    /// A database of each kind.
    async fn each() -> Vec<Self> {
        let dir = tempfile::tempdir().unwrap();
        fs_err::write(dir.path().join("x.db"), "").unwrap();
        let mut places = vec![Self::File(dir)];
        let server = testing::database(&[]);
        places.extend(server.map(|database| {
            Self::Server(Box::new(PgConnectOptions::from_str(&database.url).unwrap()))
        }));
        for place in &places {
            let database = place.open(PATIENCE, PATIENCE);
            database.write(MAKE, &[]).await.unwrap();
            database.close().await;
        }
        places
    }

    fn open(&self, limit: Duration, busy: Duration) -> Database {
        match self {
            Self::File(dir) => {
                let path = dir.path().join("x.db");
                Database::Sqlite(SqliteFile::with_limits(&path, limit, busy))
            }
            Self::Server(options) => {
                Database::Postgres(PostgresServer::with_limits(options, limit, busy))
            }
        }
    }

    /// Writes in another process's stead, and does not come to an end meanwhile.
    async fn held(&self, meanwhile: impl AsyncFnOnce()) {
        match self {
            Self::File(dir) => {
                let options = SqliteConnectOptions::new().filename(dir.path().join("x.db"));
                let mut other = options.connect().await.unwrap();
                let held = other.begin_with(sqlite::BEGIN).await.unwrap();
                meanwhile().await;
                held.rollback().await.unwrap();
            }
            Self::Server(options) => {
                let mut other = options.connect().await.unwrap();
                let mut held = other.begin_with(postgres::BEGIN).await.unwrap();
                postgres::lock(&mut held).await.unwrap();
                meanwhile().await;
                held.rollback().await.unwrap();
            }
        }
    }
}

async fn count(database: &Database) -> i64 {
    database.read(COUNT, &[]).await.unwrap()[0].integer("n").unwrap()
}

/// A statement without end is stopped, and so often that it would use up all connections if it
/// kept them.
#[tokio::test]
async fn a_statement_beyond_its_deadline_is_stopped_and_frees_its_connection() {
    for place in Place::each().await {
        let hasty = place.open(HASTE, PATIENCE);
        for _ in 0..=READERS_MAX {
            let error = hasty.read(SPIN, &[]).await.unwrap_err();
            assert!(
                matches!(error, StatementError::Timeout { statement: "test.spin" }),
                "{error:?}"
            );
        }
        let error = hasty.write(FILL, &[]).await.unwrap_err();
        assert!(matches!(error, StatementError::Timeout { statement: "test.fill" }), "{error:?}");
        // On a machine that is busy, this too may take longer than it may.
        let read = async || hasty.read(COUNT, &[]).await;
        while let Err(StatementError::Timeout { .. }) = read().await {}
        while let Err(StatementError::Timeout { .. }) = hasty.write(ADD, &[Value::Text("a")]).await
        {
        }
        assert_eq!(count(&place.open(PATIENCE, PATIENCE)).await, 1);
        hasty.close().await;
    }
}

#[tokio::test]
async fn a_stopped_transaction_changes_nothing() {
    for place in Place::each().await {
        let (hasty, patient) = (place.open(HASTE, PATIENCE), place.open(PATIENCE, PATIENCE));
        let error = hasty.write_each(FILL, &[vec![], vec![]]).await.unwrap_err();
        assert!(matches!(error, StatementError::Timeout { .. }), "{error:?}");
        let texts = |names: &[&'static str]| {
            names.iter().map(|name| vec![Value::Text(name)]).collect::<Vec<_>>()
        };
        let error = patient.write_each(ADD, &texts(&["a", "b", "a"])).await.unwrap_err();
        assert!(matches!(error, StatementError::Exists { statement: "test.add" }), "{error:?}");
        assert_eq!(count(&patient).await, 0);
        patient.write_each(ADD, &texts(&["a", "b"])).await.unwrap();
        assert_eq!(count(&patient).await, 2);
    }
}

#[tokio::test]
async fn a_write_blocked_by_another_process_fails_as_busy() {
    for place in Place::each().await {
        let database = place.open(PATIENCE, Duration::from_millis(20));
        place
            .held(async || {
                let error = database.write(ADD, &[Value::Text("a")]).await.unwrap_err();
                assert!(
                    matches!(error, StatementError::Busy { statement: "test.add" }),
                    "{error:?}"
                );
                // A reader does not wait.
                assert_eq!(count(&database).await, 0);
            })
            .await;
        place.open(PATIENCE, PATIENCE).write(ADD, &[Value::Text("a")]).await.unwrap();
    }
}

#[tokio::test]
async fn errors_name_the_statement_and_show_neither_sql_nor_values() {
    for place in Place::each().await {
        let database = place.open(PATIENCE, PATIENCE);
        database.write(ADD, &[Value::Text("hidden")]).await.unwrap();
        let wrong = Statement { name: "test.wrong", sql: "SELECT hidden FROM t" };
        let errors = [
            database.write(ADD, &[Value::Text("hidden")]).await.unwrap_err(),
            database.write(ADD, &[Value::Text("hidden\0")]).await.unwrap_err(),
            database.read(wrong, &[]).await.unwrap_err(),
            // A read cannot write.
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
}

/// Statements are counted for the work that runs them, each step of a transaction on its own, and
/// those of other work are not.
#[tokio::test]
async fn statements_of_a_piece_of_work_are_counted() {
    for place in Place::each().await {
        let database = place.open(PATIENCE, PATIENCE);
        let add = |name| Step::new(ADD, vec![Value::Text(name)]);
        let work = async {
            database.read(COUNT, &[]).await.unwrap();
            database.write(ADD, &[Value::Text("a")]).await.unwrap();
            database.write_then_read(&[add("b"), add("c")], COUNT, Vec::new()).await.unwrap();
            7
        };
        let other = async { database.read(SELECT, &[]).await.unwrap() };
        let ((done, names), _) = tokio::join!(statements_of(work), other);
        assert_eq!(done, 7);
        assert_eq!(names, [COUNT, ADD, ADD, ADD, COUNT].map(|one| one.name));
        database.close().await;
    }
}

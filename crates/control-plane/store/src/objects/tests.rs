//! Rules for the SQL of every file of queries, so that a second database understands it.

use std::path::Path;

use fs_err as fs;

use super::{
    audit::{NEWER_OF_RUN, OLDER_OF_RUN},
    children::STILL,
    heartbeats::BEATING,
    resting,
    runs::{BELOW, COUNT_LIVING, PAGE_OF_SESSION},
};
use crate::{
    Store,
    statement::{Row, Statement},
};

/// Words that only SQLite has, or that it understands in its own way.
const ONLY_SQLITE: [&str; 14] = [
    "AUTOINCREMENT",
    "INSERT OR ",
    "REPLACE INTO",
    "PRAGMA",
    "WITHOUT ROWID",
    " STRICT",
    "rowid",
    "datetime(",
    "strftime(",
    "IFNULL(",
    "GLOB",
    "BLOB",
    "COLLATE NOCASE",
    "?1",
];

#[test]
fn queries_and_migrations_are_portable() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut count = 0;
    for folder in [
        "migrations",
        "src/objects",
        "src/objects/audit",
        "src/objects/runs",
        "src/objects/secrets",
    ] {
        for entry in fs::read_dir(root.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.ends_with("tests.rs") || path.is_dir() {
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            for word in ONLY_SQLITE {
                assert!(!text.contains(word), "{} has {word}", path.display());
            }
            count += 1;
        }
    }
    assert!(count >= 10, "only {count} files were found");
}

/// SQLite searches the active runs of a session by the session. By their end it would read all
/// active runs for each session.
#[tokio::test]
async fn active_runs_of_a_session_are_found_by_the_session() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("x.db")).await.unwrap();
    for statement in [STILL, BEATING, resting::OWE, resting::OWE_ALONE] {
        let (name, steps) = (statement.name, plan(&store, statement).await);
        let by = |index: &str| steps.iter().filter(|step| step.contains(index)).count();
        assert_ne!(
            by("runs_by_session_and_end (workspace=? AND session=? AND ended_at=?)"),
            0,
            "{name}: {steps:#?}"
        );
        assert_eq!(by("runs_by_end"), 0, "{name}: {steps:#?}");
    }
}

/// Statements of pages find their rows by an index that has little else, whatever the size of the
/// workspace: the events of one run, the active runs, and the runs below one and of a session.
#[tokio::test]
async fn pages_read_no_more_rows_than_they_show() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("x.db")).await.unwrap();
    let of_run = "audit_events_by_run (run=? AND happened_at>? AND happened_at<?)";
    let below = [
        "sessions_by_parent (workspace=? AND parent=?)",
        "runs_by_session_and_end (workspace=? AND session=?)",
    ];
    for (statement, indexes) in [
        (OLDER_OF_RUN, &[of_run][..]),
        (NEWER_OF_RUN, &[of_run]),
        (COUNT_LIVING, &["runs_by_end (ended_at=?)"]),
        (PAGE_OF_SESSION, &["runs_by_session_and_end (workspace=? AND session=?)"]),
        (BELOW, &below),
    ] {
        let steps = plan(&store, statement).await;
        for step in steps.iter().filter(|step| step.contains(" USING ")) {
            let is_known = indexes.iter().any(|index| step.ends_with(index));
            assert!(is_known || step.contains("TEMP B-TREE"), "{}: {steps:#?}", statement.name);
        }
        let is_used = |index: &&str| steps.iter().any(|step| step.ends_with(*index));
        assert!(indexes.iter().all(is_used), "{}: {steps:#?}", statement.name);
    }
}

/// The steps by which SQLite carries out a statement.
async fn plan(store: &Store, Statement { name, sql }: Statement) -> Vec<String> {
    let plan = format!("EXPLAIN QUERY PLAN {sql}");
    let explain = Statement { name, sql: plan.leak() };
    let rows = store.database().read(explain, &[]).await.unwrap();
    rows.iter().map(|row: &Row| row.text("detail").unwrap()).collect()
}

//! Rules for the SQL of every file of queries, so that a second database understands it.

use std::path::Path;

use fs_err as fs;

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

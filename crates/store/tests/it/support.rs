//! A folder with a store, and a way around the store into its file.

use std::{
    collections::{BTreeMap, BTreeSet},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use fs_err as fs;
use narthex_model::WorkspaceId;
use narthex_store::{OpenError, Store};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Row, sqlite::SqliteConnectOptions};
use tempfile::TempDir;

pub(crate) struct Place {
    dir: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.dir.path().join("store.db")
    }

    pub(crate) async fn open(&self) -> Store {
        Store::open(&self.file()).await.unwrap()
    }

    pub(crate) async fn refusal(&self) -> OpenError {
        Store::open(&self.file()).await.unwrap_err()
    }

    pub(crate) fn mode(&self, name: &str) -> u32 {
        fs::metadata(self.dir.path().join(name)).unwrap().permissions().mode() & 0o777
    }

    /// Every file here, by name, with its content.
    pub(crate) fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let entries = fs::read_dir(self.dir()).unwrap().map(Result::unwrap);
        let content = |entry: &fs::DirEntry| fs::read(entry.path()).unwrap();
        entries.map(|one| (one.file_name().into_string().unwrap(), content(&one))).collect()
    }

    /// Runs SQL in the file, past the store, and gives the first column of each row as text.
    pub(crate) async fn sql(&self, sql: &str) -> Vec<String> {
        let options = SqliteConnectOptions::new().filename(self.file()).create_if_missing(true);
        let mut connection = options.connect().await.unwrap();
        let sql = AssertSqlSafe(sql.to_owned());
        let rows = sqlx::raw_sql(sql).fetch_all(&mut connection).await.unwrap();
        connection.close().await.unwrap();
        rows.iter().map(|row| row.get_unchecked::<String, _>(0)).collect()
    }
}

pub(crate) fn id(text: &str) -> WorkspaceId {
    WorkspaceId::new(text).unwrap()
}

pub(crate) fn set<T: Into<String>>(names: impl IntoIterator<Item = T>) -> BTreeSet<String> {
    names.into_iter().map(Into::into).collect()
}

//! A folder with a store, or with the address of one, and a way around the store into its database.

use std::{
    collections::{BTreeMap, BTreeSet},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    str::FromStr,
};

use fs_err as fs;
use narthex_model::{Secret, WorkspaceId};
use narthex_store::{OpenError, Store};
use narthex_testkit::postgres;
use sqlx::{
    AssertSqlSafe, ConnectOptions, Connection, Row, postgres::PgConnectOptions,
    sqlite::SqliteConnectOptions,
};
use tempfile::TempDir;

/// In the folder of a store that is on a server.
const URL_FILE: &str = "store.url";

pub(crate) struct Place {
    dir: TempDir,
    url: Option<String>,
}

impl Place {
    /// For a file.
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), url: None }
    }

    /// On a PostgreSQL server, if it is installed.
    pub(crate) fn on_server() -> Option<Self> {
        let database = postgres::database(&[])?;
        let place = Self { url: Some(database.url.clone()), ..Self::new() };
        fs::write(place.dir().join(URL_FILE), database.url).unwrap();
        Some(place)
    }

    /// A place of each kind, for tests with the same result on both.
    pub(crate) fn both() -> impl Iterator<Item = Self> {
        std::iter::once(Self::new()).chain(Self::on_server()).inspect(told)
    }

    pub(crate) fn is_file(&self) -> bool {
        self.url.is_none()
    }

    pub(crate) fn url(&self) -> &str {
        self.url.as_deref().unwrap()
    }

    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.dir.path().join("store.db")
    }

    pub(crate) async fn open(&self) -> Store {
        open_in(self.dir()).await
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

    /// Runs SQL in the database, past the store, and gives the first column of each row as text.
    pub(crate) async fn sql(&self, sql: &str) -> Vec<String> {
        let sql = AssertSqlSafe(sql.to_owned());
        if let Some(url) = &self.url {
            let mut connection = PgConnectOptions::from_str(url).unwrap().connect().await.unwrap();
            let rows = sqlx::raw_sql(sql).fetch_all(&mut connection).await.unwrap();
            connection.close().await.unwrap();
            return rows.iter().map(|row| row.get_unchecked::<String, _>(0)).collect();
        }
        let options = SqliteConnectOptions::new().filename(self.file()).create_if_missing(true);
        let mut connection = options.foreign_keys(true).connect().await.unwrap();
        let rows = sqlx::raw_sql(sql).fetch_all(&mut connection).await.unwrap();
        connection.close().await.unwrap();
        rows.iter().map(|row| row.get_unchecked::<String, _>(0)).collect()
    }
}

/// Prints the kind of store for the reader of a failed test.
#[expect(clippy::print_stdout, reason = "it is shown where the test fails")]
fn told(place: &Place) {
    println!("on {}", if place.is_file() { "SQLite" } else { "PostgreSQL" });
}

/// Opens the store of a folder, wherever it is.
pub(crate) async fn open_in(dir: &Path) -> Store {
    let url = dir.join(URL_FILE);
    if url.exists() {
        let url = Secret::new(fs::read_to_string(url).unwrap());
        return Store::connect(&url).await.unwrap();
    }
    Store::open(&dir.join("store.db")).await.unwrap()
}

pub(crate) fn id(text: &str) -> WorkspaceId {
    WorkspaceId::new(text).unwrap()
}

pub(crate) fn set<T: Into<String>>(names: impl IntoIterator<Item = T>) -> BTreeSet<String> {
    names.into_iter().map(Into::into).collect()
}

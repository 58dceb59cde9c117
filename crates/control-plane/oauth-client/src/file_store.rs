//! A store in one file of mode 0600 (E31), for programs that embed the registry.
//!
//! Each step reads the file, changes it and replaces it by a rename, all under the lock of a file
//! beside it. So several processes of one user may share the file.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use narthex_model::Secret;
use narthex_private::PrivateError;
use tokio::task::spawn_blocking;

use crate::{
    options::{Clock, SystemClock},
    store::{
        AttemptRow, ClientKey, GrantFacts, GrantKey, GrantRow, LeaseOutcome, StoreFault, Stored,
        TokenStore,
    },
    tables::{Renewed, Tables},
};

/// The longest file that is read, in bytes.
const FILE_MAX: u64 = 64 * 1024 * 1024;

/// A store in one file. Clones share the file.
#[derive(Debug, Clone)]
pub struct FileStore {
    path: Arc<Path>,
}

/// The reason why the file cannot be used.
#[derive(Debug, thiserror::Error)]
enum FileFault {
    #[error("the lock of `{}` cannot be had", path.display())]
    Lock { path: PathBuf, source: std::io::Error },
    #[error(transparent)]
    File(#[from] PrivateError),
    #[error("`{}` is no file of sign-ins; move it away, and sign in anew", path.display())]
    Content { path: PathBuf },
}

impl FileStore {
    /// A store in the file at this path, which need not exist. Its folder must.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let path: PathBuf = path.into();
        Self { path: path.into() }
    }

    /// Carries out a step, and writes the file if the step changed it.
    fn step<T: Send + 'static>(
        &self,
        step: impl FnOnce(&mut Tables) -> T + Send + 'static,
    ) -> Stored<'_, T> {
        let path = Arc::clone(&self.path);
        Box::pin(async move {
            let done = spawn_blocking(move || stepped(&path, step)).await;
            let failed = |text: String| StoreFault(text.into());
            let done = done.map_err(|error| failed(error.to_string()))?;
            done.map_err(|fault| failed(narthex_model::with_causes(&fault)))
        })
    }
}

fn stepped<T>(path: &Path, step: impl FnOnce(&mut Tables) -> T) -> Result<T, FileFault> {
    let lock = narthex_private::open_or_create(&beside(path))?;
    let fault = |source| FileFault::Lock { path: path.to_owned(), source };
    // It ends when the file is closed.
    lock.file().lock().map_err(fault)?;
    let mut tables = match narthex_private::read(path, FILE_MAX) {
        Ok(bytes) => Tables::from_json(&bytes)
            .map_err(|_error| FileFault::Content { path: path.to_owned() })?,
        Err(error) if error.is_absent() => Tables::default(),
        Err(error) => return Err(error.into()),
    };
    let before = tables.to_json();
    let result = step(&mut tables);
    let after = tables.to_json();
    if after != before {
        narthex_private::replace(path, after.expose().as_bytes())?;
    }
    Ok(result)
}

/// The path of the lock.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}

fn now_s() -> u64 {
    SystemClock.now()
}

impl TokenStore for FileStore {
    fn grant(&self, key: GrantKey) -> Stored<'_, Option<GrantRow>> {
        self.step(move |tables| tables.grant(&key))
    }

    fn grants(
        &self,
        workspace: String,
        user: Option<String>,
    ) -> Stored<'_, Vec<(GrantKey, GrantFacts)>> {
        self.step(move |tables| tables.grants(&workspace, user.as_deref()))
    }

    fn put_grant(&self, key: GrantKey, value: Secret, facts: GrantFacts) -> Stored<'_, GrantRow> {
        self.step(move |tables| tables.put_grant(key, value, facts))
    }

    fn lease(&self, key: GrantKey, owner: String, lease_ms: u64) -> Stored<'_, LeaseOutcome> {
        self.step(move |tables| tables.lease(&key, owner, lease_ms, now_s().saturating_mul(1000)))
    }

    fn renew_grant(
        &self,
        key: GrantKey,
        generation: u64,
        value: Secret,
        facts: GrantFacts,
    ) -> Stored<'_, Option<GrantRow>> {
        let renewed = Renewed { generation, value, facts };
        self.step(move |tables| tables.renew_grant(&key, renewed))
    }

    fn note_failure(&self, key: GrantKey, generation: u64, facts: GrantFacts) -> Stored<'_, ()> {
        self.step(move |tables| tables.note_failure(&key, generation, facts))
    }

    fn drop_grant(&self, key: GrantKey, generation: Option<u64>) -> Stored<'_, bool> {
        self.step(move |tables| tables.drop_grant(&key, generation))
    }

    fn client(&self, key: ClientKey) -> Stored<'_, Option<Secret>> {
        self.step(move |tables| tables.client(&key))
    }

    fn put_client(
        &self,
        key: ClientKey,
        value: Secret,
        replaces: Option<Secret>,
    ) -> Stored<'_, Secret> {
        self.step(move |tables| tables.put_client(key, value, replaces.as_ref()))
    }

    fn drop_client(&self, key: ClientKey) -> Stored<'_, ()> {
        self.step(move |tables| tables.drop_client(&key))
    }

    fn put_attempt(&self, state_hash: String, attempt: AttemptRow) -> Stored<'_, ()> {
        self.step(move |tables| tables.put_attempt(state_hash, attempt, now_s()))
    }

    fn take_attempt(&self, state_hash: String) -> Stored<'_, Option<AttemptRow>> {
        self.step(move |tables| tables.take_attempt(&state_hash, now_s()))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn key() -> GrantKey {
        GrantKey { workspace: "w".to_owned(), server: "a".to_owned(), user: None }
    }

    /// E135.
    #[tokio::test]
    async fn e31_the_file_is_private_and_another_process_reads_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sign-ins.json");
        let store = FileStore::new(&path);
        assert!(store.grant(key()).await.unwrap().is_none());
        assert!(!path.exists(), "reading writes nothing");
        let facts = GrantFacts { issuer: "https://as.example".to_owned(), ..Default::default() };
        let put = store.put_grant(key(), Secret::new("s3cret"), facts.clone()).await.unwrap();
        let mode = fs_err::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600);
        let read = FileStore::new(&path).grant(key()).await.unwrap().unwrap();
        assert_eq!((read.value.expose(), read.generation), ("s3cret", put.generation));
        assert_eq!(read.facts, facts);
        assert_eq!(store.grants("w".to_owned(), None).await.unwrap(), [(key(), facts)]);
    }

    /// E135.
    #[tokio::test]
    async fn e31_a_file_that_is_none_of_ours_stays_and_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sign-ins.json");
        fs_err::write(&path, "not ours: s3cret").unwrap();
        let error = FileStore::new(&path).grant(key()).await.unwrap_err().to_string();
        assert!(error.contains("sign-ins.json") && !error.contains("s3cret"), "{error}");
        assert_eq!(fs_err::read_to_string(&path).unwrap(), "not ours: s3cret");
    }

    #[tokio::test]
    async fn oauth_c23_two_stores_of_one_file_give_one_lease() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sign-ins.json");
        let (one, other) = (FileStore::new(&path), FileStore::new(&path));
        one.put_grant(key(), Secret::new("v"), GrantFacts::default()).await.unwrap();
        let taken = one.lease(key(), "one".to_owned(), 60_000).await.unwrap();
        assert!(matches!(taken, LeaseOutcome::Taken(_)));
        let held = other.lease(key(), "other".to_owned(), 60_000).await.unwrap();
        assert!(matches!(held, LeaseOutcome::Held { .. }));
    }

    /// E136: servers that store at the same moment lose no write.
    #[tokio::test]
    async fn e136_writes_at_the_same_moment_are_all_stored() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sign-ins.json");
        let (one, other) = (FileStore::new(&path), FileStore::new(&path));
        let of = |server: String| GrantKey { server, ..key() };
        for round in 0..8 {
            let (a, b) = (of(format!("a{round}")), of(format!("b{round}")));
            let facts = GrantFacts::default;
            let (first, second) = tokio::join!(
                one.put_grant(a, Secret::new("v"), facts()),
                other.put_grant(b, Secret::new("v"), facts()),
            );
            first.unwrap();
            second.unwrap();
        }
        assert_eq!(one.grants("w".to_owned(), None).await.unwrap().len(), 16);
    }
}

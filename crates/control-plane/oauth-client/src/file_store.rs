//! A store in one file of mode 0600 (E31), for programs that embed the registry.
//!
//! Each change reads the file, changes it and replaces it by a rename, all under the lock of a file
//! beside it. So several processes of one user may share the file. A reading takes no lock: the
//! rename shows the old file or the new one. With a [`Keeper`], such as a keychain, the file is
//! sealed under its keys.

mod keys;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use narthex_model::Secret;
use narthex_private::PrivateError;
use narthex_vault::{Keeper, KeeperError, KeyCommand, Keychain, TextFault};
use tokio::task::spawn_blocking;

use self::keys::Keys;
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
/// The first line of a sealed file.
const SEALED: &[u8] = b"narthex sign-ins 1\n";
/// The place for which the content is sealed.
const PLACE: &str = "the file of sign-ins";

/// A store in one file. Clones share the file.
#[derive(Debug, Clone)]
pub struct FileStore {
    path: Arc<Path>,
    /// The keys that seal the file; without them it is JSON.
    keys: Option<Arc<Keys>>,
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
    #[error("`{}` is sealed under a key in a keychain; open it with that keychain", path.display())]
    NeedsKeys { path: PathBuf },
    #[error(
        "`{}` is sealed, and {place} has no key; add that key again, or move the file away and \
         sign in anew",
        path.display()
    )]
    NoKey { path: PathBuf, place: String },
    #[error(
        "`{}` does not open with the key of {place}; move it away, and sign in anew",
        path.display()
    )]
    Closed { path: PathBuf, place: String, source: TextFault },
    #[error(transparent)]
    Keys(#[from] KeeperError),
}

/// The content of the file.
struct Content {
    tables: Tables,
    /// True if a new file would have another form.
    is_to_be_sealed: bool,
}

impl FileStore {
    /// A store in the file at this path, which need not exist. Its folder must.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let path: PathBuf = path.into();
        Self { path: path.into(), keys: None }
    }

    /// A store in the file at this path, sealed under keys that the system's keychain has. The
    /// first write makes the key, and the keychain finds it by the path.
    ///
    /// The keychain is asked by its own program, once for each store: `secret-tool` on Linux,
    /// `security` on macOS. A file of [`Self::new`] is read, and sealed by the next write.
    ///
    /// # Errors
    /// When the keychain cannot take the path.
    pub fn in_keychain(path: impl Into<PathBuf>) -> Result<Self, StoreFault> {
        let path: PathBuf = path.into();
        let whole = std::path::absolute(&path).unwrap_or_else(|_unknown| path.clone());
        let keychain = KeyCommand::keychain(Keychain::usual(), &whole);
        let keychain = keychain.map_err(|error| fault(&error))?;
        Ok(Self::sealed(path, Arc::new(keychain)))
    }

    /// As [`Self::in_keychain`], with keys of another place.
    #[must_use]
    pub fn sealed(path: impl Into<PathBuf>, keeper: Arc<dyn Keeper>) -> Self {
        Self { keys: Some(Arc::new(Keys::of(keeper))), ..Self::new(path) }
    }

    /// Reads the file. Waits for no other reader or writer.
    fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Tables) -> T + Send + 'static,
    ) -> Stored<'_, T> {
        self.apart(move |me| Ok(look(&me.content()?.tables)))
    }

    /// Carries out a step, and writes the file if the step changed it.
    fn step<T: Send + 'static>(
        &self,
        step: impl FnOnce(&mut Tables) -> T + Send + 'static,
    ) -> Stored<'_, T> {
        self.apart(move |me| me.stepped(step))
    }

    /// Works on a thread that may block.
    fn apart<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, FileFault> + Send + 'static,
    ) -> Stored<'_, T> {
        let me = self.clone();
        Box::pin(async move {
            let done = spawn_blocking(move || work(&me)).await;
            let done = done.map_err(|error| StoreFault(error.to_string().into()))?;
            done.map_err(|error| fault(&error))
        })
    }

    fn content(&self) -> Result<Content, FileFault> {
        let path = &*self.path;
        let bytes = match narthex_private::read(path, FILE_MAX) {
            Ok(bytes) => bytes,
            Err(error) if error.is_absent() => {
                return Ok(Content { tables: Tables::default(), is_to_be_sealed: false });
            }
            Err(error) => return Err(error.into()),
        };
        let tables = |json: &[u8]| {
            Tables::from_json(json).map_err(|_error| FileFault::Content { path: path.to_owned() })
        };
        let Some(sealed) = bytes.strip_prefix(SEALED) else {
            let is_to_be_sealed = self.keys.is_some();
            return Ok(Content { tables: tables(&bytes)?, is_to_be_sealed });
        };
        let owned = || path.to_owned();
        let keys = self.keys.as_ref().ok_or_else(|| FileFault::NeedsKeys { path: owned() })?;
        let place = || keys.place();
        let ring = keys.known()?;
        let ring = ring.ok_or_else(|| FileFault::NoKey { path: owned(), place: place() })?;
        // Other bytes are no text that was sealed.
        let text = std::str::from_utf8(sealed).unwrap_or_default();
        let json = ring.open(PLACE, text.trim_end());
        let json =
            json.map_err(|source| FileFault::Closed { path: owned(), place: place(), source })?;
        Ok(Content { tables: tables(json.expose().as_bytes())?, is_to_be_sealed: false })
    }

    fn stepped<T>(&self, step: impl FnOnce(&mut Tables) -> T) -> Result<T, FileFault> {
        let path = &*self.path;
        let lock = narthex_private::open_or_create(&beside(path))?;
        let failed = |source| FileFault::Lock { path: path.to_owned(), source };
        // It ends when the file is closed.
        lock.file().lock().map_err(failed)?;
        let Content { mut tables, is_to_be_sealed } = self.content()?;
        let before = tables.to_json();
        let result = step(&mut tables);
        let after = tables.to_json();
        if after == before && !is_to_be_sealed {
            return Ok(result);
        }
        match &self.keys {
            // Under the lock, so that one process alone makes the key.
            Some(keys) => {
                let sealed = keys.known_or_new()?.seal(PLACE, &after)?;
                let text = [SEALED, sealed.as_bytes(), b"\n"].concat();
                narthex_private::replace(path, &text)?;
            }
            None => narthex_private::replace(path, after.expose().as_bytes())?,
        }
        Ok(result)
    }
}

fn fault(error: &dyn std::error::Error) -> StoreFault {
    StoreFault(narthex_model::with_causes(error).into())
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
        self.look(move |tables| tables.grant(&key))
    }

    fn grants(
        &self,
        workspace: String,
        user: Option<String>,
    ) -> Stored<'_, Vec<(GrantKey, GrantFacts)>> {
        self.look(move |tables| tables.grants(&workspace, user.as_deref()))
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
        self.look(move |tables| tables.client(&key))
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

    fn drop_attempts(&self, key: GrantKey) -> Stored<'_, ()> {
        self.step(move |tables| tables.drop_attempts(&key))
    }

    fn open_attempts(&self, workspace: String) -> Stored<'_, Vec<String>> {
        self.look(move |tables| tables.open_attempts(&workspace, now_s()))
    }

    fn take_attempt(&self, state_hash: String) -> Stored<'_, Option<AttemptRow>> {
        self.step(move |tables| tables.take_attempt(&state_hash, now_s()))
    }
}

#[cfg(test)]
mod tests;

//! The verbs that change the set: the same for files, code, REST and the command line (E4).

use super::Registry;
use crate::{
    Declared, ServerResult, VerbError,
    config::Entry,
    outcome::Awaited,
    rows::{IsRetry, Rows},
};

/// A configuration that has been applied. Its servers connect, whether or not a caller waits for
/// [`Applied::results`].
#[derive(Debug)]
pub struct Applied {
    awaited: Vec<Awaited>,
}

impl Applied {
    /// Returns one result per entry, in the order of the set. Waits until every server is ready or
    /// has failed, or is replaced by a newer configuration.
    pub async fn results(self) -> Vec<ServerResult> {
        let mut results = Vec::with_capacity(self.awaited.len());
        // The servers connect at the same time already.
        for awaited in self.awaited {
            results.push(awaited.result().await);
        }
        results
    }
}

/// A server that was enabled. It connects, whether or not a caller waits for the result.
#[derive(Debug)]
pub struct Enabling(Awaited);

impl Enabling {
    /// Waits until the server is ready or has failed.
    pub async fn result(self) -> ServerResult {
        self.0.result().await
    }
}

impl Registry {
    /// Replaces the whole set at once: new servers are added, changed ones are connected anew,
    /// equal ones stay, all others are removed (E2). Returns before any server is connected; a
    /// server that fails or hangs delays no other. Open calls finish on their own connection (E40,
    /// E41). Needs a tokio runtime; all links run on the first runtime that is used.
    ///
    /// # Errors
    /// When the registry is closed.
    pub fn apply(&self, set: Vec<Declared>) -> Result<Applied, VerbError> {
        let mut rows = self.open_rows()?;
        let awaited = rows.replace(&self.shared, set);
        self.shared.publish_rows(&mut rows);
        Ok(Applied { awaited })
    }

    /// As [`Registry::apply`], and waits for the outcome of each server.
    ///
    /// # Errors
    /// When the registry is closed.
    pub async fn apply_config(&self, set: Vec<Declared>) -> Result<Vec<ServerResult>, VerbError> {
        Ok(self.apply(set)?.results().await)
    }

    /// Adds one server, or changes the server of its name. The same configuration again changes
    /// nothing, unless the server has failed: then it is connected anew (E51).
    ///
    /// # Errors
    /// When the registry is closed.
    pub async fn add_server(&self, entry: Entry) -> Result<ServerResult, VerbError> {
        Ok(self.put(entry.into(), IsRetry::IfFailed)?.result().await)
    }

    /// Puts these entries in place of those of their names, as a change of their secrets needs it:
    /// other servers stay as they are, also failed ones. An entry whose name has no row is left
    /// out.
    ///
    /// # Errors
    /// When the registry is closed.
    pub fn replace_entries(&self, entries: Vec<Declared>) -> Result<(), VerbError> {
        let mut rows = self.open_rows()?;
        for declared in entries {
            if rows.position(declared.name()).is_some() {
                rows.put(&self.shared, declared, IsRetry::IfFailed);
            }
        }
        self.shared.publish_rows(&mut rows);
        Ok(())
    }

    /// Removes a server, after its open calls (E40). Returns `false` if no server has this name
    /// (E58). The registry also forgets that the server was disabled.
    ///
    /// # Errors
    /// When the registry is closed.
    pub fn remove_server(&self, name: &str) -> Result<bool, VerbError> {
        let mut rows = self.open_rows()?;
        rows.disabled.remove(name);
        let is_there = rows.remove(name);
        if is_there {
            self.shared.publish_rows(&mut rows);
        }
        Ok(is_there)
    }

    /// Disables a server: the server, its open calls and its streams end at once (D5). It stays
    /// off when the configuration is applied again (E57).
    ///
    /// # Errors
    /// When there is no such server, or the registry is closed.
    pub fn disable(&self, name: &str) -> Result<(), VerbError> {
        let mut rows = self.open_rows()?;
        let declared = declared(&rows, name)?;
        if rows.disabled.insert(name.to_owned()) {
            rows.put(&self.shared, declared, IsRetry::IfFailed);
            self.shared.publish_rows(&mut rows);
        }
        Ok(())
    }

    /// Enables a server again, from the same configuration. For a server that was not off, the
    /// result is its present state (E61). The server connects even if no caller waits for the
    /// result.
    ///
    /// # Errors
    /// When there is no such server, its own configuration disables it, or the registry is
    /// closed.
    pub fn enable(&self, name: &str) -> Result<Enabling, VerbError> {
        let mut rows = self.open_rows()?;
        let declared = declared(&rows, name)?;
        if let Entry::Server(definition) = &declared.entry
            && definition.is_disabled
        {
            let (name, place) = (name.to_owned(), declared.place());
            return Err(VerbError::DisabledByConfig { name, place });
        }
        let awaited = match rows.disabled.remove(name) {
            true => {
                let awaited = rows.put(&self.shared, declared, IsRetry::IfFailed);
                self.shared.publish_rows(&mut rows);
                awaited
            }
            false => {
                let index = rows.position(name);
                let slot = index.map(|index| &rows.slots[index]);
                slot.ok_or_else(|| VerbError::Unknown(name.to_owned()))?.awaited()
            }
        };
        Ok(Enabling(awaited))
    }

    /// Connects a server anew, whatever its state; open calls finish on the old connection (E47). A
    /// server that is disabled stays off.
    ///
    /// # Errors
    /// When there is no such server, its entry is faulty, or the registry is closed.
    pub async fn reconnect(&self, name: &str) -> Result<ServerResult, VerbError> {
        let declared = {
            let rows = self.open_rows()?;
            declared(&rows, name)?
        };
        if matches!(declared.entry, Entry::Fault(_)) {
            return Err(VerbError::Faulty(name.to_owned()));
        }
        Ok(self.put(declared, IsRetry::Always)?.result().await)
    }

    /// Drops a server's tokens and asks its user to sign in again. A server without sign-in, or one
    /// that is disabled, does not change (E58, E59): the result is its present state, or `None`
    /// for an unknown name.
    ///
    /// # Errors
    /// When the registry is closed.
    pub async fn reauthorize(&self, name: &str) -> Result<Option<ServerResult>, VerbError> {
        let awaited = {
            let rows = self.open_rows()?;
            rows.position(name).map(|index| rows.slots[index].awaited())
        };
        match awaited {
            Some(awaited) => Ok(Some(awaited.result().await)),
            None => Ok(None),
        }
    }

    /// The names of servers that are disabled, also of servers that are not configured now.
    #[must_use]
    pub fn disabled(&self) -> Vec<String> {
        self.shared.rows().disabled.iter().cloned().collect()
    }

    fn put(&self, declared: Declared, retry: IsRetry) -> Result<Awaited, VerbError> {
        let mut rows = self.open_rows()?;
        let awaited = rows.put(&self.shared, declared, retry);
        self.shared.publish_rows(&mut rows);
        Ok(awaited)
    }

    fn open_rows(&self) -> Result<std::sync::MutexGuard<'_, Rows>, VerbError> {
        let rows = self.shared.rows();
        if rows.is_closed { Err(VerbError::Closed) } else { Ok(rows) }
    }
}

fn declared(rows: &Rows, name: &str) -> Result<Declared, VerbError> {
    let index = rows.position(name).ok_or_else(|| VerbError::Unknown(name.to_owned()))?;
    Ok(rows.slots[index].declared.clone())
}

//! The port to the rows of sealed values, which a database stores.

use std::collections::BTreeMap;

use narthex_model::{
    ErrorKind, KeyId, SealedSecret, SecretName, SecretSummary, SecretVersion, WorkspaceId,
};

use crate::backend::BoxedFuture;

/// Future of an operation on rows.
pub type RowsResult<'a, T> = BoxedFuture<'a, Result<T, RowsError>>;

/// An error of reading or writing rows. No row was changed.
#[derive(Debug, thiserror::Error)]
#[error("the rows of secrets cannot be read or written")]
pub struct RowsError {
    /// The error's kind.
    pub kind: ErrorKind,
    /// The database's error.
    #[source]
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

/// The state of a secret's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// The last version number of the secret.
    pub last: SecretVersion,
    /// True if the secret has a value now.
    pub is_set: bool,
}

/// Stores sealed values, and their public summaries. Every change is made as a whole or not at all,
/// and is durable when the call returns.
pub trait SealedRows: Send + Sync + std::fmt::Debug {
    /// The state of a name; `None` if it never had a value, or there is no such workspace.
    fn head<'a>(
        &'a self,
        workspace: &'a WorkspaceId,
        name: &'a SecretName,
    ) -> RowsResult<'a, Option<Head>>;

    /// Adds the value that follows the last one of its name, and removes all but the `kept` newest.
    /// `false`, and nothing happens, if its number does not follow: another writer was faster.
    /// Fails with the kind `NotFound` if there is no such workspace.
    fn add<'a>(&'a self, sealed: &'a SealedSecret, by: &'a str, kept: u64) -> RowsResult<'a, bool>;

    /// The value of a version; without `version`, the newest value.
    fn find<'a>(
        &'a self,
        workspace: &'a WorkspaceId,
        name: &'a SecretName,
        version: Option<SecretVersion>,
    ) -> RowsResult<'a, Option<SealedSecret>>;

    /// Removes all values of a name, and keeps the number of the last. `false` if there were none.
    fn clear<'a>(
        &'a self,
        workspace: &'a WorkspaceId,
        name: &'a SecretName,
        by: &'a str,
    ) -> RowsResult<'a, bool>;

    /// The public summaries, by name; `None` if there is no such workspace.
    fn list<'a>(&'a self, workspace: &'a WorkspaceId)
    -> RowsResult<'a, Option<Vec<SecretSummary>>>;

    /// Number of values per sealing key, of all workspaces.
    fn keys(&self) -> RowsResult<'_, BTreeMap<KeyId, u64>>;

    /// The first `limit` values, of all workspaces, that are sealed under another key and come
    /// after `after`. Their order never changes.
    fn sealed_otherwise<'a>(
        &'a self,
        key: &'a KeyId,
        after: Option<&'a SealedSecret>,
        limit: u32,
    ) -> RowsResult<'a, Vec<SealedSecret>>;

    /// Puts one sealing in place of another of the same value. `false`, and nothing happens, if
    /// the old one is not there any more.
    fn replace<'a>(&'a self, old: &'a SealedSecret, new: &'a SealedSecret) -> RowsResult<'a, bool>;
}

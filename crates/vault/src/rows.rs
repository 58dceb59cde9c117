//! The port to whatever keeps sealed values: a database, by the hands of who assembles it.

use std::collections::BTreeMap;

use narthex_model::{
    ErrorKind, KeyId, SealedSecret, SecretName, SecretSummary, SecretVersion, WorkspaceId,
};

use crate::backend::BoxedFuture;

/// What an operation on rows answers with.
pub type RowsResult<'a, T> = BoxedFuture<'a, Result<T, RowsError>>;

/// Why rows could not be read or written. Nothing was changed.
#[derive(Debug, thiserror::Error)]
#[error("the rows of secrets cannot be read or written")]
pub struct RowsError {
    /// What kind of failure it is.
    pub kind: ErrorKind,
    /// What the database said.
    #[source]
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

/// How the values of a name stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// The last number that was given to a value.
    pub last: SecretVersion,
    /// Whether there is a value now.
    pub is_set: bool,
}

/// Keeps sealed values, and what may be told of them. Every change is whole or has not happened,
/// and is stored for good when it returns.
pub trait SealedRows: Send + Sync + std::fmt::Debug {
    /// How a name stands; `None` if it never had a value, or there is no such workspace.
    fn head<'a>(
        &'a self,
        workspace: &'a WorkspaceId,
        name: &'a SecretName,
    ) -> RowsResult<'a, Option<Head>>;

    /// Adds the value that follows the last one of its name, and removes all but the `kept`
    /// newest. `false`, and nothing happens, if its number does not follow: somebody was faster.
    /// Fails with the kind `NotFound` if there is no such workspace.
    fn add<'a>(&'a self, sealed: &'a SealedSecret, by: &'a str, kept: u64) -> RowsResult<'a, bool>;

    /// One value, or the newest.
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

    /// What may be told, by name; `None` if there is no such workspace.
    fn list<'a>(&'a self, workspace: &'a WorkspaceId)
    -> RowsResult<'a, Option<Vec<SecretSummary>>>;

    /// How many values, of all workspaces, are sealed under each key.
    fn keys(&self) -> RowsResult<'_, BTreeMap<KeyId, u64>>;

    /// Values of all workspaces that are sealed under another key than this one: the first `limit`
    /// of those that come after a place, in an order that stays the same.
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

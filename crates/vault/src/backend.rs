//! What keeps secrets, seen from above: values go in and come out by reference.

use std::pin::Pin;

use narthex_model::{
    KeyId, Secret, SecretName, SecretReference, SecretSummary, SecretVersion, WorkspaceId,
};

use crate::VaultError;

pub(crate) type BoxedFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What an operation of a backend answers with.
pub type Doing<'a, T> = BoxedFuture<'a, Result<T, VaultError>>;

/// A value to be kept.
#[derive(Debug, Clone, Copy)]
pub struct Put<'a> {
    pub workspace: &'a WorkspaceId,
    pub name: &'a SecretName,
    pub value: &'a Secret,
    /// Who sets it, for [`SecretSummary::updated_by`].
    pub by: &'a str,
}

/// What became of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stored {
    /// Its number.
    pub version: SecretVersion,
    /// Whether there was a value before.
    pub was_set: bool,
}

/// A value that came out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    pub value: Secret,
    /// Which value it is: whoever is to see the same one later pins this.
    pub version: SecretVersion,
}

/// What a change of the master key did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rotation {
    /// The key that seals now.
    pub key: KeyId,
    /// Whether it ended what an earlier one had begun.
    pub is_resumed: bool,
    /// How many values it sealed anew.
    pub resealed: u64,
    /// The keys that open nothing any more and were forgotten.
    pub dropped: Vec<KeyId>,
    /// Those that a person has to remove where they are kept.
    pub unused: Vec<KeyId>,
}

/// What a key makes of a text that it vouches for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Voucher {
    /// The key.
    pub key: KeyId,
    /// Its mark of the text.
    pub mark: String,
}

/// Keeps secrets. An implementation decides how and where: sealed in a database, as objects of a
/// cluster, in a vault of somebody else's.
pub trait Backend: Send + Sync + std::fmt::Debug {
    /// All secrets of a workspace that ever were set, by name; never a value.
    fn list<'a>(&'a self, workspace: &'a WorkspaceId) -> Doing<'a, Vec<SecretSummary>>;

    /// Adds a value, which is the newest from now on. Earlier ones are kept for who has pinned
    /// them, up to [`VERSIONS_KEPT`](crate::VERSIONS_KEPT) in all.
    fn put<'a>(&'a self, put: Put<'a>) -> Doing<'a, Stored>;

    /// The value that a reference names.
    fn open<'a>(
        &'a self,
        workspace: &'a WorkspaceId,
        reference: &'a SecretReference,
    ) -> Doing<'a, Opened>;

    /// Removes all values of a name, pinned ones too; its later values get further numbers.
    fn clear<'a>(
        &'a self,
        workspace: &'a WorkspaceId,
        name: &'a SecretName,
        by: &'a str,
    ) -> Doing<'a, ()>;

    /// Changes the master key and seals everything under the new one, or ends what was begun.
    fn rotate_key(&self) -> Doing<'_, Rotation>;

    /// Marks a text, so that it is known again as ours.
    fn vouch<'a>(&'a self, text: &'a str) -> Doing<'a, Voucher>;

    /// Whether a mark is of this text; `None` if its key is not there any more.
    fn vouches<'a>(&'a self, text: &'a str, voucher: &'a Voucher) -> Doing<'a, Option<bool>>;
}

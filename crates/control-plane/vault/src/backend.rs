//! The interface of a store for secrets: values are stored, and opened by reference.

use std::pin::Pin;

use narthex_model::{
    KeyId, Secret, SecretName, SecretReference, SecretSummary, SecretVersion, WorkspaceId,
};

use crate::VaultError;

pub(crate) type BoxedFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Future of a backend's operation.
pub type Doing<'a, T> = BoxedFuture<'a, Result<T, VaultError>>;

/// A value to be stored.
#[derive(Debug, Clone, Copy)]
pub struct Put<'a> {
    pub workspace: &'a WorkspaceId,
    pub name: &'a SecretName,
    pub value: &'a Secret,
    /// The principal who sets the value, for [`SecretSummary::updated_by`].
    pub by: &'a str,
}

/// The result of storing a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stored {
    /// Version of the value.
    pub version: SecretVersion,
    /// True if the secret had a value before.
    pub was_set: bool,
}

/// An opened value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    pub value: Secret,
    /// The version of the value. A caller that pins this version gets the same value later.
    pub version: SecretVersion,
}

/// The result of a change of the master key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rotation {
    /// Id of the key that seals now.
    pub key: KeyId,
    /// True if the call completed a rotation that an earlier call had started.
    pub is_resumed: bool,
    /// Number of values that the call sealed anew.
    pub resealed: u64,
    /// Ids of the removed keys, which no value needs any more.
    pub dropped: Vec<KeyId>,
    /// Unused keys that a person has to remove from their keychain, file or variable.
    pub unused: Vec<KeyId>,
}

/// The master keys of a backend, without their bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeysInUse {
    /// The place of the ring, for people.
    pub place: String,
    /// True if the backend can change the key by itself.
    pub is_ours: bool,
    /// The keys; the first one seals.
    pub keys: Vec<KeyInUse>,
}

/// A master key, without its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyInUse {
    /// The key's id.
    pub id: KeyId,
    /// Number of stored values that are sealed under the key.
    pub values: u64,
}

/// A mark by which a key vouches for a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Voucher {
    /// Id of the key.
    pub key: KeyId,
    /// The key's mark of the text.
    pub mark: String,
}

/// Stores secrets. An implementation decides how and where: sealed in a database, as objects of a
/// cluster, or in the vault of another product.
pub trait Backend: Send + Sync + std::fmt::Debug {
    /// All secrets of a workspace that ever were set, by name; never a value.
    fn list<'a>(&'a self, workspace: &'a WorkspaceId) -> Doing<'a, Vec<SecretSummary>>;

    /// Adds a value, which is the newest from now on. Earlier ones are stored for runs that have
    /// pinned them, up to [`VERSIONS_KEPT`](crate::VERSIONS_KEPT) in all.
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

    /// Changes the master key and seals everything under the new one, or completes an earlier
    /// change.
    fn rotate_key(&self) -> Doing<'_, Rotation>;

    /// The master keys, and the number of values that each seals.
    fn keys(&self) -> Doing<'_, KeysInUse>;

    /// Marks a text, so that the backend recognizes it later.
    fn vouch<'a>(&'a self, text: &'a str) -> Doing<'a, Voucher>;

    /// True if a mark is of this text; `None` if its key is not there any more.
    fn vouches<'a>(&'a self, text: &'a str, voucher: &'a Voucher) -> Doing<'a, Option<bool>>;
}

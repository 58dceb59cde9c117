//! Errors of the vault. None of them shows a value or a key.

use narthex_model::{ErrorKind, KeyId, SecretName, SecretVersion, WorkspaceId, command::narthex};

use crate::{KeeperError, KeyFault, RowsError};

/// An error of the vault: the requested operation was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    /// The value is empty. To clear a secret is another operation.
    #[error(
        "the value of a secret cannot be empty; `{command}` removes a value",
        command = narthex("secrets clear NAME", &[])
    )]
    EmptyValue,
    /// The value is longer than a variable of a process can be.
    #[error("the value of a secret can have at most {most} bytes")]
    LongValue {
        /// Maximum length in bytes.
        most: usize,
    },
    /// The value has a zero byte, which neither a variable nor a header can carry.
    #[error("the value of a secret cannot hold a zero byte")]
    ZeroByte,
    /// The name is reserved for the vault itself.
    #[error("the name `{0}` is reserved for narthex; choose another")]
    Reserved(SecretName),
    /// The workspace does not exist.
    #[error(
        "there is no workspace `{0}`; `{command}` lists yours",
        command = narthex("workspaces list", &[])
    )]
    UnknownWorkspace(WorkspaceId),
    /// The secret has no value.
    #[error(
        "secret `{0}` is not set; set it with `{command}`",
        command = narthex("secrets set {}", &[.0])
    )]
    NotSet(SecretName),
    /// The secret has no value to clear.
    #[error(
        "secret `{0}` is not set, so there is nothing to clear; `{command}` lists the secrets that \
         are set",
        command = narthex("secrets list", &[])
    )]
    NothingToClear(SecretName),
    /// The secret has values, but no longer this one.
    #[error("version {version} of secret `{name}` is not stored any more; start a new run")]
    VersionGone {
        /// The secret.
        name: SecretName,
        /// The version of its value.
        version: SecretVersion,
    },
    /// The row was changed, or moved from its place.
    #[error(
        "version {version} of secret `{name}` in workspace `{workspace}` cannot be decrypted: it \
         was changed or moved in the store; set the secret again with `{set}`, or clear it with \
         `{clear}`",
        set = narthex("secrets set {}", &[.name]).in_workspace(.workspace),
        clear = narthex("secrets clear {}", &[.name]).in_workspace(.workspace)
    )]
    Damaged {
        /// The workspace of the row.
        workspace: WorkspaceId,
        /// The secret.
        name: SecretName,
        /// The version of its value.
        version: SecretVersion,
    },
    /// The document was changed, or moved from its place.
    #[error(
        "the stored data of {place} in workspace `{workspace}` cannot be decrypted: it was changed \
         or moved in the store"
    )]
    DocumentDamaged {
        /// The workspace of the document.
        workspace: WorkspaceId,
        /// The place of the document.
        place: String,
    },
    /// The key ring lacks keys that are in use.
    #[error(
        "{} sealed with the master key {}, which {place} does not have; add that key again",
        said(*.count, "value of a secret is", "values of secrets are"),
        list(.keys)
    )]
    KeysMissing {
        /// The missing keys.
        keys: Vec<KeyId>,
        /// Number of values that need these keys.
        count: u64,
        /// The place of the key ring.
        place: String,
    },
    /// There is no key ring, and values need one.
    #[error(
        "{} sealed with the master key {}, and {absent}",
        said(*.count, "value of a secret is", "values of secrets are"),
        list(.keys)
    )]
    KeysAbsent {
        /// The keys that are needed.
        keys: Vec<KeyId>,
        /// Number of values that need these keys.
        count: u64,
        /// The lack of a ring, and the remedy: see [`Keeper::absent`](crate::Keeper::absent).
        absent: String,
    },
    /// The key ring cannot be read or written.
    #[error(transparent)]
    Keeper(#[from] KeeperError),
    /// The source of keys has no new key for a rotation.
    #[error(
        "{place} has only one key; put a new key in front of it (`openssl rand -hex 32`, a comma, \
         the old key), restart the daemon, then rotate again"
    )]
    NoNewKey {
        /// The source of the keys.
        place: String,
    },
    /// The key ring is full.
    #[error("the key ring is full")]
    Ring(#[source] KeyFault),
    /// Another rotation runs.
    #[error("another change of the master key is running; wait for its end")]
    RotationRuns,
    /// Some values do not open. All other values are sealed anew, and the old keys stay.
    #[error(
        "{} the old keys in use, the first of them {first}; clear such secrets or set them again, \
         then rotate again",
        said(*.count, "value cannot be decrypted and so keeps", "values cannot be decrypted and so \
                                                                 keep")
    )]
    Stuck {
        /// Number of values that do not open.
        count: u64,
        /// Workspace, name and version of the first of them.
        first: String,
    },
    /// Other writers kept changing the same secret.
    #[error("secret `{0}` was changed by others at the same time; try again")]
    Contended(SecretName),
    /// The database failed.
    #[error(transparent)]
    Rows(#[from] RowsError),
    /// The operating system gives no random bytes.
    #[error("the operating system gives no random bytes")]
    Randomness(#[source] getrandom::Error),
    /// A fault of narthex.
    #[error("a task of the vault failed; check the daemon's log, then try again")]
    Bug(#[source] tokio::task::JoinError),
}

impl VaultError {
    /// Returns the error's kind (D24).
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::EmptyValue | Self::LongValue { .. } | Self::ZeroByte | Self::Reserved(_) => {
                ErrorKind::Invalid
            }
            Self::UnknownWorkspace(_)
            | Self::NotSet(_)
            | Self::NothingToClear(_)
            | Self::VersionGone { .. } => ErrorKind::NotFound,
            Self::NoNewKey { .. }
            | Self::RotationRuns
            | Self::Stuck { .. }
            | Self::Contended(_) => ErrorKind::Conflict,
            Self::Damaged { .. }
            | Self::DocumentDamaged { .. }
            | Self::KeysMissing { .. }
            | Self::KeysAbsent { .. }
            | Self::Randomness(_) => ErrorKind::Unavailable,
            Self::Ring(_) => ErrorKind::Exhausted,
            Self::Keeper(error) => error.kind(),
            Self::Rows(error) => error.kind,
            Self::Bug(_) => ErrorKind::Bug,
        }
    }
}

/// Joins a count with the words for one, or for many.
fn said(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

fn list(keys: &[KeyId]) -> String {
    keys.iter().map(KeyId::as_str).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_keys_are_named_in_errors() {
        let id = |text: &str| KeyId::new(text).unwrap();
        let keys = vec![id("34ee1ed132cdd22a"), id("0000000000000001")];
        let place = "the key file /x".to_owned();
        assert_eq!(
            VaultError::KeysMissing { keys, count: 2, place }.to_string(),
            "2 values of secrets are sealed with the master key 34ee1ed132cdd22a, \
             0000000000000001, which the key file /x does not have; add that key again"
        );
        let (keys, absent) =
            (vec![id("34ee1ed132cdd22a")], "the key file /x does not exist".into());
        assert_eq!(
            VaultError::KeysAbsent { keys, count: 1, absent }.to_string(),
            "1 value of a secret is sealed with the master key 34ee1ed132cdd22a, and the key file \
             /x does not exist"
        );
        let stuck = VaultError::Stuck { count: 1, first: "version 1 of `A` in `w`".to_owned() };
        let text = stuck.to_string();
        assert!(
            text.starts_with("1 value cannot be decrypted and so keeps the old keys"),
            "{text}"
        );
    }
}

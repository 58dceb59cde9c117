//! Secrets at rest: sealed under master keys, opened by reference, sealed anew while in use.
//!
//! * [`Vault`] is the handle for other crates. It checks values and passes them to a [`Backend`].
//! * [`SealedBackend`] is narthex's own backend: AES-256-GCM under the keys of a [`KeyRing`], over
//!   [`SealedRows`], which a database stores. A sealed value opens only as the same version of the
//!   same name in the same workspace.
//! * Whole texts are sealed for one place by [`Vault::seal_document`], and without a database by
//!   [`KeyRing::seal`].
//! * [`Keeper`] is the place of the key ring: a [`KeyFile`], a [`KeyCommand`] for a keychain, or
//!   [`GivenKeys`] of the environment.
//!
//! A value is a `model::Secret` from end to end, and no error repeats one. This crate knows no
//! database and decides about no permission.

mod backend;
mod document;
mod error;
mod keeper;
mod key;
mod mark;
mod ring;
mod rows;
mod seal;
mod sealed;
mod text;
mod vault;

pub use backend::{Backend, Doing, KeyInUse, KeysInUse, Opened, Put, Rotation, Stored, Voucher};
pub use error::VaultError;
pub use keeper::{CommandFault, GivenKeys, Keeper, KeeperError, KeyCommand, KeyFile, Keychain};
pub use key::{KeyFault, MasterKey};
pub use ring::KeyRing;
pub use rows::{Head, RowsError, RowsResult, SealedRows};
pub use sealed::SealedBackend;
pub use text::TextFault;
pub use vault::{VALUE_MAX, VERSIONS_KEPT, Vault};

//! Places for the key ring: a keychain, a file of its own, or the environment.

mod command;
mod file;

use std::{io, path::PathBuf};

use narthex_model::{
    ErrorKind,
    command::{narthex, quoted},
};

pub use command::{CommandFault, KeyCommand, Keychain};
pub use file::KeyFile;

use crate::{KeyFault, KeyRing};

/// Stores the key ring. Methods may block: they read and write files, and wait for programs.
pub trait Keeper: Send + Sync + std::fmt::Debug {
    /// The place of the ring, for messages.
    fn place(&self) -> String;

    /// The end of a message for a ring that is not there although values need it, with the remedy.
    fn absent(&self) -> String {
        format!("{} has no key; add that key again", self.place())
    }

    /// True if [`Keeper::create`] and [`Keeper::replace`] work.
    fn is_ours(&self) -> bool;

    /// Returns the stored ring; `None` if there is none yet.
    ///
    /// # Errors
    /// When the ring cannot be used.
    fn load(&self) -> Result<Option<KeyRing>, KeeperError>;

    /// Makes a ring of one new key; returns the ring that another process made meanwhile, if so.
    ///
    /// # Errors
    /// When the ring cannot be stored.
    fn create(&self) -> Result<KeyRing, KeeperError>;

    /// Replaces the stored ring as a whole; the new ring is durable when the call returns.
    ///
    /// # Errors
    /// When the ring cannot be stored: the old ring stays.
    fn replace(&self, ring: &KeyRing) -> Result<(), KeeperError>;
}

/// The reason why a key ring cannot be read or stored.
#[derive(Debug, thiserror::Error)]
pub enum KeeperError {
    /// The text is no valid key ring.
    #[error("{place} has no valid master keys: {fault}; write the right keys there")]
    Content {
        /// The place.
        place: String,
        /// The fault; never a part of the text.
        fault: KeyFault,
    },
    /// The path is a link, a folder, a device or the like.
    #[error(
        "the key file {} is not a regular file; move it away with `mv -n '{}' '{}.old'`",
        .0.display(), .0.display(), .0.display()
    )]
    NoFile(PathBuf),
    /// Other users can read or change the file.
    #[error(
        "the key file {0} has the mode {mode:04o}, so others may have read it; make it private \
         with `chmod 600 {1}`, then change the key with `{2}`",
        .path.display(),
        quoted(&.path.to_string_lossy()),
        narthex("secrets rotate-key", &[])
    )]
    NotPrivate {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// The file belongs to another user.
    #[error(
        "the key file {} belongs to another user; make it your own with chown, or name another \
         folder with --data",
        .0.display()
    )]
    OtherUser(PathBuf),
    /// The system does not read or write the file.
    #[error("the key file {} cannot be read or written; check its folder", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The program for a keychain has failed.
    #[error("{place} cannot be used: {fault}; {remedy}")]
    Command {
        /// The place.
        place: String,
        /// The fault.
        #[source]
        fault: CommandFault,
        /// The remedy for the user.
        remedy: &'static str,
    },
    /// The keychain cannot store the path, by which it would find the ring.
    #[error(
        "the keychain cannot store the path of the data directory {}; name a directory with a \
         plain text path with --data", .0.display()
    )]
    KeychainPath(PathBuf),
    /// The operating system gives no random bytes for a key.
    #[error("the operating system gives no random bytes")]
    Randomness(#[source] getrandom::Error),
    /// The keys are given from outside, and cannot be changed here.
    #[error("{place} is set outside of narthex; change it there")]
    NotOurs {
        /// The place.
        place: String,
    },
}

impl KeeperError {
    /// Returns the error's kind (D24).
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Content { .. } | Self::NoFile(_) | Self::KeychainPath(_) => ErrorKind::Invalid,
            Self::Command { fault: CommandFault::Long { .. } | CommandFault::Text, .. } => {
                ErrorKind::Invalid
            }
            Self::Command { .. } => ErrorKind::Unavailable,
            Self::NotPrivate { .. } | Self::OtherUser(_) => ErrorKind::Denied,
            Self::File { source, .. } => match source.kind() {
                io::ErrorKind::PermissionDenied => ErrorKind::Denied,
                io::ErrorKind::NotFound => ErrorKind::NotFound,
                _ => ErrorKind::Unavailable,
            },
            Self::Randomness(_) => ErrorKind::Unavailable,
            Self::NotOurs { .. } => ErrorKind::Conflict,
        }
    }
}

/// Keys from a variable: the first seals, the others only open.
#[derive(Debug)]
pub struct GivenKeys {
    place: String,
    ring: KeyRing,
}

impl GivenKeys {
    /// Reads the value of a variable.
    ///
    /// # Errors
    /// When the variable has no key, or another text.
    pub fn new(variable: &str, value: &str) -> Result<Self, KeeperError> {
        let place = format!("the variable {variable}");
        match KeyRing::parse(value) {
            Ok(ring) => Ok(Self { place, ring }),
            Err(fault) => Err(KeeperError::Content { place, fault }),
        }
    }
}

impl Keeper for GivenKeys {
    fn place(&self) -> String {
        self.place.clone()
    }

    fn is_ours(&self) -> bool {
        false
    }

    fn load(&self) -> Result<Option<KeyRing>, KeeperError> {
        Ok(Some(self.ring.clone()))
    }

    fn create(&self) -> Result<KeyRing, KeeperError> {
        Err(KeeperError::NotOurs { place: self.place() })
    }

    fn replace(&self, _ring: &KeyRing) -> Result<(), KeeperError> {
        Err(KeeperError::NotOurs { place: self.place() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_of_a_key_file_error_is_that_of_the_system() {
        for (system, kind) in [
            (io::ErrorKind::PermissionDenied, ErrorKind::Denied),
            (io::ErrorKind::NotFound, ErrorKind::NotFound),
            (io::ErrorKind::StorageFull, ErrorKind::Unavailable),
        ] {
            let error = KeeperError::File { path: "/x".into(), source: system.into() };
            assert_eq!(error.kind(), kind, "{system}");
        }
    }
}

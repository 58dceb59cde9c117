//! Errors of certificates, each with its file and its remedy.

use std::{io, path::PathBuf};

use narthex_model::{ErrorKind, Timestamp};
use narthex_private::PrivateError;

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error(
        "the {what} file cannot be read: {cause}; check its path and mode, or name another with \
         {flag}"
    )]
    Unreadable {
        /// `certificate` or `key`.
        what: &'static str,
        /// The file, and the answer of the system.
        cause: io::Error,
        /// The flag that names another file.
        flag: &'static str,
    },
    /// Another user may have written a file, or read the key that narthex has made.
    #[error(transparent)]
    Private(#[from] PrivateError),
    /// The file has no certificate.
    #[error(
        "`{}` holds no certificate in PEM; name a file that begins with `-----BEGIN \
         CERTIFICATE-----` with --tls-cert",
        path.display()
    )]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// A certificate of the file is damaged, or of a kind that TLS cannot use.
    #[error(
        "the certificate in `{}` cannot be used: {reason}; name another with --tls-cert",
        path.display()
    )]
    Certificate {
        /// The file.
        path: PathBuf,
        /// The library's words.
        reason: String,
    },
    /// The file has no key.
    #[error(
        "`{}` holds no private key in PEM without a passphrase; name another with --tls-key, or \
         remove the passphrase with `openssl pkey`",
        path.display()
    )]
    NoKey {
        /// The file.
        path: PathBuf,
    },
    /// The key is damaged or of an unknown kind.
    #[error(
        "the key in `{}` cannot be used: {reason}; name an RSA, ECDSA or Ed25519 key with \
         --tls-key",
        path.display()
    )]
    Key {
        /// The file.
        path: PathBuf,
        /// The library's words.
        reason: String,
    },
    /// The key is another certificate's.
    #[error(
        "the key in `{}` does not belong to the first certificate in `{}`; name the key of that \
         certificate with --tls-key, and put the server's own certificate first",
        key.display(), certificate.display()
    )]
    Mismatch {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of the key.
        key: PathBuf,
    },
    /// The certificate's time is over.
    #[error(
        "the certificate in `{}` expired at {at}; renew it, or name another with --tls-cert",
        path.display()
    )]
    Expired {
        /// The file.
        path: PathBuf,
        /// Its end.
        at: Timestamp,
    },
    /// The certificate's time has not begun.
    #[error(
        "the certificate in `{}` is not valid before {at}; check this machine's clock, or name \
         another with --tls-cert",
        path.display()
    )]
    NotYet {
        /// The file.
        path: PathBuf,
        /// Its beginning.
        at: Timestamp,
    },
    /// No self-signed certificate can be made.
    #[error("no self-signed certificate can be made for {names}: {reason}")]
    Made {
        /// The wanted names.
        names: String,
        /// The library's words.
        reason: String,
    },
    /// The library refuses its own defaults.
    #[error("TLS cannot be set up: {reason}")]
    Library {
        /// The library's words.
        reason: String,
    },
}

impl TlsError {
    /// The kind of the failure.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Unreadable { cause, .. } => match cause.kind() {
                io::ErrorKind::NotFound => ErrorKind::NotFound,
                io::ErrorKind::PermissionDenied => ErrorKind::Denied,
                _ => ErrorKind::Unavailable,
            },
            Self::Private(PrivateError::Io(_)) | Self::Made { .. } => ErrorKind::Unavailable,
            Self::Private(_) => ErrorKind::Denied,
            Self::NoCertificate { .. }
            | Self::Certificate { .. }
            | Self::NoKey { .. }
            | Self::Key { .. }
            | Self::Mismatch { .. }
            | Self::Expired { .. }
            | Self::NotYet { .. } => ErrorKind::Invalid,
            Self::Library { .. } => ErrorKind::Bug,
        }
    }
}

//! A certificate and its key in two files of the operator.

use std::{
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::SystemTime,
};

use fs_err as fs;
use narthex_model::Secret;

use crate::{Identity, TlsError, identity::Pair};

/// The bit of a mode by which every user may read.
const READABLE: u32 = 0o004;

/// The files of a certificate chain and its key, both in PEM.
#[derive(Debug, Clone)]
pub struct PairFiles {
    /// The server's certificate, and after it those of its issuers.
    pub certificate: PathBuf,
    /// The key of the first certificate.
    pub key: PathBuf,
}

/// The state of two files, to tell if one of them was changed or replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stamp([Option<Content>; 2]);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Content {
    inode: (u64, u64),
    length: u64,
    changed: (i64, i64),
}

impl PairFiles {
    /// Reads the files, and checks that they can be used at this time.
    pub(crate) fn load(&self, now: SystemTime) -> Result<Identity, TlsError> {
        let certificate = read("certificate", &self.certificate, "--tls-cert")?;
        let key = read("key", &self.key, "--tls-key")?;
        let pair = Pair {
            certificate: certificate.expose().as_bytes(),
            certificate_file: &self.certificate,
            key: key.expose().as_bytes(),
            key_file: &self.key,
        };
        Identity::read(&pair, now)
    }

    /// The warning of a key that every user of the machine can read.
    pub(crate) fn warning(&self) -> Option<String> {
        let mode = fs::metadata(&self.key).ok()?.mode() & 0o7777;
        (mode & READABLE != 0).then(|| {
            let path = std::path::absolute(&self.key).unwrap_or_else(|_| self.key.clone());
            let shown = path.display().to_string();
            let pasted = shown.replace('\'', r"'\''");
            format!(
                "the key file `{shown}` has the mode {mode:04o}, so every user of this machine can \
                 read the key; make it private with `chmod 600 '{pasted}'`"
            )
        })
    }

    /// The present state of the files, wherever links lead.
    pub(crate) fn stamp(&self) -> Stamp {
        Stamp([&self.certificate, &self.key].map(|path| {
            let found = fs::metadata(path).ok()?;
            Some(Content {
                inode: (found.dev(), found.ino()),
                length: found.len(),
                changed: (found.ctime(), found.ctime_nsec()),
            })
        }))
    }
}

/// Reads a text file that no other user can have written.
fn read(what: &'static str, path: &Path, flag: &'static str) -> Result<Secret, TlsError> {
    narthex_private::check_named(path)?;
    let text = fs::read_to_string(path);
    text.map(Secret::new).map_err(|cause| TlsError::Unreadable { what, cause, flag })
}

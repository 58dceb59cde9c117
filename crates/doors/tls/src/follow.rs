//! Follows the source of the door's certificate while the daemon runs.

use std::time::{Duration, SystemTime};

use tokio::{sync::Notify, time::interval};

use crate::{Identity, PairFiles, SelfSigned, ServerTls, TlsError, files::Stamp};

/// The time between two looks at the files. Files that change are read when they are the same at
/// two looks, since a certificate and its key are replaced one after the other.
const LOOK: Duration = Duration::from_secs(5);

/// The source of the door's certificate.
#[derive(Debug, Clone)]
pub enum Source {
    /// Files of the operator.
    Files(PairFiles),
    /// A certificate that narthex makes.
    SelfSigned(SelfSigned),
}

/// A source and the TLS with its certificate.
#[derive(Debug)]
pub struct Followed {
    source: Source,
    tls: ServerTls,
    identity: Identity,
    /// The state of the files when they were read last.
    read: Option<Stamp>,
    /// The state at the last look.
    seen: Option<Stamp>,
}

impl Source {
    fn load(&self, now: SystemTime) -> Result<Identity, TlsError> {
        match self {
            Self::Files(files) => files.load(now),
            Self::SelfSigned(made) => made.load(now),
        }
    }

    fn stamp(&self) -> Option<Stamp> {
        match self {
            Self::Files(files) => Some(files.stamp()),
            Self::SelfSigned(_) => None,
        }
    }

    /// True if the source is files that an operator replaces.
    #[must_use]
    pub fn is_files(&self) -> bool {
        matches!(self, Self::Files(_))
    }

    /// The warning of a key that every user of the machine can read.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        match self {
            Self::Files(files) => files.warning(),
            Self::SelfSigned(_) => None,
        }
    }
}

impl Followed {
    /// Loads the certificate for the first time.
    ///
    /// # Errors
    /// When it cannot be used; the message has the file and the remedy.
    pub fn begin(source: Source) -> Result<Self, TlsError> {
        // Taken first, so that a change during the read is seen as one.
        let read = source.stamp();
        let identity = source.load(SystemTime::now())?;
        let tls = ServerTls::new(&identity)?;
        Ok(Self { source, tls, identity, seen: read.clone(), read })
    }

    /// The TLS, which follows the source as long as [`Followed::changed`] is polled.
    #[must_use]
    pub fn tls(&self) -> &ServerTls {
        &self.tls
    }

    /// The certificate in use.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The source.
    #[must_use]
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Waits until the source has changed, or reads it at once on a notification of `asked`. The
    /// certificate in use stays so until [`Followed::adopt`].
    ///
    /// # Errors
    /// When the changed source cannot be used. Each state of the files is reported once.
    pub async fn changed(&mut self, asked: &Notify) -> Result<Identity, TlsError> {
        let mut looks = interval(LOOK);
        loop {
            let is_asked = tokio::select! {
                () = asked.notified() => true,
                _ = looks.tick() => false,
            };
            if !is_asked && !self.is_due(SystemTime::now()) {
                continue;
            }
            self.read = self.source.stamp();
            self.seen.clone_from(&self.read);
            return self.source.load(SystemTime::now());
        }
    }

    /// Uses a certificate from now on.
    ///
    /// # Errors
    /// When the library refuses it; then the old one stays in use.
    pub fn adopt(&mut self, identity: Identity) -> Result<(), TlsError> {
        self.tls.replace(&identity)?;
        self.identity = identity;
        Ok(())
    }

    /// True if files have changed and are quiet, or a certificate that is made here has ended.
    fn is_due(&mut self, now: SystemTime) -> bool {
        let Some(stamp) = self.source.stamp() else { return now >= self.identity.expires() };
        let is_quiet = self.seen.as_ref() == Some(&stamp);
        let is_new = self.read.as_ref() != Some(&stamp);
        self.seen = Some(stamp);
        is_quiet && is_new
    }
}

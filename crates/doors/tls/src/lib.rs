//! TLS of the HTTP door: its certificate is read from files or made here, checked, and replaced
//! while connections are open.
//!
//! Knows no HTTP: [`ServerTls`] turns a byte stream into an encrypted one.

mod error;
mod files;
mod follow;
mod identity;
mod self_signed;

use std::{fmt, io, sync::Arc};

use arc_swap::ArcSwap;
use rustls::{ServerConfig, crypto::ring, sign::SingleCertAndKey};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;

pub use self::{
    error::TlsError,
    files::PairFiles,
    follow::{Followed, Source},
    identity::Identity,
    self_signed::SelfSigned,
};
pub use tokio_rustls::server::TlsStream;

/// The only protocol that the HTTP door speaks, as ALPN names it.
const PROTOCOL: &[u8] = b"http/1.1";

/// The server side of TLS 1.2 and 1.3. Clones share the certificate.
#[derive(Clone)]
pub struct ServerTls(Arc<ArcSwap<ServerConfig>>);

impl ServerTls {
    /// TLS with this certificate.
    ///
    /// # Errors
    /// When the library supports none of its protocol versions with this key.
    pub fn new(identity: &Identity) -> Result<Self, TlsError> {
        Ok(Self(Arc::new(ArcSwap::from(config(identity)?))))
    }

    /// Uses another certificate for all handshakes from now on. Open connections stay as they are.
    ///
    /// Sessions of the old certificate cannot be resumed.
    ///
    /// # Errors
    /// As [`ServerTls::new`]; then the old certificate stays in use.
    pub fn replace(&self, identity: &Identity) -> Result<(), TlsError> {
        self.0.store(config(identity)?);
        Ok(())
    }

    /// Makes the handshake with a client. Has no deadline.
    ///
    /// # Errors
    /// When the client leaves, or speaks no TLS, or no version, cipher or protocol that the door
    /// has.
    pub async fn accept<S>(&self, stream: S) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        TlsAcceptor::from(self.0.load_full()).accept(stream).await
    }
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerTls").finish_non_exhaustive()
    }
}

fn config(identity: &Identity) -> Result<Arc<ServerConfig>, TlsError> {
    let resolver = SingleCertAndKey::from(identity.certified().clone());
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| TlsError::Library { reason: error.to_string() })?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(resolver));
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    Ok(Arc::new(config))
}

#[cfg(test)]
mod tests;

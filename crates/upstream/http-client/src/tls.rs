//! The client side of TLS: the machine's trusted roots, read once, and ALPN `http/1.1`.

use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore, crypto::ring, pki_types::CertificateDer};
use tokio::sync::OnceCell;

/// The machine's roots. Reading them takes milliseconds, so it happens once, and for the first
/// https server only.
static NATIVE_ROOTS: OnceCell<Arc<RootCertStore>> = OnceCell::const_new();

/// A configuration that trusts the machine's roots and the given ones.
pub(super) async fn config(extra: &[CertificateDer<'static>]) -> Result<Arc<ClientConfig>, String> {
    let mut roots = Arc::clone(NATIVE_ROOTS.get_or_try_init(native_roots).await?);
    for certificate in extra {
        Arc::make_mut(&mut roots).add(certificate.clone()).map_err(|error| error.to_string())?;
    }
    if roots.is_empty() {
        return Err("this machine has no trusted root certificates".to_owned());
    }
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

async fn native_roots() -> Result<Arc<RootCertStore>, String> {
    let load = || {
        let mut roots = RootCertStore::empty();
        let found = rustls_native_certs::load_native_certs();
        let (_, ignored) = roots.add_parsable_certificates(found.certs);
        if ignored > 0 || !found.errors.is_empty() {
            tracing::debug!(
                ignored,
                errors = found.errors.len(),
                "some trusted root certificates could not be read"
            );
        }
        Arc::new(roots)
    };
    tokio::task::spawn_blocking(load).await.map_err(|error| error.to_string())
}

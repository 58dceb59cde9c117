//! The client side of TLS: the machine's trusted roots, read once, pinned certificates, and ALPN
//! `http/1.1`.

use std::{fmt, sync::Arc};

use narthex_model::Fingerprint;
use rustls::{
    ClientConfig, DigitallySignedStruct, Error, OtherError, RootCertStore, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
};
use tokio::sync::OnceCell;

/// The machine's roots. Reading them takes milliseconds, so it happens once, and for the first
/// https server only.
static NATIVE_ROOTS: OnceCell<Arc<RootCertStore>> = OnceCell::const_new();

/// The certificates that a server may have, without regard to their issuers. Read for each
/// handshake, so that a source may follow a server whose certificate is renewed.
pub trait Pins: fmt::Debug + Send + Sync {
    /// The fingerprints of the accepted certificates.
    fn fingerprints(&self) -> Vec<Fingerprint>;
}

impl Pins for Vec<Fingerprint> {
    fn fingerprints(&self) -> Vec<Fingerprint> {
        self.clone()
    }
}

/// The server has another certificate than the pinned ones.
#[derive(Debug, thiserror::Error)]
#[error("the certificate has the SHA-256 fingerprint {found}, which is not the expected one")]
struct Unexpected {
    found: Fingerprint,
}

/// The certificates of a text in PEM, to be trusted.
///
/// # Errors
/// When the text has no certificate, or one that cannot be used; the text says why.
pub fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let found = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
    let found = found.map_err(|error| error.to_string())?;
    let mut roots = RootCertStore::empty();
    for certificate in &found {
        roots.add(certificate.clone()).map_err(|error| error.to_string())?;
    }
    match found.is_empty() {
        true => Err("it holds no certificate in PEM".to_owned()),
        false => Ok(found),
    }
}

/// A configuration that trusts the machine's roots and the given ones, or only `pins`.
pub(super) async fn config(
    extra: &[CertificateDer<'static>],
    pins: Option<&Arc<dyn Pins>>,
) -> Result<Arc<ClientConfig>, String> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let builder = match pins {
        Some(pins) => {
            let verifier = Pinned { pins: pins.clone(), provider };
            builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier))
        }
        None => builder.with_root_certificates(roots(extra).await?),
    };
    let mut config = builder.with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

async fn roots(extra: &[CertificateDer<'static>]) -> Result<Arc<RootCertStore>, String> {
    let mut roots = Arc::clone(NATIVE_ROOTS.get_or_try_init(native_roots).await?);
    for certificate in extra {
        Arc::make_mut(&mut roots).add(certificate.clone()).map_err(|error| error.to_string())?;
    }
    match roots.is_empty() {
        true => Err("this machine has no trusted root certificates".to_owned()),
        false => Ok(roots),
    }
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

/// Accepts the pinned certificates alone, by their whole content. Names, issuers and dates are part
/// of that content and not judged again; the server must still prove that it has the key.
#[derive(Debug)]
struct Pinned {
    pins: Arc<dyn Pins>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let found = Fingerprint::of(end_entity);
        if self.pins.fingerprints().contains(&found) {
            return Ok(ServerCertVerified::assertion());
        }
        Err(Error::Other(OtherError(Arc::new(Unexpected { found }))))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

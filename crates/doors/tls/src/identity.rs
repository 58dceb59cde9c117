//! A certificate with its key, checked.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    path::Path,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use narthex_model::{Fingerprint, Timestamp};
use rustls::{
    Error, InconsistentKeys,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem, pem::PemObject},
    sign::CertifiedKey,
};
use x509_cert::{
    Certificate,
    der::Decode,
    ext::pkix::{SubjectAltName, name::GeneralName},
};

use crate::TlsError;

/// The time before its end from which a certificate is worth a warning.
const SOON: Duration = Duration::from_hours(14 * 24);

/// A certificate chain and its key, which belong together and are valid.
#[derive(Debug, Clone)]
pub struct Identity {
    certified: CertifiedKey,
    fingerprint: Fingerprint,
    expires: SystemTime,
    names: Vec<String>,
}

/// The texts of a pair, and the files that they are from, for errors.
pub(crate) struct Pair<'a> {
    pub(crate) certificate: &'a [u8],
    pub(crate) certificate_file: &'a Path,
    pub(crate) key: &'a [u8],
    pub(crate) key_file: &'a Path,
}

impl Identity {
    /// Reads a pair in PEM, and checks that it can be used at this time.
    pub(crate) fn read(pair: &Pair<'_>, now: SystemTime) -> Result<Self, TlsError> {
        let path = pair.certificate_file.to_owned();
        let unusable = |reason| TlsError::Certificate { path: path.clone(), reason };
        let chain = CertificateDer::pem_slice_iter(pair.certificate).collect::<Result<Vec<_>, _>>();
        let chain = chain.map_err(|error| unusable(error.to_string()))?;
        let Some(first) = chain.first() else { return Err(TlsError::NoCertificate { path }) };
        let fingerprint = Fingerprint::of(first);
        let parsed = Certificate::from_der(first).map_err(|error| unusable(error.to_string()))?;
        let validity = parsed.tbs_certificate().validity();
        let expires = UNIX_EPOCH + validity.not_after.to_unix_duration();
        if now >= expires {
            return Err(TlsError::Expired { path, at: Timestamp::new(expires) });
        }
        let begins = UNIX_EPOCH + validity.not_before.to_unix_duration();
        if now < begins {
            return Err(TlsError::NotYet { path, at: Timestamp::new(begins) });
        }
        let names = names(&parsed);
        let certified = CertifiedKey::from_der(chain, key(pair)?, &ring::default_provider());
        let certified = certified.map_err(|error| fault(pair, &error))?;
        Ok(Self { certified, fingerprint, expires, names })
    }

    pub(crate) fn certified(&self) -> &CertifiedKey {
        &self.certified
    }

    /// The fingerprint of the server's own certificate, the first of the chain.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// The end of the certificate's validity.
    #[must_use]
    pub fn expires(&self) -> SystemTime {
        self.expires
    }

    /// The host names and addresses that the certificate is for.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// True if the certificate ends within two weeks of this time.
    #[must_use]
    pub fn ends_soon(&self, now: SystemTime) -> bool {
        now + SOON >= self.expires
    }
}

fn key(pair: &Pair<'_>) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_slice(pair.key).map_err(|error| {
        let path = pair.key_file.to_owned();
        match error {
            pem::Error::NoItemsFound => TlsError::NoKey { path },
            other => TlsError::Key { path, reason: other.to_string() },
        }
    })
}

/// The fault of a pair that the library refuses. A certificate of an old version is refused only
/// when it is compared with its key.
fn fault(pair: &Pair<'_>, error: &Error) -> TlsError {
    match error {
        Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => TlsError::Mismatch {
            certificate: pair.certificate_file.to_owned(),
            key: pair.key_file.to_owned(),
        },
        Error::InvalidCertificate(_) => TlsError::Certificate {
            path: pair.certificate_file.to_owned(),
            reason: error.to_string(),
        },
        _ => TlsError::Key { path: pair.key_file.to_owned(), reason: error.to_string() },
    }
}

/// The names of a certificate; a damaged list counts as empty.
fn names(certificate: &Certificate) -> Vec<String> {
    let found = certificate.tbs_certificate().get_extension::<SubjectAltName>();
    let Ok(Some((_, SubjectAltName(all)))) = found else { return Vec::new() };
    let name = |name: &GeneralName| match name {
        GeneralName::DnsName(name) => Some(name.as_str().to_ascii_lowercase()),
        GeneralName::IpAddress(bytes) => address(bytes.as_bytes()).map(|ip| ip.to_string()),
        _ => None,
    };
    all.iter().filter_map(name).collect()
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    if let Ok(four) = <[u8; 4]>::try_from(bytes) {
        return Some(Ipv4Addr::from(four).into());
    }
    <[u8; 16]>::try_from(bytes).ok().map(|sixteen| Ipv6Addr::from(sixteen).into())
}

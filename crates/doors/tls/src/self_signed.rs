//! A certificate that narthex makes and signs itself, for a lab.

use std::{
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use narthex_model::Secret;
use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, KeyPair, KeyUsagePurpose,
};

use crate::{Identity, TlsError, identity::Pair};

/// More than a key and a certificate ever have.
const MOST: u64 = 1 << 20;
/// The time for which a new certificate is valid. Browsers refuse more than 398 days.
const LIFE: Duration = Duration::from_hours(365 * 24);
/// The time by which other machines' clocks may be behind.
const SKEW: Duration = Duration::from_hours(24);

/// A self-signed certificate for these names, stored in a folder that only its user can write.
#[derive(Debug, Clone)]
pub struct SelfSigned {
    /// The folder.
    pub folder: PathBuf,
    /// Host names and IP addresses, in small letters.
    pub names: Vec<String>,
}

impl SelfSigned {
    /// The file of the certificate without its key, for clients that are to trust it.
    #[must_use]
    pub fn certificate_file(&self) -> PathBuf {
        self.folder.join("self-signed.crt")
    }

    /// The file of the key and the certificate. One file, so that both are always of one pair.
    fn pair_file(&self) -> PathBuf {
        self.folder.join("self-signed.pem")
    }

    /// The stored certificate if it is valid for all names, and otherwise a new one.
    pub(crate) fn load(&self, now: SystemTime) -> Result<Identity, TlsError> {
        let file = self.pair_file();
        let (identity, text) = match self.stored(&file, now)? {
            Some(stored) => stored,
            None => self.make(&file, now)?,
        };
        let (_, certificate) = split(&text);
        narthex_private::replace(&self.certificate_file(), certificate.as_bytes())?;
        Ok(identity)
    }

    /// The stored pair; `None` if there is none that can be used.
    fn stored(&self, file: &Path, now: SystemTime) -> Result<Option<(Identity, Secret)>, TlsError> {
        let bytes = match narthex_private::read(file, MOST) {
            Ok(bytes) => bytes,
            Err(error) if error.is_absent() => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        narthex_private::check_secret(file)?;
        let text = Secret::new(String::from_utf8_lossy(&bytes));
        // A damaged or expired pair is replaced: nothing else depends on it.
        let Ok(identity) = read(&text, file, now) else { return Ok(None) };
        let is_for_all = self.names.iter().all(|name| identity.names().contains(name));
        Ok(is_for_all.then_some((identity, text)))
    }

    fn make(&self, file: &Path, now: SystemTime) -> Result<(Identity, Secret), TlsError> {
        let text = self.pair(now).map_err(|error| TlsError::Made {
            names: self.names.join(", "),
            reason: error.to_string(),
        })?;
        let identity = read(&text, file, now)?;
        narthex_private::replace(file, text.expose().as_bytes())?;
        Ok((identity, text))
    }

    /// A new key and its certificate, in PEM.
    fn pair(&self, now: SystemTime) -> Result<Secret, rcgen::Error> {
        let mut params = CertificateParams::new(self.names.clone())?;
        params.not_before = (now - SKEW).into();
        params.not_after = (now + LIFE).into();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, "narthex self-signed");
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?;
        let key = Secret::new(key.serialize_pem());
        Ok(Secret::new(format!("{}{}", key.expose(), certificate.pem())))
    }
}

fn read(text: &Secret, file: &Path, now: SystemTime) -> Result<Identity, TlsError> {
    let (key, certificate) = split(text);
    let pair = Pair {
        certificate: certificate.as_bytes(),
        certificate_file: file,
        key: key.as_bytes(),
        key_file: file,
    };
    Identity::read(&pair, now)
}

/// The key and the certificate of the stored text.
fn split(text: &Secret) -> (&str, &str) {
    let text = text.expose();
    text.split_at(text.find("-----BEGIN CERTIFICATE-----").unwrap_or(text.len()))
}

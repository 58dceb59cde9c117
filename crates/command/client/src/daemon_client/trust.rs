//! The certificates that a daemon may have.

use std::{path::Path, sync::Arc};

use fs_err as fs;
use narthex_http_client::{ClientError, ClientSettings, Pins, certificates};
use narthex_model::{ErrorKind, Fingerprint};

use crate::{DaemonOptions, Failure, data_dir::DataDir};

/// The remedy for a certificate that is not trusted.
const REMEDY: &str = "to trust a certificate of your own, name the file of its issuer with \
                      --ca-file, or its own fingerprint, which the daemon prints at its start, \
                      with --daemon-fingerprint";

/// The certificates of the daemon of a data directory, as they are published there. The file is
/// read for each connection: a command may run longer than a certificate is valid.
#[derive(Debug)]
struct Published(DataDir);

impl Pins for Published {
    fn fingerprints(&self) -> Vec<Fingerprint> {
        match self.0.running() {
            Ok(state) => state.map(|state| state.fingerprints).unwrap_or_default(),
            Err(failure) => {
                tracing::debug!(%failure, "the daemon's certificate cannot be looked up");
                Vec::new()
            }
        }
    }
}

/// Settings for the daemon of a data directory.
pub(super) fn of_data(data: &DataDir) -> ClientSettings {
    ClientSettings { pins: Some(Arc::new(Published(data.clone()))), ..ClientSettings::default() }
}

/// Settings for the daemon at an address.
///
/// # Errors
/// When the file of certificates cannot be used, or a fingerprint is given without TLS.
pub(super) fn of_remote(options: &DaemonOptions, url: &str) -> Result<ClientSettings, Failure> {
    let mut settings = ClientSettings::default();
    if let Some(file) = &options.ca_file {
        settings.extra_roots = certificates(&read(file)?).map_err(|reason| {
            let text = format!(
                "the certificates of `{}` cannot be used: {reason}; name a file of certificates \
                 in PEM with --ca-file",
                file.display()
            );
            Failure::new(ErrorKind::Invalid, text)
        })?;
    }
    if let Some(fingerprint) = options.fingerprint {
        if !url.starts_with("https://") {
            let text = format!(
                "--daemon-fingerprint names a certificate, and {url} has none; write the address \
                 with https://"
            );
            return Err(Failure::usage(text));
        }
        settings.pins = Some(Arc::new(vec![fingerprint]));
    }
    Ok(settings)
}

fn read(file: &Path) -> Result<Vec<u8>, Failure> {
    narthex_private::check_named(file)?;
    fs::read(file).map_err(|error| {
        let failure = Failure::from(error);
        let message = format!("{}; name another file with --ca-file", failure.message);
        Failure { message, ..failure }
    })
}

/// The failure of a request without an answer.
pub(super) fn failure(error: &ClientError) -> Failure {
    let failure = super::no_answer::failure(error);
    match error {
        ClientError::Tls { .. } => {
            Failure { message: format!("{}; {REMEDY}", failure.message), ..failure }
        }
        _ => failure,
    }
}

#[cfg(test)]
mod tests {
    use narthex_wire::Limits;

    use super::*;

    fn options(ca_file: Option<&Path>, fingerprint: Option<Fingerprint>) -> DaemonOptions {
        DaemonOptions {
            data: "/nowhere".into(),
            daemon_url: None,
            daemon_url_source: String::new(),
            token_file: None,
            token_file_source: String::new(),
            ca_file: ca_file.map(Path::to_owned),
            fingerprint,
            settings: None,
            limits: Limits { message_bytes: 1 },
        }
    }

    #[test]
    fn a_file_of_certificates_that_cannot_be_used_is_named_with_its_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ca.pem");
        let refused = || {
            let refused = of_remote(&options(Some(&file), None), "https://a.example");
            refused.unwrap_err().message
        };
        let absent = refused();
        fs::write(&file, "no certificate").unwrap();
        for text in [absent, refused()] {
            assert!(text.contains("ca.pem") && text.contains("--ca-file"), "{text}");
        }
    }

    #[test]
    fn a_fingerprint_needs_an_encrypted_address() {
        let options = options(None, Some(Fingerprint::of(b"")));
        let pinned = of_remote(&options, "https://a.example").unwrap().pins.unwrap();
        assert_eq!(pinned.fingerprints(), [Fingerprint::of(b"")]);
        let text = of_remote(&options, "http://a.example").unwrap_err().message;
        assert!(text.contains("--daemon-fingerprint") && text.contains("https://"), "{text}");
    }
}

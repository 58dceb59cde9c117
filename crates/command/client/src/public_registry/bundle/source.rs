//! The description of a bundle's file, and the request for it.

use std::{path::Path, sync::Arc};

use narthex_http_client::Proxies;
use narthex_model::ErrorKind;
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::{Failure, web::is_reachable};

/// The file of a bundle, as a registry describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundleSource {
    pub url: Url,
    /// The SHA-256 of the file, in small hexadecimal letters.
    pub sha256: String,
}

/// Checks the description of a bundle's file.
pub(in crate::public_registry) fn source(
    address: &str,
    sha256: Option<&str>,
) -> Result<BundleSource, String> {
    let wrong = || format!("comes from `{address}`, which is not an address of https");
    let url = Url::parse(address).map_err(|_wrong| wrong())?;
    if !is_reachable(&url) || !url.username().is_empty() || url.password().is_some() {
        return Err(wrong());
    }
    let Some(sha256) = sha256 else {
        return Err("has no `fileSha256`, so a changed file could not be noticed".to_owned());
    };
    let is_hash = sha256.len() == 64 && sha256.bytes().all(|byte| byte.is_ascii_hexdigit());
    match is_hash {
        true => Ok(BundleSource { url, sha256: sha256.to_ascii_lowercase() }),
        false => Err(format!("has `{sha256}` for `fileSha256`, which is not a SHA-256")),
    }
}

/// A bundle on its way to this machine.
#[derive(Debug)]
pub struct BundleRequest<'r> {
    pub source: &'r BundleSource,
    /// The address of the registry that names the file. If it is on this machine or in a private
    /// network, the file may be there too.
    pub registry: &'r Url,
    pub proxies: Arc<Proxies>,
    /// The user's folder, which manifests may name.
    pub home: Option<&'r Path>,
    /// The signal that ends the work.
    pub stopped: CancellationToken,
}

impl BundleRequest<'_> {
    /// True if a file of this machine may come without TLS, as the registry does.
    pub(super) fn may_be_plain(&self) -> bool {
        self.registry.scheme() == "http"
    }

    /// The failure of a bundle that its publisher has to mend.
    pub(super) fn refused(&self, reason: &str) -> Failure {
        let text = format!(
            "the bundle {} {reason}; nothing was started or stored. Tell its publisher, or choose \
             another way with --via or another version with --version",
            self.source.url
        );
        Failure::new(ErrorKind::Invalid, text)
    }
}

/// The failure of work that a signal has ended.
#[must_use]
pub fn stopped() -> Failure {
    Failure::interrupted("nothing was stored")
}

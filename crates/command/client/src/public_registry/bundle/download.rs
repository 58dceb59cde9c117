//! Downloads the file of a bundle, within limits of size and time, and compares its SHA-256.
//!
//! No request has a token or a cookie, so redirects to other hosts are followed, as those who host
//! files of releases send them. The hash decides which file it is, wherever it comes from.
//!
//! A registry names the address, and anyone may publish there. So each host, also of a redirect,
//! must be public when it is dialled, unless the registry itself is in a private network (S9).

use std::{io::Write, path::Path, time::Duration};

use fs_err as fs;
use http::{HeaderValue, StatusCode, header};
use narthex_http_client::{ClientError, ClientSettings, HttpClient, HttpResponse, Neighbourhood};
use narthex_model::ErrorKind;
use sha2::{Digest, Sha256};
use tokio::time::timeout;
use url::Url;

use super::source::{BundleRequest, stopped};
use crate::{
    Failure,
    public_registry::unreached::reason,
    web::{get, is_reachable, without_query},
};

/// The longest file of a bundle, in bytes.
const FILE_MAX: u64 = 256 * 1024 * 1024;
/// Longest time for the beginning of an answer, and between two parts of the file.
const PART_TIME: Duration = Duration::from_secs(60);
/// Longest time for the whole file.
const FILE_TIME: Duration = Duration::from_secs(60 * 60);
/// Number of redirects that are followed.
const REDIRECTS_MAX: usize = 5;

/// Reports each part of the file: the bytes so far, and the total if the server names it.
pub type Progress<'p> = dyn FnMut(u64, Option<u64>) + Send + 'p;

/// Downloads the file to a path at which no file is.
///
/// # Errors
/// When the file cannot be read, is too large, or has another hash.
pub(super) async fn download(
    request: &BundleRequest<'_>,
    to: &Path,
    progress: &mut Progress<'_>,
) -> Result<(), Failure> {
    let whole = timeout(FILE_TIME, hashed(request, to, progress));
    let hash = tokio::select! {
        hash = whole => hash,
        () = request.stopped.cancelled() => return Err(stopped()),
    };
    let late = |_elapsed| {
        let reason = format!("no whole file within {} minutes", FILE_TIME.as_secs() / 60);
        unread(request, ErrorKind::Timeout, &reason)
    };
    let hash = hash.map_err(late)??;
    if hash == request.source.sha256 {
        return Ok(());
    }
    let text = format!(
        "the bundle {} has the SHA-256 {hash}, and the registry names {}: the file was changed or \
         is damaged. Nothing of it was unpacked or stored; try again later, or tell its publisher",
        request.source.url, request.source.sha256
    );
    Err(Failure::new(ErrorKind::Invalid, text))
}

/// Writes the file, and gives its hash.
async fn hashed(
    request: &BundleRequest<'_>,
    to: &Path,
    progress: &mut Progress<'_>,
) -> Result<String, Failure> {
    let failed =
        |error: ClientError| unread(request, error.kind(), &reason(&request.source.url, &error));
    let near = timeout(PART_TIME, Neighbourhood::of(request.registry)).await;
    let near = near.map_err(|_late| silent(request))?;
    let mut response = answer(request, &near).await?;
    let length = response.headers.get(header::CONTENT_LENGTH);
    let length = length.and_then(|text| text.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|length| length > FILE_MAX) {
        return Err(too_large(request));
    }
    let mut file = fs::File::create_new(to)?;
    let (mut hash, mut bytes) = (Sha256::new(), 0);
    loop {
        let part = timeout(PART_TIME, response.body.chunk()).await;
        let part = part.map_err(|_late| silent(request))?;
        let Some(part) = part.transpose().map_err(failed)? else { break };
        bytes += part.len() as u64;
        if bytes > FILE_MAX {
            return Err(too_large(request));
        }
        hash.update(&part);
        file.write_all(&part)?;
        progress(bytes, length);
    }
    Ok(hex::encode(hash.finalize()))
}

/// The answer with the file, after redirects.
async fn answer(
    request: &BundleRequest<'_>,
    near: &Neighbourhood,
) -> Result<HttpResponse, Failure> {
    let mut url = request.source.url.clone();
    for _ in 0..=REDIRECTS_MAX {
        if !is_reachable(&url) || (url.scheme() == "http" && !request.may_be_plain()) {
            let reason = format!("it leads to {}, which is not https", without_query(&url));
            return Err(unread(request, ErrorKind::Invalid, &reason));
        }
        let response = asked(request, &url, near).await?;
        let status = response.status;
        if status == StatusCode::OK {
            return Ok(response);
        }
        let location = response.headers.get(header::LOCATION).and_then(|to| to.to_str().ok());
        let next = location.filter(|_| status.is_redirection()).and_then(|to| url.join(to).ok());
        let Some(next) = next else {
            let kind = match status {
                StatusCode::NOT_FOUND | StatusCode::GONE => ErrorKind::NotFound,
                _ => ErrorKind::Unavailable,
            };
            return Err(unread(
                request,
                kind,
                &format!("{} answered {status}", without_query(&url)),
            ));
        };
        url = next;
    }
    let reason = format!("it is redirected more than {REDIRECTS_MAX} times");
    Err(unread(request, ErrorKind::Unavailable, &reason))
}

async fn asked(
    request: &BundleRequest<'_>,
    url: &Url,
    near: &Neighbourhood,
) -> Result<HttpResponse, Failure> {
    let failed = |error: ClientError| {
        let reason = match &error {
            ClientError::NotPublic { address } => format!(
                "it leads to {address}, which is on this machine or in a private network, and the \
                 registry is not"
            ),
            other => reason(&request.source.url, other),
        };
        unread(request, error.kind(), &reason)
    };
    let settings = ClientSettings {
        reach: near.reach(url),
        proxies: request.proxies.clone(),
        returns_redirects: true,
        ..ClientSettings::default()
    };
    let client = HttpClient::new(url, settings).map_err(failed)?;
    let mut asked = get(url, "application/octet-stream, */*")
        .map_err(|error| unread(request, ErrorKind::Invalid, &format!("{error}")))?;
    asked.headers_mut().insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    let begun = timeout(PART_TIME, client.send(asked)).await;
    begun.map_err(|_late| silent(request))?.map_err(failed)
}

fn silent(request: &BundleRequest<'_>) -> Failure {
    let reason = format!("nothing came for {} s", PART_TIME.as_secs());
    unread(request, ErrorKind::Timeout, &reason)
}

fn too_large(request: &BundleRequest<'_>) -> Failure {
    let reason = format!("it has more than {} MiB", FILE_MAX / (1024 * 1024));
    unread(request, ErrorKind::Exhausted, &reason)
}

fn unread(request: &BundleRequest<'_>, kind: ErrorKind, reason: &str) -> Failure {
    let text = format!(
        "the bundle {} cannot be downloaded: {reason}; nothing was stored. Try again later, or \
         choose another way with --via",
        request.source.url
    );
    Failure::new(kind, text)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use narthex_http_client::Proxies;
    use narthex_testkit::{
        addresses::{ClosedProxy, INSIDE},
        peer::{self, Peer},
    };
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::public_registry::{address::OFFICIAL, bundle::BundleSource};

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    /// The answer to a request for a file that a registry names, through a proxy.
    async fn ask(
        address: &Url,
        registry: &Url,
        near: &Neighbourhood,
        proxy: &ClosedProxy,
    ) -> Result<HttpResponse, Failure> {
        let source = BundleSource { url: address.clone(), sha256: "0".repeat(64) };
        let request = BundleRequest {
            source: &source,
            registry,
            proxies: Arc::new(Proxies::new(Some(&proxy.url), Some(&proxy.url), "").unwrap()),
            home: None,
            stopped: CancellationToken::new(),
        };
        answer(&request, near).await
    }

    /// S9, E209: a publisher in a public registry leads no user's machine to its own network, in
    /// any spelling, and no proxy is asked to.
    #[tokio::test]
    async fn s9_e209_a_bundle_of_a_public_registry_is_at_a_public_address() {
        let proxy = ClosedProxy::start().await;
        let (registry, public) = (url(OFFICIAL), url("https://1.1.1.1/registry"));
        let near = Neighbourhood::of(&public).await;
        // No proxy is asked for loopback. A connection to this socket would wait there.
        let machine = std::net::TcpListener::bind("0.0.0.0:0").unwrap();
        machine.set_nonblocking(true).unwrap();
        let port = machine.local_addr().unwrap().port();
        for inside in INSIDE {
            let mut inside = url(inside);
            inside.set_port(Some(port)).unwrap();
            let failure = ask(&inside, &registry, &near, &proxy).await.unwrap_err();
            let told = "which is on this machine or in a private network";
            assert!(failure.message.contains(told), "{inside}: {failure}");
        }
        assert_eq!(proxy.asked(), [""; 0]);
        assert_eq!(machine.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
        // A public address is asked for, as it was checked.
        ask(&url("https://1.0.0.1/x"), &registry, &near, &proxy).await.unwrap_err();
        assert_eq!(proxy.asked(), ["1.0.0.1:443"]);
    }

    /// S9: a redirect leads to no address that the registry could not name itself.
    #[tokio::test]
    async fn s9_e209_redirects_of_bundles_lead_to_no_other_network() {
        let proxy = ClosedProxy::start().await;
        for target in ["https://127.0.0.1:1/x", "https://10.0.0.1/x", "https://[::1]/x"] {
            let server = Peer::start(move |_seen| peer::redirect(302, target)).await;
            let mut address = url(&server.url);
            address.set_host(Some("localhost")).unwrap();
            // A registry whose own name leads inside opens that network to names beside it alone.
            let near = Neighbourhood::beside("localhost");
            let failure = ask(&address, &address, &near, &proxy).await.unwrap_err();
            assert!(failure.message.contains("the registry is not"), "{target}: {failure}");
            assert_eq!(server.seen().len(), 1, "{target}");
        }
        assert_eq!(proxy.asked(), [""; 0]);
    }
}

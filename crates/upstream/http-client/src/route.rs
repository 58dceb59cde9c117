//! The path of requests after redirects within the server's origin.

use std::sync::{PoisonError, RwLock};

use http::{HeaderValue, StatusCode, header, uri::PathAndQuery};
use url::Position;

use super::{
    ClientError, HttpResponse,
    origin::{Origin, printable},
};

/// The path that answered last, and the requested one.
///
/// While it is unknown, a copy of a request is stored until the answer, so that the client can
/// follow a redirect. Afterwards no copy is needed.
#[derive(Debug, Default)]
pub(super) struct Route(RwLock<Option<Known>>);

#[derive(Debug)]
struct Known {
    asked: PathAndQuery,
    path: PathAndQuery,
}

impl Route {
    /// The path that answers for this one, if that is known.
    pub(super) fn find(&self, asked: &PathAndQuery) -> Option<PathAndQuery> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        known.as_ref().filter(|known| known.asked == *asked).map(|known| known.path.clone())
    }

    /// Learns that a path answered in place of the one asked for.
    pub(super) fn learn(&self, asked: PathAndQuery, path: PathAndQuery) {
        self.set(Some(Known { asked, path }));
    }

    /// Learns that the path that answered so far redirects, so that nothing is sent there again.
    pub(super) fn moved(&self, from: &PathAndQuery, to: &PathAndQuery) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.as_mut().filter(|known| known.path == *from) {
            known.path = to.clone();
        }
    }

    /// Asks again next time.
    pub(super) fn forget(&self) {
        self.set(None);
    }

    fn set(&self, known: Option<Known>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = known;
    }
}

/// The path at which to repeat the request, if the answer names one of the same origin.
pub(super) fn redirect(
    origin: &Origin,
    path: &PathAndQuery,
    response: &HttpResponse,
) -> Result<Option<PathAndQuery>, ClientError> {
    let status = response.status;
    if !status.is_redirection() || status == StatusCode::NOT_MODIFIED {
        return Ok(None);
    }
    let location = response.headers.get(header::LOCATION).map(HeaderValue::as_bytes);
    let location = location.and_then(|bytes| std::str::from_utf8(bytes).ok());
    let target = location.and_then(|location| origin.resolve(path, location));
    let repeats = matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
    if let Some(target) = &target
        && repeats
        && origin.contains(target)
        && let Ok(next) = target[Position::BeforePath..Position::AfterQuery].parse()
    {
        return Ok(Some(next));
    }
    Err(ClientError::Redirected {
        address: origin.address.clone(),
        status,
        location: target.map_or_else(|| "nowhere".to_owned(), |url| printable(&url)),
    })
}

//! Writes with the header `Idempotency-Key`: each is done once, however often the client sends it.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, StatusCode, header};
use http_body_util::{BodyExt as _, Either, Full};
use narthex_control::{
    Control, ControlError, FieldError, KeptResponse, Keyed, KeyedClaim, KeyedRequest, digest_of,
};
use narthex_model::ErrorKind;

use super::{API_BODY_MAX, Answered, Asked, changes::of_body};
use crate::listener::single;
use crate::{
    body::RequestBody,
    problem::Problem,
    respond::{self, Response},
    routes::{self, AccessTarget, Target},
};

/// The header with which a client names a write (draft-ietf-httpapi-idempotency-key-header).
pub(crate) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// The header of an answer that is a copy of an earlier answer.
pub(crate) const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
/// Maximum number of characters in a key (X-E104).
const KEY_MAX: usize = 200;

/// Marks an answer that contains values of secrets. The answer is sent once and not stored.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ToldOnce;

impl Asked<'_> {
    /// The key of a write, if the client sent one.
    pub(super) fn idempotency_key(&self) -> Result<Option<String>, Problem> {
        if matches!(self.parts.method, Method::GET | Method::HEAD) {
            return Ok(None);
        }
        let key = match single(&self.parts.headers, &IDEMPOTENCY_KEY) {
            Some(None) => return Ok(None),
            Some(Some(key)) => key,
            None => "",
        };
        let is_visible = key.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_visible || key.is_empty() || key.len() > KEY_MAX {
            let remedy = "send one header with 1 to 200 visible ASCII characters";
            let fault = FieldError::invalid("Idempotency-Key", "this is not a key", remedy);
            let text = format!("the header cannot be used: {fault}");
            return Err(Problem::of_fields(text, std::slice::from_ref(&fault)));
        }
        Ok(Some(key.to_owned()))
    }

    /// Does a write unless it was done before. The write continues to its end even if the client
    /// disconnects.
    pub(super) async fn once(&self, key: String, body: RequestBody) -> Answered {
        let control = self.control()?.clone();
        let body = self.read(body, API_BODY_MAX).await;
        let body = body.map_err(|fault| of_body(fault, "the body", API_BODY_MAX))?;
        let request = self.keyed(key, &body)?;
        let (door, parts) = (self.door.clone(), self.parts.clone());
        let (target, principal, held) = (self.target, self.principal.clone(), self.held.moved());
        // The task starts before the key is taken: a client that disconnects must not leave the key
        // taken.
        let work = async move {
            let claim = match control.keyed_begin(&request).await? {
                Keyed::First(claim) => claim,
                Keyed::Done(response) => return replayed(response),
            };
            let place = routes::find(parts.uri.path());
            let segments = place.map(|place| place.segments).unwrap_or_default();
            let asked = Asked { door: &door, target, segments, parts: &parts, principal, held };
            let answered = asked.dispatch(Either::Right(Full::new(body).boxed_unsync())).await;
            let response = answered.as_ref().ok().filter(|one| one.status().is_success());
            let kept = response.map(kept);
            keep(&control, &claim, kept).await;
            answered
        };
        let done = self.door.gateway.tasks().spawn(work).await;
        done.unwrap_or_else(|error| Err(ControlError::Bug(error).into()))
    }

    fn keyed(&self, key: String, body: &Bytes) -> Result<KeyedRequest, Problem> {
        let (method, uri) = (&self.parts.method, &self.parts.uri);
        let is_inside = !self.segments[0].is_empty()
            && uri.path().starts_with("/api/workspaces/")
            // These requests remove or change the workspace itself, so their answers are stored
            // outside of it.
            && !matches!(
                self.target,
                Target::Access(AccessTarget::WorkspaceDelete | AccessTarget::WorkspaceChange)
            );
        let workspace = is_inside.then(|| self.workspace()).transpose()?;
        let header = |name| self.parts.headers.get(name).map_or(&[][..], HeaderValue::as_bytes);
        let digest = digest_of([
            method.as_str().as_bytes(),
            uri.path_and_query().map_or("", |path| path.as_str()).as_bytes(),
            header(header::IF_MATCH),
            header(header::IF_NONE_MATCH),
            header(header::CONTENT_TYPE),
            body,
        ]);
        let what = format!("{method} {}", uri.path());
        Ok(KeyedRequest { workspace, by: self.by(), key, what, digest })
    }
}

/// Stores the answer of a successful write, or releases the key of a refused one.
async fn keep(control: &Control, claim: &KeyedClaim, response: Option<KeptResponse>) {
    let kept = match response {
        Some(response) => control.keyed_done(claim, response).await,
        None => control.keyed_refused(claim).await,
    };
    if let Err(error) = kept {
        tracing::warn!(
            "the answer to a request with an Idempotency-Key could not be stored: {error}"
        );
    }
}

fn kept(response: &Response) -> KeptResponse {
    let text = |value: &HeaderValue| value.to_str().map(str::to_owned);
    let headers = response.headers().iter();
    let headers = headers.filter_map(|(name, value)| Some((name.to_string(), text(value).ok()?)));
    let body = match response.extensions().get::<ToldOnce>() {
        Some(ToldOnce) => None,
        None => response.body().whole().and_then(|bytes| String::from_utf8(bytes.into()).ok()),
    };
    KeptResponse { status: response.status().as_u16(), headers: headers.collect(), body }
}

fn replayed(response: KeptResponse) -> Answered {
    let KeptResponse { status, headers, body } = response;
    let Some(body) = body else {
        let text = "a request with this Idempotency-Key has succeeded before; its answer was too \
                    long to be stored, or had values that are shown only once: read the present \
                    state instead";
        let problem = Problem::new(ErrorKind::Conflict, text);
        let place = headers.iter().find(|(name, _)| name == header::LOCATION.as_str());
        let problem = problem.with_code("idempotency_not_kept");
        return Err(match place {
            Some((_, place)) => problem.with(|members| members.location = Some(place.clone())),
            None => problem,
        });
    };
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
    let mut response = respond::json(status, body.into_bytes().into());
    let told = response.headers_mut();
    told.clear();
    for (name, value) in headers {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            told.append(name, value);
        }
    }
    told.insert(REPLAYED, HeaderValue::from_static("true"));
    Ok(response)
}

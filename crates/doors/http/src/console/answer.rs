//! Answers with pages, parts of pages, files and redirects, and the headers that all answers have.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, StatusCode, header, request::Parts};
use narthex_console::{
    POLICY,
    assets::Asset,
    html,
    pages::fault::{BareFaultPage, Fault, FaultPart},
    parts::Words,
};
use narthex_model::ErrorKind;
use narthex_wire::Payload;

use crate::{listener::single, problem::Problem, respond, respond::Response};

/// The result of a handler.
pub(super) type Answered = Result<Response, Problem>;

const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");
/// Addresses of files change with their contents.
const FOR_EVER: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
/// The header by which the script asks for a part of a page.
const PART: HeaderName = HeaderName::from_static("hx-request");
/// The header that names the pages that may use an answer.
const USED_BY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
/// Maximum number of characters of the sentence of a failure.
const SENTENCE_MAX: usize = 2_000;

/// An answer with a page, or with parts of one.
pub(super) fn page(status: StatusCode, text: String) -> Response {
    let mut response = Response::new(Payload::from(text.into_bytes()).into());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HTML);
    response
}

/// Leads the browser to another page of ours.
pub(super) fn redirect(to: &str) -> Answered {
    let to = HeaderValue::from_str(to).map_err(|_unfit| nothing())?;
    let mut response = respond::empty(StatusCode::SEE_OTHER);
    response.headers_mut().insert(header::LOCATION, to);
    Ok(response)
}

/// An answer with a file that pages load, compressed if the browser takes that.
pub(super) fn asset(file: &'static Asset, parts: &Parts) -> Response {
    let accepted = single(&parts.headers, &header::ACCEPT_ENCODING).flatten();
    let takes_gzip = accepted.is_some_and(|accepted| accepted.contains("gzip"));
    let bytes = if takes_gzip { &*file.gzip } else { file.text.as_bytes() };
    let mut response = Response::new(Payload::from(Bytes::from_static(bytes)).into());
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(file.media));
    headers.insert(header::CACHE_CONTROL, FOR_EVER);
    headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    if takes_gzip {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}

/// The failure in words.
pub(super) fn fault(problem: &Problem) -> Fault {
    let sentence = Words::within(problem.detail(), SENTENCE_MAX);
    Fault { kind: problem.kind().as_str(), sentence }
}

/// The status of a failure that is shown as a page. A 401 is valid only with a challenge.
pub(super) fn status(problem: &Problem) -> StatusCode {
    match problem.kind() {
        ErrorKind::Unauthenticated => StatusCode::FORBIDDEN,
        _ => problem.status(),
    }
}

/// The answer to a request that was refused where no workspace is open.
pub(super) fn bare_fault(problem: &Problem, parts: &Parts) -> Response {
    let (status, fault) = (status(problem), fault(problem));
    match is_part(parts) {
        true => page(status, html(&FaultPart { fault })),
        false => page(status, html(&BareFaultPage { fault })),
    }
}

/// True if the script asks for a part of a page.
pub(super) fn is_part(parts: &Parts) -> bool {
    single(&parts.headers, &PART).flatten() == Some("true")
}

/// Adds the headers that forbid foreign scripts, frames and uses in pages of others. Those that the
/// answer has already stay.
pub(super) fn guarded(mut response: Response) -> Response {
    let all: [(HeaderName, &'static str); 5] = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "same-origin"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (USED_BY, "same-origin"),
    ];
    for (name, value) in all {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

/// The refusal of a place where nothing is.
pub(super) fn nothing() -> Problem {
    Problem::new(ErrorKind::NotFound, "nothing is here")
}

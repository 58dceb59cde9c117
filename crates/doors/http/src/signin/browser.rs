//! A request of a browser: its session, its forms, and the origin that it came to.

use bytes::Bytes;
use http::{Method, StatusCode, header, request::Parts};
use narthex_control::{Control, SignedIn};
use narthex_gateway::Holder;
use narthex_model::{ErrorKind, json::shortened};
use serde::de::DeserializeOwned;
use serde_json::Map;

use super::{
    cookie::{Jar, Kept, ONWARD},
    is_from_our_page, is_same, nothing, page, redirect,
};
use crate::{
    body::{self, RequestBody, Room},
    door::Door,
    listener::single,
    problem::Problem,
    respond::Response,
    servers::changes::of_body,
};

/// Enough bytes for the answer of any authenticator, which may contain certificates.
const BODY_MAX: usize = 64 * 1024;

/// A request of a browser, whose human may have signed in.
#[derive(Clone, Copy)]
pub(crate) struct BrowserRequest<'a> {
    pub(crate) door: &'a Door,
    pub(crate) control: &'a Control,
    pub(crate) parts: &'a Parts,
}

impl<'a> BrowserRequest<'a> {
    /// Serves requests at the public origin only, since cookies and passkeys belong to it. A reader
    /// of a page at another origin is redirected. A request that changes data must come from a page
    /// of the public origin.
    pub(crate) fn at_the_public_origin(self) -> Result<Option<Response>, Problem> {
        let origin = self.control.sign_in_origin().ok_or_else(nothing)?;
        let is_read = matches!(self.parts.method, Method::GET | Method::HEAD);
        let host = single(&self.parts.headers, &header::HOST).flatten();
        if host.is_none_or(|host| !host.eq_ignore_ascii_case(origin.authority())) {
            let text = format!("sign in at {}", origin.at("/signin"));
            let elsewhere = Problem::new(ErrorKind::Denied, text);
            return match (is_read, self.parts.uri.path_and_query()) {
                (true, Some(path)) => Ok(Some(redirect(&origin.at(path.as_str()))?)),
                _ => Err(elsewhere),
            };
        }
        if !is_read && !is_from_our_page(&self.parts.headers, origin.as_str()) {
            let text = "the request was not sent by a page of this daemon";
            return Err(Problem::new(ErrorKind::Denied, text));
        }
        Ok(None)
    }

    /// The session of the browser, if it is valid.
    pub(crate) fn session(self) -> Result<Option<(&'a str, SignedIn)>, Problem> {
        let Some(token) = self.jar().find(&self.parts.headers, Kept::Session) else {
            return Ok(None);
        };
        let signed_in = self.control.signed_in(token);
        let signed_in = signed_in.map_err(|error| Problem::new(error.kind(), error.to_string()))?;
        Ok(signed_in.map(|signed_in| (token, signed_in)))
    }

    /// The session of the browser, after a check that our page sent the request.
    pub(crate) fn checked_session(
        self,
        csrf: Option<&str>,
    ) -> Result<(&'a str, SignedIn), Problem> {
        let found = self.session()?;
        let (token, signed_in) = found.ok_or_else(|| {
            Problem::new(
                ErrorKind::Unauthenticated,
                "you are not signed in any more; sign in again",
            )
        })?;
        match csrf {
            Some(csrf) if is_same(csrf, &self.control.form_token(token)) => Ok((token, signed_in)),
            _ => Err(Problem::new(ErrorKind::Denied, "this page is too old; reload it")),
        }
    }

    /// Reads a form of a page as the type that the document has for it. Only a short body is read.
    pub(crate) async fn form<F: DeserializeOwned>(self, body: RequestBody) -> Result<F, Problem> {
        let kind = single(&self.parts.headers, &header::CONTENT_TYPE).flatten();
        let kind = kind.map(|kind| kind.split(';').next().unwrap_or_default().trim());
        let is_form = |kind: &str| kind.eq_ignore_ascii_case("application/x-www-form-urlencoded");
        if !kind.is_some_and(is_form) {
            let problem = Problem::new(ErrorKind::Invalid, "only forms are accepted here");
            return Err(problem.with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE));
        }
        let bytes = self.read(body).await?;
        read_form(&bytes).map_err(|fault| {
            let text = format!("the form cannot be used: {fault}; reload its page, and send it");
            Problem::new(ErrorKind::Invalid, text)
        })
    }

    pub(super) async fn read(self, body: RequestBody) -> Result<Bytes, Problem> {
        let room = Room::Api(&self.door.api_bodies, Holder::Visitors);
        let within = self.door.options.body_timeout;
        let read = body::read_in(body, BODY_MAX, within, Some(room)).await;
        read.map_err(|fault| of_body(fault, "a form", BODY_MAX))
    }

    pub(super) fn jar(self) -> Jar {
        Jar::new(self.control.sign_in_origin().is_some_and(|origin| origin.is_https()))
    }

    /// The page with all ways to sign in.
    pub(super) fn ways_in(self) -> Response {
        page::sign_in(&self.control.sign_in_providers(), self.control.has_passkeys())
    }

    /// The page with all ways to sign in. After the sign-in, the browser gets the page that `kept`
    /// names, a value that [`onward`](crate::console::onward) reads.
    pub(crate) fn ways_in_then(self, kept: &str) -> Response {
        let mut response = self.ways_in();
        self.jar().set(&mut response, Kept::Onward, kept, ONWARD);
        response
    }
}

/// Reads the fields of a form, each of which is text. Returns the first fault as text.
fn read_form<F: DeserializeOwned>(bytes: &[u8]) -> Result<F, String> {
    let mut fields = Map::new();
    for (name, value) in form_urlencoded::parse(bytes) {
        let name = shortened(&name);
        if fields.insert(name.clone(), value.into_owned().into()).is_some() {
            return Err(format!("the field `{name}` is there twice"));
        }
    }
    serde_json::from_value(fields.into()).map_err(|error| error.to_string())
}

//! The requests of a link over Streamable HTTP, each of which can be built again.

use http::{HeaderMap, HeaderValue, Method, Request, header};
use narthex_wire::Payload;

use super::{HttpLink, session::names_lost_session};
use crate::{
    LinkError,
    authorization::{Resend, operation},
};

/// A message to the server.
pub(super) struct Post<'a> {
    pub(super) link: &'a HttpLink,
    pub(super) body: Payload,
    pub(super) extra: HeaderMap,
}

impl Resend for Post<'_> {
    fn build(&self, authorization: Option<&HeaderValue>) -> Result<Request<Payload>, LinkError> {
        let prepared = self.link.headers();
        let mut headers = prepared.post.clone();
        headers.insert(header::CONTENT_LENGTH, self.body.len().into());
        prepared.authorize(&mut headers, authorization);
        Ok(self.link.request(Method::POST, self.body.clone(), headers, &self.extra))
    }

    fn operation(&self) -> String {
        operation(&self.body, &self.link.limits)
    }

    fn lost_session(&self) -> Option<fn(&[u8]) -> bool> {
        self.link.session().map(|_| names_lost_session as fn(&[u8]) -> bool)
    }
}

/// A request for a stream.
pub(super) struct Get<'a> {
    pub(super) link: &'a HttpLink,
    pub(super) extra: HeaderMap,
}

impl Resend for Get<'_> {
    fn build(&self, authorization: Option<&HeaderValue>) -> Result<Request<Payload>, LinkError> {
        let prepared = self.link.headers();
        let mut headers = prepared.common.clone();
        prepared.authorize(&mut headers, authorization);
        Ok(self.link.request(Method::GET, Payload::default(), headers, &self.extra))
    }

    fn operation(&self) -> String {
        Method::GET.to_string()
    }
}

//! Answers of the fixture.

use bytes::Bytes;
use http::Response;
use http_body_util::Full;
use serde_json::{Value, json};

use super::asked::{coded, form_of};

/// An error of OAuth, not yet in its form.
#[derive(Debug, Clone)]
pub(super) struct Fault {
    pub(super) status: u16,
    pub(super) code: String,
    pub(super) text: String,
}

impl Fault {
    /// A fault of the request, with status 400.
    pub(super) fn of(code: &str, text: impl Into<String>) -> Self {
        Self { status: 400, code: code.to_owned(), text: text.into() }
    }

    /// A client that is not who it says.
    pub(super) fn client(text: impl Into<String>) -> Self {
        Self { status: 401, ..Self::of("invalid_client", text) }
    }

    pub(super) fn answer(&self) -> Answer {
        let answer = Answer::error(self.status, &self.code, &self.text);
        match self.status {
            401 => answer.header("www-authenticate", "Basic realm=\"authorization fixture\""),
            _ => answer,
        }
    }
}

/// A status, headers and a body.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    pub(super) status: u16,
    headers: Vec<(&'static str, String)>,
    pub(super) body: String,
    /// True if the connection is closed instead.
    pub(super) is_hangup: bool,
}

impl Answer {
    fn of(status: u16, kind: &str, body: String) -> Self {
        let headers = vec![("content-type", kind.to_owned())];
        Self { status, headers, body, is_hangup: false }
    }

    pub(super) fn json(status: u16, value: &Value) -> Self {
        Self::of(status, "application/json", value.to_string())
    }

    /// An error of OAuth.
    pub(super) fn error(status: u16, code: &str, description: &str) -> Self {
        Self::json(status, &json!({"error": code, "error_description": description}))
    }

    /// An answer whose body is a form.
    pub(super) fn form(status: u16, value: &Value) -> Self {
        let fields = value.as_object().into_iter().flatten();
        let texts: Vec<_> = fields
            .map(|(name, value)| {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                (name.as_str(), text)
            })
            .collect();
        let body = form_of(texts.iter().map(|(name, text)| (*name, text.as_str())));
        Self::of(status, "application/x-www-form-urlencoded", body)
    }

    pub(super) fn text(status: u16, text: &str) -> Self {
        Self::of(status, "text/plain", text.to_owned())
    }

    pub(super) fn html(status: u16, text: &str) -> Self {
        let body = format!("<!doctype html><html><body>{text}</body></html>");
        Self::of(status, "text/html; charset=utf-8", body)
    }

    pub(super) fn empty(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: String::new(), is_hangup: false }
    }

    pub(super) fn redirect(status: u16, location: &str) -> Self {
        Self::empty(status).header("location", location)
    }

    /// A redirect back to the client, with these parameters.
    pub(super) fn back(address: &str, parameters: &[(&str, Option<String>)]) -> Self {
        let mut location = address.to_owned();
        for (name, value) in parameters {
            if let Some(value) = value {
                location.push(if location.contains('?') { '&' } else { '?' });
                location += &format!("{name}={}", coded(value));
            }
        }
        Self::redirect(302, &location)
    }

    pub(super) fn hangup() -> Self {
        Self { is_hangup: true, ..Self::empty(500) }
    }

    pub(super) fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    /// The answer with white space behind its body.
    pub(super) fn padded(mut self, by: usize) -> Self {
        self.body.extend(std::iter::repeat_n(' ', by));
        self
    }

    /// The address of a redirect.
    pub(super) fn location(&self) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(name, _)| *name == "location");
        found.next().map(|(_, value)| value.as_str())
    }

    pub(super) fn response(self) -> Response<Full<Bytes>> {
        let mut response = Response::builder().status(self.status);
        for (name, value) in &self.headers {
            response = response.header(*name, value);
        }
        response.body(Full::new(self.body.into())).expect("the fixture makes valid headers")
    }
}

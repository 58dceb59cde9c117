//! The daemon's API for operators, with their token.

use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use narthex_http_client::HttpResponse;
use narthex_model::{CallErrorKind, ErrorKind, command::completed, json::with_whole_pairs};
use narthex_wire::{Payload, SseParser, headers::has_media_type};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use super::{DaemonClient, failure, refused};
use crate::{Failure, FailureKind};

/// A request to the API.
#[derive(Debug, Default)]
pub struct ApiRequest {
    method: Method,
    path: String,
    headers: HeaderMap,
    body: Payload,
}

impl ApiRequest {
    /// A request without headers and body.
    #[must_use]
    pub fn new(method: Method, path: impl Into<String>) -> Self {
        Self { method, path: path.into(), ..Self::default() }
    }

    /// Adds an entry's JSON text as the body.
    #[must_use]
    pub fn entry(mut self, text: &str) -> Self {
        let json = HeaderValue::from_static("application/json");
        self.headers.insert(header::CONTENT_TYPE, json);
        self.body = Payload::from(text.as_bytes().to_vec());
        self
    }

    /// Makes the request fail if it would overwrite an object.
    #[must_use]
    pub fn for_new_only(mut self) -> Self {
        self.headers.insert(header::IF_NONE_MATCH, HeaderValue::from_static("*"));
        self
    }
}

/// The path of a server, or of a resource below it.
#[must_use]
pub fn server_path(name: &str, below: &str) -> String {
    format!("/api/servers/{}{below}", utf8_percent_encode(name, NON_ALPHANUMERIC))
}

/// The path of a workspace, or of a resource in it.
#[must_use]
pub fn workspace_path(workspace: &str, below: &str) -> String {
    format!("/api/workspaces/{}{below}", segment(workspace))
}

/// A name, encoded as one segment of a path.
#[must_use]
pub fn segment(name: &str) -> String {
    // Characters of ids besides letters and digits are allowed in a path unchanged.
    const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_');
    utf8_percent_encode(name, KEPT).to_string()
}

impl DaemonClient {
    /// Requests a content of any type.
    ///
    /// # Errors
    /// When the daemon cannot be reached, refuses, or sends an unreadable answer.
    pub async fn api_bytes(&self, request: ApiRequest) -> Result<bytes::Bytes, Failure> {
        let ApiRequest { method, path, headers, body } = request;
        let response = self.send(method, &path, headers, body).await?;
        let (status, body) = (response.status, self.body(response).await?);
        match serde_json::from_slice::<Value>(&with_whole_pairs(&body)) {
            _ if status.is_success() => Ok(body),
            Ok(problem) => Err(of_problem(status, &problem)),
            Err(_no_json) => Err(refused(status, &String::from_utf8_lossy(&body))),
        }
    }

    /// Sends a request to the API; returns null for an empty answer.
    ///
    /// # Errors
    /// When the daemon cannot be reached, refuses, or sends an unreadable answer.
    pub async fn api(&self, request: ApiRequest) -> Result<Value, Failure> {
        let ApiRequest { method, path, headers, body } = request;
        let response = self.send(method, &path, headers, body).await?;
        if response.status == StatusCode::NO_CONTENT {
            return Ok(Value::Null);
        }
        let (status, body) = (response.status, self.body(response).await?);
        match serde_json::from_slice::<Value>(&with_whole_pairs(&body)) {
            Ok(value) if status.is_success() => Ok(value),
            Ok(problem) => Err(of_problem(status, &problem)),
            Err(error) if status.is_success() => {
                let text = format!(
                    "the daemon's answer cannot be read, is the daemon of this version? {error}"
                );
                Err(Failure::new(ErrorKind::Invalid, text))
            }
            Err(_) => Err(refused(status, &String::from_utf8_lossy(&body))),
        }
    }

    /// Reads from the API.
    ///
    /// # Errors
    /// When the daemon cannot be reached, refuses, or sends an unreadable answer.
    pub async fn api_get(&self, path: impl Into<String>) -> Result<Value, Failure> {
        self.api(ApiRequest::new(Method::GET, path)).await
    }

    /// The items of all pages of a list.
    ///
    /// # Errors
    /// When the daemon cannot be reached, refuses, or sends an unreadable answer.
    pub async fn api_all(&self, path: &str) -> Result<Vec<Value>, Failure> {
        match self.api_list(path).await?["items"].take() {
            Value::Array(items) => Ok(items),
            other => Err(no_list(&other)),
        }
    }

    /// A list with the items of all its pages, and the further members of its last page.
    ///
    /// # Errors
    /// When the daemon cannot be reached, refuses, or sends an unreadable answer.
    pub async fn api_list(&self, path: &str) -> Result<Value, Failure> {
        let mut items = Vec::new();
        let mut after = String::new();
        let sign = if path.contains('?') { '&' } else { '?' };
        loop {
            let mut page = self.api_get(format!("{path}{sign}limit=100&after={after}")).await?;
            match page["items"].take() {
                Value::Array(of_page) => items.extend(of_page),
                other => return Err(no_list(&other)),
            }
            match page["next"].as_str() {
                Some(next) => after = segment(next),
                None => {
                    page["items"] = Value::Array(items);
                    return Ok(page);
                }
            }
        }
    }

    /// Sends a POST to the API.
    ///
    /// # Errors
    /// When the daemon cannot be reached, refuses, or sends an unreadable answer.
    pub async fn api_post(&self, path: impl Into<String>) -> Result<Value, Failure> {
        self.api(ApiRequest::new(Method::POST, path)).await
    }

    /// Requests a stream of events.
    ///
    /// # Errors
    /// When the daemon cannot be reached, refuses, or sends an unreadable answer.
    pub async fn api_events(&self, method: Method, path: String) -> Result<EventReader, Failure> {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_static("text/event-stream"));
        let response = self.send(method, &path, headers, Payload::default()).await?;
        if response.status == StatusCode::OK
            && has_media_type(&response.headers, "text/event-stream")
        {
            let parser = SseParser::new(self.limits.message_bytes);
            return Ok(EventReader { response, parser });
        }
        let (status, body) = (response.status, self.body(response).await?);
        match serde_json::from_slice::<Value>(&with_whole_pairs(&body)) {
            Ok(problem) => Err(of_problem(status, &problem)),
            Err(_) => Err(refused(status, &String::from_utf8_lossy(&body))),
        }
    }

    pub(super) async fn body(&self, response: HttpResponse) -> Result<bytes::Bytes, Failure> {
        let body = response.body.collect(self.limits.message_bytes).await;
        body.map_err(|error| failure(&error))
    }
}

/// A stream of events from the daemon.
#[derive(Debug)]
pub struct EventReader {
    response: HttpResponse,
    parser: SseParser,
}

impl EventReader {
    /// Waits for the next event; `None` when the daemon has ended the stream.
    ///
    /// # Errors
    /// When the stream breaks off, or the daemon sends an unreadable event.
    pub async fn next(&mut self) -> Result<Option<Value>, Failure> {
        loop {
            let event = self.parser.next_event().map_err(|error| {
                Failure::new(ErrorKind::Exhausted, format!("the daemon sent {error}"))
            })?;
            if let Some(event) = event {
                return serde_json::from_slice(&with_whole_pairs(&event.data)).map(Some).map_err(
                    |error| {
                        let text = format!("the daemon sent an event that is not JSON: {error}");
                        Failure::new(ErrorKind::Invalid, text)
                    },
                );
            }
            let Some(chunk) = self.response.body.chunk().await else { return Ok(None) };
            self.parser.push(chunk.map_err(|error| failure(&error))?);
        }
    }
}

fn no_list(items: &Value) -> Failure {
    let text = format!("the daemon's answer is not a list, is the daemon of this version? {items}");
    Failure::new(ErrorKind::Invalid, text)
}

/// The failure that a problem of the API describes.
pub(super) fn of_problem(status: StatusCode, problem: &Value) -> Failure {
    let kind = ErrorKind::ALL.into_iter().find(|kind| problem["kind"] == kind.as_str());
    match (kind, problem["detail"].as_str()) {
        (Some(kind), Some(detail)) => {
            // Commands in the text are completed so that they reach this daemon from here.
            let (detail, mut errors) = (completed(detail), problem.get("errors").cloned());
            for error in errors.iter_mut().filter_map(Value::as_array_mut).flatten() {
                for member in ["message", "remedy"] {
                    if let Some(text) = error[member].as_str() {
                        error[member] = json!(completed(text));
                    }
                }
            }
            let mut details = errors.map(|errors| json!({ "errors": errors }));
            let mut failed = Failure::new(kind, detail);
            // Faults in files have a code of their own, and failed calls a kind.
            if let Some(failure) = problem.get("failure") {
                let call = CallErrorKind::ALL.into_iter();
                let mut call = call.filter(|kind| failure["kind"] == kind.as_str());
                failed.kind = call.next().map_or(failed.kind, FailureKind::Call);
                details.get_or_insert_with(|| json!({}))["failure"] = failure.clone();
            }
            let problem_code = problem["code"].as_str().map(str::to_owned);
            Failure { problem_code, ..failed.with_details(details) }
        }
        _ => refused(status, &problem.to_string()),
    }
}

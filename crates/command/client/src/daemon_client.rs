//! The client of the daemon's HTTP door, for commands.

mod api;
mod lines;
mod no_answer;
mod operator;
mod token;
mod trust;

use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header};
use narthex_http_client::{ClientSettings, HttpClient, HttpResponse};
use narthex_model::{Alias, ErrorKind, Secret, command::completed, problem_code};
use narthex_wire::{
    Limits, Message, MessageKind, Payload, Raw, Revision, SseParser,
    headers::{HeaderParams, compose_request_headers, has_media_type},
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use url::Url;

use self::token::TokenSource;
pub use self::{
    api::{ApiRequest, EventReader, segment, server_path, workspace_path},
    lines::LineReader,
    no_answer::failure,
    operator::given_token,
};

use crate::{
    DaemonOptions, Failure,
    data_dir::{DaemonState, DataDir, read_client_token},
};

/// Number of characters that are shown of an answer that is not understood.
const REFUSAL_MAX: usize = 200;

/// The client of the daemon of a data directory.
#[derive(Debug)]
pub struct DaemonClient {
    pub state: DaemonState,
    http: HttpClient,
    /// The settings of `http`, for other clients of the same daemon.
    settings: ClientSettings,
    token: Secret,
    /// The place of the token, if the caller gave it.
    source: Option<TokenSource>,
    limits: Limits,
}

impl DaemonClient {
    /// Finds the daemon. Sends no request yet.
    ///
    /// # Errors
    /// When no daemon runs, or its address or token cannot be used.
    pub fn new(options: &DaemonOptions) -> Result<Self, Failure> {
        if options.daemon_url.is_some() {
            let text = format!(
                "this command works only with the daemon of a data directory; use --data instead \
                 of {}",
                options.daemon_url_source
            );
            return Err(Failure::usage(text));
        }
        let data = DataDir::at(&options.data);
        let state = data.daemon()?;
        let token = Secret::new(read_client_token(&data)?.expose());
        Self::with(options, state, token, trust::of_data(&data))
    }

    fn with(
        options: &DaemonOptions,
        state: DaemonState,
        token: Secret,
        settings: ClientSettings,
    ) -> Result<Self, Failure> {
        let url = Url::parse(&state.url).map_err(|error| {
            let text = format!("`{}` is not an address of a daemon: {error}", state.url);
            Failure::new(ErrorKind::Invalid, text)
        })?;
        let http = HttpClient::new(&url, settings.clone()).map_err(|error| failure(&error))?;
        Ok(Self { state, http, settings, token, source: None, limits: options.limits })
    }

    /// The daemon's name in sentences.
    #[must_use]
    pub fn place(&self) -> String {
        format!("the daemon at {}", self.state.url)
    }

    /// The token of the client's requests.
    #[must_use]
    pub fn token(&self) -> &Secret {
        &self.token
    }

    /// The settings of a client of this daemon, with the certificates that it may have.
    #[must_use]
    pub fn settings(&self) -> &ClientSettings {
        &self.settings
    }

    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Sends a modern request to one server's transparent endpoint. `schema` is the input schema of
    /// the called tool, which may want arguments mirrored as headers.
    ///
    /// # Errors
    /// When the daemon cannot be reached, refuses, or sends an unreadable answer.
    pub async fn ask(
        &self,
        alias: &Alias,
        message: Message,
        schema: Option<&str>,
    ) -> Result<Message, Failure> {
        // A schema whose annotations are invalid belongs to a tool that the daemon does not list.
        let params = schema.and_then(|text| HeaderParams::parse(Raw::new(text.as_bytes())).ok());
        let mut headers = compose_request_headers(&message, Revision::LATEST, params.as_ref());
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let accept = HeaderValue::from_static("application/json, text/event-stream");
        headers.insert(header::ACCEPT, accept);
        let path = format!("/mcp/{alias}");
        let body = Payload::from(message.bytes().clone());
        let response = self.send(Method::POST, &path, headers, body).await?;
        match has_media_type(&response.headers, "text/event-stream") {
            true => self.last_of_stream(response).await,
            false => self.single(response).await,
        }
    }

    /// The daemon's servers, each as a `T`.
    ///
    /// # Errors
    /// When the daemon cannot be reached, or sends an unreadable answer.
    pub async fn rows<T: DeserializeOwned>(&self) -> Result<Vec<T>, Failure> {
        let rows = self.api_all("/api/status").await?;
        serde_json::from_value(Value::Array(rows)).map_err(|error| {
            let text = format!(
                "the daemon's status cannot be read, is the daemon of this version? {error}"
            );
            Failure::new(ErrorKind::Invalid, text)
        })
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        headers: HeaderMap,
        body: Payload,
    ) -> Result<HttpResponse, Failure> {
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = path.parse().map_err(|error| {
            Failure::new(ErrorKind::Bug, format!("`{path}` is not a path: {error}"))
        })?;
        *request.headers_mut() = headers;
        let bearer = HeaderValue::from_str(&format!("Bearer {}", self.token.expose()));
        let mut bearer = bearer.map_err(|error| {
            let place = self.source.as_ref().map_or_else(|| self.place(), TokenSource::place);
            let text = format!("the token of {place} cannot be sent: {error}; give another");
            Failure::new(ErrorKind::Invalid, text)
        })?;
        bearer.set_sensitive(true);
        request.headers_mut().insert(header::AUTHORIZATION, bearer);
        let response = self.http.send(request).await.map_err(|error| trust::failure(&error))?;
        match &self.source {
            Some(source) if response.status == StatusCode::UNAUTHORIZED => {
                Err(self.unauthorized(source, response).await)
            }
            _ => Ok(response),
        }
    }

    /// The failure of a request whose token was refused. The daemon's own words are kept if they
    /// say more than that.
    async fn unauthorized(&self, source: &TokenSource, response: HttpResponse) -> Failure {
        let Ok(body) = self.body(response).await else { return source.refused() };
        let problem: Value = serde_json::from_slice(&body).unwrap_or_default();
        match problem["detail"].as_str() {
            Some(detail) if problem["code"] != problem_code::TOKEN_INVALID => {
                Failure::new(ErrorKind::Unauthenticated, completed(detail))
            }
            _ => source.refused(),
        }
    }

    async fn single(&self, response: HttpResponse) -> Result<Message, Failure> {
        let status = response.status;
        let body = response.body.collect(self.limits.message_bytes).await;
        let body = body.map_err(|error| failure(&error))?;
        let text = body.clone();
        Message::parse(body, &self.limits)
            .map_err(|_not_json_rpc| refused(status, &String::from_utf8_lossy(&text)))
    }

    /// The answer at the end of an event stream; earlier messages are skipped.
    async fn last_of_stream(&self, mut response: HttpResponse) -> Result<Message, Failure> {
        let mut parser = SseParser::new(self.limits.message_bytes);
        while let Some(chunk) = response.body.chunk().await {
            parser.push(chunk.map_err(|error| failure(&error))?);
            while let Some(event) = parser.next_event().map_err(|error| {
                Failure::new(ErrorKind::Exhausted, format!("the daemon sent {error}"))
            })? {
                let Ok(message) = Message::parse(event.data, &self.limits) else { continue };
                if matches!(message.kind(), MessageKind::Result | MessageKind::Error) {
                    return Ok(message);
                }
            }
        }
        Err(Failure::new(ErrorKind::Unavailable, "the daemon ended the stream without an answer"))
    }
}

fn refused(status: StatusCode, text: &str) -> Failure {
    let kind = match status {
        StatusCode::UNAUTHORIZED => ErrorKind::Unauthenticated,
        StatusCode::FORBIDDEN => ErrorKind::Denied,
        StatusCode::NOT_FOUND => ErrorKind::NotFound,
        StatusCode::TOO_MANY_REQUESTS => ErrorKind::Exhausted,
        StatusCode::BAD_REQUEST => ErrorKind::Invalid,
        _ => ErrorKind::Unavailable,
    };
    // The daemon's error is JSON, with its text in one member.
    let problem: Option<Value> = serde_json::from_str(text).ok();
    let detail = problem.as_ref().and_then(|problem| problem["detail"].as_str());
    let text = detail.unwrap_or(text);
    // Only the first line is reported, even if the answer is a long page.
    let first = text.trim().lines().next().unwrap_or_default();
    let shown: String = first.chars().take(REFUSAL_MAX).collect();
    let more = if shown.len() < text.trim().len() { " …" } else { "" };
    Failure::new(kind, format!("the daemon answered {status}: {shown}{more}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_of_the_daemon_is_reported_in_one_line() {
        let told = |text: &str| refused(StatusCode::NOT_FOUND, text).message;
        assert_eq!(told("nothing is here\n"), "the daemon answered 404 Not Found: nothing is here");
        let problem = r#"{"status":404,"detail":"there is no such server"}"#;
        let expected = "the daemon answered 404 Not Found: there is no such server";
        assert_eq!(told(problem), expected);
        let page = format!("<html>\n{}", "x".repeat(10_000));
        assert_eq!(told(&page), "the daemon answered 404 Not Found: <html> …");
        assert!(told(&"é".repeat(10_000)).chars().count() < 2 * REFUSAL_MAX);
    }
}

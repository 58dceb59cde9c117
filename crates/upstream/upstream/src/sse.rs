//! HTTP+SSE of revision 2024-11-05 as a duplex link: one stream from the server, and a POST for
//! each message to the server.

use std::{sync::Arc, time::Duration};

use http::{HeaderMap, HeaderValue, Method, Request, header};
use narthex_http_client::{HttpClient, HttpResponse, ResponseBody};
use narthex_wire::{Limits, Payload, SseParser};
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

use crate::{
    LinkError,
    aside::is_large,
    authorization::{Authorization, Resend, operation},
    duplex::{Duplex, Outgoing},
    http::{failure, is_event_stream},
    outlet::Outlet,
};

/// Longest time of one POST, which the server only has to accept.
const POST_DEADLINE: Duration = Duration::from_secs(30);
/// The largest answer to a POST that is read.
const ANSWER_BYTES: usize = 1024 * 1024;

/// A link to a server over HTTP+SSE.
#[derive(Debug)]
pub(crate) struct SseLink {
    pub(crate) duplex: Arc<Duplex>,
}

/// The parameters of a link.
pub(crate) struct SseParts {
    pub(crate) client: HttpClient,
    pub(crate) url: url::Url,
    pub(crate) headers: HeaderMap,
    pub(crate) authorization: Authorization,
    pub(crate) outlet: Outlet,
    pub(crate) limits: Limits,
    pub(crate) tasks: TaskTracker,
}

impl SseLink {
    /// Opens the stream and waits for the `endpoint` event.
    pub(crate) async fn open(parts: SseParts) -> Result<Self, LinkError> {
        let path = parts.url[url::Position::BeforePath..url::Position::AfterQuery].to_owned();
        let get = SseRequest { path: &path, message: None, headers: &parts.headers };
        let response = parts.authorization.send(&parts.client, &get).await?;
        match response.status {
            status if !status.is_success() => return Err(read_failure(response).await?),
            _ if is_event_stream(&response.headers) => {}
            // The body is not read, because it may have no end.
            status => return Err(LinkError::status(status.as_u16())),
        }
        let mut reader = Reader {
            body: response.body,
            parser: SseParser::new(parts.limits.message_bytes),
            limits: parts.limits,
        };
        let endpoint = reader.endpoint(&parts.url).await?;
        let (duplex, queue) = Duplex::new(parts.outlet, None);
        parts.tasks.spawn(reader.run(duplex.clone()));
        let posts = Posts {
            client: parts.client,
            path: endpoint,
            headers: parts.headers,
            authorization: parts.authorization,
        };
        parts.tasks.spawn(write(posts, queue, duplex.clone()));
        Ok(Self { duplex })
    }
}

impl Drop for SseLink {
    fn drop(&mut self) {
        self.duplex.close("it was cancelled");
    }
}

struct Reader {
    body: ResponseBody,
    parser: SseParser,
    limits: Limits,
}

impl Reader {
    async fn event(&mut self) -> Result<Option<narthex_wire::SseEvent>, LinkError> {
        loop {
            let unusable = |error: narthex_wire::SseError| LinkError::Protocol(error.to_string());
            if let Some(event) = self.parser.next_event().map_err(unusable)? {
                return Ok(Some(event));
            }
            match self.body.chunk().await {
                Some(chunk) => self.parser.push(chunk?),
                None => return Ok(None),
            }
        }
    }

    /// The path for messages. It must be at the server's origin, because narthex sends the
    /// credentials there.
    async fn endpoint(&mut self, base: &url::Url) -> Result<String, LinkError> {
        while let Some(event) = self.event().await? {
            if event.event.as_deref() != Some(b"endpoint") {
                continue;
            }
            let text = String::from_utf8_lossy(&event.data).into_owned();
            let joined = base.join(text.trim()).ok().filter(|url| url.origin() == base.origin());
            let Some(url) = joined else {
                let why = "its endpoint event names another origin";
                return Err(LinkError::Protocol(why.to_owned()));
            };
            return Ok(url[url::Position::BeforePath..url::Position::AfterQuery].to_owned());
        }
        Err(LinkError::Protocol("the stream ended before its endpoint event".to_owned()))
    }

    async fn run(mut self, duplex: Arc<Duplex>) {
        let why = loop {
            let event = tokio::select! {
                biased;
                () = duplex.closed().cancelled() => return,
                event = self.event() => event,
            };
            match event {
                Ok(Some(event)) if event.data.is_empty() => {}
                Ok(Some(event)) if is_large(&event.data) => tokio::select! {
                    biased;
                    () = duplex.closed().cancelled() => return,
                    () = duplex.take_large(event.data, self.limits) => {}
                },
                Ok(Some(event)) => duplex.take(&event.data, &self.limits),
                Ok(None) => break "the server closed the event stream".to_owned(),
                Err(error) => break error.to_string(),
            }
        };
        duplex.close(&why);
    }
}

/// The way of messages to the server.
struct Posts {
    client: HttpClient,
    path: String,
    headers: HeaderMap,
    authorization: Authorization,
}

async fn write(posts: Posts, mut queue: mpsc::Receiver<Outgoing>, duplex: Arc<Duplex>) {
    loop {
        let Outgoing { payload, request } = tokio::select! {
            biased;
            () = duplex.closed().cancelled() => return,
            outgoing = queue.recv() => match outgoing {
                Some(outgoing) => outgoing,
                None => return,
            },
        };
        let posting = tokio::time::timeout(POST_DEADLINE, posts.post(payload));
        let posted = tokio::select! {
            biased;
            () = duplex.closed().cancelled() => return,
            posted = posting => posted,
        };
        let error = match posted {
            Ok(Ok(None)) => continue,
            Ok(Ok(Some(LinkError::Status { status: 404 | 410, .. }))) => {
                // The server refused only this message: it accepted the messages before.
                if let Some(id) = request {
                    duplex.fail(id, LinkError::SessionEnded);
                }
                return duplex.end(LinkError::SessionEnded);
            }
            Ok(Ok(Some(refused))) => refused,
            Ok(Err(error)) => return duplex.close(&error.to_string()),
            Err(_) => return duplex.close("the server did not accept a message in time"),
        };
        duplex.outlet().blame(&error);
        // The link continues after a message that the server refuses.
        match request {
            Some(id) => duplex.fail(id, error),
            None => {
                let error = duplex.outlet().redacted(error);
                tracing::debug!(%error, "a message to the server was not accepted");
            }
        }
    }
}

impl Posts {
    /// Sends a message. Returns the server's failure if the server does not accept the message.
    async fn post(&self, payload: Payload) -> Result<Option<LinkError>, LinkError> {
        let message = Some(&payload);
        let request = SseRequest { path: &self.path, message, headers: &self.headers };
        let response = match self.authorization.send(&self.client, &request).await {
            // The link continues: only this message has no credential.
            Err(error @ (LinkError::SignIn { .. } | LinkError::AuthRejected { .. })) => {
                return Ok(Some(error));
            }
            sent => sent?,
        };
        if response.status.is_success() {
            response.body.collect(ANSWER_BYTES).await?;
            return Ok(None);
        }
        read_failure(response).await.map(Some)
    }
}

/// Reads the failure in an answer.
async fn read_failure(response: HttpResponse) -> Result<LinkError, LinkError> {
    let HttpResponse { status, headers, body, .. } = response;
    let bytes = body.collect(ANSWER_BYTES).await?;
    Ok(failure((status, &headers), &bytes, &Limits { message_bytes: ANSWER_BYTES }))
}

/// The request for the stream, or one message.
struct SseRequest<'a> {
    path: &'a str,
    message: Option<&'a Payload>,
    headers: &'a HeaderMap,
}

impl Resend for SseRequest<'_> {
    fn build(&self, authorization: Option<&HeaderValue>) -> Result<Request<Payload>, LinkError> {
        let (method, (name, value)) = match self.message {
            None => (Method::GET, (header::ACCEPT, "text/event-stream")),
            Some(_) => (Method::POST, (header::CONTENT_TYPE, "application/json")),
        };
        let body = self.message.cloned().unwrap_or_default();
        let built = Request::builder().method(method).uri(self.path).body(body);
        let mut request = built.map_err(|error| LinkError::Protocol(error.to_string()))?;
        let mut headers = self.headers.clone();
        let uncoded = HeaderValue::from_static("identity");
        headers.entry(header::ACCEPT_ENCODING).or_insert(uncoded);
        headers.insert(name, HeaderValue::from_static(value));
        if let Some(value) = authorization {
            headers.insert(header::AUTHORIZATION, value.clone());
        }
        *request.headers_mut() = headers;
        Ok(request)
    }

    fn operation(&self) -> String {
        match self.message {
            Some(message) => operation(message, &Limits::default()),
            None => Method::GET.to_string(),
        }
    }
}

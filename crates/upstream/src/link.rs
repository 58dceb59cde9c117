//! One live link to one server, whatever transport and era it speaks.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::HeaderMap;
use narthex_model::Alias;
use narthex_policy::{Item, Permitted, Request};
use narthex_wire::{
    Message, Payload, Raw, Revision, Rewrite,
    headers::{self, HeaderParams},
    meta_key, method, rpc,
};
use tokio_util::sync::CancellationToken;

use crate::{
    Frame, LinkError, LinkEvent,
    duplex::{DuplexCall, Wants},
    http::{HttpCall, HttpLink},
    sse::SseLink,
    stdio::StdioLink,
};

/// A link that has shaken hands.
#[derive(Debug)]
pub struct Link {
    pub(crate) inner: Inner,
    pub(crate) facts: ServerFacts,
    pub(crate) identity: ClientIdentity,
    pub(crate) alias: Alias,
}

/// The transports.
#[derive(Debug)]
pub(crate) enum Inner {
    Stdio(StdioLink),
    Http(Arc<HttpLink>),
    Sse(SseLink),
}

/// What we say of the client when we shake hands with a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientIdentity {
    /// `clientInfo`, a JSON object.
    pub info: Bytes,
    /// `capabilities`, a JSON object.
    pub capabilities: Bytes,
    /// The legacy revision to propose.
    pub revision: Revision,
}

/// What a server said of itself.
#[derive(Debug, Clone)]
pub struct ServerFacts {
    /// The revision in use.
    pub revision: Revision,
    /// The result of `initialize` or `server/discover`, byte for byte.
    pub result: Bytes,
    /// The parts of its capabilities that matter here.
    pub capabilities: ServerCapabilities,
}

/// Which primitives a server has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is one independent member on the wire")]
pub struct ServerCapabilities {
    /// Tools.
    pub tools: bool,
    /// Prompts.
    pub prompts: bool,
    /// Resources and templates.
    pub resources: bool,
    /// Subscriptions to single resources.
    pub subscribe: bool,
    /// Argument completion.
    pub completions: bool,
    /// Log messages.
    pub logging: bool,
    /// Tasks, of either era.
    pub tasks: bool,
}

/// What belongs to one hop of one request.
#[derive(Debug, Clone, Default)]
pub struct Hop {
    /// Which arguments the tool wants mirrored as headers.
    pub header_params: Option<Arc<HeaderParams>>,
}

/// A request on its way. Dropping it before the answer cancels it at the server.
#[derive(Debug)]
pub struct Forwarded(Call);

#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "the common variant must not cost an allocation")]
enum Call {
    Duplex(DuplexCall),
    Http(HttpCall),
}

impl Link {
    /// What the server said of itself.
    #[must_use]
    pub fn facts(&self) -> &ServerFacts {
        &self.facts
    }

    /// The name under which the server is attached, for logs.
    #[must_use]
    pub fn name(&self) -> &str {
        self.alias.as_str()
    }

    /// The alias under which the server is attached.
    #[must_use]
    pub fn alias(&self) -> &Alias {
        &self.alias
    }

    /// What we said of the client.
    #[must_use]
    pub fn identity(&self) -> &ClientIdentity {
        &self.identity
    }

    /// Whether requests must carry the headers of revision 2026-07-28.
    #[must_use]
    pub fn needs_headers(&self) -> bool {
        self.facts.revision.is_modern() && matches!(self.inner, Inner::Http(_))
    }

    /// Whether the server's messages outside a call cannot be told apart by call.
    #[must_use]
    pub fn is_one_channel(&self) -> bool {
        !matches!(self.inner, Inner::Http(_))
    }

    /// The child's process id, for stdio.
    #[must_use]
    pub fn process_id(&self) -> Option<u32> {
        match &self.inner {
            Inner::Stdio(stdio) => Some(stdio.process_id()),
            Inner::Http(_) | Inner::Sse(_) => None,
        }
    }

    /// The last lines of the child's stderr, for stdio.
    #[must_use]
    pub fn log_tail(&self) -> Vec<String> {
        match &self.inner {
            Inner::Stdio(stdio) => stdio.log_tail(),
            Inner::Http(_) | Inner::Sse(_) => Vec::new(),
        }
    }

    /// Cancelled when the link has ended.
    #[must_use]
    pub fn closed(&self) -> &CancellationToken {
        match &self.inner {
            Inner::Stdio(stdio) => stdio.duplex.closed(),
            Inner::Http(http) => http.closed(),
            Inner::Sse(sse) => sse.duplex.closed(),
        }
    }

    /// Forwards what policy allowed.
    ///
    /// # Errors
    /// When the request cannot be sent, or fails before the first frame.
    pub async fn forward(
        &self,
        permitted: Permitted<Request>,
        hop: Hop,
    ) -> Result<Forwarded, LinkError> {
        let Request { message, item, rewrite, alias: _ } = permitted.into_inner();
        let headers = self.headers_for(&message, &item, &hop)?;
        self.send_request(&message, rewrite, headers).await
    }

    /// Forwards a notification that policy allowed.
    ///
    /// # Errors
    /// When it cannot be sent.
    pub async fn notify(&self, permitted: Permitted<Request>) -> Result<(), LinkError> {
        let Request { message, item, rewrite, alias: _ } = permitted.into_inner();
        let headers = self.headers_for(&message, &item, &Hop::default())?;
        self.send(rewrite.apply(&message), headers).await
    }

    /// Sends the client's response to a request of the server.
    ///
    /// # Errors
    /// When it cannot be sent.
    pub async fn respond(&self, response: Payload) -> Result<(), LinkError> {
        self.send(response, HeaderMap::new()).await
    }

    async fn send(&self, payload: Payload, headers: HeaderMap) -> Result<(), LinkError> {
        match &self.inner {
            Inner::Stdio(stdio) => stdio.duplex.send(payload).await,
            Inner::Sse(sse) => sse.duplex.send(payload).await,
            Inner::Http(http) => http.send(payload, headers).await,
        }
    }

    fn headers_for(
        &self,
        message: &Message,
        item: &Item,
        hop: &Hop,
    ) -> Result<HeaderMap, LinkError> {
        if !self.needs_headers() {
            return Ok(HeaderMap::new());
        }
        let revision = self.facts.revision;
        let mut composed =
            headers::compose_request_headers(message, revision, hop.header_params.as_deref());

        if composed.contains_key(headers::MCP_NAME) && !item.name().is_empty() {
            // The server's own name, which may differ from the one in the caller's bytes.
            composed.insert(headers::MCP_NAME, headers::encode_value(item.name()));
        }
        Ok(composed)
    }

    async fn send_request(
        &self,
        message: &Message,
        mut rewrite: Rewrite<'static>,
        headers: HeaderMap,
    ) -> Result<Forwarded, LinkError> {
        let id = match &self.inner {
            Inner::Stdio(stdio) => stdio.duplex.next_id(),
            Inner::Sse(sse) => sse.duplex.next_id(),
            Inner::Http(http) => http.next_id(),
        };
        let raw_id = id.to_string().into_bytes();
        let has_progress = message.meta_value(meta_key::PROGRESS_TOKEN).is_some();
        if has_progress {
            rewrite.meta.set(meta_key::PROGRESS_TOKEN, raw_id.clone());
        }
        rewrite.id = Some(raw_id.into());
        let payload = rewrite.apply(message);
        let wants = Wants {
            progress: has_progress || message.method() == method::SUBSCRIPTIONS_LISTEN,
            cancel: message.method() != method::INITIALIZE,
        };
        let call = match &self.inner {
            Inner::Stdio(stdio) => Call::Duplex(stdio.duplex.request(id, payload, wants).await?),
            Inner::Sse(sse) => Call::Duplex(sse.duplex.request(id, payload, wants).await?),
            Inner::Http(http) => Call::Http(http.call(id, payload, headers).await?),
        };
        Ok(Forwarded(call))
    }

    /// Asks the server something on our own behalf: lists, ping. `members` are further members of
    /// `params`, as JSON text without braces.
    ///
    /// # Errors
    /// When no answer comes.
    pub async fn ask(&self, method: &str, members: &[u8]) -> Result<Message, LinkError> {
        let message = self.own_request(method, members)?;
        let headers = self.headers_for(&message, &Item::Server, &Hop::default())?;
        let mut call = self.send_request(&message, Rewrite::default(), headers).await?;
        loop {
            if let Frame::Answer(answer) = call.next().await? {
                return Ok(answer);
            }
        }
    }

    /// Opens a modern server's stream of changes and feeds it to the link's events until it ends.
    /// `members` is the filter, as members of `params` without braces.
    ///
    /// # Errors
    /// When the stream cannot be opened, breaks, or the server refuses.
    pub async fn listen(&self, members: &[u8]) -> Result<(), LinkError> {
        let message = self.own_request(method::SUBSCRIPTIONS_LISTEN, members)?;
        let headers = self.headers_for(&message, &Item::Server, &Hop::default())?;
        let mut call = self.send_request(&message, Rewrite::default(), headers).await?;
        loop {
            match call.next().await? {
                Frame::Notification(message)
                    if message.method() == method::SUBSCRIPTIONS_ACKNOWLEDGED => {}
                Frame::Notification(message) => self.event(LinkEvent::Notification(message)),
                Frame::Request(_) | Frame::Break { .. } => {}
                Frame::Answer(answer) => {
                    return match answer.error_code() {
                        None => Ok(()),
                        Some(code) => Err(LinkError::Protocol(format!("error {code} to listen"))),
                    };
                }
            }
        }
    }

    fn event(&self, event: LinkEvent) {
        match &self.inner {
            Inner::Stdio(stdio) => stdio.duplex.announce(event),
            Inner::Http(http) => http.event(event),
            Inner::Sse(sse) => sse.duplex.announce(event),
        }
    }

    fn own_request(&self, method: &str, members: &[u8]) -> Result<Message, LinkError> {
        let mut params = Vec::with_capacity(members.len() + 200);
        params.push(b'{');
        params.extend_from_slice(members);
        if self.facts.revision.is_modern() {
            if !members.is_empty() {
                params.push(b',');
            }
            params.extend_from_slice(&modern_meta(&self.identity));
        }
        params.push(b'}');
        let payload = rpc::request(Raw::new(b"0"), method, Some(&params));
        let limits = narthex_wire::Limits::default();
        Message::parse(payload.into_bytes(), &limits)
            .map_err(|error| LinkError::Request(error.to_string()))
    }

    /// Stops the link: a child is ended with its whole group, a session is given back.
    pub async fn stop(&self) {
        match &self.inner {
            Inner::Stdio(stdio) => stdio.stop().await,
            Inner::Http(http) => http.stop(Duration::from_secs(2)).await,
            Inner::Sse(sse) => sse.duplex.close("it was stopped"),
        }
    }
}

/// The `_meta` member that a modern request of ours carries.
pub(crate) fn modern_meta(identity: &ClientIdentity) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    let revision = Revision::LATEST.as_str();
    out.extend_from_slice(
        format!(
            r#""_meta":{{"{}":"{revision}","{}":"#,
            meta_key::PROTOCOL_VERSION,
            meta_key::CLIENT_INFO
        )
        .as_bytes(),
    );
    out.extend_from_slice(&identity.info);
    out.extend_from_slice(format!(r#","{}":"#, meta_key::CLIENT_CAPABILITIES).as_bytes());
    out.extend_from_slice(&identity.capabilities);
    out.push(b'}');
    out
}

impl Forwarded {
    /// The next frame; nothing follows an answer. Safe to drop and call again.
    ///
    /// # Errors
    /// When the link fails before the answer.
    pub async fn next(&mut self) -> Result<Frame, LinkError> {
        match &mut self.0 {
            Call::Duplex(call) => call.next().await,
            Call::Http(call) => call.next().await,
        }
    }
}

impl ServerCapabilities {
    /// Reads the `capabilities` member of an initialize or discover result.
    #[must_use]
    pub fn read(capabilities: Option<Raw<'_>>) -> Self {
        let Some(declared) = capabilities else { return Self::default() };
        let has = |name| declared.get(name).is_some_and(Raw::is_object);
        let resources = declared.get("resources");
        let extensions = declared.get("extensions");
        let tasks = extensions.and_then(|all| all.get("io.modelcontextprotocol/tasks"));
        Self {
            tools: has("tools"),
            prompts: has("prompts"),
            resources: has("resources"),
            subscribe: resources
                .and_then(|resources| resources.get("subscribe")?.as_bool())
                .unwrap_or_default(),
            completions: has("completions"),
            logging: has("logging"),
            tasks: has("tasks") || tasks.is_some(),
        }
    }
}

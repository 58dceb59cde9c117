//! Reaching a server and finding out which era it speaks (both sides may speak several).

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use narthex_model::{HttpTarget, ServerAuth, ServerDefinition, Target};
use narthex_supervisor::{BaseEnvironment, Redact, SpawnError};
use narthex_wire::{
    Limits, Message, MessageKind, Payload, Raw, Revision,
    headers::{MCP_METHOD, MCP_PROTOCOL_VERSION, MCP_SESSION_ID},
    method, rpc,
};
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

use crate::{
    Frame, LinkError, LinkEvent,
    client::{ClientError, ClientSettings, HttpClient},
    duplex::Wants,
    http::{HttpLink, HttpParts, is_event_stream},
    link::{ClientIdentity, Inner, Link, ServerCapabilities, ServerFacts, modern_meta},
    sse::{SseLink, SseParts},
    stdio::{StdioContext, StdioLink},
};

/// Which way of talking a server was found to understand; kept, so that later links ask less.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Revision 2026-07-28.
    Modern,
    /// The `initialize` handshake.
    Legacy,
    /// The `initialize` handshake over HTTP+SSE.
    Sse,
}

/// How long the steps of a connection may take.
#[derive(Debug, Clone, Copy)]
pub struct Deadlines {
    /// How long a silent server may leave the era probe unanswered.
    pub probe: Duration,
    /// The whole handshake, once the program runs.
    pub connect: Duration,
    /// The first answer of a program that a package runner may have to download first.
    pub install: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            probe: Duration::from_secs(5),
            connect: Duration::from_secs(30),
            install: Duration::from_secs(300),
        }
    }
}

/// Everything that connecting needs besides the definition.
#[derive(Clone)]
pub struct ConnectContext {
    /// What we say of the client.
    pub identity: ClientIdentity,
    /// What an earlier link found out.
    pub dialect: Option<Dialect>,
    /// The steps' limits.
    pub deadlines: Deadlines,
    /// Where the server's own messages go.
    pub events: mpsc::Sender<LinkEvent>,
    /// The owner of the link's tasks.
    pub tasks: TaskTracker,
    /// Limits of single messages.
    pub limits: Limits,
    /// The environment that every child gets.
    pub environment: BaseEnvironment,
    /// Takes known secrets out of a child's log lines.
    pub redact: Option<Redact>,
}

/// Why a server could not be connected.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The program could not be started.
    #[error("{0}")]
    Spawn(#[source] SpawnError),
    /// The URL cannot be used.
    #[error("{0}")]
    Client(#[source] ClientError),
    /// The handshake failed.
    #[error("{0}")]
    Link(#[source] LinkError),
    /// The server answered the handshake with an error.
    #[error("the server refuses the handshake: {0}")]
    Refused(String),
    /// A header of the configuration is none.
    #[error("`{0}` is no valid header name or value")]
    Header(String),
    /// The configured authentication cannot work.
    #[error("{0}")]
    Auth(String),
    /// Nothing came in time.
    #[error("no answer to the handshake within {} s{hint}", .after.as_secs())]
    Deadline {
        /// The limit.
        after: Duration,
        /// What the program last said, if anything.
        hint: String,
    },
}

impl ConnectError {
    /// The kind of the row's error (E62, E63).
    #[must_use]
    pub fn call_kind(&self) -> narthex_model::CallErrorKind {
        use narthex_model::CallErrorKind as Kind;
        match self {
            Self::Auth(_) | Self::Link(LinkError::AuthRejected { .. }) => Kind::AuthUnavailable,
            Self::Deadline { .. } => Kind::Timeout,
            Self::Spawn(_)
            | Self::Client(_)
            | Self::Link(_)
            | Self::Refused(_)
            | Self::Header(_) => Kind::TransportError,
        }
    }
}

impl From<LinkError> for ConnectError {
    fn from(error: LinkError) -> Self {
        Self::Link(error)
    }
}

/// Connects to a server; the dialect it was found to understand comes with the link.
///
/// # Errors
/// When the server cannot be reached or does not complete a handshake in time.
pub async fn connect(
    definition: &ServerDefinition,
    context: &ConnectContext,
) -> Result<(Link, Dialect), ConnectError> {
    match &definition.target {
        Target::Stdio(_) => crate::connect_stdio::connect(definition, context).await,
        Target::Http(target) => {
            let within = context.deadlines.connect;
            let connecting = connect_http(definition, target, context);
            tokio::time::timeout(within, connecting)
                .await
                .map_err(|_elapsed| ConnectError::Deadline { after: within, hint: String::new() })?
        }
    }
}

async fn connect_http(
    definition: &ServerDefinition,
    target: &HttpTarget,
    context: &ConnectContext,
) -> Result<(Link, Dialect), ConnectError> {
    let headers = static_headers(target)?;
    let url = url::Url::parse(&target.url)
        .map_err(|error| ConnectError::Refused(format!("its URL is invalid: {error}")))?;
    let client = HttpClient::new(&url, ClientSettings::default()).map_err(ConnectError::Client)?;
    let alias = definition.alias.clone();
    let dialect = if target.is_sse { Some(Dialect::Sse) } else { context.dialect };
    let link = |inner, facts| Link { inner, facts, identity: context.identity.clone(), alias };
    let path = url[url::Position::BeforePath..url::Position::AfterQuery].parse();
    let path = path.map_err(|_invalid| ConnectError::Refused("its URL has no path".to_owned()))?;
    let http = HttpLink::new(HttpParts {
        client: client.clone(),
        path,
        headers: headers.clone(),
        events: context.events.clone(),
        limits: context.limits,
        tasks: context.tasks.clone(),
    });
    if matches!(dialect, None | Some(Dialect::Modern))
        && let Some(facts) = probe_http(&http, &context.identity, context.deadlines).await?
    {
        http.established(facts.revision, None);
        return Ok((link(Inner::Http(http), facts), Dialect::Modern));
    }
    if dialect != Some(Dialect::Sse) {
        match initialize_http(&http, &context.identity).await {
            Ok(facts) => return Ok((link(Inner::Http(http), facts), Dialect::Legacy)),
            Err(ConnectError::Link(LinkError::Status {
                status: 400 | 404 | 405 | 406 | 415,
                ..
            })) => {}
            Err(error) => return Err(error),
        }
    }
    let parts = SseParts {
        client,
        url,
        headers,
        events: context.events.clone(),
        limits: context.limits,
        tasks: context.tasks.clone(),
    };
    let sse = SseLink::open(parts).await?;
    let facts = initialize_duplex(&sse.duplex, &context.identity).await?;
    Ok((link(Inner::Sse(sse), facts), Dialect::Sse))
}

/// Static headers and the credential (E22, E62). Nothing is sent if they cannot work.
fn static_headers(target: &HttpTarget) -> Result<HeaderMap, ConnectError> {
    let mut headers = HeaderMap::new();
    let mut insert = |name: &str, value: &str| {
        let invalid = || ConnectError::Header(name.to_owned());
        let key = http::HeaderName::from_bytes(name.as_bytes()).map_err(|_invalid| invalid())?;
        let mut value = HeaderValue::from_str(value).map_err(|_invalid| invalid())?;
        value.set_sensitive(true);
        headers.insert(key, value);
        Ok::<(), ConnectError>(())
    };
    for (name, value) in &target.headers {
        insert(name, value.expose())?;
    }
    match &target.auth {
        ServerAuth::None => {}
        ServerAuth::NotYet { mode } => {
            return Err(ConnectError::Auth(format!("auth mode `{mode}` is not supported yet")));
        }
        ServerAuth::ApiKey(auth) => {
            let Some(key) = &auth.key else {
                let why =
                    "auth mode apiKey needs a key: set `auth.key`, for example to ${env:NAME}";
                return Err(ConnectError::Auth(why.to_owned()));
            };
            insert(&auth.header_name, &format!("{}{}", auth.value_prefix, key.expose()))?;
        }
    }
    Ok(headers)
}

/// Asks for revision 2026-07-28; `None` if the server does not speak it.
async fn probe_http(
    http: &Arc<HttpLink>,
    identity: &ClientIdentity,
    deadlines: Deadlines,
) -> Result<Option<ServerFacts>, ConnectError> {
    let mut extra = HeaderMap::new();
    extra.insert(MCP_PROTOCOL_VERSION, HeaderValue::from_static(Revision::LATEST.as_str()));
    extra.insert(MCP_METHOD, HeaderValue::from_static(method::SERVER_DISCOVER));
    let asking = exchange(http, discover(http.next_id(), identity), extra);
    match tokio::time::timeout(deadlines.probe, asking).await {
        Ok(Ok((message, session))) => {
            drop_leaked_session(http, session).await;
            Ok(modern_facts(&message))
        }
        Ok(Err(error @ (LinkError::Client(_) | LinkError::AuthRejected { .. }))) => {
            Err(error.into())
        }
        // Whatever else an old server makes of it: the handshake will tell.
        Ok(Err(_)) | Err(_) => Ok(None),
    }
}

/// Some servers open a session even for a request that they refuse.
async fn drop_leaked_session(http: &Arc<HttpLink>, session: Option<HeaderValue>) {
    if let Some(session) = session {
        let mut request = http::Request::new(Payload::default());
        *request.method_mut() = Method::DELETE;
        *request.uri_mut() = http.path().clone();
        request.headers_mut().insert(MCP_SESSION_ID, session);
        if let Err(error) = http.client.send(request).await {
            tracing::debug!(%error, "could not give back a session that was not asked for");
        }
    }
}

async fn initialize_http(
    http: &Arc<HttpLink>,
    identity: &ClientIdentity,
) -> Result<ServerFacts, ConnectError> {
    let body = initialize(http.next_id(), identity);
    let (message, session) = exchange(http, body, HeaderMap::new()).await?;
    let facts = legacy_facts(&message)?;
    let has_session = session.is_some();
    http.established(facts.revision, session);
    http.send(rpc::notification(method::INITIALIZED, None), HeaderMap::new()).await?;
    if has_session {
        // Before the first call: a server may answer or ask on this stream (no replay exists for
        // what it sends earlier).
        match http.open_stream(None).await {
            Ok(body) => http.listen(body),
            Err(LinkError::Status { status, .. })
                if status == StatusCode::METHOD_NOT_ALLOWED.as_u16() => {}
            Err(error) => tracing::debug!(%error, "the server has no stream of its own"),
        }
    }
    Ok(facts)
}

/// One request outside any established session, with the session id that came with the answer.
async fn exchange(
    http: &Arc<HttpLink>,
    (id, body): (u64, Payload),
    extra: HeaderMap,
) -> Result<(Message, Option<HeaderValue>), LinkError> {
    let response = http.post(body, extra).await?;
    let session = response.headers.get(MCP_SESSION_ID).cloned();
    if is_event_stream(&response.headers) && response.status.is_success() {
        let mut stream = http.stream(id, response.body);
        loop {
            if let Frame::Answer(message) = stream.next().await? {
                return Ok((message, session));
            }
        }
    }
    Ok((http.single(response).await?, session))
}

pub(crate) fn discover(id: u64, identity: &ClientIdentity) -> (u64, Payload) {
    let params = [b"{", &modern_meta(identity)[..], b"}"].concat();
    let text = id.to_string();
    (id, rpc::request(Raw::new(text.as_bytes()), method::SERVER_DISCOVER, Some(&params)))
}

pub(crate) fn initialize(id: u64, identity: &ClientIdentity) -> (u64, Payload) {
    let mut params =
        format!(r#"{{"protocolVersion":"{}","capabilities":"#, identity.revision).into_bytes();
    params.extend_from_slice(&identity.capabilities);
    params.extend_from_slice(br#","clientInfo":"#);
    params.extend_from_slice(&identity.info);
    params.push(b'}');
    let text = id.to_string();
    (id, rpc::request(Raw::new(text.as_bytes()), method::INITIALIZE, Some(&params)))
}

pub(crate) async fn initialize_duplex(
    duplex: &Arc<crate::duplex::Duplex>,
    identity: &ClientIdentity,
) -> Result<ServerFacts, ConnectError> {
    let (id, body) = initialize(duplex.next_id(), identity);
    let message = ask_duplex(duplex, id, body).await?;
    let facts = legacy_facts(&message)?;
    duplex.send(rpc::notification(method::INITIALIZED, None)).await?;
    Ok(facts)
}

pub(crate) async fn ask_duplex(
    duplex: &Arc<crate::duplex::Duplex>,
    id: u64,
    body: Payload,
) -> Result<Message, LinkError> {
    let mut call = duplex.request(id, body, Wants { progress: false, cancel: false }).await?;
    loop {
        if let Frame::Answer(message) = call.next().await? {
            return Ok(message);
        }
    }
}

/// The facts in a discover answer, if the server speaks our modern revision.
pub(crate) fn modern_facts(message: &Message) -> Option<ServerFacts> {
    if message.kind() != MessageKind::Result {
        return None;
    }
    let speaks = |raw: Raw<'_>| raw.as_str().is_some_and(|text| text == Revision::LATEST.as_str());
    if !message.get("supportedVersions")?.items().into_iter().any(speaks) {
        return None;
    }
    Some(ServerFacts {
        revision: Revision::LATEST,
        result: body(message),
        capabilities: ServerCapabilities::read(message.get("capabilities")),
    })
}

fn legacy_facts(message: &Message) -> Result<ServerFacts, ConnectError> {
    if message.kind() == MessageKind::Error {
        let text = message.get("message").and_then(Raw::as_str).unwrap_or_default();
        return Err(ConnectError::Refused(text.into_owned()));
    }
    let named = message.get("protocolVersion").and_then(Raw::as_str).unwrap_or_default();
    let revision = Revision::parse(&named).filter(|revision| !revision.is_modern());
    let Some(revision) = revision else {
        return Err(ConnectError::Refused(format!("it speaks only revision `{named}`")));
    };
    Ok(ServerFacts {
        revision,
        result: body(message),
        capabilities: ServerCapabilities::read(message.get("capabilities")),
    })
}

fn body(message: &Message) -> Bytes {
    let raw = message.body_raw().map_or(&b"{}"[..], Raw::as_bytes);
    Bytes::copy_from_slice(raw)
}

/// Starts a child; separate from the handshake, because a child that dies of the probe is started
/// again.
pub(crate) async fn start(
    definition: &ServerDefinition,
    context: &ConnectContext,
) -> Result<StdioLink, ConnectError> {
    let Target::Stdio(target) = &definition.target else {
        return Err(ConnectError::Refused("it is no program".to_owned()));
    };
    let stdio = StdioContext {
        name: definition.alias.to_string(),
        environment: context.environment.clone(),
        redact: context.redact.clone(),
        limits: context.limits,
        tasks: context.tasks.clone(),
    };
    StdioLink::start(target, &stdio, context.events.clone()).await.map_err(ConnectError::Spawn)
}

//! The handshake over HTTP, which finds the era and the transport of a server.

use std::{sync::Arc, time::Duration};

use http::{HeaderMap, HeaderValue};
use narthex_http_client::{ClientSettings, HttpClient};
use narthex_model::{HttpTarget, ServerAuth, basic_credentials, for_operators};
use narthex_wire::{
    Message, Payload, Revision,
    headers::{MCP_METHOD, MCP_PROTOCOL_VERSION, MCP_SESSION_ID},
    method, rpc,
};

use crate::{
    ConnectError, Dialect, Frame, LinkError, LinkEvent,
    authorization::Authorization,
    connect::{Setup, Shaken},
    handshake::{discover, initialize, initialize_duplex, legacy_facts, modern_facts},
    http::{HttpLink, HttpParts, OwnedHttp, is_event_stream},
    link::{ClientIdentity, Inner, ServerFacts},
    sse::{SseLink, SseParts},
};

/// Longest wait for the end of a session that narthex does not use.
const LEAK_DEADLINE: Duration = Duration::from_secs(2);
/// Longest wait for the server's own stream before the first call.
const STREAM_DEADLINE: Duration = Duration::from_secs(2);

pub(crate) async fn shake(setup: &Setup<'_>, target: &HttpTarget) -> Result<Shaken, ConnectError> {
    let context = setup.context;
    let credentials = setup.context.credentials.clone();
    let has_holder = setup.context.has_holder;
    let authorization = Authorization::new(credentials, has_holder, setup.redaction.clone());
    let headers = static_headers(target, authorization.changes())?;
    let url = url::Url::parse(&target.url).map_err(|error| ConnectError::Url(error.to_string()))?;
    let settings = ClientSettings { proxies: context.proxies.clone(), ..ClientSettings::default() };
    let client = HttpClient::new(&url, settings).map_err(ConnectError::Client)?;
    let dialect = if target.is_sse { Some(Dialect::Sse) } else { context.dialect };
    let mut refusal = None;
    // A token that must be requested first does not count toward the time of the probe.
    let is_authorized = authorization.value().await?.is_some();
    if dialect != Some(Dialect::Sse) {
        let path = url[url::Position::BeforePath..url::Position::AfterQuery].parse();
        let path =
            path.map_err(|_invalid| ConnectError::Url("it has no usable path".to_owned()))?;
        let http = HttpLink::open(HttpParts {
            client: client.clone(),
            path,
            headers: headers.clone(),
            authorization: authorization.clone(),
            is_authorized,
            auth_error: target.auth.auth_error().cloned(),
            outlet: setup.outlet(),
            limits: context.limits,
            tasks: context.tasks.clone(),
        });
        match shake_streamable(setup, http, dialect).await {
            Err(error) if error.link().is_some_and(may_be_sse) => refusal = Some(error),
            shaken => return shaken,
        }
    }
    let parts = SseParts {
        client,
        url,
        headers,
        authorization,
        outlet: setup.outlet(),
        limits: context.limits,
        tasks: context.tasks.clone(),
    };
    match SseLink::open(parts).await {
        Ok(sse) => {
            let facts = initialize_duplex(&sse.duplex, &context.identity).await?;
            Ok((Inner::Sse(sse), facts, Dialect::Sse))
        }
        // The server is no HTTP+SSE server either: the refusal from Streamable HTTP explains more.
        Err(LinkError::Status { .. } | LinkError::Protocol(_)) if refusal.is_some() => {
            Err(refusal.unwrap_or_else(unknown))
        }
        Err(error) => Err(error.into()),
    }
}

fn unknown() -> ConnectError {
    ConnectError::Refused("it supports no transport that narthex knows".to_owned())
}

/// True if servers of the older transport refuse a first POST with this status.
fn may_be_sse(error: &LinkError) -> bool {
    matches!(error, LinkError::Status { status: 400 | 404 | 405 | 406 | 415, .. })
}

async fn shake_streamable(
    setup: &Setup<'_>,
    http: OwnedHttp,
    dialect: Option<Dialect>,
) -> Result<Shaken, ConnectError> {
    let identity = &setup.context.identity;
    if matches!(dialect, None | Some(Dialect::Modern)) {
        let probing = probe(&http, identity);
        let probed = tokio::time::timeout(setup.context.deadlines.probe, probing).await;
        // If the server did not answer the probe in time, the handshake reports its fault.
        if let Some(facts) = probed.unwrap_or(Ok(None))? {
            http.established(facts.revision, None);
            return Ok((Inner::Http(http), facts, Dialect::Modern));
        }
    }
    let facts = initialize_session(&http, identity).await?;
    Ok((Inner::Http(http), facts, Dialect::Legacy))
}

/// The static headers and the credential (E22, E62). The credential replaces one in the URL. An
/// error means that they cannot work; narthex then sends nothing. `changes`: the link has another
/// source of its credential.
fn static_headers(target: &HttpTarget, changes: bool) -> Result<HeaderMap, ConnectError> {
    let mut headers = HeaderMap::new();
    let mut insert = |name: &str, value: &str| {
        let invalid = || ConnectError::Header(name.to_owned());
        let key = http::HeaderName::from_bytes(name.as_bytes()).map_err(|_invalid| invalid())?;
        let mut value = HeaderValue::from_str(value).map_err(|_invalid| invalid())?;
        value.set_sensitive(true);
        headers.insert(key, value);
        Ok::<(), ConnectError>(())
    };
    if let Some(basic) = basic_credentials(&target.url) {
        insert(http::header::AUTHORIZATION.as_str(), basic.expose())?;
    }
    for (name, value) in &target.headers {
        insert(name, value.expose())?;
    }
    match &target.auth {
        ServerAuth::None | ServerAuth::Unstated => {}
        ServerAuth::OAuth(_) if changes => {}
        ServerAuth::OAuth(oauth) => {
            let mode = oauth.mode();
            let why = format!("auth mode `{mode}` needs a sign-in, which this program cannot make");
            return Err(ConnectError::Auth(why));
        }
        ServerAuth::ApiKey(auth) => {
            let Some(key) = &auth.key else {
                let set = for_operators("set `auth.key`, for example to ${env:NAME}");
                let why = format!("auth mode apiKey needs a key; {set}");
                return Err(ConnectError::Auth(why));
            };
            insert(&auth.header_name, &format!("{}{}", auth.value_prefix, key.expose()))?;
        }
    }
    Ok(headers)
}

/// Asks for revision 2026-07-28; `None` if the server does not speak it.
async fn probe(
    http: &Arc<HttpLink>,
    identity: &ClientIdentity,
) -> Result<Option<ServerFacts>, ConnectError> {
    let mut extra = HeaderMap::new();
    extra.insert(MCP_PROTOCOL_VERSION, HeaderValue::from_static(Revision::LATEST.as_str()));
    extra.insert(MCP_METHOD, HeaderValue::from_static(method::SERVER_DISCOVER));
    let Exchanged { answer, session } =
        match exchange(http, discover(http.next_id(), identity), extra).await {
            Ok(exchanged) => exchanged,
            Err(LinkError::Client(error)) if error.may_have_arrived() => return Ok(None),
            // The handshake reports a fault that is no wish for a sign-in.
            Err(LinkError::SignIn { fault, .. }) if !fault.needs_consent() => return Ok(None),
            Err(error) => return Err(ConnectError::at(method::SERVER_DISCOVER)(error)),
        };
    if let Some(session) = session {
        // Some servers open a session even for a request that they refuse.
        http.end_session(session, LEAK_DEADLINE).await;
    }
    match answer {
        Ok(message) => Ok(modern_facts(&message)),
        // A server of an older revision may give any answer to an unknown method, 401 too: the
        // handshake that follows reports the real fault.
        Err(_) => Ok(None),
    }
}

async fn initialize_session(
    http: &Arc<HttpLink>,
    identity: &ClientIdentity,
) -> Result<ServerFacts, ConnectError> {
    let body = initialize(http.next_id(), identity);
    let at = || ConnectError::at(method::INITIALIZE);
    let exchanged = exchange(http, body, HeaderMap::new()).await;
    let Exchanged { answer, session } = exchanged.map_err(at())?;
    let facts = legacy_facts(&answer.map_err(at())?)?;
    let has_session = session.is_some();
    http.established(facts.revision, session);
    match http.send(rpc::notification(method::INITIALIZED, None), HeaderMap::new()).await {
        // Servers that do not expect this notification refuse it, but work.
        Err(error @ (LinkError::Status { .. } | LinkError::Protocol(_))) => {
            tracing::debug!(%error, "the server refused `notifications/initialized`");
        }
        sent => sent.map_err(ConnectError::at(method::INITIALIZED))?,
    }
    if has_session {
        // The stream is opened before the first call, because a server may answer or ask on this
        // stream, and earlier messages are not replayed. Some servers show only with their first
        // message that the stream is open.
        if tokio::time::timeout(STREAM_DEADLINE, http.listen()).await.is_err() {
            tracing::debug!("the server has not opened its own stream in time");
        }
    }
    Ok(facts)
}

/// The outcome of a request outside any session.
struct Exchanged {
    answer: Result<Message, LinkError>,
    /// The session id in the response, whether the answer is an error or not.
    session: Option<HeaderValue>,
}

async fn exchange(
    http: &Arc<HttpLink>,
    (id, body): (u64, Payload),
    extra: HeaderMap,
) -> Result<Exchanged, LinkError> {
    let response = http.post(body, extra).await?;
    let session = response.headers.get(MCP_SESSION_ID).cloned();
    if !(is_event_stream(&response.headers) && response.status.is_success()) {
        return Ok(Exchanged { answer: http.single(response).await, session });
    }
    let mut stream = http.stream(id, response.body);
    let answer = loop {
        match stream.next().await {
            Ok(Frame::Answer(message)) => break Ok(message),
            Ok(Frame::Notification(message)) => {
                http.outlet().event(LinkEvent::Notification(message));
            }
            Ok(Frame::Request(_) | Frame::Break { .. }) => {}
            Err(error) => break Err(error),
        }
    };
    Ok(Exchanged { answer, session })
}

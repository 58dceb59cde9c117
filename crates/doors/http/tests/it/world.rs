//! A door over fixture servers in this process, and requests to it.

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Either, Full, combinators::UnsyncBoxBody};
use narthex_audit::Audit;
use narthex_gateway::{Gateway, GatewayOptions, RunToken, RunView};
use narthex_http::{HttpOptions, ResponseBody, Router, TokenHash, openapi, router};
use narthex_model::{Alias, HttpTarget, ServerAuth, ServerDefinition, Target};
use narthex_policy::RunPolicy;
use narthex_registry::{Declared, Registry, RegistryOptions, config::Entry};
use narthex_supervisor::BaseEnvironment;
use narthex_testkit::{
    contract::{Contract, Seen},
    fixture::{Eras, Options, Running},
    messages::{self, Era},
    peer::{self, Peer},
    planted,
};
use narthex_upstream::ClientIdentity;
use narthex_wire::{Limits, Revision, SseEvent, SseParser};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::forms;

/// The body of a test request.
pub(crate) type Body = UnsyncBoxBody<Bytes, std::convert::Infallible>;

pub(crate) const HOST: &str = "127.0.0.1:7717";
pub(crate) const ADMIN: &str = "the admin token of the tests";
/// The longest message that the doors of these tests accept, in bytes.
pub(crate) const MESSAGE_MAX: usize = 100_000;
/// A time limit that no test reaches, even on a busy machine.
pub(crate) const SOON: Duration = Duration::from_secs(60);

/// A door over a gateway.
pub(crate) struct World {
    pub(crate) gateway: Gateway,
    pub(crate) router: Router,
    pub(crate) token: String,
    pub(crate) options: HttpOptions,
    pub(crate) fixture: Option<Running>,
}

/// A server with the alias `fixture`.
pub(crate) fn fixture_at(url: &str) -> Entry {
    let target = Target::Http(HttpTarget {
        url: url.to_owned(),
        is_sse: false,
        headers: BTreeMap::new(),
        auth: ServerAuth::None,
    });
    Entry::Server(ServerDefinition::new(Alias::new("fixture").unwrap(), target))
}

impl World {
    /// A door without servers.
    pub(crate) fn empty() -> Self {
        Self::over(Vec::new(), |_options| {})
    }

    /// A door with one fixture server under the alias `fixture`.
    pub(crate) async fn with_fixture() -> Self {
        Self::with_options(|_options| {}).await
    }

    pub(crate) async fn with_options(change: impl FnOnce(&mut HttpOptions)) -> Self {
        Self::with(Eras::Both, change).await
    }

    pub(crate) async fn with(eras: Eras, change: impl FnOnce(&mut HttpOptions)) -> Self {
        let fixture = Running::http(Options { eras, ..Options::default() }).await.unwrap();
        let world = Self::over(vec![fixture_at(&fixture.url)], change).settled().await;
        Self { fixture: Some(fixture), ..world }
    }

    /// A door with one server of this era under the alias `fixture`. The server's tool `act`
    /// answers when the test permits it: the receiver gets its calls. Its tool `quick` answers at
    /// once in the legacy era.
    pub(crate) async fn with_held_tool(
        era: Era,
        change: impl FnOnce(&mut HttpOptions),
    ) -> (Self, Peer, mpsc::Receiver<HeldCall>) {
        let (hands, calls) = mpsc::channel(8);
        let answer = move |seen: &peer::Seen| match seen.rpc() {
            "tools/list" => {
                let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
                Some(peer::result(seen, &json!({"tools": [tool("act"), tool("quick")]})))
            }
            "tools/call" if seen.body["params"]["name"] == "act" => {
                let (hand, reply) = peer::events();
                hands.try_send(HeldCall { id: seen.body["id"].clone(), hand }).unwrap();
                Some(reply)
            }
            _ => None,
        };
        let server = match era {
            Era::Legacy => Peer::legacy(answer).await,
            Era::Modern => Peer::modern(answer).await,
        };
        let world = Self::over(vec![fixture_at(&server.url)], change).settled().await;
        (world, server, calls)
    }

    /// Waits until the server is ready.
    async fn settled(self) -> Self {
        let snapshot = self.gateway.registry().wait_until(SOON, |all| all.is_settled()).await;
        assert!(snapshot.servers[0].is_ready(), "{:?}", snapshot.servers[0].error);
        self
    }

    /// Gives the alias `fixture` to another server.
    pub(crate) fn move_fixture(&self, url: &str) {
        self.gateway.registry().apply(vec![Declared::from(fixture_at(url))]).unwrap();
    }

    fn over(entries: Vec<Entry>, change: impl FnOnce(&mut HttpOptions)) -> Self {
        let registry = registry();
        let set = entries.into_iter().map(Declared::from).collect();
        registry.apply(set).unwrap();
        Self::of(registry, change)
    }

    /// A door over a registry that the caller fills.
    pub(crate) fn of(registry: Registry, change: impl FnOnce(&mut HttpOptions)) -> Self {
        Self::around(Self::gateway(registry, Audit::disabled()), change)
    }

    /// A gateway over a registry, with this audit.
    pub(crate) fn gateway(registry: Registry, audit: Audit) -> Gateway {
        let limits = Limits { message_bytes: MESSAGE_MAX };
        let options = GatewayOptions { limits, ..GatewayOptions::default() };
        Gateway::new(registry, audit, options).unwrap()
    }

    pub(crate) fn around(gateway: Gateway, change: impl FnOnce(&mut HttpOptions)) -> Self {
        let mut options = HttpOptions::new(HOST.parse().unwrap());
        options.admin_token = Some(TokenHash::of(ADMIN));
        // On a slow machine, the answer to an ordinary call must not become a stream.
        options.quiet = SOON;
        change(&mut options);
        let router = router(gateway.clone(), options.clone());
        let token = add_run(&gateway, RunPolicy::AllAttached);
        Self { gateway, router, token, options, fixture: None }
    }

    /// The token of a further run.
    pub(crate) fn other_run(&self, policy: RunPolicy) -> String {
        add_run(&self.gateway, policy)
    }

    /// A request with the headers `Host` and `Authorization`.
    pub(crate) fn request(&self, method: Method, path: &str) -> Builder<'_> {
        let mut builder = Builder { router: &self.router, request: Request::new(whole("")) };
        *builder.request.method_mut() = method;
        *builder.request.uri_mut() = path.parse().unwrap();
        builder.header("host", HOST).header("authorization", &format!("Bearer {}", self.token))
    }

    /// A POST with the headers that clients send.
    pub(crate) fn post(&self, path: &str, body: impl Into<Bytes>) -> Builder<'_> {
        self.request(Method::POST, path)
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .body(whole(body))
    }

    /// A modern request with all required parts.
    pub(crate) fn modern(&self, path: &str, method: &str, params: Value) -> Builder<'_> {
        let name = params["name"].as_str().map(str::to_owned);
        let body = stamped(method, params);
        let builder = self
            .post(path, body.to_string())
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", method);
        match name {
            Some(name) => builder.header("mcp-name", &name),
            None => builder,
        }
    }

    /// Opens a session, and returns its id.
    pub(crate) async fn session(&self, path: &str, revision: &str) -> String {
        let answer = self.post(path, initialize(revision)).send().await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
        answer.headers["mcp-session-id"].to_str().unwrap().to_owned()
    }

    /// A legacy message in a session.
    pub(crate) fn legacy(&self, path: &str, session: &str, body: &Value) -> Builder<'_> {
        self.post(path, body.to_string()).header("mcp-session-id", session)
    }
}

/// Waits until `is_done` returns true.
pub(crate) async fn until(is_done: impl Fn() -> bool) {
    while !is_done() {
        tokio::task::yield_now().await;
    }
}

/// A call that its server has not answered yet.
#[derive(Debug)]
pub(crate) struct HeldCall {
    id: Value,
    hand: mpsc::Sender<String>,
}

impl HeldCall {
    pub(crate) async fn answer(self) {
        let answer = json!({"jsonrpc": "2.0", "id": self.id, "result": {"content": []}});
        self.hand.send(peer::event(&answer)).await.unwrap();
    }
}

/// An empty registry.
pub(crate) fn registry() -> Registry {
    let identity = ClientIdentity {
        info: Bytes::from_static(br#"{"name":"narthex-test","version":"0"}"#),
        capabilities: Bytes::from_static(b"{}"),
        revision: Revision::LEGACY_LATEST,
    };
    Registry::new(RegistryOptions {
        limits: Limits { message_bytes: MESSAGE_MAX },
        has_pins: true,
        ..RegistryOptions::new(identity, BaseEnvironment::from_process())
    })
    .unwrap()
}

fn add_run(gateway: &Gateway, policy: RunPolicy) -> String {
    let token = RunToken::generate().unwrap();
    gateway.begin_run(&Arc::new(RunView::new(&token, policy))).unwrap();
    token.expose().to_owned()
}

pub(crate) fn stamped(method: &str, params: Value) -> Value {
    messages::message(Era::Modern, Some(1), method, params)
}

pub(crate) fn initialize(revision: &str) -> String {
    let info = json!({"name": "t", "version": "1"});
    let params = json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": info});
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}).to_string()
}

/// A call of the fixture.
pub(crate) fn tool_call(id: u64, name: &str, arguments: Value) -> Value {
    let params = json!({"name": name, "arguments": arguments, "_meta": {"progressToken": id}});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
}

/// A body that declares its length.
pub(crate) fn whole(text: impl Into<Bytes>) -> Body {
    Full::new(text.into()).boxed_unsync()
}

/// A request under construction.
pub(crate) struct Builder<'w> {
    router: &'w Router,
    pub(crate) request: Request<Body>,
}

impl Builder<'_> {
    /// Sets a header; an empty value removes it.
    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Self {
        match value {
            "" => drop(self.request.headers_mut().remove(name)),
            value => {
                drop(self.request.headers_mut().insert(name, value.parse().unwrap()));
            }
        }
        self
    }

    pub(crate) fn body(mut self, body: Body) -> Self {
        *self.request.body_mut() = body;
        self
    }

    /// Returns the same request. If its body has the value of a secret, no later answer may contain
    /// that value.
    async fn remembered(mut self) -> Self {
        let is_whole = http_body::Body::size_hint(self.request.body()).exact().is_some();
        if is_whole && self.request.method() == Method::PUT {
            let body = std::mem::replace(self.request.body_mut(), whole(""));
            let bytes = body.collect().await.unwrap().to_bytes();
            planted::sent(self.request.method(), self.request.uri().path(), &bytes);
            *self.request.body_mut() = whole(bytes);
        }
        self
    }

    /// The status and headers of the answer, with the unread body.
    pub(crate) async fn open(self) -> Response<ResponseBody> {
        let asked = (self.request.method().clone(), self.request.uri().clone());
        let response = self.router.answer(self.request.map(Either::Right)).await;
        is_described(&asked, response.status(), response.headers(), None);
        response
    }

    /// The whole answer.
    pub(crate) async fn send(self) -> Answer {
        let asked = (self.request.method().clone(), self.request.uri().clone());
        let (parts, body) = self.remembered().await.open().await.into_parts();
        let length = http_body::Body::size_hint(&body).exact();
        let body = body.collect().await.unwrap().to_bytes();
        is_described(&asked, parts.status, &parts.headers, Some(&body));
        let is_html = parts
            .headers
            .get("content-type")
            .is_some_and(|kind| kind == "text/html; charset=utf-8");
        if is_html && !is_page(asked.1.path(), parts.status) {
            forms::are_described(asked.1.path(), std::str::from_utf8(&body).unwrap());
        }
        Answer { status: parts.status, headers: parts.headers, length, body }
    }

    /// The whole answer, read as an event stream.
    pub(crate) async fn events(self) -> Vec<SseEvent> {
        let mut stream = Stream::of(self.open().await);
        let mut events = Vec::new();
        while let Some(event) = stream.next().await {
            events.push(event);
        }
        events
    }
}

/// The contract with which every answer in a test is compared.
pub(crate) static CONTRACT: LazyLock<Contract> = LazyLock::new(|| Contract::new(openapi()));

fn is_described(
    (method, uri): &(Method, Uri),
    status: StatusCode,
    headers: &HeaderMap,
    body: Option<&[u8]>,
) {
    let seen = Seen { method, path: uri.path(), status, headers, body };
    // A browser's preflight request (CORS) is no operation, and is the same for every path. Pages
    // of the console are no part of the document.
    let is_preflight = *method == Method::OPTIONS && status == StatusCode::NO_CONTENT;
    if !is_preflight && !is_page(uri.path(), status) {
        CONTRACT.check(seen);
    }
    planted::answered(seen);
}

/// True for the answer of a page of the console, or of a file that pages load.
fn is_page(path: &str, status: StatusCode) -> bool {
    let is_first = path == "/" && (status.is_success() || status.is_redirection());
    let is_file = path.starts_with("/assets/") && status.is_success();
    is_first || is_file || path.starts_with("/w/") || path.starts_with("/operator")
}

/// A whole answer.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    /// The length that the body declared before it was read.
    pub(crate) length: Option<u64>,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("{}", self.text()))
    }

    pub(crate) fn code(&self) -> i64 {
        self.json()["error"]["code"].as_i64().unwrap_or_else(|| panic!("{}", self.text()))
    }
}

/// An event stream, as a test reads it.
pub(crate) struct Stream {
    body: ResponseBody,
    parser: SseParser,
}

impl Stream {
    pub(crate) fn of(response: Response<ResponseBody>) -> Self {
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        assert_eq!(response.headers()["x-accel-buffering"], "no");
        // Streams of the API have `no-store`, since no cache may store them.
        let cached = response.headers()["cache-control"].to_str().unwrap();
        assert!(["no-cache", "no-store"].contains(&cached), "{cached}");
        Self { body: response.into_body(), parser: SseParser::new(1 << 20) }
    }

    pub(crate) async fn next(&mut self) -> Option<SseEvent> {
        loop {
            if let Some(event) = self.parser.next_event().unwrap() {
                return Some(event);
            }
            let chunk = self.body.frame().await?.unwrap().into_data().unwrap();
            self.parser.push(chunk);
        }
    }
}

/// The message of an event.
pub(crate) fn message(event: &SseEvent) -> Value {
    serde_json::from_slice(&event.data).unwrap()
}

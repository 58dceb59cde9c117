//! Helpers for all tests of links: contexts, definitions, permits, and reading of frames.

use std::{
    collections::BTreeMap,
    future::Future,
    sync::Arc,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use narthex_audit::{Audit, AuditRecord, AuditSlot};
use narthex_model::{
    Alias, ApiKeyAuth, HttpTarget, RunToken, Secret, ServerAuth, ServerDefinition, StdioTarget,
    Target, WorkspaceId,
};
use narthex_policy::{Attempt, Authority, Item, Permitted, Request, RunPolicy, ServerRules};
use narthex_supervisor::BaseEnvironment;
use narthex_testkit::messages::stamp;
use narthex_traffic::{Admission, Meters};
use narthex_upstream::{
    Booked, ClientIdentity, ConnectContext, ConnectError, Deadlines, Dialect, Forwarded, Frame,
    Hop, Link, LinkError, LinkEvent, Supervision, connect,
};
use narthex_wire::{Limits, Message, Revision};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

/// Longest wait in these tests, on however busy a machine.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

pub(crate) async fn in_time<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(DEADLINE, future).await.expect("this must not take so long")
}

/// The client's side of a connection, with the events of its links and their tasks.
pub(crate) struct World {
    pub(crate) context: ConnectContext,
    pub(crate) events: mpsc::Receiver<LinkEvent>,
    pub(crate) tasks: TaskTracker,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with_queue(64)
    }

    pub(crate) fn with_queue(size: usize) -> Self {
        let (sender, events) = mpsc::channel(size);
        let tasks = TaskTracker::new();
        let context = ConnectContext {
            identity: identity(),
            dialect: None,
            deadlines: Deadlines { probe: DEADLINE / 2, ..Deadlines::default() },
            events: sender,
            tasks: tasks.clone(),
            limits: Limits::default(),
            environment: BaseEnvironment::from_process(),
            log: None,
            supervision: Supervision::default(),
            proxies: Arc::default(),
            on_phase: None,
            health: Arc::default(),
            credentials: None,
            has_holder: false,
        };
        Self { context, events, tasks }
    }

    /// A world with a short deadline for the era probe.
    pub(crate) fn impatient() -> Self {
        let mut world = Self::new();
        world.context.deadlines.probe = Duration::from_millis(300);
        world
    }

    pub(crate) fn knowing(mut self, dialect: Dialect) -> Self {
        self.context.dialect = Some(dialect);
        self
    }

    pub(crate) async fn connect(
        &self,
        definition: &ServerDefinition,
    ) -> Result<(Link, Dialect), ConnectError> {
        in_time(Box::pin(connect(definition, &self.context))).await
    }

    pub(crate) async fn link(&self, definition: &ServerDefinition) -> Link {
        self.connect(definition).await.unwrap().0
    }

    pub(crate) async fn event(&mut self) -> LinkEvent {
        in_time(self.events.recv()).await.unwrap()
    }

    pub(crate) async fn closed(&mut self) -> String {
        loop {
            if let LinkEvent::Closed(why) = self.event().await {
                return why.to_string();
            }
        }
    }

    /// Waits until no task and no child is left.
    pub(crate) async fn drain(&self) {
        self.tasks.close();
        in_time(self.tasks.wait()).await;
    }
}

pub(crate) fn identity() -> ClientIdentity {
    ClientIdentity {
        info: Bytes::from_static(br#"{"name":"narthex-test","version":"0"}"#),
        capabilities: Bytes::from_static(b"{}"),
        revision: Revision::LEGACY_LATEST,
    }
}

pub(crate) fn http(url: impl Into<String>) -> ServerDefinition {
    define(Target::Http(HttpTarget {
        url: url.into(),
        is_sse: false,
        headers: BTreeMap::new(),
        auth: ServerAuth::None,
    }))
}

/// A definition with a key in `X-Key`.
pub(crate) fn with_key(url: impl Into<String>, key: Option<&str>) -> ServerDefinition {
    let mut definition = http(url);
    if let Target::Http(target) = &mut definition.target {
        target.auth = ServerAuth::ApiKey(ApiKeyAuth {
            header_name: "X-Key".to_owned(),
            value_prefix: "Key ".to_owned(),
            key: key.map(Secret::new),
        });
    }
    definition
}

pub(crate) fn program(command: &str, args: &[&str]) -> ServerDefinition {
    define(Target::Stdio(StdioTarget {
        command: command.to_owned(),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        env: BTreeMap::new(),
        working_dir: None,
        confinement: None,
    }))
}

pub(crate) fn with_env(
    mut definition: ServerDefinition,
    name: &str,
    value: &str,
) -> ServerDefinition {
    if let Target::Stdio(target) = &mut definition.target {
        target.env.insert(name.to_owned(), Secret::new(value));
    }
    definition
}

fn define(target: Target) -> ServerDefinition {
    let alias = Alias::new("test").unwrap();
    ServerDefinition::new(alias, target)
}

/// A server of a few lines of shell. `cases` are cases of a `case` over each line, in which `$id`
/// is the request's id.
pub(crate) fn shell(cases: &str) -> ServerDefinition {
    program("sh", &["-c", &script(cases)])
}

pub(crate) fn script(cases: &str) -> String {
    format!(
        r#"while read -r line; do id=${{line#*'"id":'}}; id=${{id%%[,\}}]*}}; case "$line" in
        {cases}
        esac; done"#
    )
}

/// A shell command that answers with this result.
pub(crate) fn say(result: &Value) -> String {
    format!(r#"printf '{{"jsonrpc":"2.0","id":%s,"result":%s}}\n' "$id" '{result}'"#)
}

/// A case that answers `initialize`.
pub(crate) fn initializes() -> String {
    format!(r#"*'"initialize"'*) {};;"#, say(&initialize_result()))
}

pub(crate) fn initialize_result() -> Value {
    json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "hand-made", "version": "1"},
    })
}

/// The fixture server in a separate process: this test program, started so that it runs only the
/// "test" `fixture_over_stdio`.
pub(crate) fn fixture_process(settings: &str) -> ServerDefinition {
    let program_file = std::env::current_exe().unwrap();
    let args = ["--exact", "fixture_over_stdio", "--nocapture"];
    with_env(program(program_file.to_str().unwrap(), &args), "FIXTURE_SETTINGS", settings)
}

/// A server in a separate process; `words` name its misbehaviours.
pub(crate) fn unruly(words: &str) -> ServerDefinition {
    let program_file = std::env::current_exe().unwrap();
    let args = ["--exact", "unruly_child", "--nocapture", "--test-threads=2"];
    let child = program(program_file.to_str().unwrap(), &args);
    with_env(child, narthex_testkit::unruly::VARIABLE, words)
}

pub(crate) fn parse(value: &Value) -> Message {
    Message::parse(Bytes::from(value.to_string()), &Limits::default()).unwrap()
}

/// A request that policy has allowed, in the era of its link.
pub(crate) fn permit(link: &Link, method: &str, mut params: Value) -> Permitted<Request> {
    let mut item = Item::Server;
    if let Some(name) = params["name"].as_str() {
        item = Item::Tool(name.into());
    }
    if link.facts().revision.is_modern() {
        stamp(&mut params);
    }
    let message =
        parse(&json!({"jsonrpc": "2.0", "id": "theirs", "method": method, "params": params}));
    let request = Request::new(link.alias().clone(), message, item);
    permitted(request)
}

pub(crate) async fn forward(
    link: &Link,
    method: &str,
    params: Value,
) -> Result<Forwarded, LinkError> {
    let (slot, admission) = booking();
    let booked = Booked::new(&slot, &admission);
    in_time(link.forward(permit(link, method, params), Hop::default(), booked)).await
}

pub(crate) async fn call(
    link: &Link,
    tool: &str,
    arguments: Value,
) -> Result<Forwarded, LinkError> {
    let meta = json!({"progressToken": "theirs"});
    let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
    forward(link, "tools/call", params).await
}

/// The answer, and the notifications before it.
pub(crate) async fn finish(forwarded: &mut Forwarded) -> Result<(Vec<Value>, Value), LinkError> {
    let mut notifications = Vec::new();
    loop {
        match in_time(forwarded.next()).await? {
            Frame::Notification(message) => notifications.push(value(&message)),
            Frame::Answer(message) => return Ok((notifications, value(&message))),
            Frame::Request(_) | Frame::Break { .. } => {}
        }
    }
}

pub(crate) async fn call_to_end(
    link: &Link,
    tool: &str,
    arguments: Value,
) -> Result<(Vec<Value>, Value), LinkError> {
    finish(&mut call(link, tool, arguments).await?).await
}

/// The text of a tool's answer.
pub(crate) async fn text_of(link: &Link, tool: &str, arguments: Value) -> String {
    let (_, answer) = call_to_end(link, tool, arguments).await.unwrap();
    answer["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned()
}

pub(crate) fn value(message: &Message) -> Value {
    serde_json::from_slice(message.bytes()).unwrap()
}

/// The observed steps, in their order.
pub(crate) type Log<T> = Arc<std::sync::Mutex<Vec<T>>>;

/// A place in a record that is not stored, and an admission without any limit.
pub(crate) fn booking() -> (AuditSlot, Admission) {
    let record = AuditRecord {
        workspace: WorkspaceId::default(),
        run: RunToken::generate().unwrap().run_id(),
        user: None,
        session: None,
        endpoint: None,
        server: None,
        method: "test".into(),
        item: None,
        granted_via: Box::default(),
        refused_by: None,
        rule: None,
        rounds: 0,
    };
    let slot = Audit::disabled().reserve(record).unwrap();
    (slot, Meters::default().admit([None, None, None], true).unwrap())
}

/// A request that policy has allowed, because no rule forbids it.
pub(crate) fn permitted(request: Request) -> Permitted<Request> {
    let attempt = Attempt::first(SystemTime::now);
    let decided = RunPolicy::AllAttached.authorize(
        request,
        ServerRules::OPEN,
        &Authority::default(),
        attempt,
    );
    decided.unwrap().permitted().unwrap()
}

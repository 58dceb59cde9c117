//! A gateway over fixture servers in this process, and callers of both eras.

use std::{pin::Pin, sync::Arc, time::Duration};

use bytes::Bytes;
use narthex_audit::Audit;
use narthex_gateway::{
    Answer, Caller, Endpoint, Gateway, GatewayOptions, RunToken, RunView, Session, Step,
};
use narthex_model::{Alias, HttpTarget, ServerAuth, ServerDefinition, Target};
use narthex_policy::RunPolicy;
use narthex_registry::{CredentialSource, Declared, Registry, RegistryOptions, config::Entry};
use narthex_supervisor::BaseEnvironment;
use narthex_testkit::{
    clock::SteppedClock,
    fixture::{Eras, Options, Running},
    messages::{Era, message},
};
use narthex_upstream::{ClientIdentity, Deadlines};
use narthex_wire::{Limits, Message, Revision};
use serde_json::{Value, json};

/// Longer than any step here takes, however busy the machine is.
pub(crate) const SOON: Duration = Duration::from_secs(60);

pub(crate) struct World {
    pub(crate) gateway: Gateway,
    pub(crate) run: Arc<RunView>,
    pub(crate) fixtures: Vec<Running>,
}

pub(crate) fn alias(name: &str) -> Alias {
    Alias::new(name).unwrap()
}

pub(crate) fn transparent(name: &str) -> Endpoint {
    Endpoint::Transparent(alias(name))
}

pub(crate) fn parse(value: &Value) -> Message {
    Message::parse(Bytes::from(value.to_string()), &Limits::default()).unwrap()
}

/// A modern request with the members that every modern request must have.
pub(crate) fn modern(id: u64, method: &str, params: Value) -> Message {
    parse(&message(Era::Modern, Some(id), method, params))
}

/// A request in the caller's era.
pub(crate) fn request(caller: &Caller, method: &str, params: Value) -> Message {
    if caller.session.is_some() { legacy(7, method, params) } else { modern(7, method, params) }
}

pub(crate) fn legacy(id: u64, method: &str, params: Value) -> Message {
    parse(&message(Era::Legacy, Some(id), method, params))
}

/// Runs a step while the clock runs about five times as fast.
pub(crate) fn hastened<T>(step: impl Future<Output = T>) -> Pin<Box<impl Future<Output = T>>> {
    Box::pin(async move {
        let _clock = SteppedClock::by(Duration::from_millis(5));
        step.await
    })
}

/// Deadlines within which a busy machine starts any program.
fn patient() -> Deadlines {
    Deadlines { probe: SOON, ..Deadlines::default() }
}

impl World {
    /// A gateway over one fixture for each name and era.
    pub(crate) async fn with(servers: &[(&'static str, Eras)]) -> Self {
        let options = |(name, eras): &(&'static str, Eras)| {
            (*name, Options { eras: *eras, ..Options::default() })
        };
        Self::of(servers.iter().map(options)).await
    }

    /// A gateway over these fixtures.
    pub(crate) async fn of(servers: impl IntoIterator<Item = (&'static str, Options)>) -> Self {
        let mut fixtures = Vec::new();
        let mut entries = Vec::new();
        for (name, options) in servers {
            let fixture = Running::http(options).await.unwrap();
            entries.push(Entry::Server(http_server(name, &fixture.url)));
            fixtures.push(fixture);
        }
        let world = Self::settled(entries, GatewayOptions::default()).await;
        Self { fixtures, ..world }
    }

    /// A gateway over fixtures whose definitions are changed.
    pub(crate) async fn changed(
        servers: impl IntoIterator<Item = (&'static str, Eras)>,
        change: impl Fn(&mut ServerDefinition),
    ) -> Self {
        let mut fixtures = Vec::new();
        let mut entries = Vec::new();
        for (name, eras) in servers {
            let fixture = Running::http(Options { eras, ..Options::default() }).await.unwrap();
            let mut definition = http_server(name, &fixture.url);
            change(&mut definition);
            entries.push(Entry::Server(definition));
            fixtures.push(fixture);
        }
        let world = Self::settled(entries, GatewayOptions::default()).await;
        Self { fixtures, ..world }
    }

    /// Gives the callers of this world another run.
    pub(crate) fn run_as(&mut self, policy: RunPolicy) {
        let token = RunToken::generate().unwrap();
        self.run = Arc::new(RunView::new(&token, policy));
        self.gateway.begin_run(&self.run).unwrap();
    }

    /// A gateway over these servers, all of which have settled.
    pub(crate) async fn settled(entries: Vec<Entry>, options: GatewayOptions) -> Self {
        let world = Self::over(entries, options);
        let settled = |snapshot: &narthex_registry::Snapshot| snapshot.is_settled();
        let snapshot = world.gateway.registry().wait_until(SOON, settled).await;
        for row in &snapshot.servers {
            assert!(row.is_ready(), "{}: {:?}", row.name, row.error);
        }
        world
    }

    /// A gateway over these servers, which may still be starting.
    pub(crate) fn over(entries: Vec<Entry>, options: GatewayOptions) -> Self {
        Self::sleepy(entries, options, None)
    }

    /// The same world, but servers without users are stopped after this time.
    pub(crate) fn sleepy(
        entries: Vec<Entry>,
        options: GatewayOptions,
        idle_stop: Option<Duration>,
    ) -> Self {
        Self::recorded(entries, options, idle_stop, Audit::disabled())
    }

    /// The same world, with a record of all calls.
    pub(crate) fn recorded(
        entries: Vec<Entry>,
        options: GatewayOptions,
        idle_stop: Option<Duration>,
        audit: Audit,
    ) -> Self {
        let identity = ClientIdentity {
            info: Bytes::from_static(br#"{"name":"narthex-test","version":"0"}"#),
            capabilities: Bytes::from_static(b"{}"),
            revision: Revision::LEGACY_LATEST,
        };
        let registry = RegistryOptions {
            idle_stop,
            deadlines: patient(),
            ..RegistryOptions::new(identity, BaseEnvironment::from_process())
        };
        Self::in_registry(entries, options, registry, audit)
    }

    /// A gateway over servers with this limit of processes each, all of which have settled.
    pub(crate) async fn with_processes(entries: Vec<Entry>, children_max: usize) -> Self {
        let identity = ClientIdentity {
            info: Bytes::from_static(br#"{"name":"narthex-test","version":"0"}"#),
            capabilities: Bytes::from_static(b"{}"),
            revision: Revision::LEGACY_LATEST,
        };
        let registry = RegistryOptions {
            children_max,
            deadlines: patient(),
            ..RegistryOptions::new(identity, BaseEnvironment::from_process())
        };
        let options = GatewayOptions::default();
        let world = Self::in_registry(entries, options, registry, Audit::disabled());
        world.gateway.registry().wait_until(SOON, |snapshot| snapshot.is_settled()).await;
        world
    }

    /// A gateway over these servers, which get their credentials from this source.
    pub(crate) fn signing_in(entries: Vec<Entry>, source: Arc<dyn CredentialSource>) -> Self {
        let identity = ClientIdentity {
            info: Bytes::from_static(br#"{"name":"narthex-test","version":"0"}"#),
            capabilities: Bytes::from_static(b"{}"),
            revision: Revision::LEGACY_LATEST,
        };
        let registry = RegistryOptions {
            credentials: Some(source),
            deadlines: patient(),
            ..RegistryOptions::new(identity, BaseEnvironment::from_process())
        };
        Self::in_registry(entries, GatewayOptions::default(), registry, Audit::disabled())
    }

    fn in_registry(
        entries: Vec<Entry>,
        options: GatewayOptions,
        registry: RegistryOptions,
        audit: Audit,
    ) -> Self {
        let registry = Registry::new(registry).unwrap();
        let set = entries.into_iter().map(Declared::from).collect();
        registry.apply(set).unwrap();
        let gateway = Gateway::new(registry, audit, options).unwrap();
        let token = RunToken::generate().unwrap();
        let run = Arc::new(RunView::new(&token, RunPolicy::AllAttached));
        gateway.begin_run(&run).unwrap();
        Self { gateway, run, fixtures: Vec::new() }
    }

    pub(crate) fn modern_caller(&self, endpoint: Endpoint) -> Caller {
        Caller::new(self.run.clone(), endpoint, None)
    }

    pub(crate) async fn session(&self, endpoint: &Endpoint, capabilities: Value) -> Arc<Session> {
        self.session_of("2025-11-25", endpoint, capabilities).await
    }

    /// A session of a legacy client that speaks this revision.
    pub(crate) async fn session_of(
        &self,
        revision: &str,
        endpoint: &Endpoint,
        capabilities: Value,
    ) -> Arc<Session> {
        let request = initialize(revision, capabilities);
        let (answering, session) = self.gateway.initialize(&self.run, endpoint, &request).await;
        let answer = finish(answering).await;
        assert_eq!(answer["result"]["protocolVersion"], revision, "{answer}");
        session.unwrap()
    }

    pub(crate) async fn legacy_caller(&self, endpoint: Endpoint) -> Caller {
        self.legacy_caller_with(endpoint, json!({})).await
    }

    /// As [`Self::legacy_caller`], for a client with these capabilities.
    pub(crate) async fn legacy_caller_with(&self, endpoint: Endpoint, client: Value) -> Caller {
        let session = self.session(&endpoint, client).await;
        Caller::new(self.run.clone(), endpoint, Some(session))
    }

    /// A caller of each era.
    pub(crate) async fn both_callers(&self, endpoint: &Endpoint) -> [Caller; 2] {
        [self.modern_caller(endpoint.clone()), self.legacy_caller(endpoint.clone()).await]
    }

    /// The answer to a caller.
    pub(crate) async fn ask(&self, caller: &Caller, method: &str, params: Value) -> Value {
        self.call(caller, request(caller, method, params)).await
    }

    pub(crate) async fn call(&self, caller: &Caller, request: Message) -> Value {
        finish(self.gateway.call(caller, request).await).await
    }
}

pub(crate) fn initialize(revision: &str, capabilities: Value) -> Message {
    let params = json!({
        "protocolVersion": revision,
        "capabilities": capabilities,
        "clientInfo": {"name": "t", "version": "1"},
    });
    legacy(0, "initialize", params)
}

pub(crate) fn http_server(name: &str, url: &str) -> ServerDefinition {
    let target = Target::Http(HttpTarget {
        url: url.to_owned(),
        is_sse: false,
        headers: std::collections::BTreeMap::new(),
        auth: ServerAuth::None,
    });
    ServerDefinition::new(alias(name), target)
}

/// The answer as a document; all earlier messages are dropped.
pub(crate) async fn finish(mut answering: narthex_gateway::Answering) -> Value {
    loop {
        match answering.next().await.expect("an answer") {
            Step::Answer(Answer { payload, .. }) => {
                return serde_json::from_slice(&payload.into_bytes()).unwrap();
            }
            Step::Message(_) | Step::Break { .. } => {}
        }
    }
}

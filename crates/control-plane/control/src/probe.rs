//! Tests a server from outside: over a new connection, with a report of each step, and without
//! lasting effects.

use std::{sync::Arc, time::Duration};

use narthex_model::{CallErrorKind, ServerDefinition};
use narthex_registry::{Registry, VerbError};
use narthex_upstream::{Link, LinkError, LinkEvent};
use narthex_wire::{Message, Raw, method, rpc};
use serde::Serialize;
use tokio::{
    sync::mpsc,
    time::{Instant, timeout},
};

use crate::{Control, ControlError, SignInVerbs};

/// Number of the server's own messages that wait while the connection is made.
const EVENT_QUEUE: usize = 256;

/// The stages of a test, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum StageName {
    /// Starting or reaching the server, and the handshake.
    #[serde(rename = "connect")]
    Connect,
    /// All tools.
    #[serde(rename = "tools/list")]
    Tools,
    /// All resources.
    #[serde(rename = "resources/list")]
    Resources,
    /// All prompts.
    #[serde(rename = "prompts/list")]
    Prompts,
}

impl StageName {
    /// Every stage, in order.
    pub const ALL: [Self; 4] = narthex_model::every![Connect, Tools, Resources, Prompts];

    /// The stage's name in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Tools => method::TOOLS_LIST,
            Self::Resources => method::RESOURCES_LIST,
            Self::Prompts => method::PROMPTS_LIST,
        }
    }
}

/// The result of a stage.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum StageOutcome {
    /// The stage worked.
    Ok {
        /// Number of entries of the list; `None` for the connection.
        count: Option<usize>,
    },
    /// The stage failed.
    Failed {
        /// The reason.
        reason: String,
    },
    /// No answer arrived in time.
    Timeout {
        /// Milliseconds after which the stage was cancelled.
        after_ms: u64,
    },
    /// The server does not have this list (error -32601, or a capability that it did not declare).
    NotSupported,
}

/// One stage and its result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stage {
    /// The name of the stage.
    pub name: StageName,
    /// The result.
    #[serde(flatten)]
    pub outcome: StageOutcome,
    /// Duration of the stage in milliseconds.
    pub duration_ms: u64,
}

/// The result of a whole test.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Probe {
    /// The server.
    pub name: String,
    /// True if every list that the server has could be read.
    pub ok: bool,
    /// True if the connection failed since a person must sign in first.
    pub needs_sign_in: bool,
    /// The stages that were tried. If the connection failed, it is the last one.
    pub stages: Vec<Stage>,
    /// The server's own name.
    pub server_name: Option<String>,
    /// The server's own version.
    pub server_version: Option<String>,
    /// The negotiated revision of the protocol.
    pub revision: Option<String>,
}

/// A prepared test. If it is dropped while it runs, all that it has started is stopped.
#[derive(Debug)]
pub struct Probing {
    registry: Registry,
    definition: Arc<ServerDefinition>,
    /// The control plane that knows the open sign-ins; `None` for a server of a run.
    control: Option<Control>,
}

impl Control {
    /// Prepares a new connection to a server, in addition to the one in use, to list its contents.
    /// Also works for a server that has failed or is disabled.
    ///
    /// # Errors
    /// When there is no such server, or its entry is faulty.
    pub fn probe(&self, name: &str) -> Result<Probing, ControlError> {
        let row = self.shared.registry.get(name);
        let row = row.ok_or_else(|| VerbError::Unknown(name.to_owned()))?;
        let definition = row.definition.clone();
        let definition = definition.ok_or_else(|| VerbError::Faulty(name.to_owned()))?;
        Ok(Probing { control: Some(self.clone()), ..self.probe_beside(definition) })
    }

    /// Prepares a test like [`Control::probe`], for a server of a run, which has no name in the
    /// registry. The test's connection is separate from the run's.
    #[must_use]
    pub fn probe_beside(&self, definition: Arc<ServerDefinition>) -> Probing {
        Probing { registry: self.shared.registry.clone(), definition, control: None }
    }
}

impl Probing {
    /// Tests the server. Calls `told` with each stage as the stage ends.
    pub async fn run(self, told: impl Fn(&Stage) + Send) -> Probe {
        let mut probe = Probe {
            name: self.definition.alias.as_str().to_owned(),
            ok: false,
            needs_sign_in: false,
            stages: Vec::new(),
            server_name: None,
            server_version: None,
            revision: None,
        };
        let since = Instant::now();
        let (events, mut received) = mpsc::channel(EVENT_QUEUE);
        let opened = self.registry.open_apart(&self.definition, events).await;
        let outcome = match &opened {
            Ok(_) => StageOutcome::Ok { count: None },
            Err(error) if error.kind == CallErrorKind::Timeout => {
                StageOutcome::Timeout { after_ms: millis(since.elapsed()) }
            }
            Err(error) => StageOutcome::Failed { reason: error.operator_cause().to_owned() },
        };
        probe.stage(StageName::Connect, outcome, since, &told);
        let link = match opened {
            Ok(link) => link,
            Err(error) => {
                let is_about_auth = error.kind == CallErrorKind::AuthUnavailable;
                probe.needs_sign_in = is_about_auth && self.has_open_sign_in();
                return probe;
            }
        };
        probe.read_facts(&link);
        let within = self.registry.deadlines(&self.definition).list;
        let testing = async {
            probe.read_lists(&link, within, &told).await;
            link.stop().await;
        };
        tokio::select! {
            biased;
            () = testing => {}
            () = read_past(&link, &mut received) => {}
        }
        let is_fine = |stage: &Stage| {
            matches!(stage.outcome, StageOutcome::Ok { .. } | StageOutcome::NotSupported)
        };
        probe.ok = probe.stages.iter().all(is_fine);
        probe
    }
}

impl Probing {
    fn has_open_sign_in(&self) -> bool {
        let status = self
            .control
            .as_ref()
            .and_then(|control| SignInVerbs::of(control).status(&self.definition.alias));
        status.is_some_and(|status| status.pending.is_some())
    }
}

impl Probe {
    fn stage(
        &mut self,
        name: StageName,
        outcome: StageOutcome,
        since: Instant,
        told: &impl Fn(&Stage),
    ) {
        let stage = Stage { name, outcome, duration_ms: millis(since.elapsed()) };
        told(&stage);
        self.stages.push(stage);
    }

    /// Reads each list within this time.
    async fn read_lists(
        &mut self,
        link: &Arc<Link>,
        within: Duration,
        told: &(impl Fn(&Stage) + Send),
    ) {
        let has = link.facts().capabilities;
        let lists = [
            (StageName::Tools, "tools", has.tools),
            (StageName::Resources, "resources", has.resources),
            (StageName::Prompts, "prompts", has.prompts),
        ];
        for (name, member, is_declared) in lists {
            let since = Instant::now();
            let outcome = match is_declared {
                true => list(link, within, name.as_str(), member).await,
                false => StageOutcome::NotSupported,
            };
            self.stage(name, outcome, since, told);
        }
    }

    fn read_facts(&mut self, link: &Link) {
        let facts = link.facts();
        let result = Raw::new(&facts.result);
        let meta = result.get("_meta");
        let info = result
            .get("serverInfo")
            .or_else(|| meta.and_then(|meta| meta.get(narthex_wire::meta_key::SERVER_INFO)));
        let text = |member| {
            let found = info.and_then(|info| info.get(member)).and_then(Raw::as_str);
            found.map(std::borrow::Cow::into_owned)
        };
        self.server_name = text("name");
        self.server_version = text("version");
        self.revision = Some(facts.revision.as_str().to_owned());
    }
}

/// Reads the server's own messages, so that none is reported as dropped: no caller needs them, and
/// no client can answer a question. Does not end by itself.
async fn read_past(link: &Link, received: &mut mpsc::Receiver<LinkEvent>) {
    while let Some(event) = received.recv().await {
        match event {
            LinkEvent::Request(question) => link.refuse_undeclared(&question).await,
            LinkEvent::Notification(_) | LinkEvent::Closed(_) => {}
        }
    }
    // The end of the connection fails the stage that uses it.
    std::future::pending().await
}

async fn list(
    link: &Arc<Link>,
    within: Duration,
    method: &'static str,
    member: &'static str,
) -> StageOutcome {
    let mut count = 0;
    let entries = move |answer: &Message| answer.get(member).map_or(0, |list| list.items().len());
    let counting = link.each_page(method, entries, |entries| {
        count += entries;
        Ok(())
    });
    let reason = match timeout(within, counting).await {
        Ok(Ok(())) => return StageOutcome::Ok { count: Some(count) },
        Err(_late) => return StageOutcome::Timeout { after_ms: millis(within) },
        Ok(Err(LinkError::Refused { code: rpc::code::METHOD_NOT_FOUND, .. })) => {
            return StageOutcome::NotSupported;
        }
        Ok(Err(LinkError::Refused { code, text })) => format!("error {code}: {text}"),
        Ok(Err(error)) => error.to_string(),
    };
    StageOutcome::Failed { reason }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

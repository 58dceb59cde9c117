//! Tries a server from outside: a connection of its own, each step told, nothing left behind.

use std::{sync::Arc, time::Duration};

use narthex_model::{CallErrorKind, ServerDefinition};
use narthex_registry::{Registry, VerbError};
use narthex_upstream::{Link, LinkError};
use narthex_wire::{Message, Raw, method, rpc};
use serde::Serialize;
use tokio::{
    sync::mpsc,
    time::{Instant, timeout},
};

use crate::{Control, ControlError};

/// What is tried, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum StageName {
    /// Starting or reaching it, and the handshake.
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
    pub const ALL: [Self; 4] = [Self::Connect, Self::Tools, Self::Resources, Self::Prompts];

    /// The stage's spelling.
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

/// How a stage went.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum StageOutcome {
    /// It worked.
    Ok {
        /// How many entries the list has; none for the connection.
        count: Option<usize>,
    },
    /// It did not.
    Failed {
        /// Why.
        reason: String,
    },
    /// No answer came.
    Timeout {
        /// After how many milliseconds it was given up.
        after_ms: u64,
    },
    /// The server does not have this list (error -32601, or a capability that it did not declare).
    NotSupported,
}

/// One stage and how it went.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stage {
    /// Which.
    pub name: StageName,
    /// How.
    #[serde(flatten)]
    pub outcome: StageOutcome,
    /// How long it took.
    pub duration_ms: u64,
}

/// A whole try.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Probe {
    /// The server.
    pub name: String,
    /// Whether everything that the server has worked.
    pub ok: bool,
    /// What was tried. Ends with the connection if that failed.
    pub stages: Vec<Stage>,
    /// What the server calls itself.
    pub server_name: Option<String>,
    /// Its version.
    pub server_version: Option<String>,
    /// The revision of the protocol that was agreed on.
    pub revision: Option<String>,
}

/// A try that is about to begin. Dropped in the middle, it takes what it has started with it.
#[derive(Debug)]
pub struct Probing {
    registry: Registry,
    definition: Arc<ServerDefinition>,
}

impl Control {
    /// Connects to a server anew and lists what it has, beside the connection that is in use. Also
    /// works for one that has failed or is switched off.
    ///
    /// # Errors
    /// When there is no such server, or its entry is faulty.
    pub fn probe(&self, name: &str) -> Result<Probing, ControlError> {
        let row = self.shared.registry.get(name);
        let row = row.ok_or_else(|| VerbError::Unknown(name.to_owned()))?;
        let definition = row.definition.clone();
        let definition = definition.ok_or_else(|| VerbError::Faulty(name.to_owned()))?;
        Ok(Probing { registry: self.shared.registry.clone(), definition })
    }
}

impl Probing {
    /// Does it; `told` hears each stage as it ends.
    pub async fn run(self, told: impl Fn(&Stage) + Send) -> Probe {
        let mut probe = Probe {
            name: self.definition.alias.as_str().to_owned(),
            ok: false,
            stages: Vec::new(),
            server_name: None,
            server_version: None,
            revision: None,
        };
        let since = Instant::now();
        // What the server says by itself is of no interest; the queue is bounded and overflows.
        let (events, _unheard) = mpsc::channel(1);
        let opened = self.registry.open_apart(&self.definition, events).await;
        let outcome = match &opened {
            Ok(_) => StageOutcome::Ok { count: None },
            Err(error) if error.kind == CallErrorKind::Timeout => {
                StageOutcome::Timeout { after_ms: millis(since.elapsed()) }
            }
            Err(error) => StageOutcome::Failed { reason: error.message.clone() },
        };
        probe.stage(StageName::Connect, outcome, since, &told);
        let Ok(link) = opened else { return probe };
        probe.read_facts(&link);
        let within = self.registry.deadlines(&self.definition).list;
        probe.read_lists(&link, within, &told).await;
        link.stop().await;
        let is_fine = |stage: &Stage| {
            matches!(stage.outcome, StageOutcome::Ok { .. } | StageOutcome::NotSupported)
        };
        probe.ok = probe.stages.iter().all(is_fine);
        probe
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

//! The frozen configuration of a run, made at its creation (D10), as it is stored: sealed, and
//! never shown.
//!
//! The configuration has the inputs of the run's resolution, and not the result: after a restart,
//! the same inputs give the same result. It has no values of secrets, only their versions.

use std::{collections::BTreeMap, fmt};

use narthex_catalog::{Agent, Capability, Catalog, EndSession, Parsed, RunRequest, ServerEntry};
use narthex_control::AgentParts;
use narthex_model::{
    AgentName, AgentType, BuiltInTools, CapabilityName, EnvName, ExecutorName,
    OauthOnOrchestrators, RunId, RunScope, Secret, SecretName, ServerId, SessionId,
};
use narthex_registry::{HeldNames, KeptFurther, KeptLists};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The frozen configuration of a run. `Debug` shows nothing of it.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Frozen {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) prompt: Option<String>,
    pub(crate) of: ServerSource,
    /// The first lists of the run's servers on shared links. `further` has those on other links.
    #[serde(default)]
    pub(crate) lists: KeptLists,
    #[serde(default)]
    pub(crate) further: KeptFurther,
    /// The names under review in these lists.
    #[serde(default)]
    pub(crate) held: HeldNames,
    /// The earlier run of the session, if the session resumes with this run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<ResumedFrom>,
}

/// The earlier run from which a session resumes.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(crate) struct ResumedFrom {
    /// The number of the session's last run.
    pub(crate) pid: u64,
    /// The time of suspension, in milliseconds since 1970, if the session was suspended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) suspended_ms: Option<u64>,
}

/// The source of a run's servers.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ServerSource {
    /// An agent.
    Agent(Box<FrozenAgent>),
    /// The request with servers of its own.
    Own(String),
}

impl ServerSource {
    pub(crate) fn agent(&self) -> Option<&FrozenAgent> {
        match self {
            Self::Agent(agent) => Some(agent),
            Self::Own(_) => None,
        }
    }

    /// The inputs of the run's session.
    pub(crate) fn inputs(&self) -> Inputs {
        match self {
            Self::Agent(agent) => agent.inputs.clone(),
            Self::Own(text) => Inputs { own: Some(text.clone()), ..Inputs::default() },
        }
    }

    /// The tools of the built-in server for runs with this source: by the request of the session,
    /// or else by the agent (D29).
    pub(crate) fn built_in_tools(&self, is_child: bool) -> BuiltInTools {
        let said = match self {
            Self::Agent(agent) => agent.inputs.builtin.clone().or_else(|| agent.builtin()),
            Self::Own(text) => {
                let request = RunRequest::parse(text.as_bytes()).ok();
                request.and_then(|parsed| parsed.value.builtin)
            }
        };
        said.unwrap_or_else(|| BuiltInTools::usual(is_child))
    }
}

/// The configuration of the last run of a suspended session, as the vault seals it. It has only
/// references, and no lists of servers: the next run reads the lists anew.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Suspended {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) prompt: Option<String>,
    pub(crate) of: ServerSource,
}

impl Suspended {
    pub(crate) fn new(frozen: Frozen) -> Self {
        let Frozen { prompt, of, lists: _, further: _, held: _, from: _ } = frozen;
        Self { prompt, of }
    }

    /// The text to seal.
    pub(crate) fn text(&self) -> Secret {
        text(self)
    }

    /// Reads a sealed text. `None` if this version does not understand it.
    pub(crate) fn read(text: &Secret) -> Option<Self> {
        serde_json::from_str(text.expose()).ok()
    }
}

/// An agent with all parts that one of its runs was resolved from.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct FrozenAgent {
    pub(crate) name: AgentName,
    agent: Value,
    capabilities: BTreeMap<CapabilityName, Value>,
    servers: BTreeMap<ServerId, Value>,
    pub(crate) inputs: Inputs,
    scope: Map<String, Value>,
    /// The versions of secrets that the run is bound to.
    pub(crate) secrets: BTreeMap<SecretName, u64>,
    /// The variables that the run's creator got for the agent, and the secret of each.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) env: BTreeMap<EnvName, SecretName>,
    /// The setting of the workspace when the run was created.
    #[serde(default)]
    oauth_on_orchestrators: OauthOnOrchestrators,
}

/// The inputs of a session, which every run of it has.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct Inputs {
    pub(crate) params: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) project_dir: Option<String>,
    /// True if the folder was made for the session alone, and belongs to no other.
    #[serde(default, skip_serializing_if = "is_not")]
    pub(crate) has_own_folder: bool,
    /// The scope of the run that created the session by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) caller_scope: Option<Map<String, Value>>,
    /// The tools of the built-in server for the session, if its request names them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) builtin: Option<BuiltInTools>,
    /// The request with servers of its own, of a session that has no agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) own: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_not(flag: &bool) -> bool {
    !flag
}

impl FrozenAgent {
    /// The type of the agent; the normal form omits that of a worker.
    pub(crate) fn agent_type(&self) -> AgentType {
        let word = self.agent.get("agent_type").and_then(Value::as_str);
        let named = AgentType::ALL.into_iter().find(|kind| Some(kind.as_str()) == word);
        named.unwrap_or_default()
    }

    /// The rule for calls of `end_session` in the agent's runs.
    pub(crate) fn end_session(&self) -> EndSession {
        let word = self.agent.get("end_session").and_then(Value::as_str);
        word.and_then(EndSession::parse).unwrap_or_default()
    }

    /// The agent's text that the model sees.
    pub(crate) fn system_prompt(&self) -> Option<String> {
        self.agent.get("system_prompt")?.as_str().map(str::to_owned)
    }

    /// The tools of the built-in server for the agent's runs, if the agent names them.
    fn builtin(&self) -> Option<BuiltInTools> {
        serde_json::from_value(self.agent.get("builtin")?.clone()).ok()
    }

    /// The daemon's executor that carries out the agent's runs.
    pub(crate) fn executor(&self) -> Option<ExecutorName> {
        ExecutorName::new(self.agent.get("executor")?.as_str()?).ok()
    }

    pub(crate) fn new(
        parts: &AgentParts,
        inputs: Inputs,
        scope: &RunScope,
        secrets: BTreeMap<SecretName, u64>,
        env: BTreeMap<EnvName, SecretName>,
    ) -> Self {
        let AgentParts { agent, catalog } = parts;
        let Catalog { servers, capabilities, oauth_on_orchestrators } = catalog;
        let capabilities = capabilities.iter().map(|(name, one)| (name.clone(), normal(one)));
        let servers = servers.iter().map(|(id, one)| (id.clone(), normal(one)));
        Self {
            name: agent.name.clone(),
            agent: normal(agent),
            capabilities: capabilities.collect(),
            servers: servers.collect(),
            inputs,
            scope: scope.values().clone(),
            secrets,
            env,
            oauth_on_orchestrators: *oauth_on_orchestrators,
        }
    }

    pub(crate) fn scope(&self) -> RunScope {
        RunScope::new(self.scope.clone())
    }

    /// The parts as they were frozen. `None` if this version does not understand them any more.
    pub(crate) fn parts(&self) -> Option<AgentParts> {
        let agent = Agent::parse(self.agent.to_string().as_bytes(), Some(&self.name));
        let Parsed { value: agent, .. } = agent.ok()?;
        let oauth_on_orchestrators = self.oauth_on_orchestrators;
        let mut catalog = Catalog { oauth_on_orchestrators, ..Catalog::default() };
        for (name, text) in &self.capabilities {
            let parsed = Capability::parse(text.to_string().as_bytes(), Some(name)).ok()?;
            catalog.capabilities.insert(name.clone(), parsed.value);
        }
        for (id, text) in &self.servers {
            let parsed = ServerEntry::parse(text.to_string().as_bytes(), Some(id)).ok()?;
            catalog.servers.insert(id.clone(), parsed.value);
        }
        Some(AgentParts { agent, catalog })
    }
}

impl Frozen {
    /// The text to seal.
    pub(crate) fn text(&self) -> Secret {
        text(self)
    }

    /// Reads a sealed text. `None` if this version does not understand it.
    pub(crate) fn read(text: &Secret) -> Option<Self> {
        serde_json::from_str(text.expose()).ok()
    }
}

impl Inputs {
    /// The text to seal.
    pub(crate) fn text(&self) -> Secret {
        text(self)
    }

    /// Reads a sealed text. `None` if this version does not understand it.
    pub(crate) fn read(text: &Secret) -> Option<Self> {
        serde_json::from_str(text.expose()).ok()
    }
}

/// The place to which the vault binds a run's sealed configuration.
pub(crate) fn run_place(id: RunId) -> String {
    format!("run {id}")
}

/// The place to which the vault binds the sealed configuration of a suspended session's last run.
pub(crate) fn suspended_place(id: SessionId) -> String {
    format!("suspended {id}")
}

/// The place to which the vault binds a session's sealed inputs.
pub(crate) fn session_place(id: SessionId) -> String {
    format!("session {id}")
}

fn text<T: Serialize>(of: &T) -> Secret {
    Secret::new(serde_json::to_string(of).expect("texts and maps by text can be written"))
}

fn normal<T: Serialize>(of: &T) -> Value {
    serde_json::to_value(of).expect("a normal form is JSON")
}

impl fmt::Debug for Frozen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Frozen")
    }
}

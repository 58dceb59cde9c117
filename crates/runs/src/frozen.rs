//! What a run is frozen with at its creation (D10), as it is kept: sealed, and never shown.
//!
//! It is what the run was resolved from, and not what came out: the same goes in again after a
//! restart, and the same comes out. Values of secrets are not in it, only their versions.

use std::{collections::BTreeMap, fmt};

use narthex_control::AgentParts;
use narthex_model::{
    AgentName, AgentType, BuiltInTools, CapabilityName, EnvName, ExecutorName,
    OauthOnOrchestrators, RunId, RunScope, Secret, SecretName, ServerId, SessionId,
};
use narthex_registry::{HeldNames, KeptFurther, KeptLists};
use narthex_resolve::{Agent, Capability, Catalog, EndSession, Parsed, RunRequest, ServerEntry};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What a run is frozen with. `Debug` shows nothing of it.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Frozen {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) prompt: Option<String>,
    pub(crate) of: Made,
    /// What its servers had at first; and on links besides the shared ones.
    #[serde(default)]
    pub(crate) lists: KeptLists,
    #[serde(default)]
    pub(crate) further: KeptFurther,
    /// What of them is held back.
    #[serde(default)]
    pub(crate) held: HeldNames,
    /// What its session goes on from with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<GoesOnFrom>,
}

/// What a session goes on from.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(crate) struct GoesOnFrom {
    /// The number of its last run.
    pub(crate) pid: u64,
    /// When it was set aside, in milliseconds since 1970, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) suspended_ms: Option<u64>,
}

/// What its servers are made of.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Made {
    /// An agent's.
    Agent(Box<FrozenAgent>),
    /// Its own, as they were asked for.
    Own(String),
}

impl Made {
    pub(crate) fn agent(&self) -> Option<&FrozenAgent> {
        match self {
            Self::Agent(agent) => Some(agent),
            Self::Own(_) => None,
        }
    }

    /// What its session begins with.
    pub(crate) fn inputs(&self) -> Inputs {
        match self {
            Self::Agent(agent) => agent.inputs.clone(),
            Self::Own(text) => Inputs { own: Some(text.clone()), ..Inputs::default() },
        }
    }

    /// Which tools of the built-in server its runs have: as the request of the session says, or
    /// else its agent (D29).
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

/// What the last run of a session that is set aside was made of, as it is sealed: references alone.
/// What its servers had is not in it: the next run finds that out anew.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Suspended {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) prompt: Option<String>,
    pub(crate) of: Made,
}

impl Suspended {
    pub(crate) fn new(frozen: Frozen) -> Self {
        let Frozen { prompt, of, lists: _, further: _, held: _, from: _ } = frozen;
        Self { prompt, of }
    }

    /// As it is sealed.
    pub(crate) fn text(&self) -> Secret {
        text(self)
    }

    /// Reads it again. `None` if this version does not understand it.
    pub(crate) fn read(text: &Secret) -> Option<Self> {
        serde_json::from_str(text.expose()).ok()
    }
}

/// An agent with all that one run of it is made of.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct FrozenAgent {
    pub(crate) name: AgentName,
    agent: Value,
    capabilities: BTreeMap<CapabilityName, Value>,
    servers: BTreeMap<ServerId, Value>,
    pub(crate) inputs: Inputs,
    scope: Map<String, Value>,
    /// The secrets that it is bound to, by version.
    pub(crate) secrets: BTreeMap<SecretName, u64>,
    /// The variables that whoever created the run was told for the agent, and the secret of each.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) env: BTreeMap<EnvName, SecretName>,
    /// What its workspace said when it was created.
    #[serde(default)]
    oauth_on_orchestrators: OauthOnOrchestrators,
}

/// What a session begins with, and every run of it has.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct Inputs {
    pub(crate) params: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) project_dir: Option<String>,
    /// Whether the folder was made for the session alone, and is nobody else's.
    #[serde(default, skip_serializing_if = "is_not")]
    pub(crate) has_own_folder: bool,
    /// The scope of the run that began the session by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) caller_scope: Option<Map<String, Value>>,
    /// Which tools of the built-in server it has, where its request says so.
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
    /// Whom its runs act for; in the normal form a worker goes without saying.
    pub(crate) fn agent_type(&self) -> AgentType {
        let word = self.agent.get("agent_type").and_then(Value::as_str);
        let named = AgentType::ALL.into_iter().find(|kind| Some(kind.as_str()) == word);
        named.unwrap_or_default()
    }

    /// What its runs get that call `end_session`.
    pub(crate) fn end_session(&self) -> EndSession {
        let word = self.agent.get("end_session").and_then(Value::as_str);
        word.and_then(EndSession::parse).unwrap_or_default()
    }

    /// The text that its model sees.
    pub(crate) fn system_prompt(&self) -> Option<String> {
        self.agent.get("system_prompt")?.as_str().map(str::to_owned)
    }

    /// Which tools of the built-in server its runs have, if it says so.
    fn builtin(&self) -> Option<BuiltInTools> {
        serde_json::from_value(self.agent.get("builtin")?.clone()).ok()
    }

    /// What of the daemon carries its runs out.
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

    /// The parts as they were. `None` if this version does not understand them any more.
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
    /// As it is sealed.
    pub(crate) fn text(&self) -> Secret {
        text(self)
    }

    /// Reads it again. `None` if this version does not understand it.
    pub(crate) fn read(text: &Secret) -> Option<Self> {
        serde_json::from_str(text.expose()).ok()
    }
}

impl Inputs {
    /// As they are sealed.
    pub(crate) fn text(&self) -> Secret {
        text(self)
    }

    /// Reads them again. `None` if this version does not understand them.
    pub(crate) fn read(text: &Secret) -> Option<Self> {
        serde_json::from_str(text.expose()).ok()
    }
}

/// Where what a run is frozen with is sealed for.
pub(crate) fn run_place(id: RunId) -> String {
    format!("run {id}")
}

/// Where what the last run of a session that is set aside was made of is sealed for.
pub(crate) fn suspended_place(id: SessionId) -> String {
    format!("suspended {id}")
}

/// Where what a session begins with is sealed for.
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

//! What a run is frozen with at its creation (D10), as it is kept: sealed, and never shown.
//!
//! It is what the run was resolved from, and not what came out: the same goes in again after a
//! restart, and the same comes out. Values of secrets are not in it, only their versions.

use std::{collections::BTreeMap, fmt};

use narthex_model::{
    AgentName, CapabilityName, EnvName, OauthOnOrchestrators, RunId, RunScope, Secret, SecretName,
    ServerId, SessionId,
};
use narthex_registry::{KeptFurther, KeptLists};
use narthex_resolve::{Agent, Capability, Catalog, Parsed, ServerEntry};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::catalog::AgentParts;

/// What a run is frozen with. `Debug` shows nothing of it.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Frozen {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) prompt: Option<String>,
    pub(super) of: Made,
    /// What its servers had at first; and on links besides the shared ones.
    #[serde(default)]
    pub(super) lists: KeptLists,
    #[serde(default)]
    pub(super) further: KeptFurther,
}

/// What its servers are made of.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Made {
    /// An agent's.
    Agent(Box<FrozenAgent>),
    /// Its own, as they were asked for.
    Own(String),
}

impl Made {
    pub(super) fn agent(&self) -> Option<&FrozenAgent> {
        match self {
            Self::Agent(agent) => Some(agent),
            Self::Own(_) => None,
        }
    }
}

/// An agent with all that one run of it is made of.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct FrozenAgent {
    pub(super) name: AgentName,
    agent: Value,
    capabilities: BTreeMap<CapabilityName, Value>,
    servers: BTreeMap<ServerId, Value>,
    pub(super) inputs: Inputs,
    scope: Map<String, Value>,
    /// The secrets that it is bound to, by version.
    pub(super) secrets: BTreeMap<SecretName, u64>,
    /// The variables that whoever created the run was told for the agent, and the secret of each.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) env: BTreeMap<EnvName, SecretName>,
    /// The human who drives it; `None` if nobody does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) driver: Option<String>,
    /// What its workspace said when it was created.
    #[serde(default)]
    oauth_on_orchestrators: OauthOnOrchestrators,
}

/// What a session begins with, and every run of it has.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(super) struct Inputs {
    pub(super) params: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) project_dir: Option<String>,
}

impl FrozenAgent {
    pub(super) fn new(
        parts: &AgentParts,
        inputs: Inputs,
        scope: &RunScope,
        secrets: BTreeMap<SecretName, u64>,
        env: BTreeMap<EnvName, SecretName>,
        driver: Option<&str>,
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
            driver: driver.map(str::to_owned),
            oauth_on_orchestrators: *oauth_on_orchestrators,
        }
    }

    pub(super) fn scope(&self) -> RunScope {
        RunScope::new(self.scope.clone())
    }

    /// The parts as they were. `None` if this version does not understand them any more.
    pub(super) fn parts(&self) -> Option<AgentParts> {
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
    pub(super) fn text(&self) -> Secret {
        text(self)
    }

    /// Reads it again. `None` if this version does not understand it.
    pub(super) fn read(text: &Secret) -> Option<Self> {
        serde_json::from_str(text.expose()).ok()
    }
}

impl Inputs {
    /// As they are sealed.
    pub(super) fn text(&self) -> Secret {
        text(self)
    }

    /// Reads them again. `None` if this version does not understand them.
    pub(super) fn read(text: &Secret) -> Option<Self> {
        serde_json::from_str(text.expose()).ok()
    }
}

/// Where what a run is frozen with is sealed for.
pub(super) fn run_place(id: RunId) -> String {
    format!("run {id}")
}

/// Where what a session begins with is sealed for.
pub(super) fn session_place(id: SessionId) -> String {
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

//! The servers of one agent with all levels merged, for each of its runs.

mod check;
mod merge;
mod oauth;
mod preview;
mod scope;

use std::collections::BTreeMap;

use narthex_model::{
    Alias, CapabilityName, EnvName, OauthOnOrchestrators, SecretName, ServerId, command::narthex,
    is_secret_name,
};
use serde::Serialize;
use serde_json::Value;

use crate::{
    agent::Agent,
    capability::Capability,
    carrier::Carrier,
    fault::{Fault, FaultCode, Faults, Warning},
    origin::{self, Origin},
    schema::KeySchema,
    server::{NameRules, ServerEntry},
    surroundings::Surroundings,
    template::ConfigValue,
};

/// The servers and capabilities that a workspace can attach.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Catalog {
    /// The servers.
    pub servers: BTreeMap<ServerId, ServerEntry>,
    /// The capabilities.
    pub capabilities: BTreeMap<CapabilityName, Capability>,
    /// The agents, besides workers, that may have servers with a sign-in per person.
    pub oauth_on_orchestrators: OauthOnOrchestrators,
}

/// The servers of one agent, merged (D6) and checked as far as possible without a run.
///
/// Made when an agent is saved, to refuse an agent that could never run ([`Plan::check`]); for a
/// preview ([`Plan::preview`]); and for each run ([`Plan::resolve`]).
#[derive(Debug)]
pub struct Plan<'a> {
    pub(crate) agent: &'a Agent,
    pub(crate) surroundings: Surroundings<'a>,
    pub(crate) servers: BTreeMap<Alias, PlannedServer<'a>>,
    /// Faults that concern no single server.
    pub(crate) faults: Vec<Fault>,
    /// Warnings about the scope in a run's request.
    pub(crate) scope_warnings: Vec<Warning>,
}

/// One server of the agent.
#[derive(Debug)]
pub(crate) struct PlannedServer<'a> {
    pub(crate) alias: Alias,
    pub(crate) reference: ServerId,
    /// `None` if there is none, or if levels refer to different entries.
    pub(crate) entry: Option<&'a ServerEntry>,
    pub(crate) optional: bool,
    /// Rules of each level for the visible tools of the server.
    pub(crate) tools: Vec<&'a NameRules>,
    pub(crate) keys: BTreeMap<String, PlannedKey<'a>>,
    pub(crate) faults: Vec<Fault>,
    pub(crate) warnings: Vec<Warning>,
}

/// One key of a server, with the value of the highest level that sets it.
#[derive(Debug)]
pub(crate) struct PlannedKey<'a> {
    pub(crate) value: &'a ConfigValue,
    pub(crate) origin: Origin,
    /// Values of lower levels, from the highest of them to the lowest.
    pub(crate) overridden: Vec<(Origin, &'a ConfigValue)>,
    /// Capabilities that disagree, whether or not the agent settles it.
    pub(crate) disagreeing: Vec<(Origin, &'a ConfigValue)>,
    pub(crate) schema: Option<&'a KeySchema>,
    /// `None` if it cannot travel, which is a fault of the server.
    pub(crate) carrier: Option<Carrier>,
}

/// A secret that a server of the agent needs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct SecretRequirement {
    /// The secret.
    pub name: SecretName,
    /// The only server that gets the secret.
    pub alias: Alias,
    /// The place of the secret: `config.KEY` or `auth.FIELD`.
    pub field: String,
}

pub(crate) use preview::HIDDEN;

impl PlannedKey<'_> {
    /// True if its value is never shown: by its schema, or by a name that suggests a credential,
    /// whatever the schema sets.
    pub(crate) fn is_hidden(&self) -> bool {
        let by_name =
            || self.carrier.as_ref().is_some_and(|carrier| is_secret_name(carrier.name()));
        self.schema.is_some_and(KeySchema::is_hidden)
            || matches!(self.value, ConfigValue::Secret(_))
            || by_name()
    }

    /// True if the key is not passed to the server.
    pub(crate) fn is_removed(&self) -> bool {
        let is_empty = |schema| crate::layer::is_empty_optional_secret(schema, self.value);
        *self.value == ConfigValue::Removed || self.schema.is_some_and(is_empty)
    }
}

impl<'a> Plan<'a> {
    /// Merges the levels of an agent's servers. Faults are collected in the plan.
    #[must_use]
    pub fn new(catalog: &'a Catalog, agent: &'a Agent, surroundings: Surroundings<'a>) -> Self {
        let (mut servers, faults) = merge::merge(catalog, agent);
        for server in servers.values_mut() {
            check::check(server, agent, surroundings);
        }
        Self { agent, surroundings, servers, faults, scope_warnings: Vec::new() }
    }

    /// Includes the secrets for the agent's own environment in the check. A missing one refuses the
    /// run, like a missing secret of a server.
    #[must_use]
    pub fn with_agent_env(mut self, bound: &BTreeMap<EnvName, SecretName>) -> Self {
        let at = origin::agent(&self.agent.name).key("env");
        let workspace = self.surroundings.workspace;
        for (name, secret) in bound {
            if !(self.surroundings.is_secret_set)(secret) {
                let message = format!(
                    "the environment of agent `{}` needs the secret `{secret}` for `{name}`, and \
                     it is not set",
                    self.agent.name
                );
                let remedy = format!(
                    "set it with `{}`, or remove the binding, which `{}` shows",
                    narthex("secrets set {}", &[secret]).in_workspace(workspace),
                    narthex("env-bindings list", &[]).in_workspace(workspace)
                );
                let code = FaultCode::SecretNotSet;
                let fault = Fault::new(at.key(name.as_str()), code, message, remedy);
                self.faults.push(Fault { secret: Some(secret.clone()), ..fault });
            }
        }
        self
    }

    /// Refuses a plan from which no run could be created; otherwise returns warnings.
    ///
    /// # Errors
    /// All faults of any server, also of optional ones.
    pub fn check(&self) -> Result<Vec<Warning>, Faults> {
        let of_servers = self.servers.values().flat_map(|server| &server.faults);
        let faults = self.faults.iter().chain(of_servers).cloned().collect();
        match Faults::of_all(faults, &self.surroundings) {
            Some(faults) => Err(faults),
            None => Ok(self.servers.values().flat_map(|server| server.warnings.clone()).collect()),
        }
    }

    /// The merged result for people: each key with its written value, its level, the overridden
    /// values and the levels that disagree (O32, O101). Literals of a hidden key are not shown, on
    /// no level.
    #[must_use]
    pub fn preview(&self) -> Value {
        preview::preview(self)
    }

    /// The secrets that runs of the agent need, sorted, whether set or not.
    #[must_use]
    pub fn secrets(&self) -> Vec<SecretRequirement> {
        let mut found = Vec::new();
        for server in self.servers.values() {
            let require = |field: String, name: &SecretName| SecretRequirement {
                name: name.clone(),
                alias: server.alias.clone(),
                field,
            };
            for (key, planned) in &server.keys {
                if let ConfigValue::Secret(name) = planned.value {
                    found.push(require(format!("config.{key}"), name));
                }
            }
            for (field, text) in server.entry.iter().flat_map(|entry| entry.auth.texts()) {
                if let ConfigValue::Secret(name) = &text.0 {
                    found.push(require(format!("auth.{field}"), name));
                }
            }
        }
        found.sort();
        found
    }
}

/// Checks a server by itself, when it is saved: its secrets and variables must exist.
///
/// # Errors
/// All faults of the server.
pub fn check_server(entry: &ServerEntry, surroundings: Surroundings<'_>) -> Result<(), Faults> {
    Faults::of_all(check::server(entry, surroundings), &surroundings).map_or(Ok(()), Err)
}

/// Checks a capability by itself, when it is saved: its servers must exist and accept its values.
/// Returns warnings.
///
/// # Errors
/// All faults of the capability.
pub fn check_capability(
    catalog: &Catalog,
    capability: &Capability,
    surroundings: Surroundings<'_>,
) -> Result<Vec<Warning>, Faults> {
    let (faults, warnings) = check::capability(catalog, capability, surroundings);
    Faults::of_all(faults, &surroundings).map_or(Ok(warnings), Err)
}

/// The capabilities and agents that use a server, by their places. Deleting the server would break
/// these references (O41).
#[must_use]
pub fn users_of<'o>(
    id: &ServerId,
    capabilities: impl IntoIterator<Item = &'o Capability>,
    agents: impl IntoIterator<Item = &'o Agent>,
) -> Vec<String> {
    let place = |at: narthex_model::json::Place, servers: &crate::attachment::Attachments| {
        let using = servers.iter().filter(|(_, attachment)| attachment.reference == *id);
        using
            .map(|(alias, _)| at.key("mcpServers").key(alias.as_str()).to_string())
            .collect::<Vec<_>>()
    };
    let in_capabilities = capabilities
        .into_iter()
        .flat_map(|capability| place(origin::capability(&capability.name), &capability.servers));
    let in_agents =
        agents.into_iter().flat_map(|agent| place(origin::agent(&agent.name), &agent.servers));
    in_capabilities.chain(in_agents).collect()
}

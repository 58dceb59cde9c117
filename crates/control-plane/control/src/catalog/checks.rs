//! Checks an object against all others in its workspace.

mod definition;
mod users;

use std::collections::{BTreeMap, BTreeSet};

use narthex_catalog::{
    Agent, Catalog, ConfigSchema, Fault, FaultCode, Faults, Plan, RunInputs, ServerEntry,
    Surroundings, Warning, check_capability, check_server, users_of,
};
use narthex_model::{
    AgentName, CapabilityName, CatalogKind, ExecutorName, OauthOnOrchestrators, RunScope,
    SecretName, ServerId, WorkspaceId,
};
use narthex_store::CatalogRow;
use serde_json::{Map, Value};

pub(super) use self::definition::Definition;
pub use self::users::CatalogUser;
use narthex_catalog::fields::{CatalogError, FieldCode, FieldError, FieldWarning};

use crate::Variables;

/// Largest number of objects of each kind in a workspace: every change is checked against all of
/// them.
const OBJECTS_MAX: usize = 10_000;

/// The objects of a workspace, as stored.
pub(super) struct Stored {
    pub(super) workspace: WorkspaceId,
    pub(super) servers: Vec<CatalogRow>,
    pub(super) capabilities: Vec<CatalogRow>,
    pub(super) agents: Vec<CatalogRow>,
    /// Names of secrets that are set.
    pub(super) secrets: BTreeSet<SecretName>,
    pub(super) variables: Variables,
    pub(super) oauth_on_orchestrators: OauthOnOrchestrators,
    /// The executors of this daemon.
    pub(super) executors: BTreeSet<ExecutorName>,
}

/// The readable objects of a workspace.
pub(super) struct Workspace {
    id: WorkspaceId,
    catalog: Catalog,
    agents: BTreeMap<AgentName, Agent>,
    secrets: BTreeSet<SecretName>,
    variables: Variables,
    executors: BTreeSet<ExecutorName>,
}

impl Stored {
    pub(super) fn find(&self, kind: CatalogKind, id: &str) -> Option<&CatalogRow> {
        self.rows(kind).iter().find(|row| row.id == id)
    }

    pub(super) fn rows(&self, kind: CatalogKind) -> &[CatalogRow] {
        match kind {
            CatalogKind::Server => &self.servers,
            CatalogKind::Capability => &self.capabilities,
            CatalogKind::Agent => &self.agents,
        }
    }

    /// Checks that the workspace may have `new` further objects of a kind.
    pub(super) fn room_for(&self, kind: CatalogKind, new: usize) -> Result<(), CatalogError> {
        match new > 0 && self.rows(kind).len() + new > OBJECTS_MAX {
            true => Err(CatalogError::TooMany { kind, most: OBJECTS_MAX }),
            false => Ok(()),
        }
    }

    /// Reads all objects. An unreadable object is left out: objects that refer to it get a fault.
    pub(super) fn read(&self) -> Workspace {
        let mut workspace = Workspace {
            id: self.workspace.clone(),
            catalog: Catalog {
                oauth_on_orchestrators: self.oauth_on_orchestrators,
                ..Catalog::default()
            },
            agents: BTreeMap::new(),
            secrets: self.secrets.clone(),
            variables: self.variables.clone(),
            executors: self.executors.clone(),
        };
        for kind in CatalogKind::ALL {
            for row in self.rows(kind) {
                let read = Definition::parse(kind, row.document.as_bytes(), Some(&row.id));
                if let Ok((definition, _)) = read {
                    workspace.put(definition);
                }
            }
        }
        workspace
    }
}

impl Workspace {
    /// Adds or replaces an object, even if it has faults.
    pub(super) fn put(&mut self, definition: Definition) {
        match definition {
            Definition::Server(entry) => {
                self.catalog.servers.insert(entry.id.clone(), *entry);
            }
            Definition::Capability(capability) => {
                self.catalog.capabilities.insert(capability.name.clone(), *capability);
            }
            Definition::Agent(agent) => {
                self.agents.insert(agent.name.clone(), *agent);
            }
        }
    }

    /// Adds or replaces an object, if it fits the others (D9). Returns warnings, also about other
    /// objects that no longer fit. Refusing those would make it impossible to change a server and
    /// its users in any order. A change that gives an agent a server with OAuth which it may not
    /// have is refused (X-M15).
    pub(super) fn take(
        &mut self,
        definition: Definition,
    ) -> Result<Vec<FieldWarning>, Vec<FieldError>> {
        let users = self.users(&definition);
        let before = self.faults_of(&users);
        let (alone, place) = (self.alone(&definition), definition.place());
        self.put(definition);
        match (alone, self.broken(&users, &before, &place)) {
            (Ok(mut warnings), Ok(broken)) => {
                warnings.extend(broken);
                Ok(warnings)
            }
            (alone, broken) => {
                let faults = [alone.err(), broken.err()];
                Err(faults.into_iter().flatten().flatten().collect())
            }
        }
    }

    /// Checks an object together with the others. Returns warnings, or all of its faults.
    pub(super) fn alone(
        &self,
        definition: &Definition,
    ) -> Result<Vec<FieldWarning>, Vec<FieldError>> {
        let place = definition.place();
        let checked = match definition {
            Definition::Server(entry) => {
                self.asked(|world| check_server(entry, world)).map(|()| Vec::new())
            }
            Definition::Capability(capability) => {
                self.asked(|world| check_capability(&self.catalog, capability, world))
            }
            Definition::Agent(agent) => self.agent_faults(agent),
        };
        let (checked, faults) = match checked {
            Ok(checked) => (checked, Vec::new()),
            Err(faults) => {
                let told = faults.iter().map(|fault| FieldError::of(fault, &place));
                (Vec::new(), told.collect())
            }
        };
        if !faults.is_empty() {
            return Err(faults);
        }
        let mut told: Vec<_> =
            checked.iter().map(|warning| FieldWarning::of(warning, &place)).collect();
        told.extend(self.never_starts(definition));
        if let Definition::Agent(agent) = definition {
            told.extend(self.unknown_agents(agent));
        }
        Ok(told)
    }

    /// Warnings about servers that this daemon can never start. The object may still be stored, for
    /// a daemon that can start them.
    pub(super) fn never_starts(&self, definition: &Definition) -> Vec<FieldWarning> {
        let attached = match definition {
            Definition::Server(entry) => {
                let why = entry.never_starts();
                let told =
                    why.map(|(field, message)| FieldWarning { field: field.to_owned(), message });
                return told.into_iter().collect();
            }
            Definition::Capability(capability) => &capability.servers,
            Definition::Agent(agent) => &agent.servers,
        };
        let of_server = attached.iter().filter_map(|(alias, attachment)| {
            let entry = self.catalog.servers.get(&attachment.reference)?;
            let (_field, why) = entry.never_starts()?;
            let field = format!("mcpServers.{alias}.ref");
            let message = format!("the server `{}` never starts: {why}", entry.id);
            (attachment.optional != Some(true)).then_some(FieldWarning { field, message })
        });
        of_server.chain(self.unknown_executor(definition)).collect()
    }

    /// A warning if the agent names an executor that this daemon does not have for this workspace.
    fn unknown_executor(&self, definition: &Definition) -> Option<FieldWarning> {
        let Definition::Agent(agent) = definition else { return None };
        let name = agent.executor.as_ref().filter(|name| !self.executors.contains(*name))?;
        let message = format!(
            "runs of this agent are refused: this daemon has no executor `{name}` for this \
             workspace; ask the operator to add it to `executors` in the daemon's settings, or \
             leave it out"
        );
        Some(FieldWarning { field: "executor".to_owned(), message })
    }

    /// Warnings about agents that this one may start and that do not exist. They may be created
    /// later.
    fn unknown_agents(&self, agent: &Agent) -> Vec<FieldWarning> {
        let is_unknown =
            |name: &&AgentName| **name != agent.name && !self.agents.contains_key(*name);
        let unknown = agent.spawnable_agents.iter().filter(is_unknown);
        let told = unknown.map(|name| FieldWarning {
            field: "spawnable_agents".to_owned(),
            message: format!("there is no agent `{name}`; create it, or remove the name"),
        });
        told.collect()
    }

    /// The new faults of these users, as warnings. A server with OAuth that an agent may not have
    /// is an error. `own` is the place of the change, if it changes one object.
    fn broken(
        &self,
        users: &Users,
        before: &[Fault],
        own: &str,
    ) -> Result<Vec<FieldWarning>, Vec<FieldError>> {
        let broken = self.faults_of(users).into_iter().filter(|fault| !before.contains(fault));
        let (refused, broken): (Vec<_>, Vec<_>) =
            broken.partition(|fault| fault.code == FaultCode::OauthNotAllowed);
        if !refused.is_empty() {
            return Err(refused.iter().map(|fault| FieldError::of(fault, own)).collect());
        }
        let told = broken.into_iter().map(|fault| FieldWarning {
            message: format!("runs are refused until this is corrected: {}", fault.message),
            field: fault.path,
        });
        Ok(told.collect())
    }

    /// Warnings about faults that a change of these objects causes in other objects; `old` is the
    /// workspace before it. Refuses a change that gives an agent a server with OAuth which it may
    /// not have.
    pub(super) fn broken_since<'d>(
        &self,
        old: &Self,
        changed: impl Iterator<Item = &'d Definition> + Clone,
    ) -> Result<Vec<FieldWarning>, Vec<FieldError>> {
        let mut users = Users::default();
        for definition in changed.clone() {
            let Users { capabilities, agents } = old.users(definition);
            users.capabilities.extend(capabilities);
            users.agents.extend(agents);
        }
        for definition in changed {
            match definition {
                Definition::Server(_) => {}
                Definition::Capability(own) => drop(users.capabilities.remove(&own.name)),
                Definition::Agent(own) => drop(users.agents.remove(&own.name)),
            }
        }
        let before = old.faults_of(&users);
        self.broken(&users, &before, "")
    }

    /// An object, if it exists and can be read.
    pub(super) fn definition(&self, kind: CatalogKind, id: &str) -> Option<Definition> {
        match kind {
            CatalogKind::Server => {
                let entry = self.catalog.servers.get(&ServerId::new(id).ok()?)?;
                Some(Definition::Server(Box::new(entry.clone())))
            }
            CatalogKind::Capability => {
                let capability = self.catalog.capabilities.get(&CapabilityName::new(id).ok()?)?;
                Some(Definition::Capability(Box::new(capability.clone())))
            }
            CatalogKind::Agent => {
                let agent = self.agents.get(&AgentName::new(id).ok()?)?;
                Some(Definition::Agent(Box::new(agent.clone())))
            }
        }
    }

    /// The config schema of a server.
    pub(super) fn schema(&self, id: &ServerId) -> Option<&ConfigSchema> {
        self.catalog.servers.get(id)?.config_schema.as_ref()
    }

    /// The servers that manifests of an agent have made.
    pub(super) fn made_by(&self, agent: &str) -> impl Iterator<Item = &ServerEntry> {
        let is_its = move |entry: &&ServerEntry| {
            entry.made_by.as_ref().is_some_and(|by| by.agent.as_str() == agent)
        };
        self.catalog.servers.values().filter(is_its)
    }

    /// The faults of an agent's servers, or its warnings.
    pub(super) fn agent_faults(&self, agent: &Agent) -> Result<Vec<Warning>, Faults> {
        self.asked(|world| Plan::new(&self.catalog, agent, world).check())
    }

    /// The servers of an agent and of its capabilities, in the order of their ids.
    pub(super) fn servers_of(&self, agent: &Agent) -> Vec<&ServerEntry> {
        let capabilities =
            agent.capabilities.iter().filter_map(|name| self.catalog.capabilities.get(name));
        let of_capabilities = capabilities.flat_map(|capability| capability.servers.values());
        let all = agent.servers.values().chain(of_capabilities);
        let ids: BTreeSet<_> = all.map(|attachment| &attachment.reference).collect();
        ids.into_iter().filter_map(|id| self.catalog.servers.get(id)).collect()
    }

    /// The servers that a reader may see: all, or those that agents use.
    pub(super) fn seen_servers(&self, sees_all: bool) -> Vec<&ServerEntry> {
        if sees_all {
            return self.catalog.servers.values().collect();
        }
        let used = self.agents.values().flat_map(|agent| self.servers_of(agent));
        used.map(|entry| (&entry.id, entry)).collect::<BTreeMap<_, _>>().into_values().collect()
    }

    /// The servers among them to which humans sign in.
    pub(super) fn per_user(&self, sees_all: bool) -> Vec<&ServerEntry> {
        let seen = self.seen_servers(sees_all).into_iter();
        seen.filter(|entry| entry.auth.is_per_user()).collect()
    }

    /// The places that refer to an object.
    pub(super) fn users_named(&self, kind: CatalogKind, id: &str) -> Vec<FieldError> {
        let places = match kind {
            CatalogKind::Server => ServerId::new(id).map_or_else(
                |_no_id| Vec::new(),
                |id| users_of(&id, self.catalog.capabilities.values(), self.agents.values()),
            ),
            CatalogKind::Capability => {
                let included = self.agents.values().flat_map(|agent| {
                    let at = agent.capabilities.iter().position(|name| name.as_str() == id);
                    at.map(|at| format!("agents.{}.capabilities[{at}]", agent.name))
                });
                included.collect()
            }
            // Other agents may start this agent, but that is checked at each start.
            CatalogKind::Agent => Vec::new(),
        };
        let used = |place: String| {
            let message = format!("the {kind} `{id}` is used here");
            let remedy =
                "remove it there, or delete with `force=true`, which leaves this reference broken";
            FieldError::new(&place, FieldCode::Own("in_use"), message, remedy)
        };
        places.into_iter().map(used).collect()
    }

    /// The merged view of an agent, for people; `None` if the agent is unknown or unreadable.
    pub(super) fn merged(&self, agent: &str) -> Option<Value> {
        let agent = self.agents.get(agent)?;
        Some(self.asked(|world| Plan::new(&self.catalog, agent, world).preview()))
    }

    /// A run of an agent with these inputs, as people see it, or all faults of the run. `None` if
    /// the agent is unknown or unreadable.
    pub(super) fn tried(
        &self,
        agent: &str,
        params: &Map<String, Value>,
        scope: &RunScope,
    ) -> Option<Result<Value, Vec<FieldError>>> {
        let agent = self.agents.get(agent)?;
        let inputs = RunInputs {
            run_id: "run_000000000000",
            session_id: "ses_000000000000",
            project_dir: None,
            params,
            scope,
        };
        let resolved = self.asked(|world| Plan::new(&self.catalog, agent, world).resolve(inputs));
        let place = Definition::Agent(Box::new(agent.clone())).place();
        let told = |faults: Faults| {
            faults.iter().map(|fault| FieldError::of(fault, &place)).collect::<Vec<_>>()
        };
        Some(resolved.map(|run| run.shown()).map_err(told))
    }

    /// The capabilities and agents that use an object, except itself.
    fn users(&self, of: &Definition) -> Users {
        let mut users = Users::default();
        match of {
            Definition::Server(entry) => {
                for capability in self.catalog.capabilities.values() {
                    if capability.servers.values().any(|one| one.reference == entry.id) {
                        users.capabilities.insert(capability.name.clone());
                    }
                }
                for agent in self.agents.values() {
                    let is_direct = agent.servers.values().any(|one| one.reference == entry.id);
                    let mut included = agent.capabilities.iter();
                    if is_direct || included.any(|name| users.capabilities.contains(name)) {
                        users.agents.insert(agent.name.clone());
                    }
                }
            }
            Definition::Capability(capability) => {
                let agents = self.agents.values();
                let including = agents.filter(|one| one.capabilities.contains(&capability.name));
                users.agents.extend(including.map(|agent| agent.name.clone()));
            }
            Definition::Agent(_) => {}
        }
        users
    }

    fn faults_of(&self, users: &Users) -> Vec<Fault> {
        let mut found: Vec<Fault> = Vec::new();
        let mut add = |result: Result<(), Faults>| {
            let Err(faults) = result else { return };
            for fault in faults.iter() {
                // A capability's fault is also a fault of each agent that includes it, and is
                // reported once. A forbidden server with OAuth concerns only some agents, and is
                // reported for each of them.
                let is_alike = |known: &Fault| match fault.code {
                    FaultCode::OauthNotAllowed => known == fault,
                    _ => known.path == fault.path,
                };
                let is_known = found.iter().any(is_alike);
                if !is_known {
                    found.push(fault.clone());
                }
            }
        };
        for capability in users.capabilities.iter().map(|name| &self.catalog.capabilities[name]) {
            let checked = self.asked(|world| check_capability(&self.catalog, capability, world));
            add(checked.map(drop));
        }
        for agent in users.agents.iter().map(|name| &self.agents[name]) {
            add(self.agent_faults(agent).map(drop));
        }
        found
    }

    /// Calls `ask` with the set secrets and the variables.
    fn asked<T>(&self, ask: impl FnOnce(Surroundings<'_>) -> T) -> T {
        let is_secret_set = |name: &SecretName| self.secrets.contains(name);
        let env = |name: &str| self.variables.find(name);
        ask(Surroundings {
            workspace: &self.id,
            env: &env,
            allowing: &|names| self.variables.allowing(names),
            is_secret_set: &is_secret_set,
        })
    }
}

/// The reason why this version can never start a catalog server with this definition from the API.
/// `None` if the server may start, or the definition cannot be read.
#[must_use]
pub fn never_starts(definition: &Value) -> Option<String> {
    let read = ServerEntry::parse(definition.to_string().as_bytes(), None).ok()?;
    read.value.never_starts().map(|(_field, why)| why)
}

/// The objects to check again after a change.
#[derive(Default)]
struct Users {
    capabilities: BTreeSet<CapabilityName>,
    agents: BTreeSet<AgentName>,
}

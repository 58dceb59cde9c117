//! Holds an object against everything else in its workspace.

use std::collections::{BTreeMap, BTreeSet};

use narthex_model::{AgentName, CapabilityName, CatalogKind, NameError, SecretName, ServerId};
use narthex_resolve::{
    Agent, Capability, Catalog, EnvValue, Fault, Faults, Parsed, Plan, ServerEntry, Surroundings,
    check_capability, check_server, users_of,
};
use narthex_store::CatalogRow;
use serde_json::Value;

use super::error::{FieldCode, FieldError, FieldWarning};

/// What a workspace has, as it is stored.
pub(super) struct Stored {
    pub(super) servers: Vec<CatalogRow>,
    pub(super) capabilities: Vec<CatalogRow>,
    pub(super) agents: Vec<CatalogRow>,
    /// Those that are set.
    pub(super) secrets: BTreeSet<SecretName>,
}

/// One object, read.
pub(super) enum Definition {
    Server(Box<ServerEntry>),
    Capability(Box<Capability>),
    Agent(Box<Agent>),
}

/// A workspace, as far as it can be read.
pub(super) struct Workspace {
    catalog: Catalog,
    agents: BTreeMap<AgentName, Agent>,
    secrets: BTreeSet<SecretName>,
}

impl Stored {
    pub(super) fn find(&self, kind: CatalogKind, id: &str) -> Option<&CatalogRow> {
        let rows = match kind {
            CatalogKind::Server => &self.servers,
            CatalogKind::Capability => &self.capabilities,
            CatalogKind::Agent => &self.agents,
        };
        rows.iter().find(|row| row.id == id)
    }

    /// Reads all objects. What cannot be read is not there: whoever refers to it is told so.
    pub(super) fn read(&self) -> Workspace {
        let mut workspace = Workspace {
            catalog: Catalog::default(),
            agents: BTreeMap::new(),
            secrets: self.secrets.clone(),
        };
        let kinds = CatalogKind::ALL.map(|kind| {
            let rows = match kind {
                CatalogKind::Server => &self.servers,
                CatalogKind::Capability => &self.capabilities,
                CatalogKind::Agent => &self.agents,
            };
            (kind, rows)
        });
        for (kind, rows) in kinds {
            for row in rows {
                let read = Definition::parse(kind, row.document.as_bytes(), Some(&row.id));
                if let Ok((definition, _)) = read {
                    workspace.put(definition);
                }
            }
        }
        workspace
    }
}

impl Definition {
    /// Reads an object, which is the one of `id`, if that is given.
    pub(super) fn parse(
        kind: CatalogKind,
        text: &[u8],
        id: Option<&str>,
    ) -> Result<(Self, Vec<FieldWarning>), Vec<FieldError>> {
        match kind {
            CatalogKind::Server => {
                let id = named(id, ServerId::new, "id")?;
                read(ServerEntry::parse(text, id.as_ref()), Self::Server)
            }
            CatalogKind::Capability => {
                let name = named(id, CapabilityName::new, "name")?;
                read(Capability::parse(text, name.as_ref()), Self::Capability)
            }
            CatalogKind::Agent => {
                let name = named(id, AgentName::new, "name")?;
                read(Agent::parse(text, name.as_ref()), Self::Agent)
            }
        }
    }

    pub(super) fn id(&self) -> &str {
        match self {
            Self::Server(entry) => entry.id.as_str(),
            Self::Capability(capability) => capability.name.as_str(),
            Self::Agent(agent) => agent.name.as_str(),
        }
    }

    /// Its normal form.
    pub(super) fn document(&self) -> String {
        let text = match self {
            Self::Server(entry) => serde_json::to_string(entry),
            Self::Capability(capability) => serde_json::to_string(capability),
            Self::Agent(agent) => serde_json::to_string(agent),
        };
        text.expect("JSON of texts, numbers and maps by text can be written")
    }

    /// Where faults that concern it say that they are.
    fn place(&self) -> String {
        let group = match self {
            Self::Server(_) => "servers",
            Self::Capability(_) => "capabilities",
            Self::Agent(_) => "agents",
        };
        format!("{group}.{}", self.id())
    }
}

fn named<T>(
    id: Option<&str>,
    new: fn(&str) -> Result<T, NameError>,
    field: &str,
) -> Result<Option<T>, Vec<FieldError>> {
    let read = id.map(new).transpose();
    read.map_err(|error| {
        vec![FieldError::invalid(field, error.to_string(), "write to another address")]
    })
}

fn read<T>(
    parsed: Result<Parsed<T>, Faults>,
    definition: fn(Box<T>) -> Definition,
) -> Result<(Definition, Vec<FieldWarning>), Vec<FieldError>> {
    match parsed {
        Ok(Parsed { value, warnings }) => {
            let warnings = warnings.iter().map(|warning| FieldWarning::of(warning, "")).collect();
            Ok((definition(Box::new(value)), warnings))
        }
        // These say where in the text they are, with nothing in front.
        Err(faults) => Err(faults.iter().map(|fault| FieldError::of(fault, "")).collect()),
    }
}

impl Workspace {
    /// Puts an object in its place, whether or not it fits.
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

    /// Puts an object in its place, if it fits the others (D9). Gives what a person should know,
    /// also of others that no longer fit: to refuse these would leave no order in which a server
    /// and its users could be changed.
    pub(super) fn take(
        &mut self,
        definition: Definition,
    ) -> Result<Vec<FieldWarning>, Vec<FieldError>> {
        let place = definition.place();
        let users = self.users(&definition);
        let before = self.faults_of(&users);
        let checked = match &definition {
            Definition::Server(entry) => {
                self.asked(|world| check_server(entry, world)).map(|()| Vec::new())
            }
            Definition::Capability(capability) => self
                .asked(|world| check_capability(&self.catalog, capability, world))
                .map(|()| Vec::new()),
            Definition::Agent(agent) => {
                self.asked(|world| Plan::new(&self.catalog, agent, world).check())
            }
        };
        let checked = checked.map_err(|faults| {
            faults.iter().map(|fault| FieldError::of(fault, &place)).collect::<Vec<_>>()
        })?;
        let mut warnings: Vec<_> =
            checked.iter().map(|warning| FieldWarning::of(warning, &place)).collect();
        self.put(definition);
        let broken = self.faults_of(&users).into_iter().filter(|fault| !before.contains(fault));
        warnings.extend(broken.map(|fault| FieldWarning {
            field: fault.path.clone(),
            message: format!("runs are refused until this is changed: {}", fault.message),
        }));
        Ok(warnings)
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
            // Others may start an agent; that is asked when they do.
            CatalogKind::Agent => Vec::new(),
        };
        let used = |place: String| {
            let message = format!("the {kind} `{id}` is used here");
            let remedy = "take it out there, or delete with `force=true`, which leaves this broken";
            FieldError::new(&place, FieldCode::Own("in_use"), message, remedy)
        };
        places.into_iter().map(used).collect()
    }

    /// What is merged of an agent, for people. `None` if there is none that can be read.
    pub(super) fn merged(&self, agent: &str) -> Option<Value> {
        let agent = self.agents.get(agent)?;
        Some(self.asked(|world| Plan::new(&self.catalog, agent, world).preview()))
    }

    /// The capabilities and agents that an object has a part in, but for itself.
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
                // What is wrong with a capability is wrong with each of its agents.
                let is_known = found.iter().any(|known| known.path == fault.path);
                if !is_known {
                    found.push(fault.clone());
                }
            }
        };
        for capability in users.capabilities.iter().map(|name| &self.catalog.capabilities[name]) {
            add(self.asked(|world| check_capability(&self.catalog, capability, world)));
        }
        for agent in users.agents.iter().map(|name| &self.agents[name]) {
            add(self.asked(|world| Plan::new(&self.catalog, agent, world).check().map(drop)));
        }
        found
    }

    /// Asks something that depends on secrets and variables. No variable may be used here yet.
    fn asked<T>(&self, ask: impl FnOnce(Surroundings<'_>) -> T) -> T {
        let is_secret_set = |name: &SecretName| self.secrets.contains(name);
        let env = |_: &str| EnvValue::NotAllowed;
        ask(Surroundings { env: &env, is_secret_set: &is_secret_set })
    }
}

/// Who has to be looked at when something changes.
#[derive(Default)]
struct Users {
    capabilities: BTreeSet<CapabilityName>,
    agents: BTreeSet<AgentName>,
}

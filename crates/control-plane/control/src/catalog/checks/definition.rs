//! A parsed object of the catalog.

use narthex_catalog::{Agent, Capability, Faults, Parsed, ServerEntry};
use narthex_model::{AgentName, CapabilityName, CatalogKind, NameError, ServerId};

use narthex_catalog::fields::{FieldError, FieldWarning};

/// A parsed object.
#[derive(Clone)]
pub(in crate::catalog) enum Definition {
    Server(Box<ServerEntry>),
    Capability(Box<Capability>),
    Agent(Box<Agent>),
}

impl Definition {
    /// Parses an object. If `id` is given, the object must have that id.
    pub(in crate::catalog) fn parse(
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

    /// The readable part of an object that cannot be read as a whole.
    pub(in crate::catalog) fn partly(kind: CatalogKind, text: &[u8]) -> Option<Self> {
        Some(match kind {
            CatalogKind::Server => Self::Server(Box::new(ServerEntry::partly(text)?)),
            CatalogKind::Capability => Self::Capability(Box::new(Capability::partly(text)?)),
            CatalogKind::Agent => Self::Agent(Box::new(Agent::partly(text)?)),
        })
    }

    pub(in crate::catalog) fn kind(&self) -> CatalogKind {
        match self {
            Self::Server(_) => CatalogKind::Server,
            Self::Capability(_) => CatalogKind::Capability,
            Self::Agent(_) => CatalogKind::Agent,
        }
    }

    pub(in crate::catalog) fn id(&self) -> &str {
        match self {
            Self::Server(entry) => entry.id.as_str(),
            Self::Capability(capability) => capability.name.as_str(),
            Self::Agent(agent) => agent.name.as_str(),
        }
    }

    /// The object's normal form, as JSON text.
    pub(in crate::catalog) fn document(&self) -> String {
        let text = match self {
            Self::Server(entry) => serde_json::to_string(entry),
            Self::Capability(capability) => serde_json::to_string(capability),
            Self::Agent(agent) => serde_json::to_string(agent),
        };
        text.expect("JSON of texts, numbers and maps by text can be written")
    }

    /// The place that faults of this object name.
    pub(super) fn place(&self) -> String {
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
        // These faults name their place in the text itself, so no prefix is added.
        Err(faults) => Err(faults.iter().map(|fault| FieldError::of(fault, "")).collect()),
    }
}

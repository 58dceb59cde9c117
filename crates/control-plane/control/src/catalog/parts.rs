//! The parts of the catalog that runs of one agent need: the agent, its capabilities and their
//! servers.

use std::collections::{BTreeMap, BTreeSet};

use narthex_catalog::{Agent, Capability, Catalog, Parsed, ServerEntry};
use narthex_model::{AgentName, CapabilityName, CatalogKind, ServerId, WorkspaceId};
use narthex_store::Store;

use super::{CatalogError, unknown};
use crate::{Control, ControlError};

/// An agent, and the part of the catalog that it uses.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentParts {
    /// The agent.
    pub agent: Agent,
    /// The agent's capabilities and their servers.
    pub catalog: Catalog,
}

impl Control {
    /// Reads the parts of an agent. A referenced object that does not exist or cannot be read is
    /// left out: a plan made from the parts reports it.
    ///
    /// # Errors
    /// When the agent does not exist or cannot be read, or the store fails.
    pub async fn agent_parts(
        store: &Store,
        workspace: &WorkspaceId,
        name: &AgentName,
    ) -> Result<AgentParts, ControlError> {
        let kind = CatalogKind::Agent;
        let Some(text) = document(store, workspace, kind, name.as_str()).await? else {
            return Err(unknown(kind, name.as_str()).into());
        };
        let Ok(Parsed { value: agent, .. }) = Agent::parse(text.as_bytes(), Some(name)) else {
            let (id, errors) = (name.as_str().to_owned(), Vec::new());
            return Err(CatalogError::Unreadable { kind, id, errors }.into());
        };
        let capabilities = capabilities(store, workspace, &agent).await?;
        let servers = servers(store, workspace, &agent, &capabilities).await?;
        let found = store.workspaces().find(workspace).await.map_err(ControlError::Store)?;
        let settings = found.map(|found| found.settings).unwrap_or_default();
        let oauth_on_orchestrators = settings.oauth_on_orchestrators;
        let catalog = Catalog { servers, capabilities, oauth_on_orchestrators };
        Ok(AgentParts { agent, catalog })
    }
}

impl Control {
    /// Marks the servers in earlier read parts that are disabled now (D10).
    pub async fn switch_off(
        &self,
        workspace: &WorkspaceId,
        parts: &mut AgentParts,
    ) -> Result<(), ControlError> {
        let store = self.catalog_store(workspace).await?;
        for (id, server) in &mut parts.catalog.servers {
            let text = document(store, workspace, CatalogKind::Server, id.as_str()).await?;
            let parsed = text.map(|text| ServerEntry::parse(text.as_bytes(), Some(id)));
            if let Some(Ok(Parsed { value: now, .. })) = parsed {
                server.settings.disabled |= now.settings.disabled;
            }
        }
        Ok(())
    }
}

async fn capabilities(
    store: &Store,
    workspace: &WorkspaceId,
    agent: &Agent,
) -> Result<BTreeMap<CapabilityName, Capability>, ControlError> {
    let mut found = BTreeMap::new();
    for name in &agent.capabilities {
        let text = document(store, workspace, CatalogKind::Capability, name.as_str()).await?;
        let parsed = text.map(|text| Capability::parse(text.as_bytes(), Some(name)));
        if let Some(Ok(Parsed { value, .. })) = parsed {
            found.insert(name.clone(), value);
        }
    }
    Ok(found)
}

async fn servers(
    store: &Store,
    workspace: &WorkspaceId,
    agent: &Agent,
    capabilities: &BTreeMap<CapabilityName, Capability>,
) -> Result<BTreeMap<ServerId, ServerEntry>, ControlError> {
    let included = capabilities.values().flat_map(|capability| capability.servers.values());
    let all = included.chain(agent.servers.values());
    let references: BTreeSet<&ServerId> = all.map(|attachment| &attachment.reference).collect();
    let mut found = BTreeMap::new();
    for id in references {
        let text = document(store, workspace, CatalogKind::Server, id.as_str()).await?;
        let parsed = text.map(|text| ServerEntry::parse(text.as_bytes(), Some(id)));
        if let Some(Ok(Parsed { value, .. })) = parsed {
            found.insert(id.clone(), value);
        }
    }
    Ok(found)
}

async fn document(
    store: &Store,
    workspace: &WorkspaceId,
    kind: CatalogKind,
    id: &str,
) -> Result<Option<String>, ControlError> {
    let row = store.catalog(kind).find(workspace, id).await.map_err(ControlError::Store)?;
    Ok(row.map(|row| row.document))
}

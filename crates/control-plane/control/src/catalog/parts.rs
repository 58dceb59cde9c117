//! The parts of the catalog that runs of one agent need: the agent, its capabilities and their
//! servers. Also the readings of a catalog for pages: its servers with their users, and trials.

use std::collections::{BTreeMap, BTreeSet};

use narthex_catalog::{Agent, Capability, Catalog, Parsed, ServerEntry};
use narthex_model::{AgentName, CapabilityName, CatalogKind, RunScope, ServerId, WorkspaceId};
use narthex_store::Store;
use serde_json::Value;

use super::{
    CatalogError, CatalogServers, CatalogTrial, FieldError, TrialInputs, object, trial::with_agent,
    unknown,
};
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

    /// All servers of a catalog, and the objects that use them.
    ///
    /// # Errors
    /// When there is no store or no such workspace, or the store or the vault fails.
    pub async fn catalog_servers(
        &self,
        workspace: &WorkspaceId,
    ) -> Result<CatalogServers, ControlError> {
        let stored = self.catalog_stored(workspace).await?;
        let read = self.catalog_work(move || {
            let users = stored.read().users_of_servers();
            let rows = stored.servers.iter();
            let servers = rows.map(|row| object(CatalogKind::Server, row)).collect();
            CatalogServers { servers, users }
        });
        read.await
    }

    /// The places that refer to an object, which its removal would break (O41).
    ///
    /// # Errors
    /// When there is no such object, no store or no such workspace, or the store or the vault
    /// fails.
    pub async fn catalog_users(
        &self,
        workspace: &WorkspaceId,
        kind: CatalogKind,
        id: &str,
    ) -> Result<Vec<FieldError>, ControlError> {
        let stored = self.catalog_stored(workspace).await?;
        let found = stored.find(kind, id).map(|row| row.id.clone());
        let id = found.ok_or_else(|| unknown(kind, id))?;
        self.catalog_work(move || stored.read().users_named(kind, &id)).await
    }

    /// The merged view of an agent that is not stored. Faults of its servers are in the view
    /// (O101).
    ///
    /// # Errors
    /// When the text is no agent; when there is no store or no such workspace, or the store or the
    /// vault fails.
    pub async fn catalog_preview(
        &self,
        workspace: &WorkspaceId,
        text: Vec<u8>,
    ) -> Result<Value, ControlError> {
        let stored = self.catalog_stored(workspace).await?;
        let preview = self.catalog_work(move || {
            let (id, workspace) = with_agent(&stored, &text)?;
            Ok::<_, CatalogError>(workspace.merged(&id).expect("the agent was put there"))
        });
        Ok(preview.await??)
    }

    /// The merged view of an agent that is not stored, and a run of it with these inputs. Starts
    /// nothing, and opens no secret. The ids of the run are zeros.
    ///
    /// # Errors
    /// As for [`Control::catalog_preview`].
    pub async fn catalog_trial(
        &self,
        workspace: &WorkspaceId,
        text: Vec<u8>,
        inputs: TrialInputs,
    ) -> Result<CatalogTrial, ControlError> {
        let stored = self.catalog_stored(workspace).await?;
        let trial = self.catalog_work(move || {
            let (id, workspace) = with_agent(&stored, &text)?;
            let merged = workspace.merged(&id).expect("the agent was put there");
            let run = workspace.tried(&id, &inputs.params, &RunScope::new(inputs.scope));
            let run = run.expect("the agent was put there");
            Ok::<_, CatalogError>(CatalogTrial { merged, run })
        });
        Ok(trial.await??)
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

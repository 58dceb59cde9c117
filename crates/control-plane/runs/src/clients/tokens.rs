//! State of the tokens of registered clients: whether each opens a run now, and the reason if not.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    sync::Arc,
    time::SystemTime,
};

use narthex_control::{ControlError, KnownClient};
use narthex_model::{AgentName, CatalogKind, WorkspaceId};
use narthex_store::CatalogRow;
use serde_json::Value;

use crate::{RunError, Runs};

/// Number of agents that are found one by one. More are read in one query.
const FOUND_MAX: usize = 4;

/// The reason why a client begins no further run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientClosed {
    /// An operator has revoked the client.
    Revoked,
    /// The client's time is over.
    Expired,
    /// The client's principal is disabled.
    Disabled,
    /// The agent of the client's runs is deleted.
    AgentDeleted,
    /// The agent of the client's runs is not active.
    AgentInactive,
    /// The configuration has no usable profile of the client's name for it.
    ProfileGone,
    /// The human who let the client in is disabled, or lacks the role for it now.
    HumanLost,
}

impl ClientClosed {
    /// The spelling in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Revoked => "revoked",
            Self::Expired => "expired",
            Self::Disabled => "disabled",
            Self::AgentDeleted => "agent_deleted",
            Self::AgentInactive => "agent_inactive",
            Self::ProfileGone => "profile_gone",
            Self::HumanLost => "human_lost",
        }
    }

    /// The reason that lies in the client itself, independent of its agent.
    fn of(client: &KnownClient) -> Option<Self> {
        let has_ended = client.row.expires_at.is_some_and(|end| end <= SystemTime::now());
        if client.row.revoked_at.is_some() {
            Some(Self::Revoked)
        } else if has_ended {
            Some(Self::Expired)
        } else if client.account.disabled_at.is_some() {
            Some(Self::Disabled)
        } else {
            (!client.is_human_allowed()).then_some(Self::HumanLost)
        }
    }

    /// The reason that lies in the agent as it is stored, or in its absence.
    fn of_agent(agent: Option<&CatalogRow>) -> Option<Self> {
        let Some(agent) = agent else { return Some(Self::AgentDeleted) };
        let document: Value = serde_json::from_str(&agent.document).unwrap_or_default();
        (document["active"] == false).then_some(Self::AgentInactive)
    }
}

/// A registered client, with its state.
#[derive(Debug, Clone)]
pub struct SeenClient {
    /// The client.
    pub known: Arc<KnownClient>,
    /// True if the client's token opens a run now. Without the client's agent, only a run opens
    /// that is already active.
    pub is_live: bool,
    /// The reason why the client begins no further run.
    pub closed: Option<ClientClosed>,
}

impl Runs {
    /// Clients of one workspace, each with its state, in the same order.
    ///
    /// # Errors
    /// When there is no store, or the store fails.
    pub async fn seen_clients(
        &self,
        workspace: &WorkspaceId,
        clients: Vec<Arc<KnownClient>>,
    ) -> Result<Vec<SeenClient>, RunError> {
        let open = clients.iter().filter(|client| ClientClosed::of(client).is_none());
        let agents: BTreeSet<&AgentName> =
            open.filter_map(|client| client.row.agent.as_ref()).collect();
        let rows = self.agents_of(workspace, &agents).await?;
        let mut closed = BTreeMap::new();
        for agent in agents {
            if let Some(why) = ClientClosed::of_agent(rows.get(agent.as_str())) {
                closed.insert(agent.clone(), why);
            }
        }
        let of_agent = |client: &KnownClient| closed.get(client.row.agent.as_ref()?).copied();
        let is_without = |client: &&Arc<KnownClient>| of_agent(client).is_some();
        let may_have_run =
            |client: &Arc<KnownClient>| client.row.run.is_some() && is_without(&client);
        let living = match clients.iter().any(may_have_run) {
            true => self.store()?.runs().living().await.map_err(ControlError::Store)?,
            false => HashSet::new(),
        };
        let seen = |known: Arc<KnownClient>| {
            let of_itself = ClientClosed::of(&known);
            let why = of_itself.or_else(|| of_agent(&known));
            let why = why.or_else(|| self.without_profile(&known));
            let has_run = known.row.run.is_some_and(|run| living.contains(&run));
            let is_live = of_itself.is_none() && (why.is_none() || has_run);
            SeenClient { known, is_live, closed: why }
        };
        Ok(clients.into_iter().map(seen).collect())
    }

    /// The stored agents of these names, by a handful of queries whatever their number.
    async fn agents_of(
        &self,
        workspace: &WorkspaceId,
        names: &BTreeSet<&AgentName>,
    ) -> Result<BTreeMap<String, CatalogRow>, RunError> {
        let rows = self.store()?.catalog(CatalogKind::Agent);
        let mut found = Vec::new();
        if names.len() > FOUND_MAX {
            found = rows.all(workspace).await.map_err(ControlError::Store)?;
        } else {
            for name in names {
                let row = rows.find(workspace, name.as_str()).await;
                found.extend(row.map_err(ControlError::Store)?);
            }
        }
        Ok(found.into_iter().map(|row| (row.id.clone(), row)).collect())
    }

    fn without_profile(&self, client: &KnownClient) -> Option<ClientClosed> {
        let profile = client.row.profile.as_ref()?;
        let is_there = self.shared.gateway.profile_run(profile.as_str()).is_some();
        (!is_there).then_some(ClientClosed::ProfileGone)
    }
}

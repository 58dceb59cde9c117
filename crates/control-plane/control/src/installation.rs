//! Facts about the whole installation, for operators: the use of each workspace, and the master
//! keys.

use std::{
    collections::{BTreeMap, HashMap},
    time::SystemTime,
};

use narthex_audit::kind;
use narthex_model::{KeyId, WorkspaceId};
use narthex_traffic::MeterKind;
use narthex_vault::KeyInUse;
use serde_json::Value;

use crate::{AuditQuery, Control, ControlError, traffic::key};

/// Largest number of changes of the master key that are looked at.
const CHANGES: u32 = 100;

/// A workspace, and the number of its objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceUse {
    /// The id.
    pub id: WorkspaceId,
    /// The name for people.
    pub name: String,
    /// Number of principals with roles in the workspace.
    pub members: u64,
    /// Number of servers of the catalog.
    pub servers: u64,
    /// Number of servers of configuration files, which only the daemon's own workspace has.
    pub file_servers: u64,
    /// Number of active runs, at all daemons on the store.
    pub runs: u64,
    /// Number of calls today, in UTC, at all daemons on the store.
    pub calls: u64,
}

/// The master keys, without their bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MasterKeys {
    /// The place of the keys, for people.
    pub place: String,
    /// True if narthex can change the key by itself.
    pub is_ours: bool,
    /// The keys; the first one seals.
    pub keys: Vec<MasterKeyFacts>,
}

/// A master key, without its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MasterKeyFacts {
    /// The id.
    pub id: KeyId,
    /// True for the key that seals new values, and marks the audit.
    pub is_current: bool,
    /// Number of stored values of secrets that the key seals.
    pub values: u64,
    /// Time of the change that made the key, by the installation's audit; `None` for a key that no
    /// change made, and for one whose event is not stored any more.
    pub made_at: Option<SystemTime>,
}

/// The whole installation, as operators see it.
#[derive(Debug, Clone, Copy)]
pub struct Installation<'c> {
    control: &'c Control,
}

impl<'c> Installation<'c> {
    /// The installation of a control plane.
    #[must_use]
    pub fn of(control: &'c Control) -> Self {
        Self { control }
    }

    /// The use of each workspace, in the order of their ids. Takes one query whatever their number.
    ///
    /// # Errors
    /// When there is no store, or the store fails.
    pub async fn workspace_uses(&self) -> Result<Vec<WorkspaceUse>, ControlError> {
        let store = self.control.needed_store()?;
        let (meters, day) = (&self.control.shared.meters, self.control.shared.meters.today());
        let counts = store.workspaces().counts(day).await.map_err(ControlError::Store)?;
        let table = self.control.access();
        let mut members: BTreeMap<&WorkspaceId, u64> = BTreeMap::new();
        for workspace in table.accounts.values().flat_map(|one| one.roles.keys()) {
            *members.entry(workspace).or_default() += 1;
        }
        let used = |one: &narthex_store::Workspace| {
            let stored = counts.get(&one.id).copied().unwrap_or_default();
            let key = key(&one.id, MeterKind::Workspace, one.id.as_str());
            let counted = meters.find(&key).map_or(0, |meter| meter.calls(day));
            WorkspaceUse {
                id: one.id.clone(),
                name: one.name.clone(),
                members: members.get(&one.id).copied().unwrap_or_default(),
                servers: stored.servers,
                file_servers: if one.id == self.control.shared.workspace {
                    self.file_servers()
                } else {
                    0
                },
                runs: stored.runs,
                calls: stored.calls.max(counted),
            }
        };
        Ok(table.workspaces.values().map(used).collect())
    }

    /// The numbers of objects that a deletion of this workspace deletes, by kind, without empty
    /// kinds.
    ///
    /// # Errors
    /// When there is no such workspace or no store, or the store fails.
    pub async fn workspace_contents(
        &self,
        id: &WorkspaceId,
    ) -> Result<Vec<(&'static str, i64)>, ControlError> {
        self.control.known_workspace(id)?;
        let contents = self.control.needed_store()?.workspaces().contents(id).await;
        contents.map_err(ControlError::Store)
    }

    /// Number of servers of the configuration, as its list shows them.
    fn file_servers(&self) -> u64 {
        let snapshot = self.control.shared.registry.snapshot();
        let count = snapshot.servers.iter().filter(|row| !row.is_overridden).count();
        u64::try_from(count).unwrap_or(u64::MAX)
    }

    /// The master keys with the number of values that each seals, and the time since when each is
    /// there.
    ///
    /// # Errors
    /// When there is no vault, or the keys, the store or the audit cannot be read.
    pub async fn master_keys(&self) -> Result<MasterKeys, ControlError> {
        let known = self.control.vault()?.keys().await?;
        let made = self.keys_made().await?;
        let facts = |(index, key): (usize, KeyInUse)| MasterKeyFacts {
            made_at: made.get(key.id.as_str()).copied(),
            is_current: index == 0,
            values: key.values,
            id: key.id,
        };
        let keys = known.keys.into_iter().enumerate().map(facts).collect();
        Ok(MasterKeys { place: known.place, is_ours: known.is_ours, keys })
    }

    /// The times of the changes that made keys, by the keys' ids.
    async fn keys_made(&self) -> Result<HashMap<String, SystemTime>, ControlError> {
        let query =
            AuditQuery { kind: kind::KEY_ROTATED.to_owned(), ..AuditQuery::newest(None, CHANGES) };
        let page = match self.control.audit_list(&query).await {
            Ok(page) => page,
            Err(ControlError::NoAudit) => return Ok(HashMap::new()),
            Err(error) => return Err(error),
        };
        let made = page.items.into_iter().filter_map(|item| {
            let is_done = item.event.get("outcome").and_then(Value::as_str) == Some("ok");
            let id = item.event.pointer("/resource/id").and_then(Value::as_str)?;
            is_done.then(|| (id.to_owned(), item.place.happened_at))
        });
        Ok(made.collect())
    }
}

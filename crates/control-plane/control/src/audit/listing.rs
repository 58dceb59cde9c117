//! Events of the audit, found by actor, resource, kind and time.

use std::time::SystemTime;

use narthex_audit::Waiting;
use narthex_model::WorkspaceId;
use narthex_store::{AuditFilter, AuditPlace, AuditRow};
use serde_json::Value;

use super::Shipped;
use crate::{Control, ControlError};

/// A filter of events. An empty text matches any.
#[derive(Debug, Clone)]
pub struct AuditQuery {
    /// The workspace; `None` for the installation.
    pub workspace: Option<WorkspaceId>,
    /// The actor.
    pub actor: String,
    /// The resource that was acted on.
    pub resource: String,
    /// The run.
    pub run: String,
    /// Prefix of the kind.
    pub kind: String,
    /// The earliest time.
    pub since: SystemTime,
    /// The time before which the events happened.
    pub until: Option<SystemTime>,
    /// True for the oldest first, false for the newest first.
    pub is_ascending: bool,
    /// The last place of the previous page.
    pub after: Option<AuditPlace>,
    /// Largest number of events.
    pub limit: u32,
}

impl AuditQuery {
    /// The newest `limit` events of a workspace, or of the installation without one.
    #[must_use]
    pub fn newest(workspace: Option<WorkspaceId>, limit: u32) -> Self {
        Self {
            workspace,
            actor: String::new(),
            resource: String::new(),
            run: String::new(),
            kind: String::new(),
            since: SystemTime::UNIX_EPOCH,
            until: None,
            is_ascending: false,
            after: None,
            limit,
        }
    }
}

/// One event.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditItem {
    /// The event as written.
    pub event: Value,
    /// Its place in the order of events.
    pub place: AuditPlace,
}

/// One page of events.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditPage {
    /// The events, in the requested order.
    pub items: Vec<AuditItem>,
    /// True if there are more.
    pub has_more: bool,
    /// Events that are not in the store yet, and so not in the list.
    pub waiting: Option<Waiting>,
}

impl Control {
    /// Events of a workspace, also those of the last moments.
    ///
    /// # Errors
    /// When there is no store or no such workspace, or the store fails.
    pub async fn audit_list(&self, query: &AuditQuery) -> Result<AuditPage, ControlError> {
        let workspace = self.audit_of(query.workspace.as_ref()).await?;
        let shipped = self.ship().await;
        let filter = AuditFilter {
            workspace,
            actor: &query.actor,
            resource: &query.resource,
            run: &query.run,
            kind: &query.kind,
            since: query.since,
            until: query.until,
        };
        let audit = self.audit_store()?.audit();
        let (after, limit) = (query.after.as_ref(), query.limit.saturating_add(1));
        let rows = match query.is_ascending {
            true => audit.newer(&filter, after, limit).await,
            false => audit.older(&filter, after, limit).await,
        };
        let mut rows = rows.map_err(ControlError::Store)?;
        let wanted = usize::try_from(query.limit).unwrap_or(usize::MAX);
        let has_more = rows.len() > wanted;
        rows.truncate(wanted);
        let waiting = match shipped {
            Shipped::All => None,
            _ => {
                let chains = audit.chains(workspace).await.map_err(ControlError::Store)?;
                self.waiting(workspace, &chains, shipped).await
            }
        };
        Ok(AuditPage { items: rows.into_iter().map(item).collect(), has_more, waiting })
    }

    /// The name under which a workspace's events are stored, if there is such a workspace.
    pub(super) async fn audit_of<'w>(
        &self,
        workspace: Option<&'w WorkspaceId>,
    ) -> Result<&'w str, ControlError> {
        let Some(workspace) = workspace else { return Ok("") };
        self.catalog_store(workspace).await?;
        Ok(workspace.as_str())
    }

    pub(super) fn audit_store(&self) -> Result<&narthex_store::Store, ControlError> {
        self.shared.store.as_ref().ok_or(ControlError::NoAudit)
    }
}

fn item(row: AuditRow) -> AuditItem {
    // narthex writes only JSON, so other text comes from elsewhere; verification of the chain
    // reports it.
    let event = serde_json::from_str(&row.document).unwrap_or(Value::Null);
    let AuditRow { happened_at, writer, seq, .. } = row;
    AuditItem { event, place: AuditPlace { happened_at, writer, seq } }
}

//! Events of the audit, found by who, what and when.

use std::time::SystemTime;

use narthex_audit::Waiting;
use narthex_model::WorkspaceId;
use narthex_store::{AuditFilter, AuditPlace, AuditRow};
use serde_json::Value;

use super::Shipped;
use crate::{Control, ControlError};

/// Which events are wanted. An empty text is any.
#[derive(Debug, Clone)]
pub struct AuditQuery {
    /// Whose; `None` for the installation's.
    pub workspace: Option<WorkspaceId>,
    /// By whom.
    pub actor: String,
    /// Done to what.
    pub resource: String,
    /// In which run.
    pub run: String,
    /// What the kind begins with.
    pub kind: String,
    /// Not before this.
    pub since: SystemTime,
    /// Before this.
    pub until: Option<SystemTime>,
    /// The oldest first, and not the newest.
    pub is_ascending: bool,
    /// Where the page before ended.
    pub after: Option<AuditPlace>,
    /// How many.
    pub limit: u32,
}

/// One event.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditItem {
    /// What was written.
    pub event: Value,
    /// Where it stands.
    pub place: AuditPlace,
}

/// Some events.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditPage {
    /// In the order that was asked for.
    pub items: Vec<AuditItem>,
    /// Whether there are more.
    pub has_more: bool,
    /// What cannot be among them yet.
    pub waiting: Option<Waiting>,
}

impl Control {
    /// Events of a workspace, also those that were recorded just now.
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
    // What is no JSON was not written by us, which a look at the chain tells.
    let event = serde_json::from_str(&row.document).unwrap_or(Value::Null);
    let AuditRow { happened_at, writer, seq, .. } = row;
    AuditItem { event, place: AuditPlace { happened_at, writer, seq } }
}

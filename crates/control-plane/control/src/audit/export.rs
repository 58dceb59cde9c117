//! Exports all events of a workspace, chain by chain, so that a reader can verify them.

use std::collections::VecDeque;

use narthex_audit::{DeclaredChain, KnownHead, Waiting};
use narthex_model::{Timestamp, WorkspaceId};
use narthex_store::{AuditChain, AuditRow};
use serde_json::{Value, json};
use tokio::sync::OwnedRwLockReadGuard;

use super::Shipped;
use crate::shipping::{row_of, vouches};
use crate::{Control, ControlError};

/// Number of events read at a time.
const PAGE: u32 = 500;

/// The lines of an export, read as needed.
#[derive(Debug)]
pub struct AuditExport {
    control: Control,
    chains: VecDeque<AuditChain>,
    /// The current chain, and the number of its last exported event.
    current: Option<(AuditChain, u64)>,
    events: u64,
    /// Heads of chains that the export must contain.
    known: Vec<KnownHead>,
    /// Events that are not in the store yet.
    waiting: Option<Waiting>,
    is_ended: bool,
    /// A lock that prevents the removal of old events meanwhile.
    _kept: OwnedRwLockReadGuard<()>,
}

impl Control {
    /// All recorded events of a workspace, or of the installation.
    ///
    /// # Errors
    /// When there is no store or no such workspace, or the store fails.
    pub async fn audit_export(
        &self,
        workspace: Option<&WorkspaceId>,
    ) -> Result<AuditExport, ControlError> {
        let workspace = self.audit_of(workspace).await?;
        let mut shipped = self.ship().await;
        // Read before the chains: these may have grown in between, but must not be shorter.
        let known = self.moved(workspace).await.unwrap_or_else(|error| {
            tracing::warn!("the expected events of the audit could not be read: {error}");
            shipped = Shipped::Nothing;
            Vec::new()
        });
        let kept = self.shared.trimming.clone().read_owned().await;
        let chains = self.audit_store()?.audit().chains(workspace).await;
        let chains = chains.map_err(ControlError::Store)?;
        Ok(AuditExport {
            control: self.clone(),
            waiting: self.waiting(workspace, &chains, shipped).await,
            chains: chains.into(),
            known,
            current: None,
            events: 0,
            is_ended: false,
            _kept: kept,
        })
    }
}

impl AuditExport {
    /// Returns the next lines, each with its line end; `None` after the last.
    ///
    /// # Errors
    /// When the store or the vault fails.
    pub async fn next(&mut self) -> Result<Option<String>, ControlError> {
        loop {
            if let Some((chain, last)) = self.current.take() {
                let store = self.control.audit_store()?;
                let read = store.audit().of_chain(&chain, (last, chain.head_seq), PAGE).await;
                let rows = read.map_err(ControlError::Store)?;
                if let Some(row) = rows.last() {
                    self.current = Some((chain, row.seq));
                    self.events += rows.len() as u64;
                    return Ok(Some(rows.iter().map(line).collect()));
                }
            } else if let Some(chain) = self.chains.pop_front() {
                let declared = self.declared(&chain).await?;
                let last = chain.base_seq;
                self.current = Some((chain, last));
                return Ok(Some(format!("{}\n", json!({ "chain": declared }))));
            } else if self.is_ended {
                return Ok(None);
            } else {
                self.is_ended = true;
                let mut end = json!({ "events": self.events, "known": self.known });
                if let Some(waiting) = &self.waiting {
                    end["waiting"] = json!(waiting);
                }
                return Ok(Some(format!("{}\n", json!({ "end": end }))));
            }
        }
    }

    async fn declared(&self, chain: &AuditChain) -> Result<DeclaredChain, ControlError> {
        let is_vouched = vouches(self.control.shared.vault.as_ref(), chain).await?;
        let AuditChain { workspace, writer, base_seq, base_hash, head_seq, head_hash, .. } = chain;
        Ok(DeclaredChain {
            workspace: workspace.clone(),
            writer: writer.clone(),
            base_seq: *base_seq,
            base_hash: base_hash.clone(),
            head_seq: *head_seq,
            head_hash: head_hash.clone(),
            is_vouched,
        })
    }
}

/// A row as a line. If columns of the row differ from the event, the line shows the columns, and so
/// its hash does not match the event either.
fn line(row: &AuditRow) -> String {
    let made = row_of(&row.document).map(|(made, _)| made);
    if made.as_ref() == Some(row) {
        return format!("{}\n", row.document);
    }
    let parsed = serde_json::from_str(&row.document).ok();
    let mut shown = match parsed {
        Some(Value::Object(members)) => Value::Object(members),
        _ => json!({ "unreadable": row.document, "prev": "" }),
    };
    shown["workspace"] = json!(row.workspace);
    shown["writer"] = json!(row.writer);
    shown["seq"] = json!(row.seq);
    shown["stored_beside"] = json!({
        "time": Timestamp::new(row.happened_at).to_string(),
        "kind": row.kind,
        "actor": row.actor,
        "resource": row.resource,
        "run": row.run,
    });
    format!("{shown}\n")
}

//! The retention of events, and the removal of older ones.

use std::time::{Duration, SystemTime};

use narthex_audit::{Actor, AuditEvent, kind};
use narthex_model::WorkspaceId;
use narthex_store::{AuditChain, AuditSettings, Store};
use narthex_vault::{Rotation, Voucher};

use super::By;
use crate::shipping::{row_of, vouched, vouched_text, vouches};
use crate::{Control, ControlError};

/// Number of events removed at a time.
const SLICE: u64 = 5_000;
const DAY: Duration = Duration::from_secs(86_400);

impl Control {
    /// The retention of events of a workspace, or of the installation.
    ///
    /// # Errors
    /// When there is no store or no such workspace, or the store fails.
    pub async fn audit_settings(
        &self,
        workspace: Option<&WorkspaceId>,
    ) -> Result<AuditSettings, ControlError> {
        let workspace = self.audit_of(workspace).await?;
        self.audit_store()?.audit().settings(workspace).await.map_err(ControlError::Store)
    }

    /// Changes the retention of events, and removes older ones.
    ///
    /// # Errors
    /// As for [`Control::audit_settings`], and when the change cannot be recorded.
    pub async fn audit_keep(
        &self,
        workspace: Option<&WorkspaceId>,
        settings: AuditSettings,
        by: By,
    ) -> Result<(), ControlError> {
        let name = self.audit_of(workspace).await?.to_owned();
        let mut event = AuditEvent::new(kind::SETTINGS_CHANGED, by).on("audit", name.clone());
        event.workspace = workspace.cloned();
        let AuditSettings { kept_days, kept_events } = settings;
        let event = event.with("kept_days", kept_days).with("kept_events", kept_events);
        let keep = async move |this: Self| {
            let noted = this.note(event).await?;
            let stored = this.audit_store()?.audit().set(&name, settings).await;
            stored.map_err(ControlError::Store)?;
            noted.done().await;
            this.audit_trim().await
        };
        self.to_the_end(keep).await
    }

    /// Removes events beyond their retention, in all workspaces.
    ///
    /// # Errors
    /// When the store or the vault fails, or the removal cannot be recorded.
    pub async fn audit_trim(&self) -> Result<(), ControlError> {
        let store = self.audit_store()?;
        let _as_far_as_it_goes = self.ship().await;
        let owners = store.audit().owners().await.map_err(ControlError::Store)?;
        for workspace in owners {
            let settings = store.audit().settings(&workspace).await;
            let settings = settings.map_err(ControlError::Store)?;
            if let Some(since) = kept_since(store, &workspace, settings).await? {
                self.trim(&workspace, since).await?;
            }
        }
        Ok(())
    }

    async fn trim(&self, workspace: &str, since: SystemTime) -> Result<(), ControlError> {
        let store = self.audit_store()?;
        let chains = store.audit().chains(workspace).await.map_err(ControlError::Store)?;
        let mut removed = 0;
        let mut noted = None;
        for mut chain in chains {
            let first = store.audit().first_since(&chain, since).await;
            let first = first.map_err(ControlError::Store)?;
            let to = first.map_or(chain.head_seq, |first| first - 1);
            while chain.base_seq < to {
                if noted.is_none() {
                    let mut event = AuditEvent::new(kind::TRIMMED, Actor::system());
                    event.workspace = WorkspaceId::new(workspace).ok();
                    noted = Some(self.note(event.on("audit", workspace.to_owned())).await?);
                }
                let slice = to.min(chain.base_seq + SLICE);
                let Some(now) = self.trim_to(&chain, slice).await? else { break };
                removed += now.base_seq - chain.base_seq;
                chain = now;
            }
        }
        if let Some(mut noted) = noted {
            noted.update(|event| event.with("count", removed));
            noted.done().await;
        }
        Ok(())
    }

    /// Removes the events of a chain up to the number `to`. `None` if another daemon has changed
    /// the chain in the meantime, or the chain has no such event.
    async fn trim_to(
        &self,
        chain: &AuditChain,
        to: u64,
    ) -> Result<Option<AuditChain>, ControlError> {
        // Locks out exports in the meantime.
        let _alone = self.shared.trimming.write().await;
        let audit = self.audit_store()?.audit();
        let found = audit.of_chain(chain, (to - 1, to), 1).await.map_err(ControlError::Store)?;
        let Some((_, hash)) = found.first().and_then(|found| row_of(&found.document)) else {
            return Ok(None);
        };
        let now = AuditChain { base_seq: to, base_hash: hash, ..chain.clone() };
        let now = vouched(self.shared.vault.as_ref(), chain, now).await?;
        let is_done = audit.trim(chain, &now).await.map_err(ControlError::Store)?;
        Ok(is_done.then_some(now))
    }

    /// Changes the master key. The new key then marks the chains that had a valid mark before.
    pub(crate) async fn audit_rotate(&self) -> Result<Rotation, ControlError> {
        let vault = self.vault()?;
        // Locks out moves of events, so that no chain gets a mark of the old key in the meantime.
        let shipping = match &self.shared.shipper {
            Some(shipper) => Some(shipper.lock().await),
            None => None,
        };
        let Some(store) = self.shared.store.as_ref().filter(|_| shipping.is_some()) else {
            return Ok(vault.rotate_key().await?);
        };
        let mut trusted = Vec::new();
        for workspace in store.audit().owners().await.map_err(ControlError::Store)? {
            let chains = store.audit().chains(&workspace).await.map_err(ControlError::Store)?;
            for chain in chains {
                if vouches(Some(vault), &chain).await? == Some(true) {
                    trusted.push(chain);
                }
            }
        }
        let rotated = vault.rotate_key().await;
        for chain in trusted {
            let Voucher { key, mark } = vault.vouch(&vouched_text(&chain)).await?;
            let now = AuditChain { key_id: key.as_str().to_owned(), seal: mark, ..chain };
            let done = store.audit().reseal(&now).await.map_err(ControlError::Store)?;
            if !done {
                tracing::warn!(
                    writer = now.writer,
                    "a chain of the audit changed during the key rotation"
                );
            }
        }
        Ok(rotated?)
    }
}

/// The time since which events are stored; `None` if events are stored for ever.
async fn kept_since(
    store: &Store,
    workspace: &str,
    settings: AuditSettings,
) -> Result<Option<SystemTime>, ControlError> {
    let AuditSettings { kept_days, kept_events } = settings;
    let by_age = match kept_days {
        0 => None,
        days => {
            let days = u32::try_from(days).unwrap_or(u32::MAX);
            SystemTime::now().checked_sub(DAY.saturating_mul(days))
        }
    };
    let by_count = match kept_events {
        0 => None,
        count => {
            let found = store.audit().nth_newest(workspace, count).await;
            // The event at exactly that time is beyond the limit.
            let after = Duration::from_millis(1);
            found.map_err(ControlError::Store)?.map(|time| time + after)
        }
    };
    Ok(by_age.max(by_count))
}

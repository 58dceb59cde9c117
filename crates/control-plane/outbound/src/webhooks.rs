//! Webhooks: posts about questions to humans, their decisions, and the ends of sessions.
//!
//! A webhook receives the workspace's events, which are stored in order, so no further queue is
//! needed. A webhook has a position among the events, which advances when an event was delivered or
//! given up.

mod worker;

use std::{sync::atomic::AtomicU64, time::SystemTime};

use narthex_audit::{AuditEvent, kind};
use narthex_control::{By, CatalogError, Control, ControlError, MessageError, SecretUses};
use narthex_events::{EventKind, Events};
use narthex_model::{ChannelName, SecretName, WorkspaceId};
use narthex_store::{DeliveryRow, NewWebhook, WebhookRow};
use serde_json::Value;

use crate::{Outbound, OutboundError, channels::Fields};

/// Events that a webhook can receive. It receives all of them by default.
pub const WEBHOOK_EVENTS: [EventKind; 6] = [
    EventKind::AgentPermissionRequest,
    EventKind::PermissionGranted,
    EventKind::PermissionDenied,
    EventKind::SessionCompleted,
    EventKind::SessionCancelledByParent,
    EventKind::SessionEnded,
];

/// Number of deliveries, of further attempts, and of events that were given up.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) delivered: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) given_up: AtomicU64,
}

/// A webhook that is to be.
struct Wanted {
    name: ChannelName,
    url: SecretName,
    signing_key: SecretName,
    kinds: Vec<&'static str>,
}

impl Outbound {
    /// The webhooks of a workspace, in the order of their names.
    ///
    /// # Errors
    /// When there is no store or no such workspace, or the store fails.
    pub async fn webhooks(
        &self,
        workspace: &WorkspaceId,
    ) -> Result<Vec<WebhookRow>, OutboundError> {
        let store = self.control().catalog_store(workspace).await?;
        Ok(store.webhooks().all(workspace).await.map_err(ControlError::Store)?)
    }

    /// The secrets that channels and webhooks of a workspace name, each with its fields, such as
    /// `channels.ops.url`.
    ///
    /// # Errors
    /// When there is no such workspace or no store, or the store fails.
    pub async fn secret_uses(&self, workspace: &WorkspaceId) -> Result<SecretUses, OutboundError> {
        let mut found = SecretUses::new();
        let mut note = |place: String, secrets: [Option<&SecretName>; 2]| {
            for (field, secret) in ["url", "signing_key"].into_iter().zip(secrets) {
                let Some(secret) = secret else { continue };
                let places = found.entry(secret.as_str().to_owned()).or_default();
                places.push(format!("{place}.{field}"));
            }
        };
        for row in self.channels(workspace).await? {
            let secrets = [row.url.as_ref(), row.signing_key.as_ref()];
            note(format!("channels.{}", row.name), secrets);
        }
        for row in self.webhooks(workspace).await? {
            note(format!("webhooks.{}", row.name), [Some(&row.url), Some(&row.signing_key)]);
        }
        Ok(found)
    }

    /// One webhook.
    ///
    /// # Errors
    /// When the name is unknown, or the store fails.
    pub async fn webhook(
        &self,
        workspace: &WorkspaceId,
        name: &str,
    ) -> Result<WebhookRow, OutboundError> {
        let all = self.webhooks(workspace).await?;
        let found = all.into_iter().find(|row| row.name.as_str() == name);
        found.ok_or_else(|| OutboundError::NoWebhook(name.chars().take(100).collect()))
    }

    /// Configures a webhook, by `{"url": "${NAME}", "signing_key": "${NAME}", "events": […]}`. A
    /// new webhook receives events from now on.
    ///
    /// # Errors
    /// When a field is wrong, a secret is not set, its address cannot be posted to, the workspace
    /// does not exist, or the store fails.
    pub async fn webhook_set(
        &self,
        workspace: &WorkspaceId,
        name: &str,
        text: &[u8],
        by: &By,
    ) -> Result<WebhookRow, OutboundError> {
        self.control().catalog_store(workspace).await?;
        let Wanted { name, url, signing_key, kinds } = self.wanted(workspace, name, text).await?;
        let last = self.events()?.last_number(workspace).await;
        let position = last.map_err(|error| ControlError::from(MessageError::Events(error)))?;
        let (place, who, set_name) = (workspace.clone(), by.clone(), name.clone());
        let set = async move |control: Control| {
            let event = AuditEvent::new(kind::WEBHOOK_SET, who.clone()).in_workspace(&place);
            let event = event.on("webhook", set_name.to_string());
            let noted = control.note(event.with("events", kinds.clone())).await?;
            let new = NewWebhook {
                workspace: &place,
                name: &set_name,
                url: &url,
                signing_key: &signing_key,
                kinds: &kinds,
                position,
                by: &who.id,
            };
            let store = control.catalog_store(&place).await?;
            store.webhooks().set(new).await.map_err(ControlError::Store)?;
            noted.done().await;
            Ok(())
        };
        self.control().to_the_end(set).await?;
        self.webhook(workspace, name.as_str()).await
    }

    async fn wanted(
        &self,
        workspace: &WorkspaceId,
        name: &str,
        text: &[u8],
    ) -> Result<Wanted, OutboundError> {
        let mut fields = Fields::read(text, &["url", "signing_key", "events"])?;
        let name = fields.name(name);
        let (url, key) = (fields.secret("url", true), fields.secret("signing_key", true));
        for (field, secret) in [("url", &url), ("signing_key", &key)] {
            if let Some(secret) = secret {
                self.check_secret(workspace, field, secret, &mut fields).await?;
            }
        }
        let kinds = kinds(&mut fields);
        match (name, url, key, fields.faults.is_empty()) {
            (Some(name), Some(url), Some(signing_key), true) => {
                Ok(Wanted { name, url, signing_key, kinds })
            }
            _ => Err(OutboundError::refused(fields.faults)),
        }
    }

    /// Removes a webhook, with its pending events.
    ///
    /// # Errors
    /// When the name is unknown, or the store fails.
    pub async fn webhook_delete(
        &self,
        workspace: &WorkspaceId,
        name: &str,
        by: &By,
    ) -> Result<(), OutboundError> {
        let name = self.webhook(workspace, name).await?.name;
        let (place, who) = (workspace.clone(), by.clone());
        let delete = async move |control: Control| {
            let event = AuditEvent::new(kind::WEBHOOK_REMOVED, who).in_workspace(&place);
            let noted = control.note(event.on("webhook", name.to_string())).await?;
            let store = control.catalog_store(&place).await?;
            if store.webhooks().delete(&place, &name).await.map_err(ControlError::Store)? {
                noted.done().await;
            }
            Ok(())
        };
        Ok(self.control().to_the_end(delete).await?)
    }

    /// The outcomes of the newest events before the number `before`; one more than `limit` if there
    /// are more.
    ///
    /// # Errors
    /// When the webhook does not exist, or the store fails.
    pub async fn deliveries(
        &self,
        workspace: &WorkspaceId,
        name: &str,
        before: u64,
        limit: u32,
    ) -> Result<Vec<DeliveryRow>, OutboundError> {
        let name = self.webhook(workspace, name).await?.name;
        let store = self.control().catalog_store(workspace).await?;
        let rows = store.webhooks().deliveries(workspace, &name, before, limit + 1).await;
        Ok(rows.map_err(ControlError::Store)?)
    }

    fn events(&self) -> Result<&Events, ControlError> {
        Ok(self.control().events().ok_or(CatalogError::NoStore)?)
    }
}

/// True if the webhook waits for another attempt.
#[must_use]
pub fn is_retrying(row: &WebhookRow) -> bool {
    row.attempts > 0 && row.due_at > SystemTime::UNIX_EPOCH
}

fn kinds(fields: &mut Fields) -> Vec<&'static str> {
    let all = WEBHOOK_EVENTS.map(EventKind::as_str);
    let Some(found) = fields.values.get("events").cloned() else { return all.to_vec() };
    let words: Vec<_> = found.as_array().into_iter().flatten().map(Value::as_str).collect();
    let kinds: Vec<_> = all.into_iter().filter(|kind| words.contains(&Some(kind))).collect();
    if words.is_empty() || kinds.len() != words.len() {
        let remedy = format!("write a list of some of `{}`, each once", all.join("`, `"));
        fields.fault("events", "it is not a list of possible events", &remedy);
    }
    kinds
}

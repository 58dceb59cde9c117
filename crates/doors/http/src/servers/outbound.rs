//! Channels to which agents post, and webhooks that receive the decisions of humans, as admins
//! configure them.

use http::{Method, StatusCode};
use narthex_control::FieldError;
use narthex_model::{ErrorKind, SecretName};
use narthex_outbound::{ChannelRow, DeliveryRow, Outbound, OutboundError, WebhookRow, is_retrying};

use super::{Answered, Asked, ok, query::refused};
use crate::{
    body::RequestBody,
    problem::Problem,
    respond,
    shapes::{Channel, Page, Webhook, WebhookDelivery},
};

/// The target of a request about channels, webhooks and deliveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutboundTarget {
    /// The channels of a workspace.
    Channels,
    /// One channel.
    Channel,
    /// The webhooks of a workspace.
    Webhooks,
    /// One webhook.
    Webhook,
    /// The deliveries to a webhook, and their results.
    Deliveries,
}

impl Asked<'_> {
    /// Handles channels of agents, webhooks and their deliveries.
    pub(super) async fn of_outbound(&self, target: OutboundTarget, body: RequestBody) -> Answered {
        match target {
            OutboundTarget::Channels => self.list_channels().await,
            OutboundTarget::Channel => self.channel(body).await,
            OutboundTarget::Webhooks => self.list_webhooks().await,
            OutboundTarget::Webhook => self.webhook(body).await,
            OutboundTarget::Deliveries => self.list_deliveries().await,
        }
    }

    async fn list_channels(&self) -> Answered {
        let rows = self.outbound()?.channels(&self.workspace()?).await?;
        self.page(rows, |row| row.name.as_str(), shown)
    }

    /// Shows, creates, changes or removes one channel.
    async fn channel(&self, body: RequestBody) -> Answered {
        self.query(&[])?;
        let (workspace, name, by) = (self.workspace()?, self.segment(1), self.by());
        let outbound = self.outbound()?;
        let row = match self.parts.method {
            Method::PUT => {
                let text = self.entry(body, &[]).await?;
                outbound.channel_set(&workspace, &name, text.as_bytes(), &by).await?
            }
            Method::DELETE => {
                outbound.channel_delete(&workspace, &name, &by).await?;
                return Ok(respond::empty(StatusCode::NO_CONTENT));
            }
            _ => outbound.channel(&workspace, &name).await?,
        };
        Ok(ok(&shown(&row)))
    }

    async fn list_webhooks(&self) -> Answered {
        let rows = self.outbound()?.webhooks(&self.workspace()?).await?;
        self.page(rows, |row| row.name.as_str(), shown_webhook)
    }

    /// Shows, creates, changes or removes one webhook.
    async fn webhook(&self, body: RequestBody) -> Answered {
        self.query(&[])?;
        let (workspace, name, by) = (self.workspace()?, self.segment(1), self.by());
        let outbound = self.outbound()?;
        let row = match self.parts.method {
            Method::PUT => {
                let text = self.entry(body, &[]).await?;
                outbound.webhook_set(&workspace, &name, text.as_bytes(), &by).await?
            }
            Method::DELETE => {
                outbound.webhook_delete(&workspace, &name, &by).await?;
                return Ok(respond::empty(StatusCode::NO_CONTENT));
            }
            _ => outbound.webhook(&workspace, &name).await?,
        };
        Ok(ok(&shown_webhook(&row)))
    }

    /// Lists the deliveries of a webhook, the newest first.
    async fn list_deliveries(&self) -> Answered {
        let query = self.query(&["after", "limit"])?;
        let (workspace, name, limit) = (self.workspace()?, self.segment(1), query.limit()?);
        let before = match query.text("after") {
            "" => u64::MAX,
            text => text.parse().map_err(|_no_number| {
                refused(&[FieldError::invalid(
                    "after",
                    "this is not a position in this list",
                    "write the `next` of an earlier page",
                )])
            })?,
        };
        let rows = self.outbound()?.deliveries(&workspace, &name, before, limit).await?;
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let has_more = rows.len() > limit;
        let last = rows.iter().take(limit).next_back();
        let next = last.filter(|_| has_more).map(|row| row.number.to_string());
        let items = rows.iter().take(limit).map(shown_delivery).collect();
        Ok(ok(&Page { items, next }))
    }

    fn outbound(&self) -> Result<&Outbound, Problem> {
        self.door.options.outbound.as_ref().ok_or_else(|| {
            Problem::new(ErrorKind::Conflict, "this process sends nothing to other services")
        })
    }
}

/// The text by which documents refer to a secret; never its value.
fn reference(name: &SecretName) -> String {
    format!("${{{name}}}")
}

fn shown(row: &ChannelRow) -> Channel {
    let ChannelRow { name, provider, url, signing_key, updated_at, updated_by } = row;
    Channel {
        name: name.as_str().into(),
        provider: provider.clone(),
        url: url.as_ref().map(reference),
        signing_key: signing_key.as_ref().map(reference),
        updated_at: (*updated_at).into(),
        updated_by: updated_by.clone(),
    }
}

fn shown_webhook(row: &WebhookRow) -> Webhook {
    Webhook {
        name: row.name.as_str().into(),
        url: reference(&row.url),
        signing_key: reference(&row.signing_key),
        events: row.kinds.clone(),
        attempts: row.attempts.into(),
        next_attempt_at: is_retrying(row).then(|| row.due_at.into()),
        updated_at: row.updated_at.into(),
        updated_by: row.updated_by.clone(),
    }
}

fn shown_delivery(row: &DeliveryRow) -> WebhookDelivery {
    let DeliveryRow { number, kind, outcome, attempts, detail, happened_at } = row;
    WebhookDelivery {
        number: *number,
        event_type: kind.clone(),
        outcome: outcome.clone(),
        attempts: (*attempts).into(),
        detail: Some(detail.clone()).filter(|detail| !detail.is_empty()),
        happened_at: (*happened_at).into(),
    }
}

impl From<OutboundError> for Problem {
    fn from(error: OutboundError) -> Self {
        match error {
            OutboundError::Control(error) => error.into(),
            error => Self::new(error.kind(), error.to_string()),
        }
    }
}

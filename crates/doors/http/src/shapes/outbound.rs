//! Shapes of channels and webhooks.

use narthex_events::EventKind;
use narthex_outbound::{ProviderKind, WEBHOOK_EVENTS};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::json;

use super::{
    ids::{ChannelName, Time},
    page::Listed,
};

/// The name of a secret in a document, such as `${TEAM_KEY}`.
const SECRET: &str = r"^\$\{[A-Z_][A-Z0-9_]*\}$";

/// A channel: a place to which agents post messages.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({
    "name": "team",
    "provider": "slack",
    "url": "${TEAM_CHAT_URL}",
    "signing_key": null,
    "updated_at": "2026-11-23T10:00:00.000Z",
    "updated_by": "ada"
}))]
pub(crate) struct Channel {
    pub(crate) name: ChannelName,
    /// The provider that carries the messages.
    #[schemars(extend("enum" = ProviderKind::ALL.map(ProviderKind::as_str)))]
    pub(crate) provider: String,
    /// The secret with the address. Null if the channel has none.
    #[schemars(extend("pattern" = SECRET))]
    pub(crate) url: Option<String>,
    /// The secret that signs messages. Null if messages are not signed.
    #[schemars(extend("pattern" = SECRET))]
    pub(crate) signing_key: Option<String>,
    pub(crate) updated_at: Time,
    pub(crate) updated_by: String,
}

impl Listed for Channel {
    const PAGE: &str = "ChannelPage";
    const ABOUT: &str = "The channels of a workspace, in the order of their names.";
}

/// The channel to set.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({
    "provider": "webhook",
    "url": "${OPS_URL}",
    "signing_key": "${OPS_KEY}"
}))]
pub(crate) struct ChannelNew {
    /// The provider that carries the messages.
    #[schemars(extend("enum" = ProviderKind::ALL.map(ProviderKind::as_str)))]
    pub(crate) provider: String,
    /// The secret with the address, for `webhook` and `slack`.
    #[schemars(default, schema_with = "secret")]
    pub(crate) url: Option<String>,
    /// The secret that signs messages, for `webhook`.
    #[schemars(default, schema_with = "secret")]
    pub(crate) signing_key: Option<String>,
}

/// A webhook: an address that gets events of sessions.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({
    "name": "ops",
    "url": "${OPS_URL}",
    "signing_key": "${OPS_KEY}",
    "events": ["agent.permission_request", "permission.granted", "permission.denied"],
    "attempts": 0,
    "next_attempt_at": null,
    "updated_at": "2026-11-23T10:00:00.000Z",
    "updated_by": "ada"
}))]
pub(crate) struct Webhook {
    pub(crate) name: ChannelName,
    /// The secret with the address.
    #[schemars(extend("pattern" = SECRET))]
    pub(crate) url: String,
    /// The secret that signs events.
    #[schemars(extend("pattern" = SECRET))]
    pub(crate) signing_key: String,
    /// The types of the events that the webhook gets.
    #[schemars(extend("minItems" = 1, "uniqueItems" = true, "items" = event_type()))]
    pub(crate) events: Vec<String>,
    /// Number of attempts to send the next event.
    pub(crate) attempts: u64,
    pub(crate) next_attempt_at: Option<Time>,
    pub(crate) updated_at: Time,
    pub(crate) updated_by: String,
}

impl Listed for Webhook {
    const PAGE: &str = "WebhookPage";
    const ABOUT: &str = "The webhooks of a workspace, in the order of their names.";
}

/// The webhook to set.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({
    "url": "${OPS_URL}",
    "signing_key": "${OPS_KEY}",
    "events": ["agent.permission_request", "permission.granted", "permission.denied"]
}))]
pub(crate) struct WebhookNew {
    /// The secret with the address.
    #[schemars(schema_with = "secret")]
    pub(crate) url: String,
    /// The secret that signs events.
    #[schemars(schema_with = "secret")]
    pub(crate) signing_key: String,
    /// The types of the events that the webhook gets. The default is all of them.
    #[schemars(default, with = "Vec<String>")]
    #[schemars(extend("minItems" = 1, "uniqueItems" = true, "items" = event_type()))]
    pub(crate) events: Option<Vec<String>>,
}

/// The outcome of one event for a webhook.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct WebhookDelivery {
    /// The event's number in the workspace.
    #[schemars(extend("minimum" = 1))]
    pub(crate) number: u64,
    #[serde(rename = "type")]
    #[schemars(extend("enum" = WEBHOOK_EVENTS.map(EventKind::as_str)))]
    pub(crate) event_type: String,
    #[schemars(extend("enum" = ["delivered", "given_up"]))]
    pub(crate) outcome: String,
    #[schemars(extend("minimum" = 1))]
    pub(crate) attempts: u64,
    /// The reason why the event did not arrive.
    pub(crate) detail: Option<String>,
    pub(crate) happened_at: Time,
}

impl Listed for WebhookDelivery {
    const PAGE: &str = "WebhookDeliveryPage";
    const ABOUT: &str = "The outcomes of a webhook's events, the newest first.";
}

fn event_type() -> serde_json::Value {
    json!({ "type": "string", "enum": WEBHOOK_EVENTS.map(EventKind::as_str) })
}

/// A secret by its name, as a text or as an object.
fn secret(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "anyOf": [
            { "type": "string", "pattern": SECRET },
            {
                "type": "object",
                "properties": { "$secret": { "type": "string" } },
                "required": ["$secret"],
            },
        ],
    })
}

//! Channels that agents post to, and webhooks.

use super::super::operation::{Operation, delete, get, of, put};
use crate::shapes;

pub(super) const OPERATIONS: &[Operation] = &[
    get(
        "/api/workspaces/{workspace}/channels",
        "channel_list",
        "Lists the channels that agents can post to",
    )
    .asks(&["after", "limit"])
    .gives(of::<shapes::Page<shapes::Channel>>()),
    get("/api/workspaces/{workspace}/channels/{name}", "channel_show", "Shows one channel")
        .gives(of::<shapes::Channel>()),
    put(
        "/api/workspaces/{workspace}/channels/{name}",
        "channel_set",
        "Creates or replaces a channel",
    )
    .takes(of::<shapes::ChannelNew>())
    .gives(of::<shapes::Channel>()),
    delete("/api/workspaces/{workspace}/channels/{name}", "channel_delete", "Removes a channel")
        .ends(),
    get("/api/workspaces/{workspace}/webhooks", "webhook_list", "Lists the webhooks")
        .asks(&["after", "limit"])
        .gives(of::<shapes::Page<shapes::Webhook>>()),
    get("/api/workspaces/{workspace}/webhooks/{name}", "webhook_show", "Shows one webhook")
        .gives(of::<shapes::Webhook>()),
    put(
        "/api/workspaces/{workspace}/webhooks/{name}",
        "webhook_set",
        "Creates or replaces a webhook",
    )
    .takes(of::<shapes::WebhookNew>())
    .gives(of::<shapes::Webhook>()),
    delete("/api/workspaces/{workspace}/webhooks/{name}", "webhook_delete", "Removes a webhook")
        .ends(),
    get(
        "/api/workspaces/{workspace}/webhooks/{name}/deliveries",
        "webhook_delivery_list",
        "Lists the deliveries to a webhook, the newest first",
    )
    .asks(&["run_after", "limit"])
    .gives(of::<shapes::Page<shapes::WebhookDelivery>>()),
];

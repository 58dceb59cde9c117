//! Channels that agents post to, and webhooks.

use super::super::operation::{Operation, delete, get, put, written};

pub(super) const OPERATIONS: &[Operation] = &[
    get(
        "/api/workspaces/{workspace}/channels",
        "channel_list",
        "Lists the channels that agents can post to",
    )
    .asks(&["after", "limit"])
    .gives(written("ChannelPage")),
    get("/api/workspaces/{workspace}/channels/{name}", "channel_show", "Shows one channel")
        .gives(written("Channel")),
    put(
        "/api/workspaces/{workspace}/channels/{name}",
        "channel_set",
        "Creates or replaces a channel",
    )
    .takes(written("ChannelNew"))
    .gives(written("Channel")),
    delete("/api/workspaces/{workspace}/channels/{name}", "channel_delete", "Removes a channel")
        .ends(),
    get("/api/workspaces/{workspace}/webhooks", "webhook_list", "Lists the webhooks")
        .asks(&["after", "limit"])
        .gives(written("WebhookPage")),
    get("/api/workspaces/{workspace}/webhooks/{name}", "webhook_show", "Shows one webhook")
        .gives(written("Webhook")),
    put(
        "/api/workspaces/{workspace}/webhooks/{name}",
        "webhook_set",
        "Creates or replaces a webhook",
    )
    .takes(written("WebhookNew"))
    .gives(written("Webhook")),
    delete("/api/workspaces/{workspace}/webhooks/{name}", "webhook_delete", "Removes a webhook")
        .ends(),
    get(
        "/api/workspaces/{workspace}/webhooks/{name}/deliveries",
        "webhook_delivery_list",
        "Lists the deliveries to a webhook, the newest first",
    )
    .asks(&["run_after", "limit"])
    .gives(written("WebhookDeliveryPage")),
];

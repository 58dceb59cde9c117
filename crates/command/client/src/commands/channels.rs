//! `narthex channels` and `narthex webhooks`: posts to other systems, through the daemon.

use std::process::ExitCode;

use crate::cli::{ChannelsCommand, SetChannelArgs, SetWebhookArgs, WebhooksCommand, WorkspaceArgs};
use http::Method;
use narthex_model::command::narthex;
use serde_json::{Value, json};

use super::waiting::waiting;
use crate::{
    Context, Failure,
    daemon_client::{ApiRequest, DaemonClient, segment, workspace_path},
    output, table,
};

pub async fn run(command: ChannelsCommand, context: Context) -> Result<ExitCode, Failure> {
    let client = DaemonClient::operator(&context.daemon)?;
    match command {
        ChannelsCommand::List { place } => {
            let path = workspace_path(&place.workspace, "/channels");
            let items = waiting("asking the daemon", &context, client.api_all(&path)).await?;
            let header = ["name", "provider", "url", "signing key", "written", "by"];
            let add = narthex("channels set NAME --provider log", &[]);
            let none = format!(
                "There are no channels, so no agent can post messages; add one with `{add}`."
            );
            table::list(&items, &header, row, &none, &context)
        }
        ChannelsCommand::Set(args) => set(&client, args, &context).await,
        ChannelsCommand::Remove { name, place } => {
            let asked =
                client.api(ApiRequest::new(Method::DELETE, path(&place, "channels", &name)));
            waiting("removing the channel", &context, asked).await?;
            let told = format!("the channel {name} is removed");
            output::told(&json!({ "name": name }), &told, context.format)
        }
    }
}

fn path(place: &WorkspaceArgs, what: &str, name: &str) -> String {
    workspace_path(&place.workspace, &format!("/{what}/{}", segment(name)))
}

fn row(one: &Value) -> Vec<String> {
    let members = ["url", "signing_key"].map(|member| table::or_none(one, member));
    let [url, key] = members;
    let text = |member| table::text(one, member);
    vec![text("name"), text("provider"), url, key, text("updated_at"), text("updated_by")]
}

async fn set(
    client: &DaemonClient,
    args: SetChannelArgs,
    context: &Context,
) -> Result<ExitCode, Failure> {
    let SetChannelArgs { name, provider, url, signing_key, place } = args;
    let mut body = json!({ "provider": provider });
    for (member, value) in [("url", url), ("signing_key", signing_key)] {
        if let Some(value) = value {
            body[member] = json!(value);
        }
    }
    let request =
        ApiRequest::new(Method::PUT, path(&place, "channels", &name)).entry(&body.to_string());
    let set = waiting("setting the channel", context, client.api(request)).await?;
    output::told(&set, &format!("agents can post to {name}"), context.format)
}

pub async fn webhooks(command: WebhooksCommand, context: Context) -> Result<ExitCode, Failure> {
    let client = DaemonClient::operator(&context.daemon)?;
    match command {
        WebhooksCommand::List { place } => {
            let path = workspace_path(&place.workspace, "/webhooks");
            let items = waiting("asking the daemon", &context, client.api_all(&path)).await?;
            let header = ["name", "url", "signing key", "events", "attempts", "next attempt"];
            let add = narthex("webhooks set NAME --url SECRET --signing-key SECRET", &[]);
            let none = table::none_yet("webhooks", &add);
            table::list(&items, &header, webhook_row, &none, &context)
        }
        WebhooksCommand::Set(args) => set_webhook(&client, args, &context).await,
        WebhooksCommand::Deliveries { name, place } => {
            let path = format!("{}/deliveries", path(&place, "webhooks", &name));
            let items = waiting("asking the daemon", &context, client.api_all(&path)).await?;
            let header = ["number", "type", "outcome", "attempts", "when", "why"];
            table::list(
                &items,
                &header,
                delivery_row,
                "No event was sent to this webhook yet.",
                &context,
            )
        }
        WebhooksCommand::Remove { name, place } => {
            let path = path(&place, "webhooks", &name);
            let asked = client.api(ApiRequest::new(Method::DELETE, path));
            waiting("removing the webhook", &context, asked).await?;
            let told = format!("the webhook {name} is removed");
            output::told(&json!({ "name": name }), &told, context.format)
        }
    }
}

fn webhook_row(one: &Value) -> Vec<String> {
    let text = |member| table::text(one, member);
    let events = one["events"].as_array().map_or(0, Vec::len);
    vec![
        text("name"),
        text("url"),
        text("signing_key"),
        events.to_string(),
        one["attempts"].to_string(),
        table::or_none(one, "next_attempt_at"),
    ]
}

fn delivery_row(one: &Value) -> Vec<String> {
    let text = |member| table::text(one, member);
    vec![
        one["number"].to_string(),
        text("type"),
        text("outcome"),
        one["attempts"].to_string(),
        text("happened_at"),
        table::or_none(one, "detail"),
    ]
}

async fn set_webhook(
    client: &DaemonClient,
    args: SetWebhookArgs,
    context: &Context,
) -> Result<ExitCode, Failure> {
    let SetWebhookArgs { name, url, signing_key, events, place } = args;
    let mut body = json!({ "url": url, "signing_key": signing_key });
    if !events.is_empty() {
        body["events"] = json!(events);
    }
    let request = ApiRequest::new(Method::PUT, path(&place, "webhooks", &name));
    let asked = client.api(request.entry(&body.to_string()));
    let set = waiting("setting the webhook", context, asked).await?;
    output::told(&set, &format!("{name} receives events from now on"), context.format)
}

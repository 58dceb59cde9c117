//! The part of the command line for channels and webhooks.

use clap::{Args, Subcommand};

use super::WorkspaceArgs;

/// Commands for the channels that agents post to.
#[derive(Debug, Subcommand)]
pub enum ChannelsCommand {
    /// List the channels, without their addresses
    List {
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// Create or replace a channel
    Set(SetChannelArgs),
    /// Remove a channel
    Remove {
        /// The channel's name
        name: String,
        #[command(flatten)]
        place: WorkspaceArgs,
    },
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    narthex secrets set TEAM_CHAT_URL\n  \
    narthex channels set team --provider slack --url '${TEAM_CHAT_URL}'\n  \
    narthex channels set alarms --provider webhook --url '${ALARM_URL}' \\\n    \
    --signing-key '${ALARM_KEY}'\n  \
    narthex channels set notes --provider log")]
pub struct SetChannelArgs {
    /// The channel's name, which agents use
    pub name: String,
    /// The service that delivers the messages
    #[arg(long, value_parser = ["log", "webhook", "slack"])]
    pub provider: String,
    /// The secret with the address, as ${NAME}
    #[arg(long, value_name = "SECRET")]
    pub url: Option<String>,
    /// The secret that signs messages of provider `webhook`, as ${NAME}
    #[arg(long, value_name = "SECRET")]
    pub signing_key: Option<String>,
    #[command(flatten)]
    pub place: WorkspaceArgs,
}

/// Commands for webhooks, which receive the requests to humans and their decisions.
#[derive(Debug, Subcommand)]
pub enum WebhooksCommand {
    /// List the webhooks, without their addresses
    List {
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// Create or replace a webhook
    Set(SetWebhookArgs),
    /// List the deliveries of a webhook with their results, the newest first
    Deliveries {
        /// The webhook's name
        name: String,
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// Remove a webhook, and drop its pending deliveries
    Remove {
        /// The webhook's name
        name: String,
        #[command(flatten)]
        place: WorkspaceArgs,
    },
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  narthex secrets set OPS_URL\n  narthex secrets set OPS_KEY\n  \
    narthex webhooks set ops --url '${OPS_URL}' --signing-key '${OPS_KEY}'\n  \
    narthex webhooks set ops --url '${OPS_URL}' --signing-key '${OPS_KEY}' \\\n    \
    --events agent.permission_request"
)]
pub struct SetWebhookArgs {
    /// The webhook's name
    pub name: String,
    /// The secret with the address, as ${NAME}
    #[arg(long, value_name = "SECRET")]
    pub url: String,
    /// The secret that signs deliveries, as ${NAME}
    #[arg(long, value_name = "SECRET")]
    pub signing_key: String,
    /// The event types to deliver, separated by commas [default: all]
    #[arg(long, value_name = "TYPE,…", value_delimiter = ',')]
    pub events: Vec<String>,
    #[command(flatten)]
    pub place: WorkspaceArgs,
}

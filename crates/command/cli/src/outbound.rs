//! The part of the command line for channels and webhooks.

use clap::{Args, Subcommand};

use crate::WorkspaceArgs;

/// Commands for the channels that agents post to.
#[derive(Debug, Subcommand)]
pub enum ChannelsCommand {
    /// List them, without their addresses
    List {
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// Make one, or another one in its place
    Set(SetChannelArgs),
    /// Remove one
    Remove {
        /// Its name
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
    /// What agents call it
    pub name: String,
    /// What carries its messages
    #[arg(long, value_parser = ["log", "webhook", "slack"])]
    pub provider: String,
    /// The secret with the address, as ${NAME}
    #[arg(long, value_name = "SECRET")]
    pub url: Option<String>,
    /// The secret with which messages are signed, as ${NAME}; for `webhook`
    #[arg(long, value_name = "SECRET")]
    pub signing_key: Option<String>,
    #[command(flatten)]
    pub place: WorkspaceArgs,
}

/// Commands for webhooks, which receive the requests to humans and their decisions.
#[derive(Debug, Subcommand)]
pub enum WebhooksCommand {
    /// List them, without their addresses
    List {
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// Make one, or another one in its place
    Set(SetWebhookArgs),
    /// Show what became of what one was told, the newest first
    Deliveries {
        /// Its name
        name: String,
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// Remove one, with what it was to be told yet
    Remove {
        /// Its name
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
    /// What it is called
    pub name: String,
    /// The secret with the address, as ${NAME}
    #[arg(long, value_name = "SECRET")]
    pub url: String,
    /// The secret with which it is signed, as ${NAME}
    #[arg(long, value_name = "SECRET")]
    pub signing_key: String,
    /// What it is told, separated by commas [default: all that there is]
    #[arg(long, value_name = "TYPE,…", value_delimiter = ',')]
    pub events: Vec<String>,
    #[command(flatten)]
    pub place: WorkspaceArgs,
}

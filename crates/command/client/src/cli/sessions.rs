//! The arguments of the commands for events of sessions.

use std::{path::PathBuf, time::Duration};

use clap::Args;

use super::{WorkspaceArgs, values::duration};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  narthex sessions events ID\n  \
    narthex sessions events ID --follow --type user.message,agent.status\n  \
    narthex sessions events ID --after 17 --json | jq '.data.items[].payload'\n\n\
    With --follow and --json, each event is printed as one line until the session ends.")]
pub struct SessionEventsArgs {
    /// The session
    pub id: String,
    /// Print new events as they come, until the session ends
    #[arg(long, short)]
    pub follow: bool,
    /// Only events after this event number
    #[arg(long, value_name = "NUMBER", default_value_t = 0,
        value_parser = super::values::count::<u64>)]
    pub after: u64,
    /// Only events of these types, separated by commas
    #[arg(long = "type", value_name = "TYPE,…")]
    pub types: Option<String>,
    #[command(flatten)]
    pub place: WorkspaceArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  narthex sessions message ID \"Take the second one.\"\n  \
    narthex sessions message ID - < answer.txt\n  \
    narthex sessions message ID \"Stop after this file.\" --expires-in 10m\n  \
    narthex sessions message ID yes --request-id q1 --message-id m1\n  \
    narthex sessions message ID \"Continue.\" --user ada")]
pub struct SessionMessageArgs {
    /// The session
    pub id: String,
    /// The message; `-` reads standard input
    #[arg(default_value = "-")]
    pub text: String,
    /// The id of the agent's question that the message answers
    #[arg(long, value_name = "ID")]
    pub request_id: Option<String>,
    /// Your own id of the message; a repeated message is stored once
    #[arg(long, value_name = "ID")]
    pub message_id: Option<String>,
    /// The sender, by name or id; this human's grants apply from then on
    #[arg(long, value_name = "USER")]
    pub user: Option<String>,
    /// Time in which the agent can read the message, such as 10m or 2h [default: no limit]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub expires_in: Option<Duration>,
    #[command(flatten)]
    pub place: WorkspaceArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  narthex sessions resume ID\n  \
    narthex sessions resume ID --prompt \"Continue with the next file.\" --expires-in 2h\n  \
    narthex sessions resume ID request.json --json | jq .data.mcpServers\n\n\
    A suspended session resumes with the configuration of its last run and the newest values of\n\
    its secrets; any other session with the current definition of its agent. A server that fails\n\
    is left out; `narthex sessions events ID` shows the failure.")]
pub struct SessionResumeArgs {
    /// The session
    pub id: String,
    /// A JSON file for the next run, with `prompt`, `scope` and others; `-` reads standard input
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// The prompt for the model
    #[arg(long)]
    pub prompt: Option<String>,
    /// The human who drives the run, by name or id
    #[arg(long, value_name = "USER")]
    pub user: Option<String>,
    /// Maximum duration of the run, such as 30m or 2h [default: 24h]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub expires_in: Option<Duration>,
    /// Open Unix sockets for the run
    #[arg(long)]
    pub sockets: bool,
    #[command(flatten)]
    pub place: WorkspaceArgs,
}

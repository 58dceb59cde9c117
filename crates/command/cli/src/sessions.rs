//! The arguments of the commands for events of sessions.

use std::{path::PathBuf, time::Duration};

use clap::Args;

use super::{WorkspaceArgs, values::duration};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  narthex sessions events ID\n  \
    narthex sessions events ID --follow --type user.message,agent.status\n  \
    narthex sessions events ID --after 17 --json | jq '.data.items[].payload'\n\n\
    With --follow and --json each event is a line, as it comes, until the session has ended.")]
pub struct SessionEventsArgs {
    /// The session
    pub id: String,
    /// Show what comes as well, until the session has ended
    #[arg(long, short)]
    pub follow: bool,
    /// Only events after the one of this number
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
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
    narthex sessions message ID \"Go on.\" --user ada")]
pub struct SessionMessageArgs {
    /// The session
    pub id: String,
    /// What to say; `-` reads it from standard input
    #[arg(default_value = "-")]
    pub text: String,
    /// The question of the agent that it answers
    #[arg(long, value_name = "ID")]
    pub request_id: Option<String>,
    /// A name of your own for the message, under which it is one however often it is sent
    #[arg(long, value_name = "ID")]
    pub message_id: Option<String>,
    /// For whom it is said, by name or id: their grants count from then on
    #[arg(long, value_name = "USER")]
    pub user: Option<String>,
    /// For how long an agent may read it, such as 10m or 2h; without it, for good
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub expires_in: Option<Duration>,
    #[command(flatten)]
    pub place: WorkspaceArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  narthex sessions resume ID\n  \
    narthex sessions resume ID --prompt \"Go on where you were.\" --expires-in 2h\n  \
    narthex sessions resume ID request.json --json | jq .data.mcpServers\n\n\
    A session that was suspended goes on with what its last run had, and the newest values of its\n\
    secrets; any other with what its agent is now. A server that fails is left out, and\n\
    `narthex sessions events ID` tells so.")]
pub struct SessionResumeArgs {
    /// The session
    pub id: String,
    /// A JSON file with what its next run has, such as `prompt` and `scope`; `-` reads it from
    /// standard input
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// What the model is told
    #[arg(long)]
    pub prompt: Option<String>,
    /// The human who drives it, by name or id
    #[arg(long, value_name = "USER")]
    pub user: Option<String>,
    /// After what time the run ends by itself, such as 30m or 2h; 24 hours if it is not said
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub expires_in: Option<Duration>,
    /// Give the run Unix sockets as well
    #[arg(long)]
    pub sockets: bool,
    #[command(flatten)]
    pub place: WorkspaceArgs,
}

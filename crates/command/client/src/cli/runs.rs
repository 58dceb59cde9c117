//! The part of the command line for runs and sessions.

use std::{path::PathBuf, time::Duration};

use clap::{Args, Subcommand};

use super::{SessionEventsArgs, SessionMessageArgs, SessionResumeArgs, WorkspaceArgs};

/// Commands for runs: each has a token of its own, and the servers that it was created with.
#[derive(Debug, Subcommand)]
pub enum RunCommand {
    /// Create a run; if one of its servers does not start, no run is created
    Create(CreateArgs),
    /// List the runs
    #[command(after_help = "Examples:\n  narthex runs list --status running --quiet\n  \
        narthex runs list --session SESSION")]
    List {
        /// Only runs with this status
        #[arg(long, value_name = "STATUS", value_parser = [
            "running", "pending", "ended", "expired", "cancelled", "failed",
        ])]
        status: Option<String>,
        /// Only runs of this session
        #[arg(long)]
        session: Option<String>,
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// Show a run with its tools
    #[command(after_help = "Example:\n  narthex runs show ID --json | jq .data.tool_set")]
    Show {
        /// The run: its id, or its number in column PID
        id: String,
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// Claim a pending run, and print the token and endpoints for its client
    Claim(ClaimArgs),
    /// End one or more runs: their tokens are revoked, and their own servers stop
    End(EndArgs),
}

/// Creates a run for one task and prints the data for its client.
///
/// The file names the run's agent, with parameters and scope, or has servers of the run's own, like
/// an mcp.json that the daemon reads; an entry with "optional": true may fail.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  narthex runs create --agent reader --prompt 'Sum up the report'\n  \
    narthex runs create task.json\n  \
    narthex runs create --tools git,docs\n  \
    narthex runs create --agent reader --params topic=auth --scope scope.json\n  \
    narthex runs create --json - < task.json | jq -r .data.token\n  \
    narthex runs create --json --agent reader --sockets | jq .data.socat\n\n\
    A run scope may hold credentials, so only a file can give it."
)]
pub struct CreateArgs {
    /// The request as JSON: `agent_name`, `params`, `scope`, `expires_in`, or `servers`; - reads
    /// standard input
    pub file: Option<PathBuf>,
    /// The agent of the run, from the catalog
    #[arg(long, value_name = "NAME", conflicts_with = "tools")]
    pub agent: Option<String>,
    /// The prompt for the model
    #[arg(long, value_name = "TEXT")]
    pub prompt: Option<String>,
    /// A parameter of the agent: `KEY=VALUE`, `KEY:=JSON` or `KEY=@FILE`; repeat the flag for more
    /// parameters
    #[arg(long, value_name = "KEY=VALUE")]
    pub params: Vec<String>,
    /// The run scope, a JSON object that the model does not see; - reads standard input
    #[arg(long, value_name = "FILE")]
    pub scope: Option<PathBuf>,
    /// Shared servers of the daemon for the run, separated by commas; `*` is all
    #[arg(long, value_name = "ALIAS,…")]
    pub tools: Option<String>,
    /// The built-in tools of the run: none, ask, core, all, or names separated by commas
    #[arg(long, value_name = "SET")]
    pub builtin: Option<String>,
    /// Open Unix sockets for the run, for clients such as socat; --json prints their paths
    #[arg(long)]
    pub sockets: bool,
    #[command(flatten)]
    pub place: WorkspaceArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  narthex runs list --status pending\n  \
    narthex runs claim ID --lease 10m --json\n  \
    narthex runs claim ID --claim CLAIM --lease 10m\n\n\
    Until the lease ends, no other client can claim the run. Its token is shown once.\n\
    --claim extends the lease from now on.")]
pub struct ClaimArgs {
    /// The run
    pub id: String,
    /// The duration of the lease
    #[arg(long, value_name = "DURATION", value_parser = super::duration, default_value = "5m")]
    pub lease: Duration,
    /// The claim to extend
    #[arg(long)]
    pub claim: Option<String>,
    #[command(flatten)]
    pub place: WorkspaceArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  narthex runs end ID\n  \
    narthex runs end --agent reader\n  narthex runs end --agent reader --yes\n\n\
    --all, --agent and --session select active runs only.")]
#[command(group = clap::ArgGroup::new("which").required(true))]
pub struct EndArgs {
    /// The run: its id, or its number in column PID
    #[arg(group = "which")]
    pub id: Option<String>,
    /// All runs of the workspace except the daemon's own run
    #[arg(long, group = "which")]
    pub all: bool,
    /// The runs of this agent
    #[arg(long, value_name = "NAME", group = "which")]
    pub agent: Option<String>,
    /// The runs of this session; the session can be resumed later
    #[arg(long, group = "which")]
    pub session: Option<String>,
    /// End the runs; without this flag, --all, --agent and --session only count them
    #[arg(long, conflicts_with = "id")]
    pub yes: bool,
    #[command(flatten)]
    pub place: WorkspaceArgs,
}

/// Commands for sessions: the work of agents, over all their runs.
#[derive(Debug, Subcommand)]
pub enum SessionsCommand {
    /// List the sessions, the newest last, with the reason of each failure
    #[command(after_help = "Examples:\n  narthex sessions list\n  \
        narthex sessions list --json | jq '.data.items[] | select(.status == \"running\")'")]
    List {
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// Show a session with its runs
    #[command(after_help = "Example:\n  narthex sessions show ID --json | jq .data.runs")]
    Show {
        /// The session
        id: String,
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// Show the events of a session
    Events(SessionEventsArgs),
    /// Send a message to the agent of a session
    Message(SessionMessageArgs),
    /// Suspend a session: its runs end, and their configuration is stored for the next run
    #[command(after_help = "Example:\n  narthex sessions suspend ID\n  \
        narthex sessions resume ID\n\n\
        Only `resume` continues a suspended session. Its child sessions stay active.")]
    Suspend {
        /// The session
        id: String,
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// Resume a session with a new run
    Resume(SessionResumeArgs),
    /// End a session with all its runs; an ended session cannot be resumed
    #[command(after_help = "Example:\n  narthex sessions end ID")]
    End {
        /// The session
        id: String,
        #[command(flatten)]
        place: WorkspaceArgs,
    },
}

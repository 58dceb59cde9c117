//! The part of the command line for runs and sessions.

use std::{path::PathBuf, time::Duration};

use clap::{Args, Subcommand};

use crate::{SessionEventsArgs, SessionMessageArgs, SessionResumeArgs, WorkspaceArgs};

/// Commands for runs: each has a token of its own, and the servers that it was created with.
#[derive(Debug, Subcommand)]
pub enum RunCommand {
    /// Create a run; nothing of it is left if one of its servers does not start
    Create(CreateArgs),
    /// List the runs
    #[command(after_help = "Examples:\n  narthex runs list --status running --quiet\n  \
        narthex runs list --session SESSION")]
    List {
        /// Only those that stand so
        #[arg(long, value_name = "STATUS", value_parser = [
            "running", "pending", "ended", "expired", "cancelled", "failed",
        ])]
        status: Option<String>,
        /// Only those of this session
        #[arg(long)]
        session: Option<String>,
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// Show a run with the tools that it sees
    #[command(after_help = "Example:\n  narthex runs show ID --json | jq .data.tool_set")]
    Show {
        /// The run: its id, or its number, as in the column PID
        id: String,
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// Carry out a run that waits, and print what its client needs
    Claim(ClaimArgs),
    /// End a run, or many: their tokens open nothing any more, and their own servers end
    End(EndArgs),
}

/// Creates a run for one task and prints the data for its client.
///
/// The file names the run's agent, with parameters and scope, or has servers of the run's own, like
/// an mcp.json that the daemon reads; an entry with "optional": true may fail.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  narthex runs create --agent reader --prompt 'Sum it up'\n  \
    narthex runs create task.json\n  \
    narthex runs create --tools git,docs\n  \
    narthex runs create --agent reader --params topic=auth --scope scope.json\n  \
    narthex runs create --json - < task.json | jq -r .data.token\n  \
    narthex runs create --json --agent reader --sockets | jq .data.socat\n\n\
    A scope may hold credentials, so it is given in a file alone.")]
pub struct CreateArgs {
    /// The request as JSON: `agent_name`, `params`, `scope`, `expires_in`, or `servers`; - reads
    /// standard input
    pub file: Option<PathBuf>,
    /// The agent of the catalog that it is a run of
    #[arg(long, value_name = "NAME", conflicts_with = "tools")]
    pub agent: Option<String>,
    /// What the model is told
    #[arg(long, value_name = "TEXT")]
    pub prompt: Option<String>,
    /// A parameter of the agent, as arguments of `narthex call` are written: `KEY=VALUE`,
    /// `KEY:=JSON`, `KEY=@FILE`; may be said several times
    #[arg(long, value_name = "KEY=VALUE")]
    pub params: Vec<String>,
    /// A file with the run's scope, a JSON object that no model sees; - reads standard input
    #[arg(long, value_name = "FILE")]
    pub scope: Option<PathBuf>,
    /// The shared servers that it has as well, separated by commas; `*` is all of them
    #[arg(long, value_name = "ALIAS,…")]
    pub tools: Option<String>,
    /// The built-in tools that it has: none, ask, core or all, or names separated by commas
    #[arg(long, value_name = "SET")]
    pub builtin: Option<String>,
    /// Open Unix sockets for it as well, which clients reach with socat; --json tells where
    #[arg(long)]
    pub sockets: bool,
    #[command(flatten)]
    pub place: WorkspaceArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  narthex runs list --status pending\n  \
    narthex runs claim ID --lease 10m --json\n  \
    narthex runs claim ID --claim CLAIM --lease 10m\n\n\
    No other client can claim the run during the lease. Its token is shown once. A second claim\n\
    with the name of the first starts the lease anew.")]
pub struct ClaimArgs {
    /// The run
    pub id: String,
    /// For how long
    #[arg(long, value_name = "DURATION", value_parser = crate::duration, default_value = "5m")]
    pub lease: Duration,
    /// The claim that is to last longer
    #[arg(long)]
    pub claim: Option<String>,
    #[command(flatten)]
    pub place: WorkspaceArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  narthex runs end ID\n  \
    narthex runs end --agent reader\n  narthex runs end --agent reader --yes\n\n\
    Of many, only those that go on now: without --yes it says how many these are, and ends none.")]
#[command(group = clap::ArgGroup::new("which").required(true))]
pub struct EndArgs {
    /// The run: its id, or its number, as in the column PID
    #[arg(group = "which")]
    pub id: Option<String>,
    /// All runs of the workspace but the daemon's own
    #[arg(long, group = "which")]
    pub all: bool,
    /// The runs of this agent
    #[arg(long, value_name = "NAME", group = "which")]
    pub agent: Option<String>,
    /// The runs of this session, which can go on later
    #[arg(long, group = "which")]
    pub session: Option<String>,
    /// End them; needed where it is more than one that is named
    #[arg(long, conflicts_with = "id")]
    pub yes: bool,
    #[command(flatten)]
    pub place: WorkspaceArgs,
}

/// Commands for sessions: the work of agents, over all their runs.
#[derive(Debug, Subcommand)]
pub enum SessionsCommand {
    /// List the sessions, the newest last, with why those have failed that did
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
    /// Show what happens in a session
    Events(SessionEventsArgs),
    /// Say something to the agent of a session
    Message(SessionMessageArgs),
    /// Set a session aside: its runs end, and what they were made of is kept for the next one
    #[command(after_help = "Example:\n  narthex sessions suspend ID\n  \
        narthex sessions resume ID\n\n\
        Nobody but `resume` has it go on. Its children go on by themselves.")]
    Suspend {
        /// The session
        id: String,
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// Have a session go on with a new run
    Resume(SessionResumeArgs),
    /// End a session with all its runs; it cannot go on any more
    #[command(after_help = "Example:\n  narthex sessions end ID")]
    End {
        /// The session
        id: String,
        #[command(flatten)]
        place: WorkspaceArgs,
    },
}

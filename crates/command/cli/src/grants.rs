//! The part of the command line for grants to users and agents.

use clap::{Args, Subcommand};

use crate::WorkspaceArgs;

/// Commands for grants, and for requests of runs.
#[derive(Debug, Subcommand)]
pub enum GrantsCommand {
    /// List what is granted
    List {
        /// Also what was revoked
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// Show one grant
    Show(GrantArgs),
    /// Allow a user or an agent to use what requires a tool scope
    Create(Box<CreateGrantArgs>),
    /// Let a grant count no more
    Revoke(GrantArgs),
    /// List what runs wait for
    Pending {
        /// Go on, with what is asked for and decided from now on, until it is interrupted
        #[arg(long)]
        watch: bool,
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// Grant what a run has asked for
    Approve {
        /// The id of the request
        id: String,
        /// For how long, whatever was asked for
        #[arg(long, value_parser = ["once", "run", "session", "persistent"])]
        scope: Option<String>,
        /// For one call, as `--scope once`
        #[arg(long, conflicts_with = "scope")]
        once: bool,
        /// Why, for people
        #[arg(long)]
        reason: Option<String>,
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// Refuse what a run has asked for
    Deny {
        /// The id of the request
        id: String,
        /// Why, for people
        #[arg(long)]
        reason: Option<String>,
        #[command(flatten)]
        place: WorkspaceArgs,
    },
}

/// One grant.
#[derive(Debug, Args)]
pub struct GrantArgs {
    /// The id of the grant
    pub id: String,
    #[command(flatten)]
    pub place: WorkspaceArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  narthex grants create linear.write --agent reader --once\n  \
    narthex grants create linear.write --user ada --server linear --tool create_issue\n  \
    narthex grants create --spawn helper --agent reader")]
pub struct CreateGrantArgs {
    /// The tool scope
    #[arg(required_unless_present = "spawn", conflicts_with = "spawn")]
    pub scope: Option<String>,
    /// Instead of a tool scope: to start runs of this agent
    #[arg(long, value_name = "AGENT", conflicts_with_all = ["server", "tool", "arguments"])]
    pub spawn: Option<String>,
    #[command(flatten)]
    pub subject: GrantSubjectArgs,
    #[command(flatten)]
    pub duration: GrantDurationArgs,
    /// At this server only: its id in the catalog, or its name in mcp.json
    #[arg(long)]
    pub server: Option<String>,
    /// For this tool, prompt or resource only, under the server's own name
    #[arg(long)]
    pub tool: Option<String>,
    /// With exactly these arguments only, a JSON object
    #[arg(long, value_name = "JSON")]
    pub arguments: Option<String>,
    /// When it ends in any case, such as 2027-01-31T12:00:00Z
    #[arg(long, value_name = "TIME")]
    pub expires_at: Option<String>,
    /// Why, for people
    #[arg(long)]
    pub reason: Option<String>,
    #[command(flatten)]
    pub place: WorkspaceArgs,
}

/// The user or the agent of a grant; required.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct GrantSubjectArgs {
    /// For this human, by id or name, in each run that they drive
    #[arg(long)]
    pub user: Option<String>,
    /// For this agent, whoever drives it
    #[arg(long)]
    pub agent: Option<String>,
}

/// The duration of a grant [default: until it is revoked].
#[derive(Debug, Args)]
#[group(multiple = false)]
pub struct GrantDurationArgs {
    /// For one call
    #[arg(long)]
    pub once: bool,
    /// Until this run ends
    #[arg(long, value_name = "ID")]
    pub run: Option<String>,
    /// Until this session ends
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
}

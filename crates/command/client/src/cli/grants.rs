//! The part of the command line for grants to users and agents.

use clap::{Args, Subcommand};

use super::WorkspaceArgs;

/// Commands for grants, and for requests of runs.
#[derive(Debug, Subcommand)]
pub enum GrantsCommand {
    /// List the grants
    List {
        /// Also revoked grants
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// Show one grant
    Show(GrantArgs),
    /// Grant a tool scope, or the start of an agent
    Create(Box<CreateGrantArgs>),
    /// Revoke a grant
    Revoke(GrantArgs),
    /// List the requests of runs that wait for a human
    Pending {
        /// Print new requests and decisions as they come, until Ctrl-C
        #[arg(long)]
        watch: bool,
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// Approve the request of a run
    Approve {
        /// The id of the request
        id: String,
        /// The duration of the grant [default: as requested]
        #[arg(long, value_parser = ["once", "run", "session", "persistent"])]
        scope: Option<String>,
        /// Grant one call; the same as `--scope once`
        #[arg(long, conflicts_with = "scope")]
        once: bool,
        /// Time at which the grant ends in any case, such as 2027-01-31T12:00:00Z
        #[arg(long, value_name = "TIME")]
        expires_at: Option<String>,
        /// The reason, for people
        #[arg(long)]
        reason: Option<String>,
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// Deny the request of a run
    Deny {
        /// The id of the request
        id: String,
        /// The reason, for people
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
    /// Grant the start of this agent's runs, instead of a tool scope
    #[arg(long, value_name = "AGENT", conflicts_with_all = ["server", "tool", "arguments"])]
    pub spawn: Option<String>,
    #[command(flatten)]
    pub subject: GrantSubjectArgs,
    #[command(flatten)]
    pub duration: GrantDurationArgs,
    /// Only this server: its id in the catalog, or its name in mcp.json
    #[arg(long)]
    pub server: Option<String>,
    /// Only this tool, prompt or resource, by the server's own name
    #[arg(long)]
    pub tool: Option<String>,
    /// Only exactly these arguments, as a JSON object
    #[arg(long, value_name = "JSON")]
    pub arguments: Option<String>,
    /// Time at which the grant ends, such as 2027-01-31T12:00:00Z
    #[arg(long, value_name = "TIME")]
    pub expires_at: Option<String>,
    /// The reason, for people
    #[arg(long)]
    pub reason: Option<String>,
    #[command(flatten)]
    pub place: WorkspaceArgs,
}

/// The user or the agent of a grant; required.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct GrantSubjectArgs {
    /// The human, by id or name; the grant counts in each run that they drive
    #[arg(long)]
    pub user: Option<String>,
    /// The agent; the grant counts for every human who drives it
    #[arg(long)]
    pub agent: Option<String>,
}

/// The duration of a grant [default: until it is revoked].
#[derive(Debug, Args)]
#[group(multiple = false)]
pub struct GrantDurationArgs {
    /// Allow one call
    #[arg(long)]
    pub once: bool,
    /// Allow until this run ends
    #[arg(long, value_name = "ID")]
    pub run: Option<String>,
    /// Allow until this session ends
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
}

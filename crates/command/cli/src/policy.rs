//! The part of the command line for the rules of a workspace.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand};

use crate::WorkspaceArgs;

/// Commands for the rules of a workspace, which only narrow the calls of its runs.
#[derive(Debug, Subcommand)]
#[command(after_help = "See docs/guides/policy.md for the form of rules.")]
pub enum PolicyCommand {
    /// Print the rules
    #[command(after_help = "Example:\n  narthex policy show > rules.cedar")]
    Show {
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// Replace the rules; they count for the next call, also in runs that have begun
    Set(SetPolicyArgs),
    /// Take all rules away
    Clear {
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// Say what the rules say of a call; with only a file, whether it could be set
    Check(Box<CheckPolicyArgs>),
    /// Print what rules may name, as a Cedar schema
    Schema,
}

/// The file with the rules.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  narthex policy set --file rules.cedar")]
pub struct SetPolicyArgs {
    /// The file with the rules; `-` reads them from standard input
    #[arg(short, long, value_name = "FILE")]
    pub file: PathBuf,
    #[command(flatten)]
    pub place: WorkspaceArgs,
}

/// A call to check, which is not made.
#[derive(Debug, Args)]
#[command(group(
    ArgGroup::new("what").args(["tool", "prompt", "resource", "method"]).multiple(true)
))]
#[command(after_help = "Examples:\n  narthex policy check --file rules.cedar\n  \
    narthex policy check --agent writer --server linear --tool create_issue\n  \
    narthex policy check --server files --tool write --arguments '{\"path\": \"/etc/hosts\"}' \
    --file rules.cedar\n  \
    narthex policy check --server linear --tool create_issue --at 2027-01-31T22:00:00Z\n\n\
    Rules of a file are asked and stored nowhere. With a file alone, no daemon is needed.")]
pub struct CheckPolicyArgs {
    /// The run's agent
    #[arg(long, requires = "server")]
    pub agent: Option<String>,
    /// The server: its id in the catalog, or its alias
    #[arg(long, requires = "what")]
    pub server: Option<String>,
    /// What the run calls the server [default: the same]
    #[arg(long, requires = "server")]
    pub alias: Option<String>,
    /// The tool, by the server's own name
    #[arg(long, requires = "server", conflicts_with_all = ["prompt", "resource"])]
    pub tool: Option<String>,
    /// The prompt, by the server's own name
    #[arg(long, requires = "server", conflicts_with = "resource")]
    pub prompt: Option<String>,
    /// The resource
    #[arg(long, value_name = "URI", requires = "server")]
    pub resource: Option<String>,
    /// The method, or instead of all these one of the server as such [default: the usual one]
    #[arg(long, requires = "server")]
    pub method: Option<String>,
    /// The arguments, one JSON object
    #[arg(long, value_name = "JSON", requires = "server")]
    pub arguments: Option<String>,
    /// What the server declares of the tool, one JSON object
    #[arg(long, value_name = "JSON", requires = "server")]
    pub annotations: Option<String>,
    /// What it comes from: a `call` for itself, or a `task` that an earlier call began
    #[arg(long, value_name = "ORIGIN", requires = "server", value_parser = ["call", "task"])]
    pub origin: Option<String>,
    /// Who drives the run, by name or id
    #[arg(long, requires = "server")]
    pub user: Option<String>,
    /// Whom the agent acts for [default: as the catalog says]
    #[arg(long, value_name = "TYPE", requires = "server",
        value_parser = ["worker", "orchestrator", "scheduled"])]
    pub agent_type: Option<String>,
    /// Of a run that another run began
    #[arg(long, requires = "server")]
    pub child: bool,
    /// Where it comes in [default: aggregated]
    #[arg(long, requires = "server", value_parser = ["aggregated", "transparent"])]
    pub endpoint: Option<String>,
    /// What the caller speaks [default: modern]
    #[arg(long, requires = "server", value_parser = ["legacy", "modern"])]
    pub era: Option<String>,
    /// When it is made, such as 2027-01-31T12:00:00Z [default: now]
    #[arg(long, value_name = "TIME", requires = "server")]
    pub at: Option<String>,
    /// Ask the rules of this file instead; `-` reads them from standard input
    #[arg(short, long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    #[command(flatten)]
    pub place: WorkspaceArgs,
}

//! The part of the command line for the rules of a workspace.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand};

use super::WorkspaceArgs;

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
    /// Replace the rules; they apply from the next call on, in active runs too
    Set(SetPolicyArgs),
    /// Remove all rules
    Clear {
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// Show the decision of the rules for a call, or check a file
    Check(Box<CheckPolicyArgs>),
    /// Print the Cedar schema of the rules
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
    narthex policy check --server files --tool write \
    --arguments '{\"path\": \"/etc/hosts\"}' \\\n    \
    --file rules.cedar\n  \
    narthex policy check --server linear --tool create_issue --at 2027-01-31T22:00:00Z\n\n\
    Rules of a file are checked, never stored. With only a file, no daemon is needed.")]
pub struct CheckPolicyArgs {
    /// The run's agent
    #[arg(long, requires = "server")]
    pub agent: Option<String>,
    /// The server: its id in the catalog, or its alias
    #[arg(long, requires = "what")]
    pub server: Option<String>,
    /// The run's alias of the server [default: the server's id]
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
    /// The MCP method [default: the usual method of the tool, prompt or resource]
    #[arg(long, requires = "server")]
    pub method: Option<String>,
    /// The arguments, as a JSON object
    #[arg(long, value_name = "JSON", requires = "server")]
    pub arguments: Option<String>,
    /// The tool's annotations, as a JSON object
    #[arg(long, value_name = "JSON", requires = "server")]
    pub annotations: Option<String>,
    /// The origin of the request: a `call`, or a `task` that an earlier call created
    #[arg(long, value_name = "ORIGIN", requires = "server", value_parser = ["call", "task"])]
    pub origin: Option<String>,
    /// The human who drives the run, by name or id
    #[arg(long, requires = "server")]
    pub user: Option<String>,
    /// The type of the agent [default: as in the catalog]
    #[arg(long, value_name = "TYPE", requires = "server",
        value_parser = ["worker", "orchestrator", "scheduled"])]
    pub agent_type: Option<String>,
    /// The run has a parent run
    #[arg(long, requires = "server")]
    pub child: bool,
    /// The endpoint of the call [default: aggregated]
    #[arg(long, requires = "server", value_parser = ["aggregated", "transparent"])]
    pub endpoint: Option<String>,
    /// The protocol era of the caller [default: modern]
    #[arg(long, requires = "server", value_parser = ["legacy", "modern"])]
    pub era: Option<String>,
    /// The time of the call, such as 2027-01-31T12:00:00Z [default: now]
    #[arg(long, value_name = "TIME", requires = "server")]
    pub at: Option<String>,
    /// Use the rules of this file instead of the workspace's; `-` reads standard input
    #[arg(short, long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    #[command(flatten)]
    pub place: WorkspaceArgs,
}

//! The part of the command line that moves the servers of clients to narthex.

use clap::Args;

/// Finds your MCP clients, moves their servers and secrets to narthex, and connects the clients to
/// it. A server leaves a client's file only after narthex has listed its tools.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  narthex setup --dry-run\n  \
    narthex setup --only cursor,claude-code\n  \
    narthex setup --yes --json | jq '.data.stayed[]'\n  \
    narthex setup --undo\n\n\
    A file of this folder, such as .mcp.json, stays as it is until you approve it\n\
    with `narthex trust FILE`.")]
pub struct SetupArgs {
    /// Work only with these clients, such as cursor,claude-code
    #[arg(long, value_name = "CLIENT", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Show what would happen, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Set up, or undo, without a question; required without a terminal
    #[arg(long, conflicts_with = "dry_run")]
    pub yes: bool,
    /// Bring back the files, settings and secrets from before
    #[arg(long, conflicts_with = "only")]
    pub undo: bool,
}

//! The part of the command line for registered MCP clients.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use narthex_model::ClientOrigin;

use super::WorkspaceArgs;

/// Commands for registered MCP clients.
#[derive(Debug, Subcommand)]
pub enum ClientsCommand {
    /// Register a client; the entry for its configuration is shown once
    Register(RegisterClientArgs),
    /// List all clients, revoked ones too; tokens are never shown
    List {
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// Show a client
    Show {
        /// The client's id
        id: String,
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// Revoke a client, and end its run
    Revoke {
        /// The client's id
        id: String,
        #[command(flatten)]
        place: WorkspaceArgs,
    },
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  narthex clients register desktop --agent reader\n  \
    narthex clients register editor --profile work\n  \
    narthex clients register ide --agent reader --with run.json \\\n    \
    --expires-at 2027-01-31T12:00:00Z\n\n\
    A run scope may hold credentials, so only the file can give it.")]
pub struct RegisterClientArgs {
    /// The client's name in the workspace
    pub client: String,
    /// The agent that the client's runs belong to
    #[arg(long, required_unless_present = "profile", conflicts_with = "profile")]
    pub agent: Option<String>,
    /// The profile that the client sees, in place of an agent; it cannot leave the profile
    #[arg(long, value_name = "NAME")]
    pub profile: Option<String>,
    /// A JSON file with `params` and `scope` of the client's runs; - reads standard input
    #[arg(long, value_name = "FILE", conflicts_with = "profile")]
    pub with: Option<PathBuf>,
    /// An origin for the client's writes: agent-produced or imported; repeat the flag for both
    /// [default: agent-produced]
    #[arg(long = "origin", value_parser = origin)]
    pub origins: Vec<ClientOrigin>,
    /// Time at which the client's token expires [default: never]
    #[arg(long, value_name = "TIME")]
    pub expires_at: Option<String>,
    #[command(flatten)]
    pub place: WorkspaceArgs,
}

fn origin(text: &str) -> Result<ClientOrigin, String> {
    let all = ClientOrigin::ALL.map(ClientOrigin::as_str).join(", ");
    ClientOrigin::parse(text).ok_or_else(|| format!("it must be one of {all}"))
}

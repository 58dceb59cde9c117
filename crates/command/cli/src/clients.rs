//! The part of the command line for registered MCP clients.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use narthex_model::ClientOrigin;

use crate::WorkspaceArgs;

/// Commands for registered MCP clients.
#[derive(Debug, Subcommand)]
pub enum ClientsCommand {
    /// Register one, and show once what to paste into its configuration
    Register(RegisterClientArgs),
    /// List all that there ever were, without their tokens
    List {
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// Show one
    Show {
        /// Its id
        id: String,
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// Let one in no more, and end its run
    Revoke {
        /// Its id
        id: String,
        #[command(flatten)]
        place: WorkspaceArgs,
    },
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  narthex clients register desktop --agent reader\n  \
    narthex clients register ide --agent reader --with run.json \\\n    \
    --expires-at 2027-01-31T12:00:00Z\n\n\
    A scope may hold credentials, so it is given in the file alone.")]
pub struct RegisterClientArgs {
    /// What it is called in the workspace
    pub client: String,
    /// The agent whose runs it acts for
    #[arg(long)]
    pub agent: String,
    /// A file with `params` and `scope` of its runs, as JSON; - reads standard input
    #[arg(long, value_name = "FILE")]
    pub with: Option<PathBuf>,
    /// What it may say of where things come from: agent-produced or imported; may be said several
    /// times [default: agent-produced]
    #[arg(long = "origin", value_parser = origin)]
    pub origins: Vec<ClientOrigin>,
    /// When its token opens nothing any more [default: never]
    #[arg(long, value_name = "TIME")]
    pub expires_at: Option<String>,
    #[command(flatten)]
    pub place: WorkspaceArgs,
}

fn origin(text: &str) -> Result<ClientOrigin, String> {
    let all = ClientOrigin::ALL.map(ClientOrigin::as_str).join(", ");
    ClientOrigin::parse(text).ok_or_else(|| format!("it is none of {all}"))
}

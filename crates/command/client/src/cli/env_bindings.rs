//! The part of the command line for secrets in the environment of agents.

use clap::{Args, Subcommand};

use super::WorkspaceArgs;

/// Commands for the bindings of a workspace. None of these shows a value.
#[derive(Debug, Subcommand)]
pub enum EnvBindingsCommand {
    /// List the bindings, with the names of their secrets
    List {
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// Put a secret into the environment of agents, where they can read it
    Set(SetEnvBindingArgs),
    /// Remove a binding; agents that are already started keep the variable
    #[command(after_help = "Example:\n  \
        narthex env-bindings remove GITHUB_TOKEN --agent reader")]
    Remove {
        /// The variable
        name: String,
        #[command(flatten)]
        scope: EnvScopeArgs,
        #[command(flatten)]
        place: WorkspaceArgs,
    },
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  narthex env-bindings set GITHUB_TOKEN --agent reader\n  \
    narthex env-bindings set GITHUB_TOKEN --secret GITHUB_CI --all-agents\n\n\
    A server of the catalog is safer: agents never see the secrets of a server.")]
pub struct SetEnvBindingArgs {
    /// The variable: 1 to 64 characters of A-Z, 0-9 and _
    pub name: String,
    /// The secret [default: the secret with the variable's name]
    #[arg(long)]
    pub secret: Option<String>,
    #[command(flatten)]
    pub scope: EnvScopeArgs,
    #[command(flatten)]
    pub place: WorkspaceArgs,
}

/// The agents or the preview environment of a binding; required.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct EnvScopeArgs {
    /// For this agent
    #[arg(long)]
    pub agent: Option<String>,
    /// For this preview environment, if it lists the variable
    #[arg(long, value_name = "ID")]
    pub preview_environment: Option<String>,
    /// For all agents of the workspace
    #[arg(long = "all-agents")]
    pub all: bool,
}

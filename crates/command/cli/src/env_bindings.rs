//! The part of the command line for secrets in the environment of agents.

use clap::{Args, Subcommand};

use crate::WorkspaceArgs;

/// Commands for the bindings of a workspace. None of these shows a value.
#[derive(Debug, Subcommand)]
pub enum EnvBindingsCommand {
    /// List them: names only
    List {
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// Let agents have a secret in their own environment, where they can read it
    Set(SetEnvBindingArgs),
    /// Let agents that are started from now on have it no more
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
    Prefer a server of the catalog: what a server gets, no agent sees.")]
pub struct SetEnvBindingArgs {
    /// The variable: 1 to 64 of A-Z, 0-9 and _
    pub name: String,
    /// The secret [default: of the variable's name]
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

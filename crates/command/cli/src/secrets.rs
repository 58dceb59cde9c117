//! The part of the command line for secrets.

use clap::{Args, Subcommand};

/// Commands for the secrets of a daemon. None of these shows a value.
#[derive(Debug, Subcommand)]
pub enum SecretsCommand {
    /// Set a secret: asks for its value without showing it, or reads it from standard input
    Set(SetArgs),
    /// List the secrets, without their values
    #[command(after_help = "Examples:\n  narthex secrets list\n  \
        narthex secrets list --json | jq '.data.items[] | select(.is_set | not)'")]
    List {
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// Take a secret away, at once, from runs that use it too
    #[command(after_help = "Example:\n  narthex secrets clear LINEAR_API_KEY")]
    Clear {
        /// The secret
        name: String,
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// Change the master key and seal every secret anew, or end such a change that broke off
    #[command(after_help = "Example:\n  narthex secrets rotate-key")]
    RotateKey,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  narthex secrets set LINEAR_API_KEY\n  \
    pass show linear | narthex secrets set LINEAR_API_KEY\n\n\
    One line end after the value is not part of it.")]
pub struct SetArgs {
    /// Its name: 1 to 64 of A-Z, 0-9 and _
    pub name: String,
    #[command(flatten)]
    pub place: WorkspaceArgs,
    /// Whatever else is said. Taken, so that it is refused without being repeated.
    #[arg(hide = true)]
    pub value: Vec<String>,
}

/// The workspace that a command is for.
#[derive(Debug, Args)]
pub struct WorkspaceArgs {
    /// The workspace
    #[arg(long, value_name = "WORKSPACE", default_value = "default")]
    pub workspace: String,
}

//! The part of the command line for secrets.

use clap::{Args, Subcommand};

/// Commands for the secrets of a daemon. None of these shows a value.
#[derive(Debug, Subcommand)]
pub enum SecretsCommand {
    /// Set a secret; its value is asked for without echo, or read from standard input
    Set(SetArgs),
    /// List the secrets, without their values
    #[command(after_help = "Examples:\n  narthex secrets list\n  \
        narthex secrets list --json | jq '.data.items[] | select(.is_set | not)'")]
    List {
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// Clear a secret at once, for active runs too
    #[command(after_help = "Example:\n  narthex secrets clear LINEAR_API_KEY")]
    Clear {
        /// The secret
        name: String,
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// List the master keys by their ids, and the number of values that each seals
    #[command(after_help = "Example:\n  narthex secrets keys")]
    Keys,
    /// Change the master key and seal every secret again, or finish an interrupted change
    #[command(after_help = "Example:\n  narthex secrets rotate-key")]
    RotateKey,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  narthex secrets set LINEAR_API_KEY\n  \
    pass show linear | narthex secrets set LINEAR_API_KEY\n\n\
    One newline at the end of the value is removed.")]
pub struct SetArgs {
    /// The secret's name: 1 to 64 characters of A-Z, 0-9 and _
    pub name: String,
    #[command(flatten)]
    pub place: WorkspaceArgs,
    /// Surplus arguments. Taken, so that they are refused without being repeated.
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

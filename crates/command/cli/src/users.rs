//! The part of the command line for humans.

use clap::{Args, Subcommand};

/// Commands for the humans of the installation, and their sign-in.
#[derive(Debug, Subcommand)]
pub enum UsersCommand {
    /// Make an account for a human; it has no way in until there is a link
    Create(CreateUserArgs),
    /// List humans
    #[command(after_help = "Example:\n  narthex users list")]
    List,
    /// Print a link that signs a human in once, within 15 minutes
    #[command(after_help = "Example:\n  narthex users link ada\n\n\
        The human who opens it is signed in under this name, so send it to them alone.\n\n\
        Once there is a passkey or a provider, a link made here adds no further passkey.\n\
        An operator who has signed in with one makes a link that does on the sign-in page.")]
    Link {
        /// The human
        name: String,
    },
    /// Let a human do nothing any more, at once
    #[command(after_help = "Examples:\n  narthex users disable ada\n  \
        narthex users disable ada --undo")]
    Disable {
        /// The human
        name: String,
        /// Let them in again
        #[arg(long)]
        undo: bool,
    },
    /// The passkeys of a human
    #[command(subcommand)]
    Passkeys(PasskeysCommand),
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  narthex users create ada --role author\n  \
    narthex users create grace --operator")]
pub struct CreateUserArgs {
    /// The name: 1 to 128 of a-z, 0-9 and `._@+-`
    pub name: String,
    /// A role in the workspace: admin, author, runner or auditor; may be said several times
    #[arg(long, value_name = "ROLE")]
    pub role: Vec<String>,
    /// The workspace of the roles
    #[arg(long, value_name = "WORKSPACE", default_value = "default")]
    pub workspace: String,
    /// May do everything, in all workspaces
    #[arg(long)]
    pub operator: bool,
}

/// Commands for passkeys. Only a human who has signed in adds one.
#[derive(Debug, Subcommand)]
pub enum PasskeysCommand {
    /// List them
    #[command(after_help = "Example:\n  narthex users passkeys list ada")]
    List {
        /// The human
        name: String,
    },
    /// Take one away
    #[command(after_help = "Example:\n  narthex users passkeys remove ada PASSKEY")]
    Remove {
        /// The human
        name: String,
        /// The passkey's id, or enough of its start
        passkey: String,
    },
}

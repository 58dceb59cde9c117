//! The part of the command line for humans.

use clap::{Args, Subcommand};
use narthex_model::Role;

use super::access::role;

/// Commands for the humans of the installation, and their sign-in.
#[derive(Debug, Subcommand)]
pub enum UsersCommand {
    /// Create an account for a human; `narthex users link` lets them sign in
    Create(CreateUserArgs),
    /// List the humans of the installation
    #[command(after_help = "Example:\n  narthex users list")]
    List,
    /// Print a link that signs a human in once, within 15 minutes
    #[command(after_help = "Example:\n  narthex users link ada\n\n\
        Send the link to this human only: it signs its reader in under this name.\n\n\
        Once a passkey or a sign-in provider exists, a link of this command cannot add a passkey.\n\
        A link that can is made on the sign-in page, by an operator who signed in with a passkey\n\
        or provider.")]
    Link {
        /// The human
        name: String,
    },
    /// Disable a human at once
    #[command(after_help = "Examples:\n  narthex users disable ada\n  \
        narthex users disable ada --undo")]
    Disable {
        /// The human
        name: String,
        /// Enable the human again
        #[arg(long)]
        undo: bool,
    },
    /// List and remove the passkeys of a human
    #[command(subcommand)]
    Passkeys(PasskeysCommand),
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  narthex users create ada --role author\n  \
    narthex users create grace --operator")]
pub struct CreateUserArgs {
    /// The name: 1 to 128 characters of a-z, 0-9 and `._@+-`
    pub name: String,
    /// A role: admin, author, runner or auditor; repeat the flag for more roles
    #[arg(long, value_name = "ROLE", value_parser = role)]
    pub role: Vec<Role>,
    /// The workspace of the roles
    #[arg(long, value_name = "WORKSPACE", default_value = "default")]
    pub workspace: String,
    /// Make the human an operator, with all rights in all workspaces
    #[arg(long)]
    pub operator: bool,
}

/// The arguments of `narthex open`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  narthex open\n  narthex open ada --no-browser\n\n\
    Prints a link that signs one human in once, within 15 minutes, and opens it in the browser of\n\
    this machine. Without a name it is the only human who is an operator. If there are no humans\n\
    yet, it creates one with the name of your account on this machine.")]
pub struct OpenArgs {
    /// The human
    pub name: Option<String>,
    /// Open no browser
    #[arg(long = "no-browser")]
    pub has_no_browser: bool,
}

/// Commands for passkeys. Only a human who has signed in adds one.
#[derive(Debug, Subcommand)]
pub enum PasskeysCommand {
    /// List the passkeys of a human
    #[command(after_help = "Example:\n  narthex users passkeys list ada")]
    List {
        /// The human
        name: String,
    },
    /// Remove a passkey
    #[command(after_help = "Example:\n  narthex users passkeys remove ada PASSKEY")]
    Remove {
        /// The human
        name: String,
        /// The passkey's id, or its unique first characters
        passkey: String,
    },
}

//! The part of the command line for the connections of humans to servers of the catalog.

use clap::{Args, Subcommand};

use super::WorkspaceArgs;

/// Commands for your own sign-ins to servers of the catalog, which your runs use.
#[derive(Debug, Subcommand)]
pub enum ConnectionsCommand {
    /// List the servers that people sign in to, and whether you are connected
    #[command(after_help = "Example:\n  narthex connections list --user ada")]
    List {
        /// Another member of the workspace, for admins
        #[arg(long, value_name = "NAME")]
        user: Option<String>,
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// Connect your account to a server in a browser
    Connect(ConnectAccountArgs),
    /// End your connection to a server, also in your active runs
    Disconnect {
        /// The server
        server: String,
        /// Another member of the workspace, for admins
        #[arg(long, value_name = "NAME")]
        user: Option<String>,
        #[command(flatten)]
        place: WorkspaceArgs,
    },
}

/// The arguments of `narthex connections connect`.
#[derive(Debug, Args)]
#[command(after_help = "With the operator's token you connect for runs that this token creates. \
                        People who sign in to narthex connect at its page of the server, which \
                        `narthex connections list --json` names.")]
pub struct ConnectAccountArgs {
    /// The server
    pub server: String,
    /// Open no browser
    #[arg(long = "no-browser")]
    pub has_no_browser: bool,
    #[command(flatten)]
    pub place: WorkspaceArgs,
}

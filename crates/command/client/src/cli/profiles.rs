//! The part of the command line for profiles.

use clap::Subcommand;

/// Commands for the profiles of the user's settings file.
#[derive(Debug, Subcommand)]
pub enum ProfilesCommand {
    /// List the profiles, with the faults of refused ones
    #[command(after_help = "Examples:\n  narthex profiles list\n  \
        narthex profiles list --json | jq -r '.data.items[] | select(.path) | .name'")]
    List,
    /// Show a profile: its tools with the names that clients see, and the addresses for clients
    #[command(after_help = "Example:\n  narthex profiles show work")]
    Show {
        /// The profile
        name: String,
    },
}

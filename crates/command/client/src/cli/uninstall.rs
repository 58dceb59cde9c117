//! The part of the command line that removes what narthex has set up.

use clap::Args;

/// Undoes the set-up of clients, removes the service, stops the daemon, and deletes the data if you
/// want it. The program itself stays.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  narthex uninstall --dry-run\n  narthex uninstall\n  \
    narthex uninstall --yes --delete-data\n\n\
    Without --delete-data the data and your settings stay, and a later installation uses them.")]
pub struct UninstallArgs {
    /// Delete the data directory with its secrets and audit, and your settings; what stays is named
    #[arg(long)]
    pub delete_data: bool,
    /// Show what would happen, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Remove without a question; required without a terminal
    #[arg(long, conflicts_with = "dry_run")]
    pub yes: bool,
}

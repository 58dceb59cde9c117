//! The part of the command line for the version.

use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  narthex version\n  narthex version --check\n\n\
    Without --check no other machine is asked. The setting `releases` names where to ask.")]
pub struct VersionArgs {
    /// Ask for the newest version, and say how to get it
    #[arg(long)]
    pub check: bool,
}

//! The part of the command line for the version.

use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  narthex version\n  narthex version --check\n\n\
    Without --check no other machine is asked. The setting `releases` (NARTHEX_RELEASES) names\n\
    the address to ask, such as https://api.github.com/repos/OWNER/NAME/releases/latest.")]
pub struct VersionArgs {
    /// Ask for the newest version, and say how to get it
    #[arg(long)]
    pub check: bool,
}

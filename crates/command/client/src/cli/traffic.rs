//! The part of the command line for limits of traffic.

use clap::{Args, Subcommand};

use super::WorkspaceArgs;

/// Commands for the limits of a workspace. The definitions of servers and agents have those of
/// their own.
#[derive(Debug, Subcommand)]
pub enum LimitsCommand {
    /// Show the limits of a workspace
    #[command(after_help = "Example:\n  narthex limits get --json | jq .data.calls_per_day")]
    Get {
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// Replace the limits of a workspace; a limit that is not given is removed
    Set(SetLimitsArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  narthex limits set --calls-per-minute 600 --burst 50\n  \
    narthex limits set --concurrent-calls 20 --calls-per-day 10000\n  \
    narthex limits set --servers-per-run 12 --memory-mb-per-run 8192\n  narthex limits set\n\n\
    Limits of calls apply at once, to active runs too. Limits of runs apply to new runs.")]
pub struct SetLimitsArgs {
    /// Calls per second, on average
    #[arg(long, value_name = "N", conflicts_with = "calls_per_minute",
        value_parser = super::values::count::<u64>)]
    pub calls_per_second: Option<u64>,
    /// Calls per minute, on average
    #[arg(long, value_name = "N", value_parser = super::values::count::<u64>)]
    pub calls_per_minute: Option<u64>,
    /// Calls allowed at once after a pause
    #[arg(long, value_name = "N", value_parser = super::values::count::<u64>)]
    pub burst: Option<u64>,
    /// Calls open at one time
    #[arg(long, value_name = "N", value_parser = super::values::count::<u64>)]
    pub concurrent_calls: Option<u64>,
    /// Calls per day (UTC)
    #[arg(long, value_name = "N", value_parser = super::values::count::<u64>)]
    pub calls_per_day: Option<u64>,
    /// Servers per run
    #[arg(long, value_name = "N", value_parser = super::values::count::<u64>)]
    pub servers_per_run: Option<u64>,
    /// Memory of all programs of a run together, in MiB
    #[arg(long, value_name = "N", value_parser = super::values::count::<u64>)]
    pub memory_mb_per_run: Option<u64>,
    /// Active child runs per session [default: 32]
    #[arg(long, value_name = "N", value_parser = super::values::count::<u64>)]
    pub children_per_session: Option<u64>,
    /// Depth of child sessions below the first session [default: 8]
    #[arg(long, value_name = "N", value_parser = super::values::count::<u64>)]
    pub child_depth: Option<u64>,
    /// Child runs that all sessions of the workspace start per day (UTC)
    #[arg(long, value_name = "N", value_parser = super::values::count::<u64>)]
    pub children_per_day: Option<u64>,
    /// Minutes after which a silent child run is ended [default: 30]
    #[arg(long, value_name = "N", value_parser = super::values::count::<u64>)]
    pub child_silence_minutes: Option<u64>,
    #[command(flatten)]
    pub place: WorkspaceArgs,
}

/// Shows the use of a workspace, its agents and its servers today, and their limits.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  narthex usage\n  \
    narthex usage --json | jq '.data.items[] | select(.kind == \"agent\")'")]
pub struct UsageArgs {
    #[command(flatten)]
    pub place: WorkspaceArgs,
}

//! The part of the command line for watching runs.

use clap::Args;

use super::WorkspaceArgs;

/// Shows the operations of a run, as they happen: one line for each, through any interface.
///
/// Names, sizes and durations are shown, and never the contents.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  narthex strace 3\n  \
    narthex strace local --alias github --alias files\n  \
    narthex strace 3 --json | jq 'select(.error)'\n\n\
    The trace ends with the run, or with Ctrl-C. With --json each event is a line: `begin`,\n\
    `operation`, `lost` if events came too fast, and `end`.")]
pub struct StraceArgs {
    /// The run: its pid or its id; `local` is the daemon's own run
    #[arg(value_name = "PID")]
    pub run: String,
    /// Only operations on this server; repeat the flag for more servers
    #[arg(long = "alias", value_name = "ALIAS")]
    pub aliases: Vec<String>,
    /// Also the calls to servers behind each operation on a file
    #[arg(long)]
    pub calls: bool,
    #[command(flatten)]
    pub place: WorkspaceArgs,
}

/// Shows the load of the active runs, anew each second.
///
/// Memory and processor are those of the processes of a run's servers, on the daemon's machine. A
/// server that several runs share counts for each.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  narthex top\n  narthex top --sort memory --interval 5\n  \
    narthex top --once --json | jq '.runs[] | {pid, calls_per_second, p50_us}'\n\n\
    On a terminal, q quits. Elsewhere, each table is printed below the last one.")]
pub struct TopArgs {
    /// Print one table, measured over one interval, and end
    #[arg(long)]
    pub once: bool,
    /// The column to sort by
    #[arg(long, value_name = "COLUMN", default_value = "calls", value_parser = [
        "calls", "errors", "p50", "open", "memory", "cpu", "pid",
    ])]
    pub sort: String,
    /// Seconds between two tables
    #[arg(long, value_name = "SECONDS", default_value_t = 1,
        value_parser = super::values::whole::<u64, 1, 60>)]
    pub interval: u64,
    #[command(flatten)]
    pub place: WorkspaceArgs,
}

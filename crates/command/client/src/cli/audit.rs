//! The part of the command line for the audit.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::values;

/// Commands for the audit, the record of all actions.
#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// List events, the newest first
    List(Box<AuditListArgs>),
    /// Print all events as lines of JSON, for `narthex audit verify --file`
    #[command(after_help = "Example:\n  narthex audit export > audit.jsonl")]
    Export {
        #[command(flatten)]
        place: AuditPlaceArgs,
    },
    /// Verify that no event was edited, removed, inserted or moved; exit code 1 if one was
    Verify(AuditVerifyArgs),
    /// Show or change how long events are stored; the remaining chain still verifies
    #[command(after_help = "Examples:\n  narthex audit keep\n  narthex audit keep --days 400\n  \
        narthex audit keep --days 0 --events 1000000")]
    Keep {
        #[command(flatten)]
        place: AuditPlaceArgs,
        /// Remove events after this number of days; 0 stores them forever
        #[arg(long, value_name = "DAYS", value_parser = super::values::count::<u64>)]
        days: Option<u64>,
        /// Store only this number of newest events; 0 stores all
        #[arg(long, value_name = "COUNT", value_parser = super::values::count::<u64>)]
        events: Option<u64>,
    },
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  narthex audit list --kind workspace.secret --since 7d\n  \
    narthex audit list --run RUN --since 2026-11-22 --json\n  \
    narthex audit list --kind session.mcp.tool_called --contents\n  narthex audit list --follow")]
pub struct AuditListArgs {
    #[command(flatten)]
    pub place: AuditPlaceArgs,
    /// Only actions of this principal
    #[arg(long, value_name = "ID")]
    pub actor: Option<String>,
    /// Only actions on this resource
    #[arg(long, value_name = "ID")]
    pub resource: Option<String>,
    /// Only events of this run
    #[arg(long, value_name = "ID")]
    pub run: Option<String>,
    /// Only kinds with this prefix, such as `workspace.secret` or `session.mcp.tool_called`
    #[arg(long, value_name = "KIND")]
    pub kind: Option<String>,
    /// Only events since this day, time (UTC) or duration: 2026-11-22, 2026-11-22T13:00:00Z, 2h or
    /// 7d
    #[arg(long, value_name = "TIME", value_parser = values::moment)]
    pub since: Option<String>,
    /// Only events before this day or time
    #[arg(long, value_name = "TIME", value_parser = values::moment)]
    pub until: Option<String>,
    /// Number of events
    #[arg(long, value_name = "COUNT", default_value_t = 50,
        value_parser = super::values::count::<u32>)]
    pub limit: u32,
    /// Also show recorded arguments and answers of calls; --json always shows them
    #[arg(long)]
    pub contents: bool,
    /// Print new events as they are recorded, until Ctrl-C
    #[arg(long, conflicts_with = "until")]
    pub follow: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  narthex audit verify\n  \
    narthex audit verify --workspace team\n  narthex audit verify --file audit.jsonl")]
pub struct AuditVerifyArgs {
    /// Only this workspace [default: the installation, and all workspaces whose audit you may read]
    #[arg(long, value_name = "WORKSPACE")]
    pub workspace: Option<String>,
    /// Only events that belong to no workspace
    #[arg(long, conflicts_with = "workspace")]
    pub installation: bool,
    /// Verify a file of `narthex audit export`, without a daemon
    #[arg(long, value_name = "FILE", conflicts_with_all = ["workspace", "installation"])]
    pub file: Option<PathBuf>,
}

/// The workspace or the installation whose events are meant.
#[derive(Debug, Args)]
pub struct AuditPlaceArgs {
    /// The workspace
    #[arg(long, value_name = "WORKSPACE", default_value = "default")]
    pub workspace: String,
    /// The events that belong to no workspace: key rotations, refused sign-ins
    #[arg(long, conflicts_with = "workspace")]
    pub installation: bool,
}

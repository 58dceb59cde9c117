//! The part of the command line for the audit.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::values;

/// Commands for the audit, the record of all actions.
#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// List events, the newest first
    List(Box<AuditListArgs>),
    /// Print all events as lines of JSON, which `narthex audit verify --file` can verify anywhere
    #[command(after_help = "Example:\n  narthex audit export > audit.jsonl")]
    Export {
        #[command(flatten)]
        place: AuditPlaceArgs,
    },
    /// Verify that no event was edited, removed, put in or moved; exit code 1 if one was
    Verify(AuditVerifyArgs),
    /// Show or change how long events are kept; a chain whose old events are gone still verifies
    #[command(after_help = "Examples:\n  narthex audit keep\n  narthex audit keep --days 400\n  \
        narthex audit keep --days 0 --events 1000000")]
    Keep {
        #[command(flatten)]
        place: AuditPlaceArgs,
        /// Remove what is older than so many days; 0 keeps it for ever
        #[arg(long, value_name = "DAYS")]
        days: Option<u64>,
        /// Remove all but so many; 0 keeps all
        #[arg(long, value_name = "COUNT")]
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
    /// Only what this principal did
    #[arg(long, value_name = "ID")]
    pub actor: Option<String>,
    /// Only what was done to this
    #[arg(long, value_name = "ID")]
    pub resource: Option<String>,
    /// Only what belongs to this run
    #[arg(long, value_name = "ID")]
    pub run: Option<String>,
    /// Only kinds that begin so, such as `workspace.secret` or `session.mcp.tool_called`
    #[arg(long, value_name = "KIND")]
    pub kind: Option<String>,
    /// Not before this day or time of UTC, such as 2026-11-22 or 2026-11-22T13:00:00Z, or since so
    /// long ago, such as 30m, 2h or 7d
    #[arg(long, value_name = "TIME", value_parser = values::moment)]
    pub since: Option<String>,
    /// Before this day or time
    #[arg(long, value_name = "TIME", value_parser = values::moment)]
    pub until: Option<String>,
    /// How many
    #[arg(long, value_name = "COUNT", default_value_t = 50)]
    pub limit: u32,
    /// Show what calls carried, too, where the workspace has that recorded; --json always does
    #[arg(long)]
    pub contents: bool,
    /// Go on with what is done from now on, until Ctrl-C
    #[arg(long, conflicts_with = "until")]
    pub follow: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  narthex audit verify\n  \
    narthex audit verify --workspace team\n  narthex audit verify --file audit.jsonl")]
pub struct AuditVerifyArgs {
    /// Only this workspace [default: all whose audit you may read, and the installation]
    #[arg(long, value_name = "WORKSPACE")]
    pub workspace: Option<String>,
    /// Only what belongs to no workspace
    #[arg(long, conflicts_with = "workspace")]
    pub installation: bool,
    /// Verify what was exported before, without a daemon
    #[arg(long, value_name = "FILE", conflicts_with_all = ["workspace", "installation"])]
    pub file: Option<PathBuf>,
}

/// The workspace or the installation whose events are meant.
#[derive(Debug, Args)]
pub struct AuditPlaceArgs {
    /// The workspace
    #[arg(long, value_name = "WORKSPACE", default_value = "default")]
    pub workspace: String,
    /// What belongs to no workspace: key rotations, refused sign-ins
    #[arg(long, conflicts_with = "workspace")]
    pub installation: bool,
}

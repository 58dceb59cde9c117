//! The part of the command line for operators.

use std::{path::PathBuf, time::Duration};

use clap::{Args, Subcommand};

use crate::values;

/// Commands for the servers of a daemon.
#[derive(Debug, Subcommand)]
pub enum McpCommand {
    /// List the servers; works without a daemon, too
    #[command(after_help = "Examples:\n  narthex mcp list\n  \
        narthex mcp list --json | jq '.data.mounts[] | select(.status != \"ready\")'")]
    List,
    /// Try a server: connect anew, list what it has, and leave nothing behind
    #[command(after_help = "Examples:\n  narthex mcp test files\n  \
        narthex mcp test files --quiet && echo fine")]
    Test {
        /// The server
        name: String,
    },
    /// Show the last lines that a server wrote to its standard error
    Logs(LogsArgs),
    /// Read the configuration files again, now
    #[command(after_help = "Example:\n  narthex mcp reload")]
    Reload,
    /// Put a server into your settings, for all projects
    Add(AddArgs),
    /// Take a server out of your settings; its open calls finish
    #[command(after_help = "Example:\n  narthex mcp remove files")]
    Remove {
        /// The server
        name: String,
    },
    /// Switch a server on again
    #[command(after_help = "Example:\n  narthex mcp enable files")]
    Enable {
        /// The server
        name: String,
    },
    /// Switch a server off, for later starts of the daemon too
    #[command(after_help = "Example:\n  narthex mcp disable files")]
    Disable {
        /// The server
        name: String,
    },
    /// Connect a server anew; open calls finish on the old connection
    #[command(after_help = "Example:\n  narthex mcp reconnect files")]
    Reconnect {
        /// The server
        name: String,
    },
    /// Have the user of a server sign in to it again
    #[command(after_help = "Example:\n  narthex mcp reauthorize linear")]
    Reauthorize {
        /// The server
        name: String,
    },
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  narthex mcp logs files\n  \
    narthex mcp logs files --follow\n  \
    narthex mcp logs git --workspace team")]
pub struct LogsArgs {
    /// The server; its mount's name, such as 7-files, will do
    pub name: String,
    /// A server of a run of this workspace, also one whose last start failed
    #[arg(long, value_name = "WORKSPACE")]
    pub workspace: Option<String>,
    /// Go on with what it writes from now on, until Ctrl-C
    #[arg(long)]
    pub follow: bool,
}

/// Stores an entry as an mcp.json has it: from JSON, or put together from the arguments.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    narthex mcp add memory -- npx -y @modelcontextprotocol/server-memory\n  \
    narthex mcp add docs --url https://docs.example/mcp\n  \
    narthex mcp add docs - < entry.json\n\n\
    Secrets do not belong on a command line: write ${env:NAME}, in single quotes.")]
pub struct AddArgs {
    /// Its name: 1 to 64 of a-z, 0-9, _ and -
    pub name: String,
    /// The entry as a JSON object; - reads it from standard input
    #[arg(value_name = "ENTRY", conflicts_with_all = ["url", "command", "env", "header", "cwd"])]
    pub entry: Option<String>,
    /// A server over HTTP
    #[arg(long, conflicts_with = "command")]
    pub url: Option<String>,
    /// The server speaks HTTP+SSE of 2024-11-05
    #[arg(long, requires = "url")]
    pub sse: bool,
    /// A header of each request
    #[arg(long, value_name = "NAME=VALUE", requires = "url")]
    pub header: Vec<String>,
    /// A variable of the program's environment
    #[arg(long, value_name = "NAME=VALUE", requires = "command")]
    pub env: Vec<String>,
    /// The folder that the program runs in
    #[arg(long, value_name = "DIR", requires = "command")]
    pub cwd: Option<String>,
    /// Overwrite a server of this name
    #[arg(long)]
    pub replace: bool,
    /// A program and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

/// The objects that can be checked.
#[derive(Debug, Subcommand)]
pub enum CheckCommand {
    /// Programs, files and variables that the servers of this folder need
    #[command(after_help = "Examples:\n  narthex check mcp\n  \
        narthex check mcp --json | jq '.data.checks[] | select(.level != \"info\")'\n\n\
        Exit codes: 0 also with warnings, 1 if something must be mended.")]
    Mcp,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  narthex init\n  narthex init --with-mcp-examples")]
pub struct InitArgs {
    /// Also write two example agents and their servers, after a look for what they need
    #[arg(long)]
    pub with_mcp_examples: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  narthex backup /var/backups/narthex.db\n  \
    narthex backup \"store-$(date +%F).db\" --quiet\n\n\
    To go back: stop the daemon, remove store.db, store.db-wal and store.db-shm from the data\n\
    directory, copy the backup there as store.db with the mode 600, and start the daemon.")]
pub struct BackupArgs {
    /// The file to make; it must not be there yet
    pub file: PathBuf,
}

/// Commands for the daemon itself.
#[derive(Debug, Subcommand)]
pub enum DaemonCommand {
    /// Stop the daemon: open calls finish, every server ends
    Stop(StopArgs),
    /// Say whether a daemon runs, and where
    #[command(after_help = "Example:\n  narthex daemon status --quiet && echo it runs")]
    Status,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  narthex daemon stop\n  \
    narthex daemon stop --timeout 5s --force")]
pub struct StopArgs {
    /// How long it may take, such as 30s
    #[arg(long, value_name = "DURATION", value_parser = values::duration, default_value = "60s")]
    pub timeout: Duration,
    /// Kill it when that time is over
    #[arg(long)]
    pub force: bool,
}

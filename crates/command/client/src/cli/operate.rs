//! The part of the command line for operators.

use std::{path::PathBuf, time::Duration};

use clap::{Args, Subcommand};

use super::values;

/// Commands for the servers of a daemon, and for the files that configure them.
#[derive(Debug, Subcommand)]
pub enum McpCommand {
    #[command(flatten)]
    Daemon(McpDaemonCommand),
    /// Copy the servers of your MCP clients into your settings; their files stay unchanged
    Import(ImportServersArgs),
}

/// Commands for the servers of a daemon.
#[derive(Debug, Subcommand)]
pub enum McpDaemonCommand {
    /// List the servers with state, tools and last check; without a daemon, the configured ones
    #[command(after_help = "Examples:\n  narthex mcp list\n  \
        narthex mcp list --workspace team\n  \
        narthex mcp list --json | jq '.data.mounts[] | select(.status != \"ready\")'")]
    List {
        /// Only servers of this workspace; the daemon's own are in `default`
        #[arg(long, value_name = "WORKSPACE")]
        workspace: Option<String>,
    },
    /// Test a server: connect to it, list its tools, and close the connection
    Test(TestArgs),
    /// Show the last lines of a server's standard error
    Logs(LogsArgs),
    /// Reload the configuration files now
    #[command(after_help = "Example:\n  narthex mcp reload")]
    Reload,
    /// Add a server to your settings, by its command, address or entry, for all projects
    Add(Box<AddArgs>),
    /// Remove a server from your settings; its open calls finish
    #[command(after_help = "Example:\n  narthex mcp remove files")]
    Remove {
        /// The server
        name: String,
    },
    /// Enable a server
    #[command(after_help = "Example:\n  narthex mcp enable files")]
    Enable {
        /// The server
        name: String,
    },
    /// Disable a server, for later starts of the daemon too
    #[command(after_help = "Example:\n  narthex mcp disable files")]
    Disable {
        /// The server
        name: String,
    },
    /// Reconnect a server; open calls finish on the old connection
    #[command(after_help = "Example:\n  narthex mcp reconnect files")]
    Reconnect {
        /// The server
        name: String,
    },
    /// Sign in to a server in the browser, and wait until the server is ready
    Authorize(AuthorizeArgs),
    /// Sign out of a server, and sign in again, maybe as another user
    Reauthorize(ReauthorizeArgs),
    /// Sign out of a server: revoke and delete its tokens
    #[command(after_help = "Example:\n  narthex mcp sign-out linear")]
    SignOut {
        /// The server
        name: String,
    },
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  narthex mcp authorize linear\n  \
    narthex mcp authorize linear --no-browser\n  \
    narthex mcp authorize linear --device")]
pub struct AuthorizeArgs {
    /// The server
    pub name: String,
    /// Sign in at another device, with a code that this command prints
    #[arg(long = "device")]
    pub is_device: bool,
    /// Print the address, and open no browser
    #[arg(long = "no-browser", conflicts_with = "is_device")]
    pub has_no_browser: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  narthex mcp reauthorize linear")]
pub struct ReauthorizeArgs {
    /// The server
    pub name: String,
    /// Print the address, and open no browser
    #[arg(long = "no-browser")]
    pub has_no_browser: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  narthex mcp test files\n  \
    narthex mcp test files --quiet && echo ready\n  \
    narthex mcp test git --workspace team")]
pub struct TestArgs {
    /// The server, or its mount's name, such as 7-files
    pub name: String,
    /// The workspace of the server's run
    #[arg(long, value_name = "WORKSPACE")]
    pub workspace: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  narthex mcp logs files\n  \
    narthex mcp logs files --follow\n  \
    narthex mcp logs git --workspace team")]
pub struct LogsArgs {
    /// The server, or its mount's name, such as 7-files
    pub name: String,
    /// The workspace of the server's run; the server's last start may have failed
    #[arg(long, value_name = "WORKSPACE")]
    pub workspace: Option<String>,
    /// Print new lines as the server writes them, until Ctrl-C
    #[arg(long)]
    pub follow: bool,
}

/// Stores an entry as an mcp.json has it: from JSON, or put together from the arguments.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    narthex mcp add memory -- npx -y @modelcontextprotocol/server-memory\n  \
    narthex mcp add docs https://docs.example/mcp\n  \
    narthex mcp add docs --url https://docs.example/mcp --header 'Authorization=${secret:DOCS}'\n  \
    narthex mcp add docs - < entry.json\n\n\
    Never type a secret on a command line: store it with `narthex secrets set NAME`, and write\n\
    '${secret:NAME}' or '${env:VARIABLE}' in single quotes.")]
pub struct AddArgs {
    /// The server's name: 1 to 64 characters of a-z, 0-9, _ and -
    pub name: String,
    /// The server's address, or its entry as a JSON object; - reads it from standard input
    #[arg(value_name = "URL|ENTRY", conflicts_with = "url")]
    pub described: Option<String>,
    /// The address of a server over HTTP
    #[arg(long, conflicts_with = "command")]
    pub url: Option<String>,
    /// Use the transport HTTP+SSE of 2024-11-05, for an address
    #[arg(long)]
    pub sse: bool,
    /// A header of each request to an address
    #[arg(long, value_name = "NAME=VALUE")]
    pub header: Vec<String>,
    /// An environment variable of the program
    #[arg(short, long, value_name = "NAME=VALUE", conflicts_with = "url")]
    pub env: Vec<String>,
    /// The working folder of the program
    #[arg(long, value_name = "DIR", conflicts_with = "url")]
    pub cwd: Option<String>,
    /// Replace an existing server of this name
    #[arg(long)]
    pub replace: bool,
    /// The program of a local server, and its arguments; flags of narthex come before --
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
    /// Flags behind a program without `--` that narthex has, too.
    #[arg(skip)]
    pub doubtful: Option<Doubtful>,
}

/// Flags behind a program without `--` that can be meant for narthex or for the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doubtful {
    /// The first of them, without its value.
    pub flag: String,
    /// The flags and their values, if narthex takes them.
    pub moved: Vec<String>,
    /// The program and its arguments without these flags.
    pub rest: Vec<String>,
}

/// True for the address of a server over HTTP.
#[must_use]
pub fn is_address(word: &str) -> bool {
    let has = |scheme: &str| {
        word.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    };
    has("http://") || has("https://")
}

/// True for an entry as JSON, or for the word that reads one from standard input.
fn is_entry(word: &str) -> bool {
    word == "-" || word.trim_start().starts_with('{')
}

/// True for the description of a server that is a program.
#[must_use]
pub fn is_program(word: &str) -> bool {
    !is_address(word) && !is_entry(word)
}

/// Reads the files of MCP clients of this user.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  narthex mcp import --dry-run\n  \
    narthex mcp import --from cursor,claude-code\n  \
    narthex mcp import --yes --json | jq '.data.servers[].result'\n\n\
    Files of the current folder are shown and not imported.")]
pub struct ImportServersArgs {
    /// Read only these clients, such as cursor,claude-code
    #[arg(long, value_name = "CLIENT", value_delimiter = ',')]
    pub from: Vec<String>,
    /// Show the servers, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Import without a question
    #[arg(long, conflicts_with = "dry_run")]
    pub yes: bool,
}

/// The objects that can be checked.
#[derive(Debug, Subcommand)]
pub enum CheckCommand {
    /// Check the programs, files and variables that the servers of this folder need
    #[command(after_help = "Examples:\n  narthex check mcp\n  \
        narthex check mcp --json | jq '.data.checks[] | select(.level != \"info\")'\n\n\
        Exit codes: 0 without errors (warnings are allowed), 1 with errors.")]
    Mcp,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  narthex init\n  narthex init --with-mcp-examples")]
pub struct InitArgs {
    /// Also write two example agents and their servers, after a check for their programs
    #[arg(long)]
    pub with_mcp_examples: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  narthex backup /var/backups/narthex.tar\n  \
    narthex backup --with-master-key move.tar")]
pub struct BackupArgs {
    /// The backup file; it must not exist
    pub file: PathBuf,
    /// Also copy the master key: who has the file can then open every secret
    #[arg(long)]
    pub with_master_key: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  narthex restore narthex.tar && narthex up")]
pub struct RestoreArgs {
    /// A file of `narthex backup`
    pub file: PathBuf,
    /// Put the settings of the backup in place without a question
    #[arg(long)]
    pub yes: bool,
}

/// Commands for the daemon itself.
#[derive(Debug, Subcommand)]
pub enum DaemonCommand {
    /// Stop the daemon: open calls finish, then all servers stop
    Stop(StopArgs),
    /// Restart the daemon with the present program, such as after an update; open calls finish
    Restart(RestartArgs),
    /// Show whether a daemon runs with this data directory; exit code 1 if none does
    #[command(after_help = "Example:\n  narthex daemon status --quiet && echo running")]
    Status,
    /// Show the daemon's version, start, addresses, store, memory and open sessions
    #[command(after_help = "Example:\n  narthex daemon info --json | jq .data.store")]
    Info,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Open calls over HTTP finish, and new ones wait. Calls of `narthex connect` \
    that are open still\nafter 10 seconds end with an error. If the new program cannot start, the \
    command says why, and\nthe old one serves on."
)]
pub struct RestartArgs {
    /// Maximum time to wait, such as 30s
    #[arg(long, value_name = "DURATION", value_parser = values::duration, default_value = "60s")]
    pub timeout: Duration,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  narthex daemon stop\n  \
    narthex daemon stop --timeout 5s --force")]
pub struct StopArgs {
    /// Maximum time to wait, such as 30s
    #[arg(long, value_name = "DURATION", value_parser = values::duration, default_value = "60s")]
    pub timeout: Duration,
    /// Kill the daemon when that time is over
    #[arg(long)]
    pub force: bool,
}

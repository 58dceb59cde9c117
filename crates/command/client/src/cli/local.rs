//! The part of the command line that starts the daemon, and works with it as a client does.

use std::{path::PathBuf, time::Duration};

use clap::Args;
use narthex_model::{Alias, ProfileName};

/// Starts every server of the configuration and serves them at one address until Ctrl-C.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  narthex trust && narthex up\n  \
    narthex up --config examples/mcp.json\n  narthex up --json --listen 127.0.0.1:0\n  \
    narthex up --listen 0.0.0.0:7717 --allow-remote --tls-cert narthex.crt --tls-key narthex.key")]
pub struct UpArgs {
    /// The file of this project's servers [default: mcp.json in this folder, once it is trusted]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The file of the servers of all your projects [default: ~/.config/narthex/settings.json]
    #[arg(long, value_name = "FILE")]
    pub servers: Option<PathBuf>,
    /// The address to listen at; port 0 picks a free port [default: 127.0.0.1 with the port of
    /// `narthex service`, or 7717]
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<String>,
    /// The servers that clients get, separated by commas; `*` is all [default: *]
    #[arg(long, value_name = "ALIAS,…")]
    pub tools: Option<String>,
    /// The certificate to encrypt HTTP with, and after it those of its issuers, in PEM
    #[arg(long, value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,
    /// The private key of that certificate, in PEM
    #[arg(long, value_name = "FILE")]
    pub tls_key: Option<PathBuf>,
    /// Encrypt HTTP with a certificate that narthex makes, for a lab: clients must be told to trust
    /// it
    #[arg(long)]
    pub tls_self_signed: bool,
    #[command(flatten)]
    pub remote: RemoteArgs,
    /// Run in the background, with daemon.log of the data folder as log; return once it listens
    #[arg(long)]
    pub detach: bool,
    /// Be the process in the background
    #[arg(long, hide = true, conflicts_with = "detach")]
    pub background: bool,
    /// Take the listener of the process before, which standard input has
    #[arg(long, hide = true)]
    pub handed_over: bool,
    /// Do all that a start does before it serves, and end: the program before takes over nothing
    /// that would not start
    #[arg(long, hide = true, requires = "handed_over")]
    pub check: bool,
}

/// The permissions to serve other machines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Args)]
pub struct RemoteArgs {
    /// Allow an address that other machines can reach; it must be encrypted
    #[arg(long)]
    pub allow_remote: bool,
    /// Allow an address that other machines can reach without encryption: all on the network can
    /// read tokens, arguments and results
    #[arg(long)]
    pub allow_plain_remote: bool,
}

/// Calls one tool and prints its answer: in process with --config, else through the daemon.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    narthex call --config examples/mcp.json everything echo message=hello\n  \
    narthex call git git_log '{\"repo_path\": \".\", \"max_count\": 3}'\n  \
    narthex call memory create_entities entities:=@entities.json\n\n\
    A value that reads as JSON is sent as JSON, except where the tool's schema expects a string.\n\
    key:=JSON always sends JSON. key=@FILE sends the text of a file.")]
pub struct CallArgs {
    /// Start the servers of this file in this process, instead of asking the daemon
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Time limit of the call, such as 30s, without the start of a server
    #[arg(long, value_name = "DURATION", value_parser = super::duration)]
    pub timeout: Option<Duration>,
    /// The server
    pub alias: Alias,
    /// The tool
    pub tool: String,
    /// One JSON object, or key=value, key:=JSON, key=@FILE
    #[arg(value_name = "ARGUMENT")]
    pub arguments: Vec<String>,
}

/// Lists tools: of a file's servers in process with --config, else of the daemon's. One tool is
/// shown with its arguments.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  narthex tools git git_log\n  \
    narthex tools --config examples/mcp.json memory\n  \
    narthex tools --json | jq '.data.servers[].tools[].name'")]
pub struct ToolsArgs {
    /// Start the servers of this file in this process, instead of asking the daemon
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Only this server
    pub alias: Option<Alias>,
    /// Only this tool: its description, its arguments, and a call to paste
    pub tool: Option<String>,
}

/// Passes MCP messages, one a line, between a client and the daemon.
#[derive(Debug, Args)]
#[command(after_help = "Example, in a client's configuration:\n  \
    {\"mcpServers\": {\"narthex\": {\"command\": \"narthex\", \"args\": [\"connect\"]}}}\n\n\
    Without a daemon the service is started, or else a daemon in the background, in your home\n\
    folder. It keeps running after this command.")]
pub struct ConnectArgs {
    /// One server with its own tool names, instead of all servers with prefixed names
    #[arg(long, value_name = "ALIAS")]
    pub server: Option<Alias>,
    /// The servers and tools of a profile, with its names
    #[arg(long, value_name = "NAME", conflicts_with = "server", value_parser = profile)]
    pub profile: Option<ProfileName>,
    /// Maximum time to wait for a daemon; 0 fails at once
    #[arg(long, value_name = "DURATION", value_parser = super::values::duration_or_zero,
        default_value = "30s")]
    pub wait: Duration,
    /// Start the daemon for this folder, with its mcp.json, and also when the daemon has ended
    #[arg(long)]
    pub start: bool,
    /// Start no daemon; only wait for one
    #[arg(long, conflicts_with = "start")]
    pub no_start: bool,
    /// The file of servers for the daemon that --start starts
    #[arg(long, value_name = "FILE", requires = "start")]
    pub config: Option<PathBuf>,
    /// The file of the servers of all your projects, for a daemon that this command starts
    #[arg(long, value_name = "FILE")]
    pub servers: Option<PathBuf>,
}

fn profile(text: &str) -> Result<ProfileName, String> {
    ProfileName::new(text).map_err(|error| error.to_string())
}

/// Shows which programs a file would start and which addresses it would call, asks, and approves
/// it.
///
/// Changed content, or the same at another place, must be approved anew. `narthex up` uses an
/// approved mcp.json, and `narthex setup` the approved file of a client, such as .vscode/mcp.json.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  cd project && narthex trust && narthex up\n  \
    narthex trust .vscode/mcp.json && narthex setup")]
pub struct TrustArgs {
    /// The file [default: mcp.json in this folder]
    pub file: Option<PathBuf>,
    /// The client in whose notation the file is, or `narthex` [default: by the path]
    #[arg(long, value_name = "CLIENT")]
    pub format: Option<String>,
    /// Approve without asking; required without a terminal
    #[arg(long)]
    pub yes: bool,
}

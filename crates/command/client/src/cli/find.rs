//! The part of the command line for registries of servers.

use clap::{Args, builder::PossibleValuesParser};

use crate::public_registry::ways::WayKind;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  narthex search github\n  \
    narthex search weather --json | jq -r '.data.items[].name'\n  \
    narthex search notes --registry https://registry.example\n\n\
    A registry looks for words in names alone: name at least one word of the server's name.")]
pub struct SearchArgs {
    /// Words of the server's name; further words may be in its description
    #[arg(required = true, value_name = "WORDS")]
    pub words: Vec<String>,
    /// Largest number of servers to show
    #[arg(long, value_name = "COUNT", default_value = "20")]
    pub limit: std::num::NonZeroUsize,
    #[command(flatten)]
    pub registry: PublicRegistryArgs,
}

/// The registry of a command.
#[derive(Debug, Args)]
pub struct PublicRegistryArgs {
    /// The registry [default: the setting `registry`, or the official MCP registry]
    #[arg(long, value_name = "URL")]
    pub registry: Option<String>,
    /// Ask no registry: use the answers that earlier commands have stored
    #[arg(long)]
    pub offline: bool,
}

/// Adds a described server, after a trial.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  narthex add io.github.ada/weather\n  \
    narthex add io.github.ada/weather --set UNITS=metric --set-secret API_KEY < key.txt\n  \
    narthex add com.example/docs --as docs --via http --dry-run\n\n\
    The server is tried before it is kept: it must start and list its tools. Secrets are stored\n\
    in the vault. To add a command or a URL of your own, use `narthex mcp add`.")]
pub struct AddServerArgs {
    /// The server's name in the registry, such as io.github.ada/weather
    pub name: String,
    /// Exactly this version [default: the latest]
    #[arg(long = "version", value_name = "VERSION")]
    pub server_version: Option<String>,
    /// The server's name here [default: the last part of its name]
    #[arg(long = "as", value_name = "ALIAS")]
    pub alias: Option<String>,
    /// The way to reach the server, if it has several [default: its first package, or its address]
    #[arg(long, value_name = "WAY", value_parser = way_kinds())]
    pub via: Option<String>,
    /// A value that the server takes; `${env:VARIABLE}` and `${secret:SECRET}` are filled in later
    #[arg(long, value_name = "NAME=VALUE", allow_hyphen_values = true)]
    pub set: Vec<String>,
    /// A secret that the server takes: asked for without echo, or read from standard input
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    pub set_secret: Vec<String>,
    /// Add the server without a question
    #[arg(long)]
    pub yes: bool,
    /// Print the entry, and store nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Keep the server even if the trial fails
    #[arg(long, conflicts_with = "dry_run")]
    pub keep_anyway: bool,
    #[command(flatten)]
    pub registry: PublicRegistryArgs,
}

fn way_kinds() -> PossibleValuesParser {
    WayKind::ALL.map(WayKind::as_str).into()
}

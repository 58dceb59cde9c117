//! The part of the command line for the catalog.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::WorkspaceArgs;

/// Commands for the objects of one kind.
#[derive(Debug, Subcommand)]
pub enum CatalogCommand {
    /// List all objects of this kind
    List {
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// Print an object in the form that `apply` reads
    Get(GetArgs),
    /// Create or replace objects from files
    Apply(ApplyArgs),
    /// Delete an object that no other object refers to
    Delete(DeleteArgs),
}

/// Commands for servers of the catalog.
#[derive(Debug, Subcommand)]
pub enum ServersCommand {
    #[command(flatten)]
    Catalog(CatalogCommand),
    /// Show the definitions of a server, with changes under review
    #[command(after_help = "Example:\n  narthex servers definitions docs --quarantined")]
    Definitions {
        /// The server
        id: String,
        /// Only definitions under review
        #[arg(long)]
        quarantined: bool,
        #[command(flatten)]
        source: SourceArgs,
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// Accept definitions under review, for new runs and for callers of a live server
    #[command(after_help = "Examples:\n  narthex servers accept docs echo\n  \
        narthex servers accept docs --digest 1f2e3d4c5b6a\n  \
        narthex servers accept git --live --all")]
    Accept(DecideArgs),
    /// Reject definitions, for new runs and for callers of a live server
    #[command(after_help = "Example:\n  narthex servers reject docs echo")]
    Reject(DecideArgs),
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("which").required(true).multiple(true))]
pub struct DecideArgs {
    /// The server
    pub server: String,
    /// Names of tools and prompts, or URI templates
    #[arg(value_name = "NAME", group = "which")]
    pub names: Vec<String>,
    /// The digest of a definition, or its first characters
    #[arg(long = "digest", value_name = "DIGEST", group = "which")]
    pub digests: Vec<String>,
    /// All definitions under review
    #[arg(long, group = "which", conflicts_with_all = ["names", "digests"])]
    pub all: bool,
    #[command(flatten)]
    pub source: SourceArgs,
    #[command(flatten)]
    pub place: WorkspaceArgs,
}

/// The source of a server, where one of the catalog and one of `mcp.json` have the same name.
#[derive(Debug, Clone, Copy, Args)]
pub struct SourceArgs {
    /// The server of `mcp.json`; its entry sets `pinDefinitions`
    #[arg(long, conflicts_with = "catalog")]
    pub live: bool,
    /// The server of the catalog
    #[arg(long)]
    pub catalog: bool,
}

/// Commands for agents.
#[derive(Debug, Subcommand)]
pub enum AgentsCommand {
    #[command(flatten)]
    Catalog(CatalogCommand),
    /// Attach a server to an agent, or change the attachment's values
    Attach(AttachArgs),
    /// Detach a server from an agent
    #[command(after_help = "Example:\n  narthex agents detach planner linear")]
    Detach {
        /// The agent
        agent: String,
        /// The alias of the attachment
        alias: String,
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// List an agent's own attachments, without those of its capabilities; literal values are
    /// hidden
    #[command(after_help = "Example:\n  narthex agents attachments planner")]
    Attachments {
        /// The agent
        agent: String,
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// List the servers of an agent that people sign in to, with each status
    #[command(after_help = "Example:\n  narthex agents connections planner")]
    Connections {
        /// The agent
        agent: String,
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// Print the merged servers of an agent file, with their faults; nothing is stored
    #[command(after_help = "Example:\n  narthex agents preview --file agent.yaml")]
    Preview {
        /// A JSON or YAML file with one agent; `-` reads standard input
        #[arg(long, short)]
        file: PathBuf,
        #[command(flatten)]
        place: WorkspaceArgs,
    },
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    narthex agents attach planner linear 'LINEAR_API_KEY=${LINEAR_API_KEY}' TEAM=x1-org\n  \
    narthex agents attach planner docs --alias library limits:='{\"pages\": 3}'\n\n\
    Set a secret with `narthex secrets set`, and name it here as ${NAME}. Values have the\n\
    forms of `narthex call`. They replace the attachment's earlier values.")]
pub struct AttachArgs {
    /// The agent
    pub agent: String,
    /// The server of the catalog
    pub server: String,
    /// Config values of the attachment
    #[arg(value_name = "KEY=VALUE")]
    pub values: Vec<String>,
    /// The alias [default: the server's id]
    #[arg(long)]
    pub alias: Option<String>,
    /// Let runs start without the server if it fails
    #[arg(long)]
    pub optional: bool,
    #[command(flatten)]
    pub place: WorkspaceArgs,
}

#[derive(Debug, Args)]
pub struct GetArgs {
    /// The object's id or name
    pub id: String,
    /// For an agent: its servers with all levels merged, and the source of each value
    #[arg(long)]
    pub merged: bool,
    #[command(flatten)]
    pub place: WorkspaceArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  narthex agents apply -f agent.yaml\n  \
    narthex servers apply -f servers/ --dry-run\n  \
    narthex servers apply -f .vscode/mcp.json\n\n\
    All objects are stored, or none. Files end in .json, .yaml or .yml. A YAML file may have\n\
    several objects, separated by `---`. The servers in an agent's `mcp.servers` are stored in\n\
    the catalog too.")]
pub struct ApplyArgs {
    /// A JSON or YAML file, or a folder of such files; `-` reads standard input
    #[arg(long, short, value_name = "FILE")]
    pub file: PathBuf,
    /// For servers: the client in whose notation the file is, or `narthex` [default: by the path]
    #[arg(long, value_name = "CLIENT")]
    pub format: Option<String>,
    /// Print the changes, and store nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Delete unused servers that only earlier manifests of the agent have
    #[arg(long)]
    pub prune: bool,
    /// Store servers that people sign in to without asking them
    #[arg(long = "offline")]
    pub is_offline: bool,
    #[command(flatten)]
    pub place: WorkspaceArgs,
}

/// Stores the servers, capabilities and agents of a document: all of them, or none. Objects that
/// the document does not name stay.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  narthex import workspace.yaml --dry-run\n  \
    narthex export | narthex import - --workspace team\n\n\
    Set the secrets that the document names before you import it.")]
pub struct ImportArgs {
    /// A document of `narthex export`, as YAML or JSON; `-` reads standard input
    pub file: PathBuf,
    /// Print the changes, and store nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Store servers that people sign in to without asking them
    #[arg(long = "offline")]
    pub is_offline: bool,
    #[command(flatten)]
    pub place: WorkspaceArgs,
}

/// Prints the servers, capabilities and agents of a workspace as one document of YAML, always in
/// the same order. It has only the names of secrets.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  narthex export > workspace.yaml")]
pub struct ExportArgs {
    #[command(flatten)]
    pub place: WorkspaceArgs,
}

#[derive(Debug, Args)]
pub struct DeleteArgs {
    /// The object's id or name
    pub id: String,
    /// Delete the object even if others refer to it; those are then broken
    #[arg(long)]
    pub force: bool,
    /// Delete unused servers that the agent's manifests created too
    #[arg(long)]
    pub with_servers: bool,
    #[command(flatten)]
    pub place: WorkspaceArgs,
}

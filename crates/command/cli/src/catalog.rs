//! The part of the command line for the catalog.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::WorkspaceArgs;

/// Commands for the objects of one kind.
#[derive(Debug, Subcommand)]
pub enum CatalogCommand {
    /// List all of them
    List {
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// Print one, in the form in which it can be applied
    Get(GetArgs),
    /// Store the objects of files: new ones, or in place of those of their ids
    Apply(ApplyArgs),
    /// Delete one that no other refers to
    Delete(DeleteArgs),
}

/// Commands for servers of the catalog.
#[derive(Debug, Subcommand)]
pub enum ServersCommand {
    #[command(flatten)]
    Catalog(CatalogCommand),
    /// Show what a server says of its tools, prompts and templates, and what changed in it
    #[command(after_help = "Example:\n  narthex servers definitions docs --quarantined")]
    Definitions {
        /// The server
        id: String,
        /// Only those that are held back until somebody has looked at them
        #[arg(long)]
        quarantined: bool,
        #[command(flatten)]
        source: SourceArgs,
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// Let runs that begin from now on, and callers of a live server, have what is held back
    #[command(after_help = "Examples:\n  narthex servers accept docs echo\n  \
        narthex servers accept docs --digest 1f2e3d4c5b6a\n  \
        narthex servers accept git --live --all")]
    Accept(DecideArgs),
    /// Keep definitions from runs that begin from now on, and from callers of a live server
    #[command(after_help = "Example:\n  narthex servers reject docs echo")]
    Reject(DecideArgs),
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("which").required(true).multiple(true))]
pub struct DecideArgs {
    /// The server
    pub server: String,
    /// Their names; of templates the URI templates
    #[arg(value_name = "NAME", group = "which")]
    pub names: Vec<String>,
    /// The digest of one, as it was shown, or how it begins
    #[arg(long = "digest", value_name = "DIGEST", group = "which")]
    pub digests: Vec<String>,
    /// All of them
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
    /// The server of `mcp.json`, which has `pinDefinitions`
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
    /// Let an agent use a server, or change the values that it has for it
    Attach(AttachArgs),
    /// Take a server out of an agent
    #[command(after_help = "Example:\n  narthex agents detach planner linear")]
    Detach {
        /// The agent
        agent: String,
        /// The alias of the server there
        alias: String,
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// List the servers that an agent attaches by itself; literal values are not shown
    #[command(after_help = "Example:\n  narthex agents attachments planner")]
    Attachments {
        /// The agent
        agent: String,
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// List the servers of an agent that each person signs in to, and whether somebody has
    #[command(after_help = "Example:\n  narthex agents connections planner")]
    Connections {
        /// The agent
        agent: String,
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// Print the merged view of an agent that is not stored, and what is wrong with its servers
    #[command(after_help = "Example:\n  narthex agents preview --file agent.yaml")]
    Preview {
        /// A file of JSON or YAML with one agent; `-` is standard input
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
    A secret is set with `narthex secrets set`, and named here as ${NAME}. Values are\n\
    written as those of `narthex call`. What an attachment had before is replaced.")]
pub struct AttachArgs {
    /// The agent
    pub agent: String,
    /// The server of the catalog
    pub server: String,
    /// What it sets for the server
    #[arg(value_name = "KEY=VALUE")]
    pub values: Vec<String>,
    /// Under which alias [default: the server's id]
    #[arg(long)]
    pub alias: Option<String>,
    /// Let runs go on without the server if it fails
    #[arg(long)]
    pub optional: bool,
    #[command(flatten)]
    pub place: WorkspaceArgs,
}

#[derive(Debug, Args)]
pub struct GetArgs {
    /// Its id, or name
    pub id: String,
    /// Of an agent: its servers with all levels merged, and where each value comes from
    #[arg(long)]
    pub merged: bool,
    #[command(flatten)]
    pub place: WorkspaceArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  narthex agents apply -f agent.yaml\n  \
    narthex servers apply -f servers/ --dry-run\n\n\
    All objects are stored, or none. Files end in .json, .yaml or .yml; those of YAML may have\n\
    several objects, apart by `---`. An agent may have its servers in `mcp.servers`: they go into\n\
    the catalog, too.")]
pub struct ApplyArgs {
    /// A file of JSON or YAML, or a folder of such files; `-` is standard input
    #[arg(long, short, value_name = "FILE")]
    pub file: PathBuf,
    /// Say what would change, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Delete servers that earlier manifests of an agent made, that it does not attach any more,
    /// and that nothing else uses
    #[arg(long)]
    pub prune: bool,
    #[command(flatten)]
    pub place: WorkspaceArgs,
}

/// Stores the servers, capabilities and agents of a document: all of them, or none. Objects that
/// the document does not name stay.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  narthex import workspace.yaml --dry-run\n  \
    narthex export | narthex import - --workspace team\n\n\
    The secrets that it names have to be set before.")]
pub struct ImportArgs {
    /// What `narthex export` has printed, as YAML or JSON; `-` is standard input
    pub file: PathBuf,
    /// Say what would change, and change nothing
    #[arg(long)]
    pub dry_run: bool,
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
    /// Its id, or name
    pub id: String,
    /// Delete it also if others refer to it, which are then broken
    #[arg(long)]
    pub force: bool,
    /// Delete also what manifests of an agent made and nothing else uses
    #[arg(long)]
    pub with_servers: bool,
    #[command(flatten)]
    pub place: WorkspaceArgs,
}

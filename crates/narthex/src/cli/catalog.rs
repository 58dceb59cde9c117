//! The part of the command line that is about the catalog.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::WorkspaceArgs;

/// What can be done with the objects of one kind.
#[derive(Debug, Subcommand)]
pub(crate) enum CatalogCommand {
    /// List all of them
    List {
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// Print one, in the form in which it can be applied
    Get(GetArgs),
    /// Store the object of a file: a new one, or in place of the one of its id
    Apply(ApplyArgs),
    /// Delete one that no other refers to
    Delete(DeleteArgs),
}

#[derive(Debug, Args)]
pub(crate) struct GetArgs {
    /// Its id, or name
    pub(crate) id: String,
    /// Of an agent: its servers with all levels merged, and where each value comes from
    #[arg(long)]
    pub(crate) merged: bool,
    #[command(flatten)]
    pub(crate) place: WorkspaceArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ApplyArgs {
    /// The file, of JSON, with the `id` of a server or the `name` of another; `-` is standard input
    #[arg(long, short, value_name = "FILE")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) place: WorkspaceArgs,
}

#[derive(Debug, Args)]
pub(crate) struct DeleteArgs {
    /// Its id, or name
    pub(crate) id: String,
    /// Delete it also if others refer to it, which are then broken
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) place: WorkspaceArgs,
}

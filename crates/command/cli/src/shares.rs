//! The part of the command line for shares of agents.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::WorkspaceArgs;

/// Commands for the files that agents share from their folders.
#[derive(Debug, Subcommand)]
pub enum SharesCommand {
    /// List what is shared in a workspace
    List {
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// Show one with its files, and what is said of it
    #[command(after_help = "Example:\n  narthex shares show SHARE --json | jq .data.files")]
    Show {
        /// Its id
        id: String,
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// Save a file of one; an agent wrote it, so look before you open it
    Get(GetShareArgs),
    /// Say something of one; its agent gets it as a message
    Comment(CommentShareArgs),
    /// Settle a thread of comments
    #[command(after_help = "Example:\n  narthex shares resolve SHARE THREAD")]
    Resolve {
        /// The share
        id: String,
        /// The thread
        thread: String,
        /// Open it again
        #[arg(long)]
        undo: bool,
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// Delete one with its files and comments
    Delete {
        /// Its id
        id: String,
        #[command(flatten)]
        place: WorkspaceArgs,
    },
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  narthex shares get SHARE --output report.md\n  \
    narthex shares get SHARE --file data/rows.csv --output - | head")]
pub struct GetShareArgs {
    /// The share
    pub id: String,
    /// The file, by its path within the share [default: the one to begin with]
    #[arg(long, value_name = "PATH")]
    pub file: Option<String>,
    /// Where it is saved; a file that is there is left alone, and - is standard output
    #[arg(long, short, value_name = "FILE")]
    pub output: PathBuf,
    #[command(flatten)]
    pub place: WorkspaceArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  narthex shares comment SHARE 'Is the last row a total?'\n  \
    narthex shares comment SHARE 'A total of what?' --anchor 'row 12'\n  \
    narthex shares comment SHARE 'Thank you' --thread THREAD")]
pub struct CommentShareArgs {
    /// The share
    pub id: String,
    /// What is said
    pub text: String,
    /// The passage that it is about
    #[arg(long, value_name = "TEXT", conflicts_with = "thread")]
    pub anchor: Option<String>,
    /// The thread in which it is said
    #[arg(long)]
    pub thread: Option<String>,
    #[command(flatten)]
    pub place: WorkspaceArgs,
}

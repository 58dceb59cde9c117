//! The part of the command line for shares of agents.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::WorkspaceArgs;

/// Commands for the files that agents share from their folders.
#[derive(Debug, Subcommand)]
pub enum SharesCommand {
    /// List the shares of a workspace
    List {
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// Show a share with its files and comments
    #[command(after_help = "Example:\n  narthex shares show SHARE --json | jq .data.files")]
    Show {
        /// The share's id
        id: String,
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// Save a file of a share; check it before you open it, since an agent wrote it
    Get(GetShareArgs),
    /// Comment on a share; its agent gets the comment as a message
    Comment(CommentShareArgs),
    /// Resolve a thread of comments
    #[command(after_help = "Example:\n  narthex shares resolve SHARE THREAD")]
    Resolve {
        /// The share
        id: String,
        /// The thread
        thread: String,
        /// Open the thread again
        #[arg(long)]
        undo: bool,
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// Delete a share with its files and comments
    Delete {
        /// The share's id
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
    /// The file's path within the share [default: its entry point, such as index.html]
    #[arg(long, value_name = "PATH")]
    pub file: Option<String>,
    /// The new file; it must not exist. - is standard output
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
    /// The comment
    pub text: String,
    /// The passage that the comment is about
    #[arg(long, value_name = "TEXT", conflicts_with = "thread")]
    pub anchor: Option<String>,
    /// The thread to answer in
    #[arg(long)]
    pub thread: Option<String>,
    #[command(flatten)]
    pub place: WorkspaceArgs,
}

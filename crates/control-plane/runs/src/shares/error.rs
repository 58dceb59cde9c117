//! Reasons why a share is not created or not read.

use narthex_model::{ErrorKind, ShareId, command::narthex, problem_code};
use narthex_shares::ShareError;

/// An error of a request that had no effect.
#[derive(Debug, thiserror::Error)]
pub enum SharingError {
    /// This process has no store of shares.
    #[error("this process has no shares; start the daemon with `{}`", narthex("up", &[]))]
    NoDepot,
    /// The run belongs to no session, which could own its shares.
    #[error("this run belongs to no session, so it has nothing to share")]
    NoSession,
    /// The run has no folder to share from.
    #[error(
        "this run has no workspace folder; its creator sets one as `project_dir` of the request"
    )]
    NoFolder,
    /// The run has no folder for files of a child.
    #[error(
        "this run has no workspace folder for files of a child; its creator sets one as \
         `project_dir` of the request"
    )]
    NoOwnFolder,
    /// The requested part of a child's folder is more than can be fetched at once.
    #[error("it has more than {0} bytes in all; fetch less, with `paths`")]
    TooMuchToFetch(u64),
    /// The folder of the run cannot be opened.
    #[error("the workspace folder of this run cannot be opened")]
    FolderGone(#[source] ShareError),
    /// The child has no folder, or not any more.
    #[error("the child has no workspace folder here")]
    NoChildFolder,
    /// The run and its child have the same folder: each has the other's files at once.
    #[error("the child works in the very folder of this run: nothing has to be copied")]
    SameFolder,
    /// The workspace has no such share.
    #[error("there is no share `{0}`")]
    NoShare(String),
    /// The share belongs to another session.
    #[error(
        "the share `{0}` belongs to another session; leave `share_id` out to create a new share"
    )]
    OthersShare(ShareId),
    /// The session or the workspace has the most shares that it may have.
    #[error(
        "the {0} has {1} shares, which is the limit; share again under one of their ids, or ask a \
         human to delete some"
    )]
    TooMany(&'static str, u64),
    /// The shares of the workspace have the most files that they may have.
    #[error(
        "the shares of the workspace have {0} files in all, which is the limit; delete old shares"
    )]
    TooManyFiles(u64),
    /// The share has no such file.
    #[error("the share has no file `{0}`")]
    NoFile(String),
    /// The share has several files, and no entry point.
    #[error("the share has several files; name one with `path`")]
    WhichFile,
    /// The file is longer than what can be read at once.
    #[error("the file has {size} bytes, and a tool can read at most {max}")]
    TooLongToRead {
        /// The file's length in bytes.
        size: u64,
        /// The largest length in bytes that a tool can read.
        max: u64,
    },
    /// There is no such thread of comments, or the caller may not see it.
    #[error("there is no thread of comments `{0}`")]
    NoThread(String),
    /// A thread has the most comments that it may have, or a share the most threads.
    #[error("there are {0} {1}, which is the limit; create a new share to continue")]
    TooManyComments(u64, &'static str),
    /// The contents of the folder cannot be shared, or a copy cannot be read.
    #[error(transparent)]
    Files(ShareError),
}

impl SharingError {
    /// The kind of failure (D24).
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NoDepot
            | Self::NoSession
            | Self::NoFolder
            | Self::NoOwnFolder
            | Self::FolderGone(_)
            | Self::NoChildFolder
            | Self::SameFolder => ErrorKind::Conflict,
            Self::NoShare(_) | Self::NoFile(_) | Self::NoThread(_) => ErrorKind::NotFound,
            Self::OthersShare(_) => ErrorKind::Denied,
            Self::WhichFile => ErrorKind::Invalid,
            Self::TooMany(..)
            | Self::TooManyFiles(_)
            | Self::TooManyComments(..)
            | Self::TooMuchToFetch(_)
            | Self::TooLongToRead { .. } => ErrorKind::Exhausted,
            Self::Files(error) => error.kind(),
        }
    }

    /// The code for programs (X-E97).
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoDepot => "sharing_unsupported",
            Self::NoSession => "no_session",
            Self::NoFolder | Self::FolderGone(_) => "no_workspace_folder",
            Self::NoChildFolder => "child_workspace_unavailable",
            Self::SameFolder => "same_folder",
            Self::NoShare(_) => problem_code::SHARE_NOT_FOUND,
            Self::OthersShare(_) => "share_id_owned_by_other_session",
            Self::NoOwnFolder => "parent_pod_missing",
            Self::TooMuchToFetch(_) => "workspace_too_large",
            Self::TooMany(..) => "too_many_shares",
            Self::TooManyFiles(_) => "too_many_files",
            Self::NoFile(_) => "file_not_found",
            Self::WhichFile => "path_required",
            Self::TooLongToRead { .. } => "file_too_large",
            Self::NoThread(_) => "thread_not_visible",
            Self::TooManyComments(..) => "too_many_comments",
            Self::Files(error) => error.code(),
        }
    }
}

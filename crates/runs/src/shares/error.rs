//! Why nothing is shared, or what is shared is not given.

use narthex_model::{ErrorKind, ShareId, command::narthex};
use narthex_shares::ShareError;

/// Nothing of what was asked for has happened.
#[derive(Debug, thiserror::Error)]
pub enum SharingError {
    /// Nothing is kept of shares here.
    #[error("this process keeps no shares; start the daemon with `{}`", narthex("up", &[]))]
    NoDepot,
    /// The run belongs to no session, to which its shares could belong.
    #[error("this run belongs to no session, so it has nothing to share")]
    NoSession,
    /// The run has no folder of which something could be shared.
    #[error(
        "this run has no workspace folder; whoever creates it gives one, as `project_dir` of the \
         request"
    )]
    NoFolder,
    /// The run has none to which something of a child's could come.
    #[error(
        "this run has no workspace folder, to which files of a child could come; whoever creates \
         it gives one, as `project_dir` of the request"
    )]
    NoOwnFolder,
    /// What is wanted of a child's folder is more than can be fetched at once.
    #[error("it has more than {0} bytes in all; fetch less of it, by `paths`")]
    TooMuchToFetch(u64),
    /// The folder of the run cannot be opened.
    #[error("the workspace folder of this run cannot be opened")]
    FolderGone(#[source] ShareError),
    /// The child has no folder, or not any more.
    #[error("the child has no workspace folder here, or none any more")]
    NoChildFolder,
    /// What one writes is there for the other at once.
    #[error("the child works in the very folder of this run: nothing has to be copied")]
    SameFolder,
    /// The workspace has no such share.
    #[error("there is no share `{0}`")]
    NoShare(String),
    /// It is another session's.
    #[error("the share `{0}` is another session's; leave `share_id` out to share anew")]
    OthersShare(ShareId),
    /// The session or the workspace has as many as it may have.
    #[error(
        "the {0} has {1} shares, which is the most; share anew under an id of these, or have some \
         deleted"
    )]
    TooMany(&'static str, u64),
    /// The shares of the workspace have as many files as they may have.
    #[error(
        "the shares of the workspace have {0} files together, which is the most; delete old shares"
    )]
    TooManyFiles(u64),
    /// The share has no such file.
    #[error("the share has no file `{0}`")]
    NoFile(String),
    /// It has several files, and none to begin with.
    #[error("the share has several files; say which one, by its `path`")]
    WhichFile,
    /// The file is longer than what can be read at once.
    #[error("the file has {size} bytes, and at most {max} can be read by a tool")]
    TooLongToRead {
        /// Its length in bytes.
        size: u64,
        /// The most.
        max: u64,
    },
    /// There is no such thread of comments, or not for whoever asks.
    #[error("there is no thread of comments `{0}`")]
    NoThread(String),
    /// A thread has as many comments as it may have, or a share as many threads.
    #[error("there are {0} {1} already, which is the most; share anew to begin afresh")]
    TooManyComments(u64, &'static str),
    /// What is in the folder cannot be shared, or a copy not be read.
    #[error(transparent)]
    Files(ShareError),
}

impl SharingError {
    /// What kind of failure it is (D24).
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

    /// The word for programs (X-E97).
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoDepot => "sharing_unsupported",
            Self::NoSession => "no_session",
            Self::NoFolder | Self::FolderGone(_) => "no_workspace_folder",
            Self::NoChildFolder => "child_workspace_unavailable",
            Self::SameFolder => "same_folder",
            Self::NoShare(_) => "share_not_found",
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

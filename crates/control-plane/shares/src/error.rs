//! Errors of sharing files and of reading shared ones.

use std::io;

use narthex_model::ErrorKind;

/// An error of sharing files or of reading a shared one. It names paths as the caller gave them,
/// never the place of the folder.
#[derive(Debug, thiserror::Error)]
pub enum ShareError {
    /// The text is no path within a folder.
    #[error("`{path}` is no path within the folder of this run: {why}; give one relative to it")]
    Path {
        /// The caller's path, cut.
        path: String,
        /// The path's fault.
        why: &'static str,
    },
    /// A link on the way leads out of the folder.
    #[error("`{path}` leads out of the folder of this run")]
    Outside {
        /// The caller's path.
        path: String,
    },
    /// There is nothing by that path.
    #[error("there is no file or folder `{path}`")]
    NotFound {
        /// The caller's path.
        path: String,
    },
    /// The daemon may not read it.
    #[error("`{path}` cannot be read: permission denied")]
    Unreadable {
        /// The caller's path.
        path: String,
    },
    /// A pipe, a socket or a device.
    #[error("`{path}` is neither a file nor a folder")]
    NotAFile {
        /// The caller's path.
        path: String,
    },
    /// The one file is larger than files may be.
    #[error("`{path}` is larger than {max} bytes")]
    FileTooLarge {
        /// The caller's path.
        path: String,
        /// The most bytes of one file.
        max: u64,
    },
    /// All files together are larger than a share may be.
    #[error("`{path}` has more than {max} bytes in all; share less of it")]
    ShareTooLarge {
        /// The caller's path.
        path: String,
        /// The most bytes of one share.
        max: u64,
    },
    /// More files, or more to look through, than one share may have.
    #[error("`{path}` has more than {max} {what}; share less of it")]
    TooMany {
        /// The caller's path.
        path: String,
        /// The thing that there is too much of.
        what: &'static str,
        /// The most of it.
        max: usize,
    },
    /// A folder in which there is no file to share.
    #[error("`{path}` has no file to share")]
    Nothing {
        /// The caller's path.
        path: String,
    },
    /// The workspace keeps as much as it may.
    #[error(
        "the workspace keeps {used} bytes of shares and may keep {max}; this share has {asked} \
         more: delete old shares"
    )]
    Quota {
        /// Bytes kept now.
        used: u64,
        /// Bytes that would come to it.
        asked: u64,
        /// The most bytes of the workspace.
        max: u64,
    },
    /// Hidden files are not copied, nor is anything put at a hidden path.
    #[error("`{path}` is hidden, or made again by tools: neither is copied")]
    Hidden {
        /// The caller's path.
        path: String,
    },
    /// It was stopped before it was done.
    #[error("copying took too long, and nothing came of it; ask for less at a time")]
    Stopped,
    /// The workspace was deleted meanwhile.
    #[error("the workspace was deleted meanwhile")]
    WorkspaceGone,
    /// The copy is not there.
    #[error("the copy of this file is no longer kept")]
    CopyGone,
    /// The kernel cannot open a file within a folder.
    #[error("sharing needs Linux 5.6 or newer, which opens files without leaving a folder")]
    Unsupported,
    /// The disk failed.
    #[error("cannot {what}")]
    Io {
        /// The failed operation, as in “read the folder”.
        what: &'static str,
        /// The system's error.
        #[source]
        source: io::Error,
    },
}

impl ShareError {
    /// The kind of failure, for the tables of the doors.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Path { .. }
            | Self::Outside { .. }
            | Self::Unreadable { .. }
            | Self::NotAFile { .. }
            | Self::FileTooLarge { .. }
            | Self::ShareTooLarge { .. }
            | Self::TooMany { .. }
            | Self::Hidden { .. }
            | Self::Nothing { .. } => ErrorKind::Invalid,
            Self::Stopped => ErrorKind::Timeout,
            Self::NotFound { .. } | Self::CopyGone | Self::WorkspaceGone => ErrorKind::NotFound,
            Self::Quota { .. } => ErrorKind::Exhausted,
            Self::Unsupported | Self::Io { .. } => ErrorKind::Unavailable,
        }
    }

    /// The word for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Path { .. } | Self::Outside { .. } => "path_outside_folder",
            Self::NotFound { .. } | Self::CopyGone => "file_not_found",
            Self::Unreadable { .. } => "file_unreadable",
            Self::NotAFile { .. } => "not_a_file",
            Self::FileTooLarge { .. } => "file_too_large",
            Self::ShareTooLarge { .. } => "share_too_large",
            Self::TooMany { .. } => "too_many_files",
            Self::Nothing { .. } => "nothing_to_share",
            Self::Quota { .. } => "share_quota_exceeded",
            Self::Hidden { .. } => "hidden_path",
            Self::Stopped => "copy_timed_out",
            Self::WorkspaceGone => "workspace_not_found",
            Self::Unsupported => "sharing_unsupported",
            Self::Io { .. } => "share_storage_failed",
        }
    }
}

/// Names the failed operation where the system failed.
pub(crate) fn io_error(what: &'static str) -> impl FnOnce(io::Error) -> ShareError {
    move |source| ShareError::Io { what, source }
}

//! One reading of one file: its text is read once, compared, approved and parsed.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use narthex_model::{ErrorKind, Provenance};
use sha2::{Digest, Sha256};

use super::{Approve, LayerOptions};
use crate::config::{self, ConfigFileError, Env, LoadContext, LoadedConfig};

/// Distinguishes contents without storing them: they may hold secrets.
pub(super) type ContentHash = [u8; 32];

/// One file that is followed.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) file: Arc<Path>,
    pub(super) origin: Origin,
}

/// The layer of a file.
#[derive(Clone)]
pub(super) enum Origin {
    Settings,
    Project { approve: Approve, approvals: Option<PathBuf> },
}

/// The reason why a content may not count.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Refused {
    /// The missing approval and its remedy, for the person whose file it is.
    pub reason: String,
}

/// The reason why the present content of a file does not count.
#[derive(Debug, Clone, thiserror::Error)]
pub enum FollowError {
    /// The file cannot be read, or is no configuration.
    #[error(transparent)]
    File(Arc<ConfigFileError>),
    /// The content is not approved (D27).
    #[error("{}: {refused}", file.display())]
    Refused {
        /// The file.
        file: Arc<Path>,
        /// The approver's reason.
        #[source]
        refused: Refused,
    },
    /// The reading has not ended. It continues, and other work on this file waits.
    #[error(
        "{}: reading takes more than {} s; check if its file system answers",
        file.display(), after.as_secs_f32()
    )]
    Stalled {
        /// The file.
        file: Arc<Path>,
        /// Time spent waiting.
        after: Duration,
    },
    /// Reading or approving ended by a fault of narthex.
    #[error("{}: reading failed inside narthex; check the log and report it", file.display())]
    Bug {
        /// The file.
        file: Arc<Path>,
    },
}

/// Result of one reading.
#[derive(Debug)]
pub(super) enum Found {
    Missing,
    /// The content that already counts.
    Same,
    Good {
        hash: ContentHash,
        config: LoadedConfig,
    },
    Bad {
        error: FollowError,
        /// The hash of the content, if it could be read.
        hash: Option<ContentHash>,
    },
}

impl Found {
    /// A file whose content is not known.
    pub(super) fn bad(error: FollowError) -> Self {
        Self::Bad { error, hash: None }
    }
}

impl Source {
    pub(super) fn new(file: &Path, origin: Origin) -> Self {
        Self { file: file.into(), origin }
    }

    pub(super) fn provenance(&self) -> Provenance {
        match self.origin {
            Origin::Settings => Provenance::Settings,
            Origin::Project { .. } => Provenance::Workspace,
        }
    }

    /// The paths where changes matter.
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        let more = match &self.origin {
            Origin::Settings => None,
            Origin::Project { approvals, .. } => approvals.clone(),
        };
        [self.file.to_path_buf()].into_iter().chain(more).collect()
    }

    /// True if all content of the file counts, now and later: for the settings, and for a file that
    /// the starter of the daemon named.
    fn is_trusted_by_name(&self) -> bool {
        match &self.origin {
            Origin::Settings => true,
            Origin::Project { approvals, .. } => approvals.is_none(),
        }
    }

    /// Reads the file; blocks. `known` is the content that counts now.
    pub(super) fn look(&self, options: &LayerOptions, known: Option<ContentHash>) -> Found {
        let fault = |error| FollowError::File(Arc::new(error));
        let text = match config::read(&self.file) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Found::Missing,
            Err(error) => return Found::bad(fault(error)),
        };
        let hash: ContentHash = Sha256::digest(&text).into();
        let bad = |error| Found::Bad { error, hash: Some(hash) };
        // The file decides which programs are started, and no approval is bound to its content.
        if self.is_trusted_by_name()
            && let Err(error) = narthex_private::check_named(&self.file)
        {
            let refused = Refused { reason: error.to_string() };
            return bad(FollowError::Refused { file: self.file.clone(), refused });
        }
        if known == Some(hash) {
            return Found::Same;
        }
        let context = LoadContext {
            file: &self.file,
            workspace_root: &options.workspace_root,
            env: Env::Values(&*options.env),
        };
        let parsed = match &self.origin {
            Origin::Settings => config::parse_settings(&text, &context),
            Origin::Project { approve, approvals } => {
                if let Err(refused) = approve(&self.file, &text) {
                    // A text that is no configuration starts nothing, and needs no approval first.
                    let refused = FollowError::Refused { file: self.file.clone(), refused };
                    let unfilled = LoadContext { env: Env::AsWritten, ..context };
                    let read = config::parse(&text, &unfilled);
                    return bad(read.map_or_else(fault, |_config| refused));
                }
                let file = approvals.is_some().then_some(&self.file);
                config::parse(&text, &context).map(|config| config.approved_in(file))
            }
        };
        parsed.map_or_else(|error| bad(fault(error)), |config| Found::Good { hash, config })
    }
}

impl FollowError {
    /// Kind of the failure.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::File(error) => error.kind(),
            Self::Refused { .. } => ErrorKind::Denied,
            Self::Stalled { .. } => ErrorKind::Timeout,
            Self::Bug { .. } => ErrorKind::Bug,
        }
    }

    /// True if another reading may well succeed: a text that is half written, or a file that is
    /// just being replaced.
    pub(super) fn may_pass(&self) -> bool {
        matches!(self, Self::File(_) | Self::Refused { .. })
    }
}

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Settings => f.write_str("Settings"),
            Self::Project { approvals, .. } => {
                f.debug_struct("Project").field("approvals", approvals).finish_non_exhaustive()
            }
        }
    }
}

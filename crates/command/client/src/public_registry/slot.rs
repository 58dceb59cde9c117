//! The kinds of ways, and the places of values in them.

use super::document::Input;

/// The kind of a way; its word is that of `--via`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WayKind {
    Npm,
    Pypi,
    Oci,
    Mcpb,
    Http,
    Sse,
}

impl WayKind {
    /// All kinds.
    pub const ALL: [Self; 6] =
        [Self::Npm, Self::Pypi, Self::Oci, Self::Mcpb, Self::Http, Self::Sse];

    /// The word for the kind.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::Pypi => "pypi",
            Self::Oci => "oci",
            Self::Mcpb => "mcpb",
            Self::Http => "http",
            Self::Sse => "sse",
        }
    }
}

/// A place of a value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Slot {
    pub(super) place: Place,
    pub(super) input: Input,
    pub(super) is_repeated: bool,
}

/// The kind of a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    Env(String),
    Header(String),
    /// A flag with a value; `is_first` is true in front of the package.
    Flag {
        name: String,
        is_first: bool,
    },
    /// A word without a flag.
    Word {
        name: String,
        is_first: bool,
    },
    /// The address of a remote server.
    Url,
}

//! The place of a caller's token, for the failure of a request that it does not open.

use std::path::PathBuf;

use narthex_model::ErrorKind;

use crate::{DaemonOptions, Failure, environment};

/// The place of a token that the caller gave.
#[derive(Debug, Clone)]
pub(super) enum TokenSource {
    /// The file of `--token-file`, or of the setting.
    File(PathBuf),
    /// `NARTHEX_TOKEN`.
    Environment,
}

impl TokenSource {
    /// The place that the options name, or else the environment.
    pub(super) fn of(options: &DaemonOptions) -> Self {
        options.token_file.clone().map_or(Self::Environment, Self::File)
    }

    /// The failure of a request with a token that the daemon does not take.
    pub(super) fn refused(&self) -> Failure {
        let text = match self {
            Self::File(path) => format!(
                "the daemon refused the token of `{}`; name another with --token-file",
                path.display()
            ),
            Self::Environment => format!(
                "the daemon refused the token of {}; set another, or name its file with \
                 --token-file",
                environment::TOKEN
            ),
        };
        Failure::new(ErrorKind::Unauthenticated, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_token_is_named_by_its_place() {
        let of_file = TokenSource::File("bad".into()).refused();
        assert_eq!(of_file.kind, crate::FailureKind::Operation(ErrorKind::Unauthenticated));
        assert_eq!(
            of_file.message,
            "the daemon refused the token of `bad`; name another with --token-file"
        );
        let set = TokenSource::Environment.refused().message;
        assert!(set.starts_with("the daemon refused the token of NARTHEX_TOKEN; "), "{set}");
    }
}

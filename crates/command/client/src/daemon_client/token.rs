//! The place of a caller's token, for the failure of a request that it does not open.

use std::path::PathBuf;

use narthex_model::ErrorKind;

use crate::{DaemonOptions, Failure, environment};

/// The flag that names the file of a token.
const FLAG: &str = "--token-file";

/// The place of a token that the caller gave.
#[derive(Debug, Clone)]
pub(super) enum TokenSource {
    /// A file, and the flag, variable or setting that names it.
    File(PathBuf, String),
    /// `NARTHEX_TOKEN`.
    Environment,
}

impl TokenSource {
    /// The place that the options name, or else the environment.
    pub(super) fn of(options: &DaemonOptions) -> Self {
        match &options.token_file {
            Some(path) => Self::File(path.clone(), options.token_file_source.clone()),
            None => Self::Environment,
        }
    }

    /// The place of the token in a sentence. A variable or a setting that names a file is shown,
    /// since the reader may not know of it.
    pub(super) fn place(&self) -> String {
        match self {
            Self::File(path, source) if source == FLAG => format!("`{}`", path.display()),
            Self::File(path, source) => format!("`{}` ({source})", path.display()),
            Self::Environment => environment::TOKEN.to_owned(),
        }
    }

    /// The failure of a request with a token that the daemon does not take.
    pub(super) fn refused(&self) -> Failure {
        let remedy = match self {
            Self::File(..) => "name another with --token-file",
            Self::Environment => "set another, or name its file with --token-file",
        };
        let text = format!("the daemon refused the token of {}; {remedy}", self.place());
        Failure::new(ErrorKind::Unauthenticated, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_token_is_named_by_its_place() {
        let of_file = TokenSource::File("bad".into(), "--token-file".to_owned()).refused();
        assert_eq!(of_file.kind, crate::FailureKind::Operation(ErrorKind::Unauthenticated));
        assert_eq!(
            of_file.message,
            "the daemon refused the token of `bad`; name another with --token-file"
        );
        let named = TokenSource::File("bad".into(), "NARTHEX_TOKEN_FILE".to_owned()).refused();
        let told = "the daemon refused the token of `bad` (NARTHEX_TOKEN_FILE); name another with";
        assert!(named.message.starts_with(told), "{named}");
        let set = TokenSource::Environment.refused().message;
        assert!(set.starts_with("the daemon refused the token of NARTHEX_TOKEN; "), "{set}");
    }
}

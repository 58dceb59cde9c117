//! Failures of commands, and the table from their kinds to exit codes (D24).

use std::{error::Error, fmt, io, process::ExitCode};

use narthex_model::{CallError, CallErrorKind, ErrorKind, with_causes};
use narthex_private::PrivateError;
use serde_json::{Value, json};

use crate::documents::DocumentError;

/// The code of a command that a signal has stopped.
const INTERRUPTED: &str = "interrupted";
/// The exit code of such a command, as shells have it for Ctrl-C.
const INTERRUPTED_EXIT: u8 = 130;

/// A failed command: the problem, its place, and the remedy.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    /// The kind of the failure.
    pub kind: FailureKind,
    /// The message for a person.
    pub message: String,
    /// Details for a program.
    pub details: Option<Box<Value>>,
    /// A code for the failure, if its kind is not specific enough.
    pub code: Option<&'static str>,
    /// The code of the API's problem, by which commands recognize it. `None` if the daemon sent
    /// none, or the failure is not the daemon's.
    pub problem_code: Option<String>,
}

/// The table of kinds to which a failure belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// The command line or the settings are wrong.
    Usage,
    /// The command itself could not be carried out.
    Operation(ErrorKind),
    /// A call reached the gateway and failed there or behind it (D16).
    Call(CallErrorKind),
}

impl Failure {
    /// The command line or the settings are wrong.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::of(FailureKind::Usage, message.into())
    }

    /// A command that could not be carried out.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self::of(FailureKind::Operation(kind), message.into())
    }

    /// A command that could not be carried out because of `error`; its causes are named as well.
    pub fn caused(kind: ErrorKind, error: &dyn Error) -> Self {
        Self::new(kind, with_causes(error))
    }

    /// A call failed in the gateway or behind it.
    #[must_use]
    pub fn call(error: CallError) -> Self {
        Self::of(FailureKind::Call(error.kind), error.message).with_details(error.details)
    }

    /// The failure with other details for a program.
    #[must_use]
    pub fn with_details(self, details: Option<Value>) -> Self {
        Self { details: details.map(Box::new), ..self }
    }

    /// Replaces a word of the API's remedies by the flag of the command line.
    #[must_use]
    pub fn with_flag(mut self, word: &str, flag: &str) -> Self {
        self.message = self.message.replace(word, flag);
        let errors = self.details.as_mut().and_then(|details| details["errors"].as_array_mut());
        for error in errors.into_iter().flatten() {
            if let Some(remedy) = error["remedy"].as_str() {
                error["remedy"] = json!(remedy.replace(word, flag));
            }
        }
        self
    }

    fn of(kind: FailureKind, message: String) -> Self {
        Self { kind, message, details: None, code: None, problem_code: None }
    }

    /// No daemon runs.
    pub fn daemon_down(message: impl Into<String>) -> Self {
        Self { code: Some("daemon_down"), ..Self::new(ErrorKind::Unavailable, message) }
    }

    /// A signal has stopped the command. The message says what has changed until then.
    pub fn interrupted(message: impl Into<String>) -> Self {
        Self { code: Some(INTERRUPTED), ..Self::new(ErrorKind::Conflict, message) }
    }

    /// True if a signal has stopped the command.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        self.code == Some(INTERRUPTED)
    }

    /// The program's exit code.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        match self.kind {
            _ if self.is_interrupted() => ExitCode::from(INTERRUPTED_EXIT),
            FailureKind::Usage => ExitCode::from(2),
            FailureKind::Operation(_) | FailureKind::Call(_) => ExitCode::FAILURE,
        }
    }

    /// The failure in the form of `--json`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let kind = self.kind.as_str();
        let code = self.code.unwrap_or(kind);
        let mut error = json!({ "code": code, "kind": kind, "message": self.message });
        if let Some(details) = &self.details {
            error["details"] = (**details).clone();
        }
        json!({ "ok": false, "error": error })
    }
}

impl FailureKind {
    /// The kind's name in error lines and JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Usage => "usage",
            Self::Operation(kind) => kind.as_str(),
            Self::Call(kind) => kind.as_str(),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_interrupted() { INTERRUPTED } else { self.kind.as_str() };
        write!(f, "{kind}: {}", self.message)
    }
}

impl Error for Failure {}

impl From<io::Error> for Failure {
    /// For errors of `fs_err`, whose messages name the path.
    fn from(error: io::Error) -> Self {
        let kind = match error.kind() {
            io::ErrorKind::NotFound => ErrorKind::NotFound,
            io::ErrorKind::PermissionDenied => ErrorKind::Denied,
            io::ErrorKind::AlreadyExists | io::ErrorKind::AddrInUse => ErrorKind::Conflict,
            _ => ErrorKind::Unavailable,
        };
        Self::new(kind, with_causes(&error))
    }
}

impl From<PrivateError> for Failure {
    fn from(error: PrivateError) -> Self {
        match error {
            PrivateError::Io(error) => error.into(),
            other => Self::new(ErrorKind::Denied, other.to_string()),
        }
    }
}

impl From<DocumentError> for Failure {
    fn from(error: DocumentError) -> Self {
        match error {
            DocumentError::Read(error) => error.into(),
            other => Self::new(other.kind(), other.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// D24: one table has all exit codes.
    #[test]
    fn d24_exit_codes() {
        let code = |failure: Failure| format!("{:?}", failure.exit_code());
        let expected = |code: u8| format!("{:?}", ExitCode::from(code));
        assert_eq!(code(Failure::usage("x")), expected(2));
        assert_eq!(code(Failure::interrupted("x")), expected(130));
        for kind in ErrorKind::ALL {
            assert_eq!(code(Failure::new(kind, "x")), expected(1));
        }
        for kind in CallErrorKind::ALL {
            assert_eq!(code(Failure::call(CallError::new(kind, "x"))), expected(1));
        }
    }

    #[test]
    fn the_text_of_a_failure_begins_with_its_kind() {
        let failure = Failure::call(CallError::new(CallErrorKind::ToolNotFound, "no tool `x`"));
        assert_eq!(failure.to_string(), "tool_not_found: no tool `x`");
        assert_eq!(failure.to_json()["error"]["kind"], "tool_not_found");
        let failure = Failure::interrupted("nothing has changed");
        assert_eq!(failure.to_string(), "interrupted: nothing has changed");
        assert_eq!(failure.to_json()["error"]["code"], "interrupted");
    }
}

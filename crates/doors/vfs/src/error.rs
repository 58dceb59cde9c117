//! Why an operation on a path failed: one of thirteen codes, and what it was about.

use std::fmt;

use narthex_model::CallErrorKind;
use serde::Serialize;

/// The kind of an operation's failure. The spellings are part of the interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Code {
    /// A deadline passed.
    Timeout,
    /// The path does not exist, or this process may not know of it: the two look alike (D5).
    NotFound,
    /// The path exists, and this process may not use it.
    Permission,
    /// A fault of our own.
    Internal,
    /// The device does not do this: the descriptor is closed, or the server refused.
    Driver,
    /// The operation makes no sense here, or what was written is no JSON object.
    Invalid,
    /// A directory was taken for a file.
    IsDirectory,
    /// The reader of the answer is gone.
    BrokenPipe,
    /// The server failed during the call.
    ServiceUnavailable,
    /// Something is mounted there already.
    AlreadyMounted,
    /// A limit is reached.
    ResourceExhausted,
    /// The server had to be killed.
    ForceKilled,
    /// The server was gone, and certainly did not see the call.
    DeviceDisconnected,
}

impl Code {
    /// Every code, for tables that must be complete.
    pub const ALL: [Self; 13] = narthex_model::every![
        Timeout,
        NotFound,
        Permission,
        Internal,
        Driver,
        Invalid,
        IsDirectory,
        BrokenPipe,
        ServiceUnavailable,
        AlreadyMounted,
        ResourceExhausted,
        ForceKilled,
        DeviceDisconnected
    ];

    /// The code of a spelling.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.as_str() == text)
    }

    /// The code's spelling.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Timeout => "TIMEOUT",
            Self::NotFound => "NOT_FOUND",
            Self::Permission => "PERMISSION",
            Self::Internal => "INTERNAL",
            Self::Driver => "DRIVER",
            Self::Invalid => "INVALID",
            Self::IsDirectory => "IS_DIRECTORY",
            Self::BrokenPipe => "BROKEN_PIPE",
            Self::ServiceUnavailable => "SERVICE_UNAVAILABLE",
            Self::AlreadyMounted => "ALREADY_MOUNTED",
            Self::ResourceExhausted => "RESOURCE_EXHAUSTED",
            Self::ForceKilled => "FORCE_KILLED",
            Self::DeviceDisconnected => "DEVICE_DISCONNECTED",
        }
    }

    /// The code for a program that only knows failures of devices: a failure of the server is
    /// `DRIVER`, even if more is known of it.
    #[must_use]
    pub fn family(self) -> Self {
        match self {
            Self::ServiceUnavailable | Self::DeviceDisconnected | Self::ForceKilled => Self::Driver,
            other => other,
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The code of a call that failed on its way (D16, D24).
impl From<CallErrorKind> for Code {
    fn from(kind: CallErrorKind) -> Self {
        match kind {
            CallErrorKind::PermissionRequired
            | CallErrorKind::AuthUnavailable
            | CallErrorKind::SecretCleared
            | CallErrorKind::DefinitionChanged => Self::Permission,
            CallErrorKind::TransportError => Self::ServiceUnavailable,
            CallErrorKind::Timeout => Self::Timeout,
            CallErrorKind::ServerError => Self::Driver,
            CallErrorKind::ToolNotFound => Self::NotFound,
            CallErrorKind::ServerDisabled => Self::DeviceDisconnected,
            CallErrorKind::LimitExceeded => Self::ResourceExhausted,
            CallErrorKind::InvalidArguments => Self::Invalid,
        }
    }
}

/// A device's report of a failure: its code, and the error as the model of a run would see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The code of the failure.
    pub code: Code,
    /// The kind of D16, or another word of the same place, such as `not_found`.
    pub kind: String,
    /// For people; no secrets.
    pub message: String,
    /// More for programs: a JSON value, kept as it came.
    pub details: Option<String>,
    /// True if the process that did the operation elsewhere has reported the failure to its
    /// observers.
    pub is_told: bool,
}

impl Failure {
    /// One without details.
    #[must_use]
    pub fn new(code: Code, kind: impl Into<String>, message: impl Into<String>) -> Self {
        let (kind, message) = (kind.into(), message.into());
        Self { code, kind, message, details: None, is_told: false }
    }

    /// The failure of a call, by its kind.
    #[must_use]
    pub fn of_call(kind: CallErrorKind, message: impl Into<String>) -> Self {
        Self::new(kind.into(), kind.as_str(), message)
    }

    /// An operation that makes no sense.
    #[must_use]
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(Code::Invalid, "invalid", message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(Code::NotFound, "not_found", message)
    }

    /// The error as JSON: `{"code", "kind", "message", "details"}`.
    #[must_use]
    pub fn to_json(&self) -> String {
        let details = self.details.as_deref().and_then(|text| serde_json::from_str(text).ok());
        let view = FailureView {
            code: self.code.as_str(),
            family: self.code.family().as_str(),
            kind: &self.kind,
            message: &self.message,
            details,
        };
        serde_json::to_string(&view).unwrap_or_else(|_never| "{}".to_owned())
    }
}

#[derive(Serialize)]
struct FailureView<'a> {
    code: &'a str,
    family: &'a str,
    kind: &'a str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<&'a serde_json::value::RawValue>,
}

/// The kind of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// A server became visible.
    Mount,
    /// A server ceased to be.
    Unmount,
    /// A descriptor was asked for.
    Open,
    /// Bytes were asked for.
    Read,
    /// Bytes were given.
    Write,
    /// A descriptor was given back.
    Close,
    /// The facts about a path were requested.
    Stat,
    /// The entries of a directory were requested.
    List,
}

impl Operation {
    /// Every operation.
    pub const ALL: [Self; 8] = [
        Self::Mount,
        Self::Unmount,
        Self::Open,
        Self::Read,
        Self::Write,
        Self::Close,
        Self::Stat,
        Self::List,
    ];

    /// The operation's spelling.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mount => "Mount",
            Self::Unmount => "Unmount",
            Self::Open => "Open",
            Self::Read => "Read",
            Self::Write => "Write",
            Self::Close => "Close",
            Self::Stat => "Stat",
            Self::List => "List",
        }
    }

    /// The operation of a spelling.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|operation| operation.as_str() == text)
    }
}

/// An operation that failed: `[CODE] operation: path (cause)`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("[{}] {}: {path} ({})", failure.code, operation.as_str(), failure.message)]
pub struct VfsError {
    /// The failed operation.
    pub operation: Operation,
    /// The operation's path, or the number of an unknown descriptor.
    pub path: String,
    /// The reason of the failure.
    pub failure: Box<Failure>,
}

impl VfsError {
    /// A failure of an operation with a path.
    #[must_use]
    pub fn new(operation: Operation, path: impl Into<String>, failure: Failure) -> Self {
        Self { operation, path: path.into(), failure: Box::new(failure) }
    }

    /// The code of the failure.
    #[must_use]
    pub fn code(&self) -> Code {
        self.failure.code
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_prints_its_code_operation_path_and_cause() {
        let failure = Failure::invalid("write first");
        let error = VfsError::new(Operation::Read, "/mnt/mcp/1-a/tools/x", failure);
        assert_eq!(error.to_string(), "[INVALID] Read: /mnt/mcp/1-a/tools/x (write first)");
    }

    /// R-D3.
    #[test]
    fn each_code_has_a_unique_spelling_and_server_codes_belong_to_driver() {
        let mut spellings: Vec<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
        spellings.sort_unstable();
        spellings.dedup();
        assert_eq!(spellings.len(), Code::ALL.len());
        let of_the_driver: Vec<_> =
            Code::ALL.into_iter().filter(|code| code.family() == Code::Driver).collect();
        let all =
            [Code::Driver, Code::ServiceUnavailable, Code::ForceKilled, Code::DeviceDisconnected];
        assert_eq!(of_the_driver, all, "R-D3");
    }

    /// R-D3.
    #[test]
    fn a_failure_is_json_with_unchanged_details() {
        let mut failure = Failure::of_call(CallErrorKind::PermissionRequired, "ask");
        failure.details = Some(r#"{"scopes":["a.b"]}"#.to_owned());
        let json: serde_json::Value = serde_json::from_str(&failure.to_json()).expect("it is JSON");
        assert_eq!(json["code"], "PERMISSION");
        assert_eq!(
            (&json["family"], &json["kind"]),
            (&"PERMISSION".into(), &"permission_required".into())
        );
        assert_eq!(json["details"]["scopes"][0], "a.b");
        let gone = Failure::new(Code::DeviceDisconnected, "transport_error", "it is gone");
        let json: serde_json::Value = serde_json::from_str(&gone.to_json()).expect("it is JSON");
        assert_eq!(
            (&json["code"], &json["family"]),
            (&"DEVICE_DISCONNECTED".into(), &"DRIVER".into()),
            "R-D3"
        );
    }
}

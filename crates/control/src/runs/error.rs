//! Why a run does not begin, or is not found.

use narthex_gateway::AuditFull;
use narthex_model::ErrorKind;
use narthex_registry::MountFault;
use serde::Serialize;
use serde_json::Value;

/// Nothing of what was asked for has happened.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The document is not what it should be.
    #[error("{0}")]
    Malformed(String),
    /// Entries cannot be used, or have aliases that are taken.
    #[error("no run was begun: {}", told(.0))]
    Entries(Vec<RunFault>),
    /// Servers did not start.
    #[error("no run was begun, and nothing of it is left: {}", told(&RunFault::of_all(.0)))]
    Mount(Vec<MountFault>),
    /// There are as many as there may be.
    #[error("there are {0} runs already, which is the most; end some first")]
    TooMany(usize),
    /// It cannot be recorded.
    #[error("no run was begun, since it cannot be recorded: {0}")]
    Record(#[source] AuditFull),
    /// The system has no randomness to give.
    #[error("the system has no randomness for a token")]
    Randomness(#[source] getrandom::Error),
    /// There is no such run.
    #[error("there is no run `{0}`")]
    Unknown(String),
    /// It is the one of the process itself.
    #[error(
        "the run of the daemon itself ends with the daemon; stop that with `narthex daemon stop`"
    )]
    Local,
}

/// What is wrong with one server of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunFault {
    /// Its name as it was given.
    pub server: String,
    /// What kind of failure it is.
    pub kind: &'static str,
    /// For a person.
    pub message: String,
    /// For a program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
}

impl RunFault {
    fn of_all(faults: &[MountFault]) -> Vec<Self> {
        let fault = |MountFault { alias, error }: &MountFault| Self {
            server: alias.as_str().to_owned(),
            kind: error.kind.as_str(),
            message: error.message.clone(),
            details: error.details.clone(),
        };
        faults.iter().map(fault).collect()
    }
}

impl RunError {
    /// What kind of failure it is (D24).
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Malformed(_) => ErrorKind::Invalid,
            Self::Entries(faults) => {
                let taken = ErrorKind::Conflict.as_str();
                match faults.iter().all(|fault| fault.kind == taken) {
                    true => ErrorKind::Conflict,
                    false => ErrorKind::Invalid,
                }
            }
            Self::Mount(_) | Self::Randomness(_) => ErrorKind::Unavailable,
            Self::TooMany(_) => ErrorKind::Exhausted,
            Self::Record(full) => full.kind(),
            Self::Unknown(_) => ErrorKind::NotFound,
            Self::Local => ErrorKind::Conflict,
        }
    }

    /// Every fault of a server.
    #[must_use]
    pub fn faults(&self) -> Vec<RunFault> {
        match self {
            Self::Entries(faults) => faults.clone(),
            Self::Mount(faults) => RunFault::of_all(faults),
            Self::Malformed(_)
            | Self::TooMany(_)
            | Self::Record(_)
            | Self::Randomness(_)
            | Self::Unknown(_)
            | Self::Local => Vec::new(),
        }
    }
}

fn told(faults: &[RunFault]) -> String {
    let told = |fault: &RunFault| format!("server `{}`: {}", fault.server, fault.message);
    faults.iter().map(told).collect::<Vec<_>>().join("; ")
}

//! Reasons why a run does not begin, or is not found.

use std::path::PathBuf;

use narthex_audit::AuditFull;
use narthex_catalog::{Fault, FaultCode, Faults, Rejection};
use narthex_definitions::reviews::ReviewError;
use narthex_gateway::NotAllowed;
use narthex_model::{
    AgentName, ErrorKind, ExecutorName, OverBudget, Reader, RunId, SessionId, WorkspaceId,
    command::narthex, written,
};
use narthex_registry::MountFault;
use serde::Serialize;
use serde_json::Value;

use narthex_control::ControlError;

use crate::{SharingError, SocketsError};

/// An error of a request that had no effect.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The document has the wrong form.
    #[error("{0}")]
    Malformed(String),
    /// The request for a run is faulty: all of its faults.
    #[error("no run was created: {}", first_of(.0))]
    Refused(Faults),
    /// A document about a session is faulty: all of its faults.
    #[error("{}", first_of(.0))]
    Unfit(Faults),
    /// There is no such agent.
    #[error("there is no agent `{name}` in workspace `{workspace}`{hint}")]
    NoAgent {
        /// The name that was given.
        name: AgentName,
        /// The workspace that was searched.
        workspace: WorkspaceId,
        /// The nearest name, or the command that lists all, after `; `; empty for a run, which
        /// learns of no other agents.
        hint: String,
    },
    /// The caller may not set this field.
    #[error("`{field}`: {message}")]
    Denied {
        /// The field of the request.
        field: &'static str,
        /// The reason.
        message: String,
    },
    /// A run asks, by its own token, for an act that is forbidden to its calls as well.
    #[error(transparent)]
    NotAllowed(#[from] NotAllowed),
    /// Neither the agent of the parent run nor a grant allows the start of the agent.
    #[error("this run may not start the agent `{0}`: a human must allow it")]
    NotSpawnable(AgentName),
    /// A grant allows the start of the agent, but only for other models or runtimes.
    #[error("the grant to start the agent `{0}` is for other models or runtimes")]
    OtherModels(AgentName),
    /// The workspace has no such model.
    #[error("the model `{0}` is not enabled in this workspace")]
    ModelNotEnabled(String),
    /// The run has the most ancestors that it may have.
    #[error("a run can have at most {0} runs above it")]
    TooDeep(u32),
    /// The session has the most active children that it may have.
    #[error("this session has {0} active children, which is the limit; end some first")]
    TooManyChildren(u32),
    /// The workspace has reached its limit of children for this day.
    #[error(
        "the sessions of this workspace have created {0} children today, which is the limit; \
         continue tomorrow, or ask an admin to raise `children_per_day`"
    )]
    TooManyToday(u32),
    /// The session has an active child of the agent, of which it may have one at a time.
    #[error(
        "this session has an active child of that agent, `{0}`, and can have only one at a time; \
         use that child, or end it first"
    )]
    SingleChild(SessionId),
    /// The session is no child of the caller, or does not exist.
    #[error("there is no child `{0}` of this session")]
    NotYourChild(String),
    /// No run started the session.
    #[error("no run started this session, so no caller receives what it reports")]
    NoCaller,
    /// The session of the run above has ended.
    #[error("the session that started this one has ended")]
    CallerOver,
    /// The session has another report of its costs with this id.
    #[error("the session has another report with the id `{0}`; choose another id")]
    ReportTaken(String),
    /// The session has the most reports that it may have.
    #[error("the session has {0} reports, which is the limit; report less often")]
    TooManyReports(u64),
    /// The run is not waiting for a claim.
    #[error("the run `{0}` cannot be claimed: {1}")]
    NotPending(RunId, &'static str),
    /// The run that the request names as the parent is not active here.
    #[error("`parent_run_id`: there is no active run with this id")]
    NoParent,
    /// The session is suspended, and does not resume by a call.
    #[error(
        "the session `{0}` is suspended; an operator resumes it with `{command}`",
        command = narthex("sessions resume {}", &[.0])
    )]
    Suspended(SessionId),
    /// The session has ended, or cannot resume.
    #[error("{}", why.told(*id))]
    SessionOver {
        /// Id of the session.
        id: SessionId,
        /// The reason.
        why: Over,
    },
    /// There is no such session.
    #[error("there is no session `{0}`")]
    UnknownSession(String),
    /// The run has ended before.
    #[error("the run `{0}` has ended already")]
    HasEnded(RunId),
    /// Parts of the run were removed in each try.
    #[error("servers or secrets were removed at the same time; try again")]
    Changed,
    /// The store, the vault or the catalog refuses or fails.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// A share cannot be created or read.
    #[error(transparent)]
    Sharing(#[from] SharingError),
    /// Entries cannot be used, or have aliases that are taken.
    #[error("{}", told("no run was created", .0))]
    Entries(Vec<RunFault>),
    /// The run would start more than its workspace allows.
    #[error("{}", written::faults("no run was created", &.0.0))]
    OverBudget(OverBudget),
    /// Servers did not start.
    #[error(
        "{}",
        told("no run was created", &RunFault::of_all(.workspace, .faults))
    )]
    Mount {
        /// The workspace of the run.
        workspace: WorkspaceId,
        /// Every server that failed.
        faults: Vec<MountFault>,
    },
    /// The gateway's table has the most runs that it may have.
    #[error(
        "there are {0} active runs, which is the limit; end some with `{command}`",
        command = narthex("runs end ID", &[])
    )]
    TooMany(usize),
    /// This daemon has no executor for the agent's runs.
    #[error(
        "the agent's runs need the executor `{0}`, and this daemon has no such executor for this \
         workspace; ask the operator to add it to `executors` in the settings"
    )]
    NoExecutor(ExecutorName),
    /// A session's own folder cannot be created or read.
    #[error("the folder `{}` of a session cannot be used: {source}", .path.display())]
    Folder {
        /// The path of the folder.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// The sockets of the run cannot be opened.
    #[error("no run was created, since its sockets cannot be opened: {0}")]
    Sockets(#[source] SocketsError),
    /// The run cannot be recorded in the audit.
    #[error("no run was created, since it cannot be recorded: {0}")]
    Record(#[source] AuditFull),
    /// The system has no randomness to give.
    #[error("the operating system gives no random bytes for a token")]
    Randomness(#[source] getrandom::Error),
    /// The definitions of the run's servers cannot be reviewed.
    #[error(transparent)]
    Review(ReviewError),
    /// There is no such run.
    #[error("there is no run `{0}`")]
    Unknown(String),
    /// The run is that of the process itself.
    #[error(
        "the run of the daemon itself ends with the daemon; stop that with `{}`",
        narthex("daemon stop", &[])
    )]
    Local,
}

/// End of the message for models of a fault that its caller cannot repair.
const MENDED_BY_HUMAN: &str = "a human must repair it";

/// A fault that only a human repairs, in words for models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelWords {
    /// The word for programs.
    pub code: String,
    /// The fault, and that a human has to repair it.
    pub what: String,
}

/// A fault of one server of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunFault {
    /// The server's name as the caller gave it.
    pub server: String,
    /// The kind of failure.
    pub kind: &'static str,
    /// The message for operators.
    pub message: String,
    /// Details for a program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
}

impl RunFault {
    /// The reason why a run begins without the server, in words for this reader.
    #[must_use]
    pub fn read_by(&self, reader: Reader) -> &str {
        match reader {
            Reader::Operator => &self.message,
            Reader::Run => {
                "it cannot be started with its configuration; an operator must correct that"
            }
        }
    }

    pub(crate) fn invalid(server: String, message: String) -> Self {
        Self { server, kind: ErrorKind::Invalid.as_str(), message, details: None }
    }

    pub(crate) fn of_all(workspace: &WorkspaceId, faults: &[MountFault]) -> Vec<Self> {
        let fault = |fault: &MountFault| Self {
            server: fault.alias.as_str().to_owned(),
            kind: fault.error.kind.as_str(),
            message: with_logs(workspace, fault),
            details: fault.error.details(Reader::Operator),
        };
        faults.iter().map(fault).collect()
    }
}

impl From<ReviewError> for RunError {
    fn from(error: ReviewError) -> Self {
        match error {
            ReviewError::Control(error) => Self::Control(error),
            error => Self::Review(error),
        }
    }
}

/// The reason why a session takes no request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    /// It has ended.
    Ended,
    /// It has ended, and the request was to resume it.
    NotResumed,
    /// Another reason, with its remedy.
    Because(&'static str),
}

impl Over {
    fn told(self, id: SessionId) -> String {
        let ended = format!("the session `{id}` has ended already");
        match self {
            Self::Ended => ended,
            Self::NotResumed => {
                let create = narthex("runs create --agent AGENT", &[]);
                format!("{ended}; create a run with `{create}`")
            }
            Self::Because(why) => format!("session `{id}`: {why}"),
        }
    }
}

impl RunError {
    /// A request for a session that has ended.
    pub(crate) fn ended(id: SessionId) -> Self {
        Self::SessionOver { id, why: Over::Ended }
    }

    /// A request to resume a session that has ended.
    pub(crate) fn not_resumed(id: SessionId) -> Self {
        Self::SessionOver { id, why: Over::NotResumed }
    }

    /// A request that a session does not take for another reason.
    pub(crate) fn over(id: SessionId, why: &'static str) -> Self {
        Self::SessionOver { id, why: Over::Because(why) }
    }

    /// The kind of failure (D24).
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Malformed(_) | Self::NoParent | Self::OverBudget(_) => ErrorKind::Invalid,
            Self::NoAgent { .. } => ErrorKind::NotFound,
            Self::Refused(faults) | Self::Unfit(faults) => faults.kind(),
            Self::Denied { .. }
            | Self::NotSpawnable(_)
            | Self::OtherModels(_)
            | Self::ModelNotEnabled(_)
            | Self::TooDeep(_) => ErrorKind::Denied,
            Self::TooManyChildren(_) | Self::TooManyToday(_) | Self::TooManyReports(_) => {
                ErrorKind::Exhausted
            }
            Self::NotYourChild(_) | Self::NoCaller => ErrorKind::NotFound,
            Self::SingleChild(_) => ErrorKind::Conflict,
            Self::CallerOver | Self::ReportTaken(_) | Self::NotPending(..) => ErrorKind::Conflict,
            Self::UnknownSession(_) => ErrorKind::NotFound,
            Self::SessionOver { .. } | Self::Suspended(_) => ErrorKind::Conflict,
            Self::HasEnded(_) | Self::Changed => ErrorKind::Conflict,
            Self::NotAllowed(error) => error.kind,
            Self::Control(error) => error.kind(),
            Self::Sharing(error) => error.kind(),
            Self::Entries(faults) => {
                let taken = ErrorKind::Conflict.as_str();
                match faults.iter().all(|fault| fault.kind == taken) {
                    true => ErrorKind::Conflict,
                    false => ErrorKind::Invalid,
                }
            }
            Self::Mount { .. } | Self::Randomness(_) | Self::Folder { .. } => {
                ErrorKind::Unavailable
            }
            Self::NoExecutor(_) => ErrorKind::Conflict,
            Self::Review(error) => error.kind(),
            Self::TooMany(_) => ErrorKind::Exhausted,
            Self::Sockets(error) => error.kind,
            Self::Record(full) => full.kind(),
            Self::Unknown(_) => ErrorKind::NotFound,
            Self::Local => ErrorKind::Conflict,
        }
    }

    /// The code for programs, in results of tools (X-E84).
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoAgent { .. } => "agent_not_found",
            Self::NoExecutor(_) => "executor_unknown",
            Self::NotSpawnable(_) => "permission_required",
            Self::OtherModels(_) | Self::ModelNotEnabled(_) => "model_not_enabled",
            Self::TooDeep(_) => "too_deep",
            Self::TooManyChildren(_) | Self::TooManyToday(_) => "too_many_children",
            Self::SingleChild(_) => "child_goes_on",
            Self::NoParent => "parent_session_terminal",
            Self::NotYourChild(_) => "not_your_child",
            Self::NoCaller => "no_parent",
            Self::CallerOver => "parent_not_live",
            Self::SessionOver { .. } => "child_not_live",
            Self::Sharing(error) => error.code(),
            Self::NotAllowed(NotAllowed { call: Some(kind), .. }) => kind.as_str(),
            error => error.kind().as_str(),
        }
    }

    /// The words for models of a fault that only a human repairs (D28): the kind of fault, without
    /// the name of any server, secret, key, command or path. `None` where the caller repairs it.
    #[must_use]
    pub fn for_models(&self) -> Option<ModelWords> {
        let (code, what) = self.of_operators()?;
        Some(ModelWords { code, what: format!("{what}; {MENDED_BY_HUMAN}") })
    }

    /// For a fault that neither the caller's arguments nor time repair: the code for programs, and
    /// the fault in words that reveal to a model nothing of scopes and settings.
    fn of_operators(&self) -> Option<(String, &'static str)> {
        let is_operators = |fault: &&Fault| {
            let of = ["agents.", "capabilities.", "servers.", "run.scope"];
            of.iter().any(|start| fault.path.starts_with(start))
        };
        let (code, what) = match self {
            Self::Refused(faults) => {
                let fault = faults.iter().find(is_operators)?;
                let code = fault.code.word();
                let what = match fault.code {
                    FaultCode::MissingRequiredMcpConfig => {
                        "its servers need values that this run does not pass on"
                    }
                    FaultCode::SecretNotSet => "a secret that its servers need is not set",
                    _ => "its configuration has a fault",
                };
                return Some((code, what));
            }
            Self::Mount { .. } | Self::Entries(_) => {
                ("child_not_started", "its servers fail to start")
            }
            Self::NoExecutor(_) => (self.code(), "no executor here carries it out"),
            Self::OverBudget(_) => ("over_budget", "it would start more than a run is allowed"),
            Self::TooManyToday(_) => {
                (self.code(), "this workspace has reached its limit of children today")
            }
            Self::Folder { .. } => (self.code(), "its folder cannot be used"),
            Self::Sockets(_) => (self.code(), "its sockets cannot be opened"),
            Self::Record(_) => (self.code(), "it cannot be recorded"),
            Self::Randomness(_) => (self.code(), "the host has a fault"),
            Self::Control(error)
                if matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Bug) =>
            {
                (self.code(), "narthex has a fault")
            }
            _ => return None,
        };
        Some((code.to_owned(), what))
    }

    /// The members of the answer beside its text; `None` if the text is all.
    #[must_use]
    pub fn members(&self) -> Option<Rejection> {
        let coded = |code: &str| Rejection {
            error: self.to_string(),
            code: Some(code.to_owned()),
            ..Rejection::default()
        };
        Some(match self {
            Self::Refused(faults) | Self::Unfit(faults) => faults.rejection(),
            Self::NoAgent { .. } | Self::Sharing(_) => coded(self.code()),
            Self::OverBudget(_) => coded("over_budget"),
            Self::Denied { field, .. } => {
                Rejection { field: Some(field), ..coded(ErrorKind::Denied.as_str()) }
            }
            Self::NotSpawnable(_) | Self::OtherModels(_) => {
                Rejection { field: Some("agent_name"), ..coded(self.code()) }
            }
            Self::TooDeep(_) => Rejection { field: Some("parent_run_id"), ..coded(self.code()) },
            Self::NotAllowed(refused) => {
                Rejection { details: refused.details.clone(), ..coded(self.code()) }
            }
            Self::Entries(faults) => Rejection {
                error: self.to_string(),
                server_name: faults.first().map(|fault| fault.server.clone()),
                ..Rejection::default()
            },
            Self::Mount { faults, .. } => {
                let first = faults.first();
                Rejection {
                    error: self.to_string(),
                    code: first.map(|one| one.error.kind.as_str().to_owned()),
                    server_name: first.map(|one| one.alias.to_string()),
                    ..Rejection::default()
                }
            }
            _ => return None,
        })
    }

    /// Every fault of a server.
    #[must_use]
    pub fn faults(&self) -> Vec<RunFault> {
        match self {
            Self::Entries(faults) => faults.clone(),
            Self::Mount { workspace, faults } => RunFault::of_all(workspace, faults),
            _ => Vec::new(),
        }
    }
}

fn first_of(faults: &Faults) -> String {
    let mut told = faults.iter().map(ToString::to_string);
    let first = told.next().unwrap_or_default();
    match told.count() {
        0 => first,
        more => format!("{first} (and {more} more)"),
    }
}

/// The reason why a server did not start, with the command that shows its output, if it has any.
fn with_logs(workspace: &WorkspaceId, fault: &MountFault) -> String {
    let MountFault { alias, error, lines } = fault;
    match lines.is_empty() {
        true => error.operator_cause().to_owned(),
        false => {
            let logs = narthex("mcp logs {}", &[alias]).option("--workspace", workspace);
            format!("{}; `{logs}` shows its output", error.operator_cause())
        }
    }
}

fn told(heading: &str, faults: &[RunFault]) -> String {
    let told = |fault: &RunFault| format!("server `{}`: {}", fault.server, fault.message);
    written::faults(heading, &faults.iter().map(told).collect::<Vec<_>>())
}

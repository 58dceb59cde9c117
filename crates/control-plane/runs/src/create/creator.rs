//! The creator of a run.

use std::sync::Arc;

use narthex_audit::ActorKind;
use narthex_control::By;
use narthex_gateway::RunView;
use narthex_model::PrincipalId;
use serde_json::{Value, json};

/// The creator of a run. For a human, also the principal's id: the human drives the run (X-E81).
#[derive(Debug, Clone)]
pub enum Creator {
    /// An operator, who may set every field.
    Operator(By, Option<PrincipalId>),
    /// A runner or admin of the workspace, who may set no field that reaches beyond the workspace.
    Member(By, Option<PrincipalId>),
    /// A human without the required proof of being human (D15), or a service with a token that such
    /// a human has made. Without this case, the holder of the operator's token would have grants
    /// that were made to others.
    Unproved {
        /// The principal that they claim to be.
        by: By,
        /// True if they are an operator.
        is_operator: bool,
    },
    /// The daemon, where a session resumes by itself without a driver (X-E88). A platform that
    /// meets these requirements carries the run out.
    Platform(Awaited),
    /// A run that shows its own token: the new run is its child (O78).
    Run(Arc<RunView>),
    /// A run that starts a child. A platform that meets these requirements carries the child out.
    Spawner(Arc<RunView>, Awaited),
}

/// The requirements on the platform that carries out a child run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Awaited {
    /// The model; `None` if the platform may choose it.
    pub model: Option<String>,
    /// The runtime; `None` if the platform may choose it.
    pub runtime: Option<String>,
}

impl Creator {
    /// The requirements on the platform for the new run, unless its creator carries it out.
    pub(crate) fn awaited(&self) -> Option<&Awaited> {
        match self {
            Self::Spawner(_, awaited) | Self::Platform(awaited) => Some(awaited),
            Self::Operator(..) | Self::Member(..) | Self::Unproved { .. } | Self::Run(_) => None,
        }
    }

    /// True if the creator may choose commands and folders of this host.
    pub(crate) fn is_operator(&self) -> bool {
        match self {
            Self::Operator(..) => true,
            Self::Unproved { is_operator, .. } => *is_operator,
            Self::Member(..) | Self::Platform(..) | Self::Run(_) | Self::Spawner(..) => false,
        }
    }

    /// The actor that the audit records as the creator.
    pub(crate) fn by(self) -> By {
        match self {
            Self::Operator(by, _) | Self::Member(by, _) | Self::Unproved { by, .. } => by,
            Self::Platform(..) => By::system(),
            Self::Run(run) | Self::Spawner(run, _) => By::new(ActorKind::Run, run.id.to_text()),
        }
    }
}

/// The members by which events name an actor.
pub(crate) fn shown_actor(by: &By) -> Value {
    json!({ "kind": by.kind, "id": by.id })
}

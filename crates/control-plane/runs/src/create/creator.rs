//! The creator of a run.

use std::sync::Arc;

use narthex_audit::ActorKind;
use narthex_control::By;
use narthex_gateway::RunView;
use narthex_model::PrincipalId;
use serde_json::{Value, json};

/// The creator of a run; for a human the id as well, as they drive it (X-E81).
#[derive(Debug, Clone)]
pub enum Creator {
    /// An operator, who may set every field.
    Operator(By, Option<PrincipalId>),
    /// A runner or admin of the workspace, who may set no field that reaches beyond it.
    Member(By, Option<PrincipalId>),
    /// A human who has not proved to be one, where that is required (D15), or a service by a token
    /// that such a human has made. Without this case, the holder of the operator's token would have
    /// grants that were made to others.
    Unproved {
        /// The principal that they claim to be.
        by: By,
        /// True if they are an operator.
        is_operator: bool,
    },
    /// The daemon, where a session resumes by itself without a driver (X-E88); a platform is to
    /// carry the run out, with these requirements.
    Platform(Awaited),
    /// A run, by its token: the new one is its child (O78).
    Run(Arc<RunView>),
    /// A run, whose child a platform is to carry out, with these requirements.
    Spawner(Arc<RunView>, Awaited),
}

/// The requirements on the platform that carries out a child run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Awaited {
    /// The model; `None` if the platform may choose it.
    pub model: Option<String>,
    /// The runtime, likewise.
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

    /// True if they may choose commands and folders of this host.
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

/// An actor as events show it.
pub(crate) fn shown_actor(by: &By) -> Value {
    json!({ "kind": by.kind, "id": by.id })
}

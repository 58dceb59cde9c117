//! Who creates a run, and whom it acts for: its agent, its session, and the human who drives it
//! (X-E81).

use std::sync::Arc;

use narthex_audit::ActorKind;
use narthex_control::By;
use narthex_gateway::RunView;
use narthex_model::{AgentName, AgentType, PrincipalId, RunId, SessionId, WorkspaceId};
use narthex_policy::{Actors, Authority};
use narthex_resolve::RunRequest;
use narthex_store::RunRow;

use crate::{RunError, Runs, family::Parent};

/// Who creates a run; of a human the id as well, as they drive it (X-E81).
#[derive(Debug, Clone)]
pub enum Creator {
    /// An operator, who may say everything.
    Operator(By, Option<PrincipalId>),
    /// A runner or admin of the workspace: what reaches beyond it is not theirs to say.
    Member(By, Option<PrincipalId>),
    /// A human who has not proved to be one, where that is asked for (D15), or a service by a token
    /// that such a one has made: else whoever holds the operator's token would have what was
    /// granted to others.
    Unproved {
        /// Who they say they are.
        by: By,
        /// Whether they are an operator.
        is_operator: bool,
    },
    /// The daemon, where a session goes on by itself, which nobody drives (X-E88); somebody is to
    /// carry it out, by what is said here.
    Platform(Awaited),
    /// A run, by its token: the new one is its child (O78).
    Run(Arc<RunView>),
    /// The same, where somebody else is to carry the child out, by what is said here.
    Spawner(Arc<RunView>, Awaited),
}

/// What is asked of whoever carries a run out that another one began.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Awaited {
    /// The model; `None` if it is theirs to choose.
    pub model: Option<String>,
    /// The runtime, likewise.
    pub runtime: Option<String>,
}

impl Creator {
    /// What is asked of whoever carries the new run out, unless that is its creator.
    pub(crate) fn awaited(&self) -> Option<&Awaited> {
        match self {
            Self::Spawner(_, awaited) | Self::Platform(awaited) => Some(awaited),
            Self::Operator(..) | Self::Member(..) | Self::Unproved { .. } | Self::Run(_) => None,
        }
    }

    /// Whether they may say what is started on this host.
    pub(crate) fn is_operator(&self) -> bool {
        match self {
            Self::Operator(..) => true,
            Self::Unproved { is_operator, .. } => *is_operator,
            Self::Member(..) | Self::Platform(..) | Self::Run(_) | Self::Spawner(..) => false,
        }
    }

    /// Who the record says began it.
    pub(crate) fn by(self) -> By {
        match self {
            Self::Operator(by, _) | Self::Member(by, _) | Self::Unproved { by, .. } => by,
            Self::Platform(..) => By::system(),
            Self::Run(run) | Self::Spawner(run, _) => By::new(ActorKind::Run, run.id.to_text()),
        }
    }
}

/// Which run it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) run: RunId,
    pub(crate) session: SessionId,
    /// Empty if it has servers of its own.
    pub(crate) agent: &'a str,
    /// `None` if it has servers of its own.
    pub(crate) agent_type: Option<AgentType>,
    /// Whether another run began it.
    pub(crate) is_child: bool,
}

impl Runs {
    /// The human who drives a run that is to be created: who has the turn of the parent, whoever
    /// creates it, or whom a service or an operator names.
    pub(crate) fn driver(
        &self,
        workspace: &WorkspaceId,
        request: &RunRequest,
        by: &Creator,
        parent: Option<&Parent>,
    ) -> Result<Option<PrincipalId>, RunError> {
        let denied =
            |message: &str| RunError::Denied { field: "user", message: message.to_owned() };
        let named = request.user.as_deref();
        let (human, is_operator) = match by {
            Creator::Operator(_, human) => (human.as_ref(), true),
            Creator::Member(_, human) => (human.as_ref(), false),
            Creator::Unproved { .. } if named.is_some() => {
                let message = "only a human who has signed in with a passkey or at a provider, \
                               or a service by a token that such a human has made, says who drives \
                               a run (`grants.require_proof`)";
                return Err(denied(message));
            }
            // A child of a run that somebody drives would be driven by them.
            Creator::Unproved { .. } if parent.is_some_and(|one| one.row.acts_for().is_some()) => {
                let message = "a human drives the parent, and only who has proved to be one goes \
                               on there (`grants.require_proof`); use the run's own token";
                return Err(denied(message));
            }
            Creator::Unproved { .. }
            | Creator::Platform(_)
            | Creator::Run(_)
            | Creator::Spawner(..) => (None, false),
        };
        if let Some(parent) = parent {
            // Whoever has the turn above has it in what comes of it.
            let driver = parent.row.acts_for().cloned();
            return match (named, human) {
                (Some(_), _) => Err(denied("a child is driven by whoever drives its parent")),
                // Else whoever may create runs would get what was granted to others.
                (None, Some(human)) if !is_operator && driver.as_ref() != Some(human) => {
                    Ok(Some(human.clone()))
                }
                (None, _) => Ok(driver),
            };
        }
        let Some(who) = named else { return Ok(human.cloned()) };
        let found = self.control().driver(workspace, who);
        let found = found.map_err(|_absent| denied("there is no such member of the workspace"))?;
        match human {
            Some(human) if *human != found && !is_operator => {
                Err(denied("you drive the runs that you create"))
            }
            _ => Ok(Some(found)),
        }
    }

    /// What policy looks at for a run: whom grants are for, and the grants and rules of its
    /// workspace.
    pub(crate) fn authority(
        &self,
        workspace: &WorkspaceId,
        place: Place<'_>,
        user: Option<PrincipalId>,
    ) -> Authority {
        let Place { run, session, agent, agent_type, is_child } = place;
        let agent = AgentName::new(agent).ok();
        let (session, run) = (Some(session), Some(run));
        let actors = Actors { user, turn: 0, agent, session, run, agent_type, is_child };
        let (grants, rules) =
            (self.control().grants_of(workspace), self.control().rules_of(workspace));
        Authority::new(actors, grants, rules)
    }

    /// From here on whoever has the turn of its session has it in a run. If that cannot be found
    /// out, the run is taken out of the table: it begins again when its token is next shown.
    pub(crate) async fn take_turns(&self, run: &RunView, row: &RunRow) -> Result<(), RunError> {
        let acting = run.authority.acting();
        let take = |row: &RunRow| acting.take_turn(row.turn.number, row.acts_for());
        take(row);
        self.control().turns().join(&row.workspace, row.session, row.id, acting);
        // Somebody may have spoken before it was followed.
        match self.stored(&row.workspace, row.id).await {
            Ok(now) => {
                now.iter().for_each(take);
                Ok(())
            }
            Err(error) => {
                self.end_view(row.id).await;
                Err(error)
            }
        }
    }
}

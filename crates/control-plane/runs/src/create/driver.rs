//! The principals of a run: its agent, its session, and the human who drives it (X-E81).

use narthex_catalog::RunRequest;
use narthex_gateway::RunView;
use narthex_model::{AgentName, AgentType, PrincipalId, RunId, SessionId, WorkspaceId};
use narthex_policy::{Actors, Authority};
use narthex_store::RunRow;

use crate::{
    RunError, Runs,
    create::{creator::Creator, parent::Parent},
};

/// Facts of a run for policy.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) run: RunId,
    pub(crate) session: SessionId,
    /// The name of the agent; empty if the run has servers of its own.
    pub(crate) agent: &'a str,
    /// `None` if the run has servers of its own.
    pub(crate) agent_type: Option<AgentType>,
    /// True if another run created it.
    pub(crate) is_child: bool,
}

impl Runs {
    /// The human who drives a new run: the human with the turn of the parent, the creator, or the
    /// human whom a service or an operator names.
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
                let message = "only a human who signed in with a passkey or at a provider, or a \
                               service by a token of such a human, can name the driver of a run \
                               (`grants.require_proof`)";
                return Err(denied(message));
            }
            // A child of a run with a driver would get the same driver.
            Creator::Unproved { .. } if parent.is_some_and(|one| one.row.acts_for().is_some()) => {
                let message = "a human drives the parent run: only a human who signed in with a \
                               passkey or at a provider can create its children \
                               (`grants.require_proof`); use the run's own token";
                return Err(denied(message));
            }
            Creator::Unproved { .. }
            | Creator::Platform(_)
            | Creator::Run(_)
            | Creator::Spawner(..) => (None, false),
        };
        if let Some(parent) = parent {
            // The human with the turn of the parent session drives the child.
            let driver = parent.row.acts_for().cloned();
            return match (named, human) {
                (Some(_), _) => {
                    Err(denied("a child has the driver of its parent run; leave it out"))
                }
                // Else a creator of runs would get grants that were made to others.
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
                Err(denied("you are the driver of the runs that you create; leave it out"))
            }
            _ => Ok(Some(found)),
        }
    }

    /// The facts for policy's decisions on a run: the principals of grants, and the grants and
    /// rules of its workspace.
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

    /// Lets a run follow the turns of its session from here on. If the store cannot read the turn,
    /// the run leaves the gateway's table. It begins again when a caller next shows its token.
    pub(crate) async fn take_turns(&self, run: &RunView, row: &RunRow) -> Result<(), RunError> {
        let acting = run.authority.acting();
        let take = |row: &RunRow| acting.take_turn(row.turn.number, row.acts_for());
        take(row);
        self.control().turns().join(&row.workspace, row.session, row.id, acting);
        // A human may have taken the turn before the run followed it.
        match self.stored(&row.workspace, row.id).await {
            Ok(now) => {
                now.iter().for_each(take);
                Ok(())
            }
            Err(error) => {
                self.release(row.id).await;
                Err(error)
            }
        }
    }
}

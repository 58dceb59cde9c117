//! Who creates a run, and whom it acts for: its agent, its session, and the human who drives it
//! (X-E81).

use std::sync::Arc;

use narthex_control::By;
use narthex_gateway::RunView;
use narthex_model::{AgentName, AgentType, PrincipalId, RunId, SessionId, WorkspaceId};
use narthex_policy::{Actors, Authority};
use narthex_resolve::RunRequest;

use crate::{RunError, Runs, family::Parent};

/// Who creates a run; of a human the id as well, as they drive it (X-E81).
#[derive(Debug, Clone)]
pub enum Creator {
    /// An operator, who may say everything.
    Operator(By, Option<PrincipalId>),
    /// A runner or admin of the workspace: what reaches beyond it is not theirs to say.
    Member(By, Option<PrincipalId>),
    /// A run, by its token: the new one is its child (O78).
    Run(Arc<RunView>),
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
    /// The human who drives a run that is to be created: the parent's, whoever creates it, or whom
    /// a service or an operator names.
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
            Creator::Run(_) => (None, false),
        };
        if let Some(parent) = parent {
            let driver = parent.row.driver.clone();
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
        let actors = Actors { user, agent, session, run, agent_type, is_child };
        let (grants, rules) =
            (self.control().grants_of(workspace), self.control().rules_of(workspace));
        Authority { actors, grants, rules }
    }
}

//! The parts of an app, built from its options.

use std::{collections::BTreeSet, sync::Arc};

use narthex_gateway::{RunToken, RunView};
use narthex_model::{Confinement, PrincipalId, SessionId, WorkspaceId};
use narthex_policy::{Actors, Authority, Grants, RunPolicy, WorkspaceRules};
use narthex_traffic::{MeterKey, MeterKind, Meters, RunMeters};
use narthex_upstream::Supervision;

use super::{Servers, no_randomness};
use crate::{Failure, config};

/// The servers that a person has disabled (E57).
pub(super) async fn disabled(servers: &Servers) -> Result<BTreeSet<String>, Failure> {
    let Servers::Followed(options) = servers else { return Ok(BTreeSet::new()) };
    match &options.store {
        Some(store) => {
            let disabled = store.server_flags().disabled(&WorkspaceId::default()).await;
            disabled.map_err(|error| Failure::caused(error.kind(), &error))
        }
        None => Ok(BTreeSet::new()),
    }
}

/// True if there is a store for the definitions of servers, for entries that pin them.
pub(super) fn keeps_definitions(servers: &Servers) -> bool {
    matches!(servers, Servers::Followed(options) if options.store.is_some())
}

/// The supervision of programs whose entry does not name a confinement.
pub(super) fn supervision(is_strict: bool) -> Result<Supervision, Failure> {
    let root = is_strict.then(config::workspace_root).transpose()?;
    let confinement = root.map(|root| Confinement::strict(Some(root)));
    Ok(Supervision { confinement, ..Supervision::default() })
}

/// The meters, grants and rules of control, which the local run and the gateway look into.
pub(super) fn shared(servers: &Servers) -> (Meters, (Arc<Grants>, Arc<WorkspaceRules>)) {
    match servers {
        Servers::Followed(of) => (of.meters.clone(), (of.grants.clone(), of.rules.clone())),
        Servers::Fixed(_) => (Meters::default(), (Arc::default(), WorkspaceRules::none())),
    }
}

/// The run of this process, which belongs to the workspace of the local configuration.
pub(super) fn local_run(
    token: &RunToken,
    policy: RunPolicy,
    meters: &Meters,
    (grants, rules): (Arc<Grants>, Arc<WorkspaceRules>),
) -> Result<Arc<RunView>, Failure> {
    let workspace = WorkspaceId::default();
    let name = workspace.as_str().into();
    let meter = meters.get(&MeterKey { workspace, kind: MeterKind::Workspace, name });
    let meters = RunMeters { workspace: Some(meter), ..RunMeters::default() };
    // The person who started this process drives it (X-E81).
    let user = Some(PrincipalId::local_admin());
    let mut session = [0; SessionId::BYTES];
    getrandom::fill(&mut session).map_err(|error| no_randomness(&error))?;
    // The session is created when there is an event to record.
    let session = Some(SessionId::new(session));
    let actors = Actors { user, session, run: Some(token.run_id()), ..Actors::default() };
    let run = RunView::new(token, policy).with_meters(meters);
    Ok(Arc::new(run.with_authority(Authority::new(actors, grants, rules))))
}

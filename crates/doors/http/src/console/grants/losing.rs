//! The active runs that may use a grant now, and so lose it by a revocation.

use narthex_console::{
    pages::grants::{Losing, LosingRun},
    parts::Words,
};
use narthex_model::{Grant, GrantSubject};
use narthex_runs::{RunFilter, SeenRun};

use crate::{
    console::{links, viewer::Viewer},
    problem::Problem,
};

/// Number of active runs that are looked at.
const LOOKED_AT: u32 = 100;
/// Number of runs that the page names.
const NAMED: usize = 10;

/// The active runs that may use a grant; `None` if this daemon knows no runs.
pub(super) async fn losing(viewer: &Viewer<'_>, grant: &Grant) -> Result<Option<Losing>, Problem> {
    let Some(runs) = &viewer.door.options.runs else { return Ok(None) };
    let (run, session) = grant.duration.places();
    let active = RunFilter { status: Some(None), session, ..RunFilter::default() };
    let page = runs.list(&viewer.workspace, active, 0, LOOKED_AT).await?;
    let uses = |seen: &&SeenRun| {
        run.is_none_or(|run| seen.id() == Some(run)) && is_subject(seen, &grant.subject)
    };
    let found: Vec<_> = page.items.iter().filter(uses).collect();
    let named = found.iter().take(NAMED).filter_map(|seen| {
        let id = seen.id()?;
        let agent = seen.row.as_ref().map(|row| row.agent.as_str()).unwrap_or_default();
        Some(LosingRun {
            run: Words::new(&id.to_text()),
            href: links::run(viewer, &id.to_text()),
            agent: Words::new(agent),
        })
    });
    Ok(Some(Losing { runs: named.collect(), count: found.len(), is_part: page.next.is_some() }))
}

/// True if a run is of the agent of a grant, or it is the turn of its user.
fn is_subject(seen: &SeenRun, subject: &GrantSubject) -> bool {
    let actors = seen.view.as_ref().map(|view| view.authority.actors());
    match (subject, actors) {
        (GrantSubject::Agent(agent), Some(actors)) => actors.agent.as_ref() == Some(agent),
        (GrantSubject::User(user), Some(actors)) => actors.user.as_ref() == Some(user),
        (GrantSubject::Agent(agent), None) => {
            seen.row.as_ref().is_some_and(|row| row.agent == agent.as_str())
        }
        (GrantSubject::User(user), None) => {
            seen.row.as_ref().is_some_and(|row| row.driver.as_ref() == Some(user))
        }
    }
}

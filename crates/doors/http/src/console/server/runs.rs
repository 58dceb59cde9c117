//! The active runs that have a server of the configuration.

use http::StatusCode;
use narthex_console::{
    html,
    pages::server::runs::{RunRow, ServerRunsPage},
    parts::{Empty, Moment, Same, Words},
};
use narthex_gateway::RunView;
use narthex_model::{Alias, ErrorKind, Pid, command::narthex};
use narthex_policy::RunPolicy;
use narthex_runs::{RunFilter, SeenRun};

use super::spot::{self, Tabbed};
use crate::{
    console::{
        answer::{self, Answered},
        frame::{Head, frame},
        links,
        viewer::Viewer,
    },
    problem::Problem,
};

/// Number of active runs that are read for one page.
const READ: u32 = 50;

pub(super) async fn show(viewer: &Viewer<'_>) -> Answered {
    let query = viewer.query(&["after"])?;
    let name = viewer.segment(0);
    let (_, row) = spot::find(viewer, &name)?;
    let after = match query.text("after") {
        "" => 0,
        text => text.parse().map_err(|_no_number| {
            let text = "this place is not known; begin at the first page of the runs";
            Problem::new(ErrorKind::Invalid, text)
        })?,
    };
    let (runs, searched, next): (Vec<RunRow>, usize, Option<u64>) =
        match (&viewer.door.options.runs, &row.alias) {
            (Some(runs), Some(alias)) => {
                let active = RunFilter { status: Some(None), ..RunFilter::default() };
                let page = runs.list(&viewer.workspace, active, after, READ).await?;
                let having = page.items.iter().filter_map(|run| having(viewer, run, alias));
                (having.collect(), page.items.len(), page.next)
            }
            (None, _) | (_, None) => (Vec::new(), 0, None),
        };
    let workspace = viewer.workspace.as_str();
    let command = narthex("runs list --status running", &[]).in_workspace(workspace);
    let head = Head {
        title: Words::new(&format!("Runs with {name}")),
        sentence: "The active runs of this workspace that have the server.",
        same: Some(Same::new(
            &command.to_string(),
            &format!("GET /api/workspaces/{workspace}/runs?status=running"),
        )),
    };
    let count = runs.len();
    let page = ServerRunsPage {
        frame: frame(viewer, head).await?,
        tabs: spot::tabs(viewer, &row, Tabbed::Runs),
        runs,
        searched: Words::new(&format!("{count} of {searched} active runs on this page")),
        next: next.map(|after| {
            let path = Tabbed::Runs.path(viewer, &name);
            spot::with(&path, &[("after", &after.to_string())])
        }),
        empty: Empty {
            title: "No active run has it",
            sentence: "A run has the server if it sees all servers of the configuration, or names \
                       this one. A server of the catalog with the same name is another server."
                .to_owned(),
            example: Some(narthex("runs create --tools {}", &[&name]).to_string()),
            page: Some("docs/concepts/runs.md"),
        },
    };
    Ok(answer::page(StatusCode::OK, html(&page)))
}

/// A run that has the shared server of this alias.
fn having(viewer: &Viewer<'_>, run: &SeenRun, alias: &Alias) -> Option<RunRow> {
    let view = run.view.as_ref()?;
    let why = why(view, alias)?;
    let pid = run.row.as_ref().map_or(Pid::OWN, |row| row.pid);
    let agent = run.row.as_ref().map_or("", |row| row.agent.as_str());
    let agent = match (agent, run.row.is_some()) {
        ("", true) => "a run without an agent",
        ("", false) => "the clients of this daemon",
        (agent, _) => agent,
    };
    Some(RunRow {
        id: Words::new(&view.id.to_text()),
        href: links::run(viewer, &view.id.to_text()),
        pid: pid.get(),
        agent: Words::new(agent),
        why,
        began: Moment::new(view.began),
        clients: viewer.door.gateway.sessions_of(view.id),
    })
}

/// The reason why a run has a shared server; `None` if it has none of this alias.
fn why(view: &RunView, alias: &Alias) -> Option<&'static str> {
    if view.own_servers().any(|own| own == alias) || !view.policy.is_attached(alias) {
        return None;
    }
    Some(match view.policy {
        RunPolicy::AllAttached => "it has all servers of the configuration",
        RunPolicy::Attached(_) => "it names this server",
        RunPolicy::Profile(_) => "its profile has this server",
    })
}

//! The sessions of agents: the work that goes on over several runs.

use std::collections::BTreeSet;

use http::StatusCode;
use narthex_console::{
    Told, html,
    pages::runs::{Link, SessionList, SessionRow, SessionsPage},
    parts::{Action, Empty, Moment, Same, Words},
};
use narthex_model::{EnvName, SessionId, command::narthex};
use narthex_runs::{Runs, SuspendedSession};

use super::{
    one::status,
    places::{link, queried},
    stored::{agent, known},
};
use crate::{
    Access,
    console::{
        answer::{self, Answered},
        frame::{self, Head, frame},
        live,
        viewer::Viewer,
    },
    routes::RUN,
    servers::Query,
};

/// Number of sessions of one page.
const PAGE: u32 = 40;

pub(super) async fn list(viewer: &Viewer<'_>) -> Answered {
    let query = viewer.query(&["after", "done", "name"])?;
    let runs = known(viewer)?;
    let page = runs.sessions(&viewer.workspace, query.text("after"), PAGE).await?;
    let request = format!("GET /api/workspaces/{}/sessions", viewer.workspace);
    let here = viewer.workspace.as_str();
    let command = narthex("sessions list", &[]).in_workspace(here);
    let head = Head {
        title: Words::new("Sessions"),
        sentence: "The work of agents that goes on over several runs.",
        same: Some(Same::new(&command.to_string(), &request)),
    };
    let mut frame = frame(viewer, head).await?;
    frame.told = told(&query);
    let live = vec![frame::live(&frame)];
    frame.live = Some(live::address(viewer, live, &query));
    let row = |row: &narthex_runs::SessionRow| {
        let suspended = page.suspended.get(&row.id);
        session(viewer, runs, row, suspended, page.agent_env.get(&row.id))
    };
    let empty = Empty {
        title: "No sessions",
        sentence: "A session begins with the first run of an agent, and goes on until it is ended."
            .to_owned(),
        example: Some(narthex("runs create --agent reader", &[]).in_workspace(here).to_string()),
        page: Some("docs/concepts/runs.md"),
    };
    let rows = page.items.iter().map(row).collect();
    let shown = SessionsPage {
        frame,
        list: SessionList { csrf: viewer.csrf.clone(), rows, empty },
        runs: viewer.path("runs"),
        next: page.next.map(|id| viewer.path(&format!("sessions?after={}", id.to_text()))),
    };
    Ok(answer::page(StatusCode::OK, html(&shown)))
}

/// The sentence for an action that was done without the script.
fn told(query: &Query) -> Option<Told> {
    let name = Words::new(query.subject());
    let sentence = match query.text("done") {
        "suspend" => format!("The session {name} is suspended."),
        "resume" => format!("The session {name} has another run."),
        "end" => format!("The session {name} has ended."),
        _ => return None,
    };
    Some(Told { sentence: Words::new(&sentence), is_failure: false })
}

fn session(
    viewer: &Viewer<'_>,
    runs: &Runs,
    row: &narthex_runs::SessionRow,
    suspended: Option<&SuspendedSession>,
    env: Option<&BTreeSet<EnvName>>,
) -> SessionRow {
    let id = row.id.to_text();
    let name = |text: &str| Words::new(text);
    SessionRow {
        id: Words::new(&id),
        agent: agent(&row.agent),
        status: status(row.ended_at, suspended.as_ref()),
        runs: viewer.path(&format!("runs?session={id}")),
        parent: row.parent.map(|run| link(viewer, run)),
        created: Moment::new(row.created_at),
        created_by: name(&row.created_by),
        suspended: suspended.map(|one| (Moment::new(one.at), name(&one.by))),
        ended: row.ended_at.map(Moment::new),
        env: env.into_iter().flatten().map(|name| Words::new(name.as_str())).collect(),
        actions: actions(viewer, runs, row, suspended.is_some()),
        question: question(viewer, runs, row),
    }
}

fn is_open(viewer: &Viewer<'_>, runs: &Runs, row: &narthex_runs::SessionRow) -> bool {
    row.ended_at.is_none() && !runs.is_own_session(row.id) && viewer.may(Access::Member(RUN))
}

fn actions(
    viewer: &Viewer<'_>,
    runs: &Runs,
    row: &narthex_runs::SessionRow,
    is_suspended: bool,
) -> Vec<Action> {
    if !is_open(viewer, runs, row) {
        return Vec::new();
    }
    let path = |verb: &str| viewer.path(&format!("sessions/{}/{verb}", row.id.to_text()));
    let hint = "ends the runs of the session with their open calls, until it is resumed";
    let again = "creates another run of the session, which waits for a program that claims it";
    vec![match is_suspended {
        true => Action::new(path("resume"), "Resume", again).primary(),
        false => Action::new(path("suspend"), "Suspend", hint),
    }]
}

fn question(viewer: &Viewer<'_>, runs: &Runs, row: &narthex_runs::SessionRow) -> Option<Link> {
    let href = viewer.path(&format!("sessions/{}/ending", row.id.to_text()));
    is_open(viewer, runs, row).then(|| Link { href, label: Words::new("End") })
}

/// The address of the list after an action.
pub(super) fn done(viewer: &Viewer<'_>, verb: &str, id: SessionId) -> String {
    let name = id.to_text();
    let query = queried(&[("done", verb.to_owned()), ("name", name)]);
    viewer.path(&format!("sessions?{query}"))
}

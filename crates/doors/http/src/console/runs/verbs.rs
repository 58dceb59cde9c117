//! The actions of runs and sessions, by the same functions as the API's, and the pages that ask
//! before those that cannot be undone.

use http::StatusCode;
use narthex_console::{
    Told, html,
    pages::runs::ConfirmPage,
    parts::{Action, Same, Words},
};
use narthex_model::{ErrorKind, command::narthex};
use serde_json::Map;

use super::{
    one::{One, Session},
    places::path,
    sessions,
    stored::known,
};
use crate::{
    body::RequestBody,
    console::{
        answer::{self, Answered},
        frame::{self, Head, frame},
        live,
        viewer::Viewer,
    },
    problem::Problem,
    servers::creator_of,
    shapes::CsrfForm,
};

/// Asks before the end of a run.
pub(super) async fn ask_run(viewer: &Viewer<'_>) -> Answered {
    let one = One::of(viewer).await?;
    let request = format!("DELETE /api/workspaces/{}/runs/{}", viewer.workspace, one.id);
    let command = narthex("runs end {}", &[&one.id]).in_workspace(viewer.workspace.as_str());
    let head = Head {
        title: Words::new(&format!("End the run {}?", one.name())),
        sentence: "An ended run cannot go on.",
        same: Some(Same::new(&command.to_string(), &request)),
    };
    let end = Action::new(path(viewer, one.id, "end"), "End the run", "ends it at once").primary();
    let action = match (&one.run.row, one.is_over()) {
        (None, _) => end.off("the daemon's own run ends with the daemon"),
        (_, true) => end.off("the run has ended already"),
        _ => end,
    };
    let effects = [
        "Its token opens nothing any more.",
        "Its open calls are answered at once, and their servers get a cancellation.",
        "Servers that belong to this run alone stop.",
        "Its frozen configuration is deleted. Its calls stay in the audit.",
        "Its session stays: another run can be created in it.",
    ];
    ask(viewer, head, &effects, action, path(viewer, one.id, "")).await
}

/// Asks before the end of a session.
pub(super) async fn ask_session(viewer: &Viewer<'_>) -> Answered {
    let session = Session::of(viewer, &viewer.segment(0)).await?;
    let id = session.row.id.to_text();
    let request = format!("DELETE /api/workspaces/{}/sessions/{id}", viewer.workspace);
    let command = narthex("sessions end {}", &[&id]).in_workspace(viewer.workspace.as_str());
    let head = Head {
        title: Words::new(&format!("End the session {id}?")),
        sentence: "An ended session cannot be resumed.",
        same: Some(Same::new(&command.to_string(), &request)),
    };
    let end = viewer.path(&format!("sessions/{id}/end"));
    let end = Action::new(end, "End the session", "ends it with all its runs").primary();
    let action = match (session.row.ended_at, known(viewer)?.is_own_session(session.row.id)) {
        (Some(_), _) => end.off("the session has ended already"),
        (None, true) => end.off("the daemon's own session ends with the daemon"),
        (None, false) => end,
    };
    let effects = [
        "All its active runs end, with their open calls.",
        "No run can be created in it any more, and it takes no messages.",
        "What was stored to resume it is deleted. Its events and its calls in the audit stay.",
        "The run that created it is told.",
    ];
    ask(viewer, head, &effects, action, viewer.path("sessions")).await
}

async fn ask(
    viewer: &Viewer<'_>,
    head: Head,
    effects: &[&str],
    action: Action,
    back: String,
) -> Answered {
    let query = viewer.query(&[])?;
    let mut frame = frame(viewer, head).await?;
    let live = vec![frame::live(&frame)];
    frame.live = Some(live::address(viewer, live, &query));
    let effects = effects.iter().map(|effect| Words::new(effect)).collect();
    // The answer to the action is another page.
    let page = ConfirmPage { frame, effects, action: action.page(), back };
    Ok(answer::page(StatusCode::OK, html(&page)))
}

/// Ends a run.
pub(super) async fn end_run(viewer: &Viewer<'_>, body: RequestBody) -> Answered {
    let CsrfForm { csrf: _ } = viewer.form(body).await?;
    let one = One::of(viewer).await?;
    known(viewer)?.end(&viewer.workspace, &one.id.to_text(), &viewer.by()).await?;
    answer::redirect(&path(viewer, one.id, ""))
}

/// Ends a session with its runs.
pub(super) async fn end_session(viewer: &Viewer<'_>, body: RequestBody) -> Answered {
    let session = named(viewer, body).await?;
    let id = session.row.id;
    known(viewer)?.session_end(&viewer.workspace, &id.to_text(), &viewer.by()).await?;
    answer::redirect(&sessions::done(viewer, "end", id))
}

/// Suspends a session.
pub(super) async fn suspend(viewer: &Viewer<'_>, body: RequestBody) -> Answered {
    let session = named(viewer, body).await?;
    let id = session.row.id;
    known(viewer)?.session_suspend(&viewer.workspace, &id.to_text(), &viewer.by()).await?;
    let sentence = format!("The session {} is suspended.", id.to_text());
    done(viewer, &sentence, &sessions::done(viewer, "suspend", id))
}

/// Resumes a session, if a program claims its runs: the token of another run would be lost.
pub(super) async fn resume(viewer: &Viewer<'_>, body: RequestBody) -> Answered {
    let session = named(viewer, body).await?;
    let id = session.row.id;
    if !session.is_claimed {
        let command = narthex("sessions resume {}", &[&id.to_text()]);
        let command = command.in_workspace(viewer.workspace.as_str());
        let text = format!(
            "no program claims runs of this session, and the token of another run is given to its \
             creator alone: resume the session by `{command}`, which gets the token"
        );
        return Err(Problem::new(ErrorKind::Conflict, text));
    }
    let name = id.to_text();
    let creator = creator_of(viewer.door, &viewer.principal);
    let runs = known(viewer)?;
    let resuming = runs.session_resume(&viewer.workspace, &name, (Map::new(), creator));
    let created = Box::pin(resuming).await?;
    let sentence = format!(
        "The session {} has another run, {}, which waits for a program that claims it.",
        id.to_text(),
        created.row.pid
    );
    done(viewer, &sentence, &sessions::done(viewer, "resume", id))
}

/// Revokes a grant that the address names.
pub(super) async fn revoke(viewer: &Viewer<'_>, body: RequestBody) -> Answered {
    let CsrfForm { csrf: _ } = viewer.form(body).await?;
    let query = viewer.query(&["grant"])?;
    let one = One::plain(viewer, &viewer.segment(0)).await?;
    let by = viewer.principal.granter()?;
    let control = viewer.control();
    control.grant_revoke(&viewer.workspace, query.text("grant"), &by.by).await?;
    done(
        viewer,
        "The grant is revoked: reload the page to see those that are left.",
        &format!("{}?done=revoke", path(viewer, one.id, "grants")),
    )
}

/// The session of the path, after the check of the form.
async fn named(viewer: &Viewer<'_>, body: RequestBody) -> Result<Session, Problem> {
    let CsrfForm { csrf: _ } = viewer.form(body).await?;
    Session::of(viewer, &viewer.segment(0)).await
}

fn done(viewer: &Viewer<'_>, sentence: &str, back: &str) -> Answered {
    viewer.done(Told { sentence: Words::new(sentence), is_failure: false }, back)
}

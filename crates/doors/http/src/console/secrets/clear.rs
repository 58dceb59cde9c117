//! The page that shows what breaks before a secret is cleared, and the action.

use http::StatusCode;
use narthex_console::{
    html,
    pages::secrets::{Holder, SecretClearPage},
    parts::{Action, Same, Words},
};
use narthex_model::command::narthex;
use narthex_runs::SecretRun;

use super::{
    done::Done,
    entries::{bound, is_set, named, page, whole},
    list::command,
};
use crate::{
    body::RequestBody,
    console::{
        answer::{self, Answered},
        frame::{Head, frame},
        viewer::Viewer,
    },
    secret_users::SecretUsers,
    shapes::CsrfForm,
};

/// Number of places and of runs that the page shows.
const SHOWN: usize = 50;

/// Shows what breaks.
pub(super) async fn show(viewer: &Viewer<'_>) -> Answered {
    viewer.query(&[])?;
    let name = named(viewer)?;
    let is_set = is_set(viewer, &name).await?;
    let users = SecretUsers::of(viewer.door, viewer.control(), &viewer.workspace, &name).await?;
    let request = format!("DELETE /api/workspaces/{}/secrets/{name}", viewer.workspace);
    let head = Head {
        title: Words::new(&format!("Clear {name}")),
        sentence: "What breaks, before the value is removed for good.",
        same: Some(Same::new(&command(viewer, narthex("secrets clear {}", &[&name])), &request)),
    };
    let path = viewer.path(&format!("secrets/{name}/clear"));
    let clear = Action::new(path, "Clear it", "removes all values of the secret at once");
    let page = SecretClearPage {
        frame: frame(viewer, head).await?,
        name: Words::new(name.as_str()),
        clear: is_set.then(|| clear.primary().page()),
        back: viewer.path("secrets"),
        is_kept: users.keep_the_value(),
        more_places: users.places.len().saturating_sub(SHOWN),
        more_runs: users.runs.len().saturating_sub(SHOWN),
        places: users.places.iter().take(SHOWN).map(|place| whole(viewer, place)).collect(),
        runs: users.runs.iter().take(SHOWN).map(|run| holder(viewer, run)).collect(),
        bound: users.bound.iter().take(SHOWN).map(bound).collect(),
    };
    Ok(answer::page(StatusCode::OK, html(&page)))
}

/// Clears the secret of the path.
pub(super) async fn clear(viewer: &Viewer<'_>, body: RequestBody) -> Answered {
    let CsrfForm { csrf: _ } = viewer.form(body).await?;
    let name = named(viewer)?;
    let (control, by) = (viewer.control(), viewer.by());
    let users = SecretUsers::clear(viewer.door, control, &viewer.workspace, &name, &by).await?;
    let done = if users.keep_the_value() { Done::Kept } else { Done::Cleared };
    done.answer(viewer, &name)
}

fn holder(viewer: &Viewer<'_>, run: &SecretRun) -> Holder {
    let joined = |names: Vec<&str>| Words::new(&names.join(", "));
    Holder {
        pid: run.pid.get(),
        agent: Words::new(&run.agent),
        href: page(viewer, "runs", &run.id.to_text()),
        servers: joined(run.servers.iter().map(|alias| alias.as_str()).collect()),
        env: joined(run.env.iter().map(|name| name.as_str()).collect()),
    }
}

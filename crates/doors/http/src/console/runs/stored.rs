//! The runs that this process keeps, and the row of one of them.

use narthex_console::{
    pages::runs::{RunRow, RunStatus},
    parts::{Moment, Words},
};
use narthex_model::ErrorKind;
use narthex_runs::{RunStatus as Status, Runs};

use super::places::{element, link, path};
use crate::{console::viewer::Viewer, problem::Problem};

/// The runs of this process.
pub(super) fn known<'v>(viewer: &'v Viewer<'_>) -> Result<&'v Runs, Problem> {
    viewer
        .door
        .options
        .runs
        .as_ref()
        .ok_or_else(|| Problem::new(ErrorKind::Conflict, "this process creates and ends no runs"))
}

/// The row of a stored run.
pub(super) fn stored_row(viewer: &Viewer<'_>, row: &narthex_runs::RunRow) -> RunRow {
    let name = |id| Words::new(&viewer.control().principal_name(id));
    RunRow {
        id: element(row.id),
        href: path(viewer, row.id, ""),
        pid: row.pid.get(),
        agent: agent(&row.agent),
        status: RunStatus(Status::of(row).as_str()),
        driver: row.driver.as_ref().map(name),
        parent: row.parent.map(|parent| link(viewer, parent)),
        created: Moment::new(row.created_at),
        ended: row.ended.map(|(at, _)| Moment::new(at)),
        expires: row.ended.is_none().then(|| Moment::new(row.expires_at)),
        depth: 0,
    }
}

/// The agent in words.
pub(super) fn agent(name: &str) -> Words {
    Words::new(if name.is_empty() { "servers of its own" } else { name })
}

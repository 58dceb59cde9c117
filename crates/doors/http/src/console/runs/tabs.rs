//! The runs below a run, the grants that count in it, and its files.

use http::StatusCode;
use narthex_console::{
    Told, html,
    pages::runs::{
        RunList,
        tabs::{ChildrenPage, FilesPage, GrantRow, GrantsPage, Share, as_tree},
    },
    parts::{Action, Empty, Moment, Same, Words},
};
use narthex_control::GrantRow as Stored;
use narthex_model::{GrantDuration, GrantSubject, Pid, command::narthex};
use narthex_runs::ShareRow;
use narthex_vfs::MountName;
use serde_json::Value;

use super::{
    one::One,
    places::{element, path},
    stored::{known, stored_row},
};
use crate::{
    Access,
    console::{
        answer::{self, Answered},
        frame::{self, Head, frame},
        live,
        viewer::Viewer,
    },
    problem::Problem,
    routes::ADMIN,
    servers::Query,
};

/// Number of runs below a run, and of generations, on one page.
const BELOW: u32 = 50;
const DEPTH: u32 = 8;
/// Number of grants of the workspace that are looked at.
const GRANTS: u32 = 1_000;
/// Number of shares on one page.
const SHARES: u32 = 100;

/// A tab: its frame with the live head.
async fn framed(
    viewer: &Viewer<'_>,
    one: &One,
    query: Query,
    head: Head,
) -> Result<(narthex_console::Frame, narthex_console::pages::runs::tabs::RunTop), Problem> {
    let mut frame = frame(viewer, head).await?;
    frame.related = one.related(viewer);
    let top = one.top(viewer);
    let live = vec![frame::live(&frame), One::live(&top)];
    frame.live = Some(live::address(viewer, live, &one.with_path(query)));
    Ok((frame, top))
}

/// The runs that the run, or one below it, has created.
pub(super) async fn children(viewer: &Viewer<'_>) -> Answered {
    let query = viewer.query(&[])?;
    let one = One::of(viewer).await?;
    let request = format!("GET /api/workspaces/{}/runs", viewer.workspace);
    let command = narthex("runs list", &[]).in_workspace(viewer.workspace.as_str());
    let head = Head {
        title: Words::new(&format!("Children: run {}", one.name())),
        sentence: "The runs that this run, or one below it, has created.",
        same: Some(Same::new(&command.to_string(), &request)),
    };
    let (frame, top) = framed(viewer, &one, query, head).await?;
    let runs = known(viewer)?;
    let mut rows = runs.below(&viewer.workspace, one.id, DEPTH, BELOW + 1).await?;
    let has_more = rows.len() > usize::try_from(BELOW).unwrap_or(usize::MAX);
    rows.truncate(usize::try_from(BELOW).unwrap_or(usize::MAX));
    let row = |row: &narthex_runs::RunRow| {
        let parent = row.parent.map(element);
        (element(row.id), parent, stored_row(viewer, row))
    };
    let list = RunList { rows: as_tree(&element(one.id), rows.iter().map(row).collect()) };
    let empty = Empty {
        title: "No children",
        sentence:
            "A child is a run that an agent has created for a part of its work. This run has \
                   created no other run."
                .to_owned(),
        example: Some(command.to_string()),
        page: Some("docs/concepts/children.md"),
    };
    let tabs = one.tabs(viewer, "children");
    let page = ChildrenPage { frame, top, tabs, list, has_more, empty };
    Ok(answer::page(StatusCode::OK, html(&page)))
}

/// The grants that count in the run now.
pub(super) async fn grants(viewer: &Viewer<'_>) -> Answered {
    let query = viewer.query(&["done"])?;
    let one = One::of(viewer).await?;
    let request = format!("GET /api/workspaces/{}/grants", viewer.workspace);
    let command = narthex("grants list", &[]).in_workspace(viewer.workspace.as_str());
    let head = Head {
        title: Words::new(&format!("Grants: run {}", one.name())),
        sentence: "The permissions of humans that count in this run now.",
        same: Some(Same::new(&command.to_string(), &request)),
    };
    let is_revoked = query.text("done") == "revoke";
    let (mut frame, top) = framed(viewer, &one, query, head).await?;
    frame.told = is_revoked
        .then(|| Told { sentence: Words::new("The grant is revoked."), is_failure: false });
    let control = viewer.control();
    let page = control.grants(&viewer.workspace, "", GRANTS, false).await?;
    let counting = page.items.iter().filter(|row| control.grant_counts(row) && is_for(&one, row));
    let rows = counting.map(|row| grant(viewer, &one, row)).collect();
    let empty = Empty {
        title: "No grants",
        sentence: "No grant of a human counts in this run now.".to_owned(),
        example: Some(
            narthex("grants create SCOPE --agent AGENT", &[])
                .in_workspace(viewer.workspace.as_str())
                .to_string(),
        ),
        page: Some("docs/guides/approvals.md"),
    };
    let (tabs, has_more) = (one.tabs(viewer, "grants"), page.next.is_some());
    let page = GrantsPage { frame, top, tabs, rows, has_more, empty };
    Ok(answer::page(StatusCode::OK, html(&page)))
}

/// True if a grant is for the run: for its agent or the human with the turn, and for this time.
fn is_for(one: &One, row: &Stored) -> bool {
    let stored = one.run.row.as_ref();
    let (run, session) = row.grant.duration.places();
    let is_here = run.is_none_or(|run| run == one.id)
        && session.is_none_or(|id| stored.is_some_and(|row| row.session == id));
    let is_subject = match &row.grant.subject {
        GrantSubject::Agent(name) => stored.is_some_and(|row| row.agent == name.as_str()),
        GrantSubject::User(user) => match (stored, &one.run.view) {
            (Some(row), _) => row.acts_for() == Some(user),
            (None, Some(view)) => view.authority.actors().user.as_ref() == Some(user),
            (None, None) => false,
        },
    };
    is_here && is_subject
}

fn grant(viewer: &Viewer<'_>, one: &One, row: &Stored) -> GrantRow {
    let details = row.grant.of.details();
    let told = ["scope", "server", "tool", "child_agent_id"]
        .iter()
        .filter_map(|name| Some((name, details.get(*name).and_then(Value::as_str)?)))
        .map(|(name, value)| match *name {
            "scope" | "child_agent_id" => value.to_owned(),
            name => format!("{name} {value}"),
        });
    let of = told.collect::<Vec<_>>().join(", ");
    let subject = match &row.grant.subject {
        GrantSubject::Agent(name) => format!("the agent {name}"),
        GrantSubject::User(user) => viewer.control().principal_name(user),
    };
    let id = row.grant.id.to_text();
    let revoke = Action::new(
        format!("{}?grant={id}", path(viewer, one.id, "revoke")),
        "Revoke",
        "takes effect with the next call, in all runs for which the grant counts",
    );
    GrantRow {
        of: Words::new(&format!("{} {of}", row.grant.of.word().replace('_', " "))),
        subject: Words::new(&subject),
        duration: Words::new(match row.grant.duration {
            GrantDuration::Once | GrantDuration::OnceIn(_) => "for one call",
            GrantDuration::Run(_) => "until the run ends",
            GrantDuration::Session(_) => "until the session ends",
            GrantDuration::Persistent => "until it is revoked",
        }),
        by: Words::new(&row.granted_by),
        at: Moment::new(row.granted_at),
        expires: row.grant.expires_at.map(Moment::new),
        is_advisory: row.is_advisory,
        action: match viewer.may(Access::Member(ADMIN)) {
            true => revoke,
            false => revoke.off("your roles in this workspace do not include admin"),
        },
    }
}

/// The mounts of the run, and the files that its session shares.
pub(super) async fn files(viewer: &Viewer<'_>) -> Answered {
    let query = viewer.query(&[])?;
    let one = One::of(viewer).await?;
    let request = format!("GET /api/workspaces/{}/shares", viewer.workspace);
    let here = viewer.workspace.as_str();
    let head = Head {
        title: Words::new(&format!("Files: run {}", one.name())),
        sentence: "The file tree of the run, and the files that its session has shared.",
        same: Some(Same::new(
            &narthex("shares list", &[]).in_workspace(here).to_string(),
            &request,
        )),
    };
    let (frame, top) = framed(viewer, &one, query, head).await?;
    let pid = Pid::new(one.pid());
    let mount = |alias| Words::new(&MountName { pid, alias }.path());
    let view = one.run.view.as_deref();
    let mounts = view.map(|view| viewer.door.gateway.aliases(view)).unwrap_or_default();
    let shares = match &one.run.row {
        Some(row) => known(viewer)?.shares_of(&viewer.workspace, row.session, SHARES).await?,
        None => Vec::new(),
    };
    let page = FilesPage {
        frame,
        top,
        tabs: one.tabs(viewer, "files"),
        mounts: mounts.into_iter().map(mount).collect(),
        shares: shares.iter().map(|row| share(viewer, row)).collect(),
        same: Same::new(&narthex("mount mcp --pid {}", &[&pid]).to_string(), ""),
    };
    Ok(answer::page(StatusCode::OK, html(&page)))
}

fn share(viewer: &Viewer<'_>, row: &ShareRow) -> Share {
    let ShareRow { title, kind, total_size, revision, entry_point, .. } = row;
    let id = row.id.to_text();
    let content = format!("/api/workspaces/{}/shares/{id}/content", viewer.workspace);
    Share {
        title: Words::new(title),
        about: Words::new(&format!("{kind}, {total_size} bytes, set {revision} times")),
        updated: Moment::new(row.updated_at),
        download: entry_point.as_ref().map(|_| content),
    }
}

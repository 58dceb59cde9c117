//! All workspaces with the numbers of their objects, the form for a new one, and the deletion.

use http::StatusCode;
use narthex_console::{
    Told, html,
    pages::operator::{OperatorDeletePage, OperatorNewPage, OperatorWorkspacesPage, WorkspaceRow},
    parts::{
        Same, Words,
        form::{Field, Input},
    },
};
use narthex_control::{AccessError, ControlError, Installation, WorkspaceUse};
use narthex_model::{WorkspaceId, command::narthex};
use serde::Deserialize;
use serde_json::json;

use crate::{
    body::RequestBody,
    console::{
        answer::{self, Answered, nothing},
        frame::{Head, frame},
        viewer::{Form, Viewer},
    },
    problem::Problem,
    servers::{Query, delete_workspace},
};

/// Number of rows of one page.
const PAGE: usize = 40;
/// The reason why the first workspace has no deletion.
const STAYS: &str = "the workspace `default` cannot be deleted";

/// The form of a new workspace.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct NewForm {
    csrf: String,
    id: String,
    #[serde(default)]
    name: String,
}

/// The form that deletes a workspace.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DeleteForm {
    csrf: String,
    /// `on` if a workspace with objects is deleted, too.
    #[serde(default)]
    force: String,
}

/// The faults of the fields.
#[derive(Debug, Default)]
struct Faults {
    of_id: Option<String>,
    of_name: Option<String>,
}

impl Form for NewForm {
    fn csrf(&self) -> &str {
        &self.csrf
    }
}

impl Form for DeleteForm {
    fn csrf(&self) -> &str {
        &self.csrf
    }
}

pub(super) async fn list(viewer: &Viewer<'_>) -> Answered {
    let query = viewer.query(&["q", "after", "done", "name"])?;
    let all = Installation::of(viewer.control()).workspace_uses().await?;
    let part = query.text("q").to_lowercase();
    let fits = |one: &&WorkspaceUse| {
        one.id.as_str().contains(&part) || one.name.to_lowercase().contains(&part)
    };
    let fitting: Vec<_> = all.iter().filter(fits).collect();
    let after = query.text("after");
    let mut rest = fitting.iter().filter(|one| one.id.as_str() > after);
    let shown: Vec<_> = rest.by_ref().take(PAGE).copied().collect();
    let next = rest.next().and(shown.last()).map(|last| {
        let mut pairs = form_urlencoded::Serializer::new(String::new());
        if !query.text("q").is_empty() {
            pairs.append_pair("q", query.text("q"));
        }
        pairs.append_pair("after", last.id.as_str());
        viewer.path(&format!("workspaces?{}", pairs.finish()))
    });
    let head = Head {
        title: Words::new("Workspaces"),
        sentence: "All workspaces of this installation, and how much is in each.",
        same: Some(Same::new(
            &narthex("workspaces list --counts", &[]).to_string(),
            "GET /api/daemon/workspaces",
        )),
    };
    let mut frame = frame(viewer, head).await?;
    frame.told = told(&query);
    let page = OperatorWorkspacesPage {
        frame,
        add: viewer.path("workspaces/new"),
        path: viewer.path("workspaces"),
        filtered: query.text("q").to_owned(),
        rows: shown.iter().map(|one| row(viewer, one)).collect(),
        count: fitting.len(),
        next,
    };
    Ok(answer::page(StatusCode::OK, html(&page)))
}

fn row(viewer: &Viewer<'_>, one: &WorkspaceUse) -> WorkspaceRow {
    let WorkspaceUse { id, name, members, servers, file_servers, runs, calls } = one;
    WorkspaceRow {
        href: format!("/w/{id}/"),
        id: Words::new(id.as_str()),
        name: Words::new(name),
        members: *members,
        servers: *servers,
        file_servers: *file_servers,
        runs: *runs,
        calls: *calls,
        delete: viewer.action("workspaces", id.as_str(), "delete"),
        stays: (*id == WorkspaceId::default()).then_some(STAYS),
    }
}

/// The sentence for the last action.
fn told(query: &Query) -> Option<Told> {
    let name = Words::new(query.subject());
    let sentence = match query.text("done") {
        "create" => format!("The workspace {name} is created."),
        "delete" => format!("The workspace {name} is deleted. Its audit stays."),
        _ => return None,
    };
    Some(Told { sentence: Words::new(&sentence), is_failure: false })
}

pub(super) async fn new(viewer: &Viewer<'_>) -> Answered {
    viewer.query(&[])?;
    form(viewer, &NewForm::default(), &Faults::default(), StatusCode::OK).await
}

/// Creates a workspace, or shows the form again with its faults.
pub(super) async fn create(viewer: &Viewer<'_>, body: RequestBody) -> Answered {
    let sent: NewForm = viewer.form(body).await?;
    let (id, name) = (sent.id.trim(), sent.name.trim());
    let body = match name {
        "" => json!({ "id": id }),
        _ => json!({ "id": id, "name": name }),
    };
    match viewer.control().workspace_create(body.to_string().as_bytes(), &viewer.by()).await {
        Ok(made) => done(viewer, "create", &made.id),
        Err(error) => {
            let faults = faults(error)?;
            form(viewer, &sent, &faults, StatusCode::UNPROCESSABLE_ENTITY).await
        }
    }
}

/// The faults of fields in an error; an error of another kind is the answer.
fn faults(error: ControlError) -> Result<Faults, Problem> {
    let mut faults = Faults::default();
    match &error {
        ControlError::Catalog(refused) if !refused.fields().is_empty() => {
            for fault in refused.fields() {
                let text = Some(format!("{}; {}", fault.message, fault.remedy));
                match fault.field.as_str() {
                    "name" => faults.of_name = text,
                    _ => faults.of_id = text,
                }
            }
        }
        ControlError::Access(AccessError::WorkspaceTaken(_)) => {
            faults.of_id = Some(error.to_string());
        }
        _ => return Err(error.into()),
    }
    Ok(faults)
}

async fn form(
    viewer: &Viewer<'_>,
    sent: &NewForm,
    faults: &Faults,
    status: StatusCode,
) -> Answered {
    let head = Head {
        title: Words::new("Create a workspace"),
        sentence: "A tenant of its own, with members, servers, secrets, agents and an audit.",
        same: Some(Same::new(
            &narthex("workspaces create ID --name NAME", &[]).to_string(),
            "POST /api/workspaces",
        )),
    };
    let line = |value: &str, example: &str| Input::Line {
        value: value.to_owned(),
        example: example.to_owned(),
    };
    let page = OperatorNewPage {
        frame: frame(viewer, head).await?,
        path: viewer.path("workspaces/new"),
        back: viewer.path("workspaces"),
        id: Field::new("id", "Id", line(&sent.id, "team"))
            .help("1 to 64 of a-z, 0-9, _ and -. Addresses have it, and it never changes.")
            .fault(faults.of_id.as_deref())
            .required(),
        name: Field::new("name", "Name", line(&sent.name, "The team"))
            .help("What people read. Without one it is the id.")
            .fault(faults.of_name.as_deref()),
    };
    Ok(answer::page(status, html(&page)))
}

/// The workspace of the path. One that does not exist is absent.
fn named(viewer: &Viewer<'_>) -> Result<WorkspaceId, Problem> {
    let id = WorkspaceId::new(&viewer.segment(0)).map_err(|_unfit| nothing())?;
    viewer.control().workspace(&id)?;
    Ok(id)
}

/// Shows what a deletion deletes, before it.
pub(super) async fn ask(viewer: &Viewer<'_>) -> Answered {
    viewer.query(&[])?;
    let id = named(viewer)?;
    let contents = Installation::of(viewer.control()).workspace_contents(&id).await?;
    let (command, query) = match contents.is_empty() {
        true => (narthex("workspaces delete {}", &[&id]), ""),
        false => (narthex("workspaces delete {} --force", &[&id]), "?force=true"),
    };
    let request = format!("DELETE /api/workspaces/{id}{query}");
    let head = Head {
        title: Words::new(&format!("Delete the workspace {id}?")),
        sentence: "A deleted workspace does not come back.",
        same: Some(Same::new(&command.to_string(), &request)),
    };
    let counted = |(what, count): &(&'static str, i64)| format!("{count} {what}");
    let page = OperatorDeletePage {
        frame: frame(viewer, head).await?,
        id: Words::new(id.as_str()),
        contents: contents.iter().map(counted).collect(),
        action: viewer.action("workspaces", id.as_str(), "delete"),
        back: viewer.path("workspaces"),
        stays: (id == WorkspaceId::default()).then_some(STAYS),
    };
    Ok(answer::page(StatusCode::OK, html(&page)))
}

pub(super) async fn delete(viewer: &Viewer<'_>, body: RequestBody) -> Answered {
    let DeleteForm { csrf: _, force } = viewer.form(body).await?;
    let id = named(viewer)?;
    let (runs, control) = (viewer.door.options.runs.as_ref(), viewer.control());
    delete_workspace(runs, control, &id, force == "on", &viewer.by()).await?;
    done(viewer, "delete", &id)
}

fn done(viewer: &Viewer<'_>, verb: &str, id: &WorkspaceId) -> Answered {
    answer::redirect(&viewer.path(&format!("workspaces?done={verb}&name={id}")))
}

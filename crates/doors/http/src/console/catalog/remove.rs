//! The removal of an entry, with the list of what it breaks.

use http::StatusCode;
use narthex_console::{
    Told, html,
    pages::catalog::CatalogRemovePage,
    parts::{Same, Words},
};
use narthex_control::{CatalogChange, CatalogError, ControlError, Precondition};
use narthex_model::{CatalogKind, command::narthex};
use serde::Deserialize;

use super::{entry::stored, paths::path};
use crate::{
    body::RequestBody,
    console::{
        answer::{self, Answered},
        frame::{Head, frame},
        viewer::{Form, Viewer},
    },
};

/// Number of references that the page names.
const USERS: usize = 50;

/// The form of the removal.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RemoveForm {
    csrf: String,
    /// The version tag of the entry that the page has shown.
    #[serde(default)]
    tag: String,
    /// `on` if the page has named references that break.
    force: Option<String>,
}

impl Form for RemoveForm {
    fn csrf(&self) -> &str {
        &self.csrf
    }
}

pub(super) async fn ask(viewer: &Viewer<'_>) -> Answered {
    viewer.query(&[])?;
    let id = viewer.segment(0);
    page(viewer, &id, None, StatusCode::OK).await
}

pub(super) async fn delete(viewer: &Viewer<'_>, body: RequestBody) -> Answered {
    let form: RemoveForm = viewer.form(body).await?;
    let id = viewer.segment(0);
    let change = CatalogChange {
        workspace: viewer.workspace.clone(),
        kind: CatalogKind::Server,
        precondition: Precondition::Tags(vec![form.tag]),
        by: viewer.by(),
        is_offline: false,
    };
    let is_forced = form.force.as_deref() == Some("on");
    match viewer.control().catalog_delete(change, &id, is_forced).await {
        Ok(()) => {
            let mut query = form_urlencoded::Serializer::new(String::new());
            query.append_pair("done", "removed").append_pair("name", &id);
            answer::redirect(&viewer.path(&format!("catalog?{}", query.finish())))
        }
        Err(ControlError::Catalog(CatalogError::InUse { .. } | CatalogError::Changed { .. })) => {
            let text = "Nothing was removed: the entry, or what refers to it, has changed since \
                        you saw this page. This is how it is now.";
            page(viewer, &id, Some(text), StatusCode::CONFLICT).await
        }
        Err(error) => Err(error.into()),
    }
}

async fn page(
    viewer: &Viewer<'_>,
    id: &str,
    refused: Option<&str>,
    status: StatusCode,
) -> Answered {
    let object = stored(viewer, id).await?;
    let kind = CatalogKind::Server;
    let users = viewer.control().catalog_users(&viewer.workspace, kind, id).await?;
    let force = if users.is_empty() { "" } else { "?force=true" };
    let command = match users.is_empty() {
        true => narthex("servers delete {}", &[&object.id]),
        false => narthex("servers delete {} --force", &[&object.id]),
    };
    let request =
        format!("DELETE /api/workspaces/{}/mcp-servers/{}{force}", viewer.workspace, object.id);
    let head = Head {
        title: Words::within(&format!("Remove {}", object.id), 120),
        sentence: "The entry goes, with its configuration. Secrets stay.",
        same: Some(Same::new(&command.in_workspace(&viewer.workspace).to_string(), &request)),
    };
    let mut frame = frame(viewer, head).await?;
    frame.told = refused.map(|text| Told { sentence: Words::new(text), is_failure: true });
    let page = CatalogRemovePage {
        frame,
        id: Words::within(&object.id, 100),
        action: path(viewer, &object.id, "delete"),
        tag: object.tag,
        users: users.iter().take(USERS).map(|user| Words::new(&user.field)).collect(),
        more: users.len().saturating_sub(USERS),
        back: path(viewer, &object.id, ""),
    };
    Ok(answer::page(status, html(&page)))
}

//! Adds a server of the registry to the catalog, disabled, by the function of the API.

use narthex_console::{Told, parts::Words};
use narthex_control::{CatalogChange, CatalogError, ControlError, Precondition};
use narthex_model::{CatalogKind, ErrorKind};
use serde::Deserialize;
use serde_json::json;

use super::{
    places::address,
    server::{RefusedId, described, page},
};
use crate::{
    FindFault,
    body::RequestBody,
    console::{
        answer::Answered,
        viewer::{Form, Viewer},
    },
    problem::Problem,
};

/// The form of a way.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AddForm {
    csrf: String,
    name: String,
    version: String,
    way: String,
    id: String,
}

impl Form for AddForm {
    fn csrf(&self) -> &str {
        &self.csrf
    }
}

/// Adds the way of the form. The registry is asked again: the form only names the way.
pub(super) async fn add(viewer: &Viewer<'_>, body: RequestBody) -> Answered {
    let AddForm { csrf: _, name, version, way, id } = viewer.form(body).await?;
    let found = described(viewer, &name, &version).await.map_err(refused)?;
    let number: usize = way.parse().map_err(|_unfit| gone())?;
    let mut draft = match found.ways.get(number).map(|way| way.draft.clone()) {
        Some(Ok(draft)) => draft,
        Some(Err(why)) => return Err(Problem::new(ErrorKind::Invalid, why)),
        None => return Err(gone()),
    };
    let id = id.trim().to_owned();
    if let Some(members) = draft.as_object_mut() {
        members.insert("id".to_owned(), json!(id));
    }
    let change = CatalogChange {
        workspace: viewer.workspace.clone(),
        kind: CatalogKind::Server,
        precondition: Precondition::None,
        by: viewer.by(),
        // A disabled server is not asked for its authorization server.
        is_offline: true,
    };
    match viewer.control().catalog_create(change, draft.to_string().into_bytes()).await {
        Ok(_written) => viewer.done(added(&id), &after(viewer, &id)),
        Err(error) if matches!(error.kind(), ErrorKind::Invalid | ErrorKind::Conflict) => {
            let refused = RefusedId { way: number, id, fault: fault(&error) };
            page(viewer, &name, &version, Ok(found), Some(refused)).await
        }
        Err(error) => Err(error.into()),
    }
}

/// The page after the addition: that of the server, if there is a catalog in the navigation.
fn after(viewer: &Viewer<'_>, id: &str) -> String {
    match viewer.in_nav("catalog") {
        Some(list) => format!("{list}/{id}?done=added"),
        None => address(viewer, &[("added", id)]),
    }
}

fn fault(error: &ControlError) -> String {
    match error {
        ControlError::Catalog(CatalogError::Refused(fields)) => {
            fields.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
        }
        error => error.to_string(),
    }
}

fn gone() -> Problem {
    let text = "the registry has another description of this server now; search for it again";
    Problem::new(ErrorKind::Conflict, text)
}

/// The sentence for a server that was added.
pub(super) fn added(id: &str) -> Told {
    let id = Words::within(id, 64);
    let sentence = format!("{id} is in the catalog as a draft, disabled until you enable it.");
    Told { sentence: Words::new(&sentence), is_failure: false }
}

/// The refusal of a registry's answer, where there is no page for it.
fn refused(fault: FindFault) -> Problem {
    Problem::new(fault.kind, fault.sentence)
}

//! The page of an object and its actions, by the same functions as the API's.

use http::StatusCode;
use narthex_console::{Told, parts::Words};
use narthex_control::{
    CatalogChange, CatalogError, CatalogObject, ControlError, FieldError, Precondition,
};
use narthex_model::{CatalogKind, ErrorKind};
use narthex_runs::RunError;
use serde_json::{Map, Value, json};

use super::{
    around::Around,
    draft::Draft,
    inputs,
    page::{Open, definition_of, list_of, path_of, render},
};
use crate::{
    Access,
    body::RequestBody,
    console::{
        answer::{self, Answered},
        sent::Sent,
        viewer::Viewer,
    },
    problem::Problem,
    routes::AUTHOR,
    servers::creator_of,
};

/// The page of a stored object.
pub(super) async fn show(viewer: &Viewer<'_>, kind: CatalogKind) -> Answered {
    let query = viewer.query(&["done"])?;
    let sentence = match query.text("done") {
        "saved" => Some("Saved. Runs that begin from now on have it."),
        "created" => Some("Created. Attach its servers, and save."),
        _ => None,
    };
    let told = |sentence| Told { sentence: Words::new(sentence), is_failure: false };
    let object = found(viewer, kind).await?;
    render(viewer, Open { told: sentence.map(told), ..Open::stored(kind, object) }).await
}

/// Saves an object, or changes its form without saving it.
pub(super) async fn edit(viewer: &Viewer<'_>, kind: CatalogKind, body: RequestBody) -> Answered {
    let sent: Sent = viewer.form(body).await?;
    let object = found(viewer, kind).await?;
    let around = Around::read(viewer, kind).await?;
    let mut draft = draft_of(kind, &object, &sent, &around);
    let mut open = Open::stored(kind, object);
    let verb = sent.text("do");
    match verb.as_str() {
        "save" => {
            open.around = Some(around);
            return save(viewer, open, draft, sent).await;
        }
        "attach" => drop(draft.attach(&sent)),
        "preview" => {
            let (inputs, faults) = inputs::read(&draft.definition, &sent);
            draft.faults.extend(faults);
            open.inputs = Some(inputs);
        }
        verb => match verb.strip_prefix("detach ") {
            Some(alias) => draft.detach(alias),
            None => {
                let text = "the form names no button of the page; reload the page, and send it";
                return Err(Problem::new(ErrorKind::Invalid, text));
            }
        },
    }
    open.faults = std::mem::take(&mut draft.faults);
    if !open.faults.is_empty() {
        open.status = StatusCode::UNPROCESSABLE_ENTITY;
    }
    (open.around, open.draft, open.sent) = (Some(around), Some(draft), Some(sent));
    render(viewer, open).await
}

/// Deletes an object, or shows what would break.
pub(super) async fn delete(viewer: &Viewer<'_>, kind: CatalogKind, body: RequestBody) -> Answered {
    let sent: Sent = viewer.form(body).await?;
    let id = viewer.segment(0);
    let change = change(viewer, kind, &sent);
    let is_forced = sent.text("force") == "true";
    let (status, sentence, breaks) =
        match viewer.control().catalog_delete(change, &id, is_forced).await {
            Ok(()) => {
                let mut query = form_urlencoded::Serializer::new(String::new());
                query.append_pair("done", "deleted").append_pair("name", &id);
                let list = list_of(kind);
                return answer::redirect(&viewer.path(&format!("{list}?{}", query.finish())));
            }
            Err(ControlError::Catalog(CatalogError::InUse { users, .. })) => {
                let places = users.iter().map(|place| Words::new(&place.field)).collect();
                let sentence = "It was not deleted, since it is in use: see below.";
                (StatusCode::CONFLICT, sentence, places)
            }
            Err(ControlError::Catalog(CatalogError::Changed { .. })) => {
                let sentence = "It was not deleted, since it has changed in the meantime.";
                (StatusCode::PRECONDITION_FAILED, sentence, Vec::new())
            }
            Err(error) => return Err(error.into()),
        };
    let open = Open::stored(kind, found(viewer, kind).await?);
    render(viewer, Open { breaks, ..open.failed(status, sentence) }).await
}

/// Starts a run of the stored agent.
pub(super) async fn start(viewer: &Viewer<'_>, body: RequestBody) -> Answered {
    let sent: Sent = viewer.form(body).await?;
    let kind = CatalogKind::Agent;
    let object = found(viewer, kind).await?;
    let runs = viewer.door.options.runs.as_ref().ok_or_else(|| {
        Problem::new(ErrorKind::Conflict, "this process creates and ends no runs")
    })?;
    let (inputs, faults) = inputs::read(&definition_of(&object), &sent);
    let mut open = Open { faults, ..Open::stored(kind, object) };
    if open.faults.is_empty() {
        let request = request(&open.object.id, inputs.params, inputs.scope, &sent);
        let by = creator_of(viewer.door, &viewer.principal);
        match runs.create(&viewer.workspace, &request, by).await {
            // The token in the result is for the executor, and for no page.
            Ok(created) => {
                return answer::redirect(&viewer.path(&format!("runs/{}", created.row.id)));
            }
            Err(error) => open = refused(viewer, open, error)?,
        }
    } else {
        open = open.failed(StatusCode::UNPROCESSABLE_ENTITY, "No run was started.");
    }
    if viewer.may(Access::Member(AUTHOR)) {
        let around = Around::read(viewer, kind).await?;
        let mut draft = draft_of(kind, &open.object, &sent, &around);
        open.faults.append(&mut draft.faults);
        (open.around, open.draft) = (Some(around), Some(draft));
    }
    open.sent = Some(sent);
    render(viewer, open).await
}

async fn save(viewer: &Viewer<'_>, mut open: Open, mut draft: Draft, sent: Sent) -> Answered {
    let (kind, id) = (open.kind, open.object.id.clone());
    let (control, text) = (viewer.control(), draft.text());
    let mut faults = std::mem::take(&mut draft.faults);
    let written = match faults.is_empty() {
        true => control.catalog_put(change(viewer, kind, &sent), &id, text).await,
        // All other faults are shown at once with those of the form.
        false => match control.catalog_validate(&viewer.workspace, kind, text).await {
            Ok(_) => Err(CatalogError::Refused(Vec::new()).into()),
            Err(error) => Err(error),
        },
    };
    match written {
        Ok(written) if written.warnings.is_empty() => {
            let own = path_of(kind, &id);
            return answer::redirect(&viewer.path(&format!("{own}?done=saved")));
        }
        Ok(written) => {
            let lines = written.warnings.iter();
            let line = |one: &narthex_control::FieldWarning| {
                Words::new(&format!("`{}`: {}", one.field, one.message))
            };
            let sentence = Words::new("Saved, with the warnings below.");
            let told = Some(Told { sentence, is_failure: false });
            let lines = lines.map(line).collect();
            return render(viewer, Open { told, lines, ..Open::stored(kind, written.object) })
                .await;
        }
        Err(ControlError::Catalog(CatalogError::Refused(more))) => {
            faults.extend(more);
            let sentence = "Nothing was saved. The faults are at their fields.";
            open = open.failed(StatusCode::UNPROCESSABLE_ENTITY, sentence);
        }
        Err(ControlError::Catalog(CatalogError::Changed { .. })) => {
            open.object = found(viewer, kind).await?;
            let around = open.around.take().unwrap_or_default();
            draft = draft_of(kind, &open.object, &sent, &around);
            faults = std::mem::take(&mut draft.faults);
            open.around = Some(around);
            let sentence = "Nothing was saved: this has changed since you opened it. Your \
                            values are below. Save again to put them in place of the stored ones.";
            open = open.failed(StatusCode::PRECONDITION_FAILED, sentence);
        }
        Err(error) => return Err(error.into()),
    }
    (open.draft, open.sent, open.faults) = (Some(draft), Some(sent), faults);
    render(viewer, open).await
}

/// The object of the path.
async fn found(viewer: &Viewer<'_>, kind: CatalogKind) -> Result<CatalogObject, Problem> {
    let id = viewer.segment(0);
    Ok(viewer.control().catalog_get(&viewer.workspace, kind, &id).await?)
}

fn draft_of(kind: CatalogKind, object: &CatalogObject, sent: &Sent, around: &Around) -> Draft {
    let mut draft = Draft::of(kind, &definition_of(object), sent, around);
    draft.definition.insert("name".to_owned(), object.id.clone().into());
    draft
}

/// A change of the version that the form was made from.
fn change(viewer: &Viewer<'_>, kind: CatalogKind, sent: &Sent) -> CatalogChange {
    CatalogChange {
        workspace: viewer.workspace.clone(),
        kind,
        precondition: Precondition::Tags(vec![sent.text("tag")]),
        by: viewer.by(),
        is_offline: false,
    }
}

/// The request for a run, as the API takes it.
fn request(
    agent: &str,
    params: Map<String, Value>,
    scope: Map<String, Value>,
    sent: &Sent,
) -> String {
    let mut request = json!({ "agent_name": agent, "params": params });
    if !scope.is_empty() {
        request["scope"] = Value::Object(scope);
    }
    let prompt = sent.get("prompt").unwrap_or_default();
    if !prompt.trim().is_empty() {
        request["prompt"] = prompt.into();
    }
    request.to_string()
}

/// The page with the reasons why no run was started.
fn refused(viewer: &Viewer<'_>, open: Open, error: RunError) -> Result<Open, Problem> {
    let own = format!("agents.{}", open.object.id);
    let faults: Vec<_> = match &error {
        RunError::Refused(faults) | RunError::Unfit(faults) => {
            faults.iter().map(|fault| FieldError::of(fault, &own)).collect()
        }
        RunError::Control(ControlError::Catalog(error)) => error.fields().to_vec(),
        _ => Vec::new(),
    };
    let reader = viewer.principal.reader();
    let line = |server: &str, text: &str| Words::new(&format!("{server}: {text}"));
    let lines = error.faults();
    let lines = lines.iter().map(|one| line(&one.server, one.read_by(reader))).collect();
    let problem = Problem::from(error);
    if matches!(problem.kind(), ErrorKind::Bug | ErrorKind::Unavailable | ErrorKind::Timeout) {
        return Err(problem);
    }
    let failed = open.failed(answer::status(&problem), problem.detail());
    Ok(Open { faults, lines, ..failed })
}

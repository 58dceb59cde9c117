//! Checks the form as `POST …/validate` does, and saves it unless the stored entry has changed
//! since it was opened.

use http::StatusCode;
use narthex_console::{pages::catalog::form::Line, parts::Words};
use narthex_control::{
    CatalogChange, CatalogError, CatalogObject, CatalogWritten, ControlError, FieldWarning,
    Precondition,
};
use narthex_model::{CatalogKind, ErrorKind};
use serde_json::Value;

use super::{
    after::{After, before, page},
    draft::{Draft, Fault},
    entry::shown,
    paths::path,
    value::visible,
};
use crate::{
    console::{
        answer::{self, Answered},
        viewer::Viewer,
    },
    problem::Problem,
    servers::gates_unmatched,
};

/// Maximum number of lines of differences that a page shows.
const LINES: usize = 400;
/// Maximum number of characters of the normal form that a page shows.
const NORMAL_MAX: usize = 20_000;

/// Checks the form, and stores nothing.
pub(super) async fn check(viewer: &Viewer<'_>, after: &mut After) -> Result<(), Problem> {
    let stored = before(viewer, after).await?;
    let (definition, faults) = after.draft.definition(&stored);
    after.faults.extend(faults);
    let text = definition.to_string().into_bytes();
    let kind = CatalogKind::Server;
    match viewer.control().catalog_validate(&viewer.workspace, kind, text).await {
        Ok(valid) => {
            let normal = shown(valid.definition, &after.draft);
            let normal = visible(&format!("{normal:#}"));
            after.outcome.normal = Some(normal.chars().take(NORMAL_MAX).collect());
            after.outcome.warnings = warnings(&valid.warnings);
        }
        Err(error) => refused(after, error),
    }
    let sentence = match after.faults.len() {
        0 => "Valid. Nothing is stored yet.".to_owned(),
        1 => "One thing below has to be mended.".to_owned(),
        count => format!("{count} things below have to be mended."),
    };
    conclude(after, &sentence);
    Ok(())
}

/// Saves the entry as one that runs get.
pub(super) async fn enable(viewer: &Viewer<'_>, mut after: After) -> Answered {
    after.draft.enable();
    save(viewer, After { done: "enabled", ..after }).await
}

/// Saves the entry, if the stored one is still the version that the form is about.
pub(super) async fn save(viewer: &Viewer<'_>, mut after: After) -> Answered {
    let stored = before(viewer, &after).await?;
    let (definition, faults) = after.draft.definition(&stored);
    if !faults.is_empty() {
        // All faults at once: those of the form, and those of the entry.
        check(viewer, &mut after).await?;
        return page(viewer, after).await;
    }
    let text = definition.to_string().into_bytes();
    let precondition = match &*after.subject.tag {
        "" => Precondition::New,
        tag => Precondition::Tags(vec![tag.to_owned()]),
    };
    let change = CatalogChange {
        workspace: viewer.workspace.clone(),
        kind: CatalogKind::Server,
        precondition,
        by: viewer.by(),
        is_offline: false,
    };
    let control = viewer.control();
    let written = match &after.subject.id {
        Some(id) => control.catalog_put(change, id, text).await,
        None => {
            let change = CatalogChange { precondition: Precondition::None, ..change };
            control.catalog_create(change, text).await
        }
    };
    match written {
        Ok(written) => saved(viewer, after, written).await,
        Err(ControlError::Catalog(CatalogError::Changed { .. })) if after.subject.id.is_some() => {
            conflict(viewer, after, &definition).await
        }
        Err(error) => {
            refused(&mut after, error);
            let sentence = match after.faults.len() {
                1 => "Nothing was stored: one thing below has to be mended.".to_owned(),
                count => format!("Nothing was stored: {count} things below have to be mended."),
            };
            conclude(&mut after, &sentence);
            page(viewer, after).await
        }
    }
}

/// The page of the saved entry. Warnings are shown first, on the form.
async fn saved(viewer: &Viewer<'_>, after: After, written: CatalogWritten) -> Answered {
    let CatalogWritten { object, warnings: mut told, .. } = written;
    let definition = object.definition.as_ref().unwrap_or(&Value::Null);
    told.extend(gates_unmatched(viewer.door, &viewer.workspace, &object.id, definition).await?);
    if told.is_empty() {
        let entry = path(viewer, &object.id, "");
        return answer::redirect(&format!("{entry}?done={}", after.done));
    }
    let draft = Draft { id: object.id.clone(), ..Draft::of_definition(definition) };
    let mut after = After { draft, faults: Vec::new(), ..after };
    after.outcome.warnings = warnings(&told);
    after.outcome.told =
        Some(Words::new(&format!("{} is {}, with warnings.", object.id, after.done)));
    (after.subject.id, after.subject.tag) = (Some(object.id), object.tag);
    page(viewer, after).await
}

/// The form again, beside the entry that another person has stored since. The next save replaces
/// that one.
async fn conflict(viewer: &Viewer<'_>, mut after: After, own: &Value) -> Answered {
    let id = after.subject.id.clone().unwrap_or_default();
    let kind = CatalogKind::Server;
    let found = match viewer.control().catalog_get(&viewer.workspace, kind, &id).await {
        Ok(found) => Some(found),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(error.into()),
    };
    let text = own.to_string().into_bytes();
    let valid = viewer.control().catalog_validate(&viewer.workspace, kind, text).await;
    // An entry that cannot be used has no normal form.
    let own = valid.map_or_else(|_refused| own.clone(), |valid| valid.definition);
    let own = shown(own, &after.draft);
    let (tag, sentence) = match &found {
        Some(object) => (
            object.tag.clone(),
            format!(
                "{} has changed this entry since you opened it. Nothing of yours is lost, and \
                 nothing is stored: Save replaces the stored entry by this form.",
                object.updated_by
            ),
        ),
        None => (
            String::new(),
            "The entry was removed since you opened it. Nothing of yours is lost: Save adds it \
             anew."
                .to_owned(),
        ),
    };
    let theirs = found.map(shown_of).unwrap_or_default();
    after.outcome.differences = differences(&lines(&theirs), &lines(&own));
    after.subject.tag = tag;
    after.status = StatusCode::PRECONDITION_FAILED;
    after.outcome.told = Some(Words::new(&sentence));
    after.outcome.is_failure = true;
    page(viewer, after).await
}

fn shown_of(object: CatalogObject) -> Value {
    let definition = object.definition.unwrap_or_default();
    let draft = Draft::of_definition(&definition);
    shown(definition, &draft)
}

/// Puts the faults of a refusal at their fields, and other failures at the top: nothing that was
/// typed is lost.
fn refused(after: &mut After, error: ControlError) {
    let faults: Vec<_> = match &error {
        ControlError::Catalog(CatalogError::Refused(faults)) => {
            faults.iter().map(|fault| after.draft.fault(fault)).collect()
        }
        ControlError::Catalog(error @ CatalogError::Exists { .. }) => {
            vec![Fault::at("id", error.to_string())]
        }
        _ => {
            let problem = Problem::from(error);
            after.status = answer::status(&problem);
            vec![Fault { field: None, message: problem.detail().to_owned() }]
        }
    };
    // The form may have found the same fault at the same field.
    let own: Vec<_> = after.faults.iter().filter_map(|fault| fault.field.clone()).collect();
    let is_new = |fault: &Fault| fault.field.as_ref().is_none_or(|field| !own.contains(field));
    after.faults.extend(faults.into_iter().filter(is_new));
}

/// The sentence at the top, and the status.
fn conclude(after: &mut After, sentence: &str) {
    after.outcome.told = Some(Words::new(sentence));
    after.outcome.is_failure = !after.faults.is_empty();
    if after.outcome.is_failure && after.status == StatusCode::OK {
        after.status = StatusCode::UNPROCESSABLE_ENTITY;
    }
}

fn warnings(told: &[FieldWarning]) -> Vec<Words> {
    let words = |warning: &FieldWarning| match warning.field.is_empty() {
        true => Words::new(&warning.message),
        false => Words::new(&format!("`{}`: {}", warning.field, warning.message)),
    };
    told.iter().map(words).collect()
}

fn lines(definition: &Value) -> Vec<String> {
    if definition.is_null() {
        return Vec::new();
    }
    visible(&format!("{definition:#}")).lines().map(str::to_owned).collect()
}

/// The lines that differ. Equal lines at both ends are left out.
fn differences(stored: &[String], own: &[String]) -> Vec<Line> {
    let begin = stored.iter().zip(own).take_while(|(one, other)| one == other).count();
    let (stored, own) =
        (stored.get(begin..).unwrap_or_default(), own.get(begin..).unwrap_or_default());
    let ends = stored.iter().rev().zip(own.iter().rev());
    let end = ends.take_while(|(one, other)| one == other).count();
    let stored = stored.iter().take(stored.len() - end).cloned().map(Line::Stored);
    let own = own.iter().take(own.len() - end).cloned().map(Line::Own);
    stored.take(LINES).chain(own.take(LINES)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of one side alone are shown, and equal ones are not.
    #[test]
    fn differences_are_the_lines_of_one_side() {
        let texts = |all: &[&str]| all.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let found = differences(&texts(&["{", "a", "z", "}"]), &texts(&["{", "b", "c", "z", "}"]));
        let expected =
            [Line::Stored("a".to_owned()), Line::Own("b".to_owned()), Line::Own("c".to_owned())];
        assert_eq!(found, expected);
        assert_eq!(differences(&texts(&["a"]), &texts(&["a"])), []);
        assert_eq!(differences(&[], &texts(&["a"])), [Line::Own("a".to_owned())]);
    }
}

//! The form of an entry: opened, filled in from a text, checked, and saved.

use std::collections::BTreeMap;

use narthex_console::{pages::catalog::form::Paste, parts::Words};
use serde::Deserialize;

use super::{
    after::{After, Subject, page},
    draft::{Draft, KeyRow, ValueRow},
    entry::stored,
    fields, paste, saving,
};
use crate::{
    body::RequestBody,
    console::{
        answer::Answered,
        viewer::{Form, Viewer},
    },
    shapes::CsrfForm,
};

/// The fields of a form, by name.
#[derive(Debug, Deserialize)]
struct Sent {
    csrf: String,
    #[serde(flatten)]
    fields: BTreeMap<String, String>,
}

impl Form for Sent {
    fn csrf(&self) -> &str {
        &self.csrf
    }
}

/// The form for a new entry.
pub(super) async fn new(viewer: &Viewer<'_>) -> Answered {
    viewer.query(&[])?;
    let mut draft = Draft::default();
    draft.keys.push(KeyRow::default());
    draft.values.push(ValueRow::default());
    let mut after = After::new(draft, Subject { id: None, tag: String::new() });
    after.paste = fields::paste("", true);
    page(viewer, after).await
}

/// The form for a stored entry.
pub(super) async fn open(viewer: &Viewer<'_>) -> Answered {
    viewer.query(&[])?;
    let object = stored(viewer, &viewer.segment(0)).await?;
    let definition = object.definition.unwrap_or_default();
    let draft = Draft { id: object.id.clone(), ..Draft::of_definition(&definition) };
    let mut after = After::new(draft, Subject { id: Some(object.id), tag: object.tag });
    let errors = object.errors.iter();
    after.faults = errors.map(|error| after.draft.fault(error)).collect();
    if !after.faults.is_empty() {
        after.outcome.is_failure = true;
        after.outcome.told = Some(Words::new("The stored entry cannot be used as it is."));
    }
    page(viewer, after).await
}

/// Enables a stored entry. What stands against it is shown at the fields of its form.
pub(super) async fn enable(viewer: &Viewer<'_>, body: RequestBody) -> Answered {
    let CsrfForm { csrf: _ } = viewer.form(body).await?;
    let object = stored(viewer, &viewer.segment(0)).await?;
    let definition = object.definition.unwrap_or_default();
    let draft = Draft { id: object.id.clone(), ..Draft::of_definition(&definition) };
    let after = After::new(draft, Subject { id: Some(object.id), tag: object.tag });
    saving::enable(viewer, after).await
}

/// A button of the form for a new entry.
pub(super) async fn add(viewer: &Viewer<'_>, body: RequestBody) -> Answered {
    pressed(viewer, body, None).await
}

/// A button of the form for a stored entry.
pub(super) async fn save(viewer: &Viewer<'_>, body: RequestBody) -> Answered {
    let id = viewer.segment(0);
    pressed(viewer, body, Some(id)).await
}

/// The answer to a button: the page again with all that was typed, or the saved entry.
async fn pressed(viewer: &Viewer<'_>, body: RequestBody, id: Option<String>) -> Answered {
    let sent: Sent = viewer.form(body).await?;
    let text = |name: &str| sent.fields.get(name).cloned().unwrap_or_default();
    let mut draft = Draft::of_form(&sent.fields);
    if let Some(id) = &id {
        draft.id.clone_from(id);
    }
    let subject = Subject { id, tag: text("tag") };
    let (button, paste_text) = (text("do"), text("paste"));
    let mut after = After::new(draft, subject);
    if !paste_text.trim().is_empty() {
        after.paste = kept(&paste_text);
    }
    match button.split('.').collect::<Vec<_>>().as_slice() {
        ["add", "key"] => after.draft.keys.push(KeyRow::default()),
        ["add", "value"] => after.draft.values.push(ValueRow::default()),
        ["drop", "key", n] => drop_row(&mut after.draft.keys, n),
        ["drop", "value", n] => drop_row(&mut after.draft.values, n),
        ["read"] => read(&mut after, &paste_text, None),
        ["take", n] => read(&mut after, &paste_text, n.parse().ok()),
        ["save"] => return saving::save(viewer, after).await,
        ["enable"] => return saving::enable(viewer, after).await,
        _ => saving::check(viewer, &mut after).await?,
    }
    page(viewer, after).await
}

/// The box with its text, which is shown again unless it may have a secret.
fn kept(text: &str) -> Paste {
    if narthex_client_files::catalog::may_hold_secret(text) {
        let mut paste = fields::paste("", true);
        let note = "The text was not read, and may have a secret, so that it is not shown again.";
        paste.text = paste.text.fault(Some(note));
        return paste;
    }
    fields::paste(text, true)
}

fn read(after: &mut After, text: &str, choice: Option<usize>) {
    let is_stored = after.subject.id.is_some();
    after.paste = paste::read(&mut after.draft, text, choice, is_stored);
}

fn drop_row<R>(rows: &mut Vec<R>, n: &str) {
    let n = n.parse().ok().filter(|n| *n < rows.len());
    if let Some(n) = n {
        rows.remove(n);
    }
}

//! The form of an entry after one of its buttons, and its page.

use http::StatusCode;
use narthex_console::{
    html,
    pages::catalog::{
        CatalogEditPage,
        form::{Outcome, Paste},
    },
    parts::{Same, Words},
};
use narthex_model::command::narthex;
use serde_json::Value;

use super::{
    draft::{Draft, Fault},
    entry::stored,
    fields::{self, Around},
    paths::path,
};
use crate::{
    console::{
        answer::{self, Answered},
        frame::{Head, frame},
        viewer::Viewer,
    },
    problem::Problem,
};

/// The entry that a form is about.
pub(super) struct Subject {
    /// The id of a stored entry; `None` for a new one.
    pub(super) id: Option<String>,
    /// The version tag that the form has; empty for a new entry.
    pub(super) tag: String,
}

/// A form after one of its buttons.
pub(super) struct After {
    pub(super) draft: Draft,
    pub(super) subject: Subject,
    pub(super) paste: Paste,
    pub(super) faults: Vec<Fault>,
    pub(super) outcome: Outcome,
    pub(super) status: StatusCode,
    /// The word for the action, if it succeeds.
    pub(super) done: &'static str,
}

impl After {
    /// A form without a result.
    pub(super) fn new(draft: Draft, subject: Subject) -> Self {
        Self {
            draft,
            subject,
            paste: fields::paste("", false),
            faults: Vec::new(),
            outcome: Outcome::default(),
            status: StatusCode::OK,
            done: "saved",
        }
    }
}

/// The page with the form.
pub(super) async fn page(viewer: &Viewer<'_>, after: After) -> Answered {
    let After { draft, subject, paste, faults, outcome, status, done: _ } = after;
    let Subject { id, tag } = subject;
    let all = format!("/api/workspaces/{}/mcp-servers", viewer.workspace);
    let command = narthex("servers apply -f FILE", &[]).in_workspace(&viewer.workspace);
    let (title, request, action, back) = match &id {
        Some(id) => (
            format!("Edit {id}"),
            format!("PUT {all}/{id}"),
            path(viewer, id, "save"),
            path(viewer, id, ""),
        ),
        None => (
            "Add a server to the catalog".to_owned(),
            format!("POST {all}"),
            viewer.path("catalog/new/save"),
            viewer.path("catalog"),
        ),
    };
    let head = Head {
        title: Words::within(&title, 120),
        sentence: "How the server is reached, and which configuration it takes. Nothing is stored \
                   before you save.",
        same: Some(Same::new(&command.to_string(), &request)),
    };
    let is_fixed = id.is_some();
    let around = Around { action, tag, is_fixed, paste, faults, outcome };
    let page = CatalogEditPage {
        frame: frame(viewer, head).await?,
        form: fields::form(&draft, around),
        back,
    };
    Ok(answer::page(status, html(&page)))
}

/// The stored definition, whose literal values stay; null without one.
pub(super) async fn before(viewer: &Viewer<'_>, after: &After) -> Result<Value, Problem> {
    let Some(id) = &after.subject.id else { return Ok(Value::Null) };
    if !after.draft.values.iter().any(|row| row.is_kept) {
        return Ok(Value::Null);
    }
    Ok(stored(viewer, id).await?.definition.unwrap_or_default())
}

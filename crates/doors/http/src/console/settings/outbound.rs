//! Channels and webhooks: the part of the daemon that posts, and the secrets that they name.

use std::collections::BTreeSet;

use narthex_console::{
    pages::settings::Cell,
    parts::{
        Words,
        form::{Choice, Field, Input},
    },
};
use narthex_model::{ErrorKind, SecretName};
use narthex_outbound::Outbound;

use super::{faults::Faults, tab};
use crate::{console::viewer::Viewer, problem::Problem};

/// Number of secrets of which a form offers a choice. With more, the name is typed.
const CHOICES: usize = 200;

/// The part of the daemon that posts.
pub(super) fn outbound<'v>(viewer: &Viewer<'v>) -> Result<&'v Outbound, Problem> {
    viewer.door.options.outbound.as_ref().ok_or_else(|| {
        Problem::new(ErrorKind::Conflict, "this process sends nothing to other services")
    })
}

/// The secrets that have a value.
pub(super) struct Secrets(BTreeSet<String>);

impl Secrets {
    pub(super) async fn read(viewer: &Viewer<'_>) -> Result<Self, Problem> {
        let all = viewer.control().secrets(&viewer.workspace).await?;
        let set = all.into_iter().filter(narthex_model::SecretSummary::is_set);
        Ok(Self(set.map(|one| one.name.to_string()).collect()))
    }

    /// A field for the name of a secret. A text that is no name is not repeated: it may be the
    /// value.
    pub(super) fn field(&self, name: &'static str, label: &str, chosen: &str) -> Field {
        let chosen = SecretName::new(chosen).map(|name| name.to_string()).unwrap_or_default();
        if self.0.len() > CHOICES {
            let input = Input::Line { value: chosen, example: "TEAM_CHAT_URL".to_owned() };
            return Field::new(name, label, input);
        }
        let option = |value: &str, label: &str| Choice {
            value: value.to_owned(),
            label: Words::new(label),
            is_chosen: value == chosen,
        };
        let mut options = vec![option("", "none")];
        if !chosen.is_empty() && !self.0.contains(&chosen) {
            options.push(option(&chosen, &format!("{chosen} (not set)")));
        }
        options.extend(self.0.iter().map(|name| option(name, name)));
        Field::new(name, label, Input::Choice { options })
    }
}

/// The name in a field: `NAME` or `${NAME}`.
pub(super) fn bare(text: &str) -> &str {
    let inner = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
    inner.unwrap_or(text)
}

/// The text by which the API refers to a secret.
pub(super) fn reference(name: &str) -> String {
    format!("${{{name}}}")
}

/// The name of a secret, which leads to its row.
pub(super) fn secret(viewer: &Viewer<'_>, name: Option<&SecretName>) -> Cell {
    match name {
        None => Cell::new("none"),
        Some(name) => Cell::new(name.as_str()).to(Some(tab::address(
            viewer,
            "secrets",
            &[("q", name.as_str())],
        ))),
    }
}

/// The fault of a name that a new object cannot have, since there is one.
pub(super) fn taken(what: &str) -> Faults {
    Faults::one(
        "name",
        &format!("there is a {what} of this name"),
        "open it in the list to change it",
    )
}

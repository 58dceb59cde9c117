//! A form whose fields have names of any kind, as a browser sends it.

use std::collections::BTreeMap;

use narthex_console::parts::{Words, form::line_breaks};
use narthex_model::ErrorKind;
use serde::Deserialize;

use super::viewer::Form;
use crate::problem::Problem;

/// The fields of a form. [`Sent::only`] refuses unknown ones, where the page knows them all.
#[derive(Deserialize)]
pub(super) struct Sent {
    csrf: String,
    #[serde(flatten)]
    fields: BTreeMap<String, String>,
}

impl Form for Sent {
    fn csrf(&self) -> &str {
        &self.csrf
    }
}

impl Sent {
    /// Refuses fields that the page does not have.
    pub(super) fn only(self, is_known: impl Fn(&str) -> bool) -> Result<Self, Problem> {
        match self.fields.keys().find(|name| !is_known(name)) {
            None => Ok(self),
            Some(unknown) => {
                let name = Words::within(unknown, 60);
                let text = format!("the form has no field `{name}`; reload its page, and send it");
                Err(Problem::new(ErrorKind::Invalid, text))
            }
        }
    }

    /// The text of a field, with plain line breaks.
    pub(super) fn get(&self, name: &str) -> Option<String> {
        self.fields.get(name).map(|text| line_breaks(text))
    }

    /// The text of a field without space around it; empty without the field.
    pub(super) fn text(&self, name: &str) -> String {
        self.get(name).unwrap_or_default().trim().to_owned()
    }

    /// True if a box is checked.
    pub(super) fn is_on(&self, name: &str) -> bool {
        self.fields.contains_key(name)
    }

    /// The fields whose names begin so: the rest of each name, and its text.
    pub(super) fn under(&self, prefix: &str) -> impl Iterator<Item = (&str, &str)> {
        let all = self.fields.iter();
        all.filter_map(move |(name, text)| Some((name.strip_prefix(prefix)?, text.as_str())))
    }
}

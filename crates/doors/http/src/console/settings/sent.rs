//! A form of the settings as a browser sends it.

use std::collections::BTreeMap;

use narthex_console::{parts::Words, parts::form::line_breaks};
use narthex_model::ErrorKind;
use serde::Deserialize;

use crate::{console::viewer::Form, problem::Problem};

/// The fields of a form. [`Sent::only`] refuses unknown ones.
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

    /// The text of a field without space around it; empty without the field.
    pub(super) fn text(&self, name: &str) -> String {
        let text = self.fields.get(name).map(|text| line_breaks(text)).unwrap_or_default();
        text.trim().to_owned()
    }

    /// True if a box is checked.
    pub(super) fn is_on(&self, name: &str) -> bool {
        self.fields.contains_key(name)
    }
}

//! The form of a capability or an agent as a browser sends it. Its fields depend on the object.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::console::viewer::Form;

/// The longest name of a field.
pub(super) const NAME_MAX: usize = 100;

/// A form whose fields have names of any kind.
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
    /// The text of a field, with plain line breaks.
    pub(super) fn get(&self, name: &str) -> Option<String> {
        self.fields.get(name).map(|text| narthex_console::parts::form::line_breaks(text))
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

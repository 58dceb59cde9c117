//! Reads the members of one named section of the settings file.

use toml::Table;

/// A section that is read. All faults are added.
#[derive(Debug)]
pub(super) struct Reading<'a> {
    /// The file and the path of the section.
    pub(super) place: String,
    pub(super) table: &'a Table,
    pub(super) faults: &'a mut Vec<String>,
}

impl Reading<'_> {
    pub(super) fn list(&mut self, member: &str) -> Vec<String> {
        let Some(value) = self.table.get(member) else { return Vec::new() };
        let texts = value.as_array().and_then(|items| {
            items.iter().map(|item| item.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()
        });
        texts.unwrap_or_else(|| {
            self.fault(&format!("`{member}` must be a list of texts"));
            Vec::new()
        })
    }

    pub(super) fn needed(&mut self, member: &str) -> Option<String> {
        if !self.table.contains_key(member) {
            self.fault(&format!("`{member}` is missing"));
        }
        self.text(member)
    }

    pub(super) fn text(&mut self, member: &str) -> Option<String> {
        let value = self.table.get(member)?;
        let text = value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        if text.is_none() {
            self.fault(&format!("`{member}` must be a text"));
        }
        text
    }

    /// A word of yes or no; absent is no.
    pub(super) fn flag(&mut self, member: &str) -> bool {
        let Some(value) = self.table.get(member) else { return false };
        value.as_bool().unwrap_or_else(|| {
            self.fault(&format!("`{member}` must be true or false"));
            false
        })
    }

    pub(super) fn fault(&mut self, text: &str) {
        self.faults.push(format!("{}: {text}", self.place));
    }
}

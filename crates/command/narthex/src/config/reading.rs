//! Reads the members of one named section of the settings file.

use std::path::Path;

use fs_err as fs;
use narthex_model::Secret;
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

    /// Reads a password from the environment, or else from a file. The settings file has no
    /// passwords, since too many programs read it.
    pub(super) fn secret(
        &mut self,
        variable: &str,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Option<Secret> {
        if let Some(secret) = env(variable).filter(|secret| !secret.is_empty()) {
            return Some(Secret::new(secret));
        }
        let file = self.text("client_secret_file")?;
        if let Err(error) = narthex_private::check_named(Path::new(&file)) {
            self.fault(&format!("`client_secret_file`: {error}"));
            return None;
        }
        match fs::read_to_string(Path::new(&file)) {
            Ok(text) => Some(Secret::new(text.trim_end_matches(['\r', '\n']))),
            Err(error) => {
                self.fault(&format!("`client_secret_file`: {error}"));
                None
            }
        }
    }

    pub(super) fn fault(&mut self, text: &str) {
        self.faults.push(format!("{}: {text}", self.place));
    }
}

/// The variable with the password of a section of this name.
pub(super) fn variable(start: &str, name: &str) -> String {
    format!("{start}{}", name.to_ascii_uppercase().replace('-', "_"))
}

/// True for the name of a section whose password can be in a variable.
pub(super) fn is_name(name: &str) -> bool {
    let is_plain = |byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
    (1..=64).contains(&name.len()) && name.bytes().all(is_plain)
}

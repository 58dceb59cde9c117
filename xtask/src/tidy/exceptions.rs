//! The list of files that may be longer than the limit, each with its reason.

use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

pub(super) const FILE: &str = "xtask/tidy-exceptions.toml";

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Exceptions {
    #[serde(default)]
    pub(super) file: Vec<LongFile>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LongFile {
    pub(super) path: String,
    pub(super) reason: String,
}

impl Exceptions {
    pub(super) fn allows(&self, path: &str) -> bool {
        self.file.iter().any(|file| file.path == path)
    }
}

pub(super) fn load(root: &Path) -> Result<Exceptions> {
    let text = fs_err::read_to_string(root.join(FILE))?;
    toml::from_str(&text).with_context(|| format!("{FILE} is no list of exceptions"))
}

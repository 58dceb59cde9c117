//! The formats, and the editor of each.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::fault::Fault;
use super::source::{New, Parsed, Place, Removal, Source};
use super::text::Splice;
use super::{json, toml, yaml};

/// The language of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// JSON.
    Json,
    /// JSON with comments and trailing commas.
    Jsonc,
    /// TOML.
    Toml,
    /// YAML with one document.
    Yaml,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Json => "JSON",
            Self::Jsonc => "JSON with comments",
            Self::Toml => "TOML",
            Self::Yaml => "YAML",
        })
    }
}

impl Format {
    /// True for JSON, with comments or without.
    pub(crate) fn is_json(self) -> bool {
        matches!(self, Self::Json | Self::Jsonc)
    }

    pub(super) fn parse(self, text: &str) -> Result<Parsed, Fault> {
        match self {
            Self::Json => json::parse(text, false),
            Self::Jsonc => json::parse(text, true),
            Self::Toml => toml::parse(text),
            Self::Yaml => yaml::parse(text),
        }
    }

    pub(super) fn insert(self, at: &Place<'_>, source: &Source<'_>, new: &New<'_>) -> Ways {
        let splices = match self {
            Self::Json | Self::Jsonc => json::insert(source, at, new),
            Self::Toml => toml::insert(source, at, new),
            Self::Yaml => yaml::insert(source, at, new),
        };
        Ok(vec![splices?])
    }

    pub(super) fn remove(
        self,
        at: &Place<'_>,
        source: &Source<'_>,
        index: usize,
    ) -> Result<Removal, Fault> {
        match self {
            Self::Json | Self::Jsonc => json::remove(source, at, index),
            Self::Toml => toml::remove(source, at, index),
            Self::Yaml => yaml::remove(source, at, index),
        }
    }

    pub(super) fn replace(
        self,
        at: &Place<'_>,
        source: &Source<'_>,
        index: usize,
        value: &Value,
    ) -> Ways {
        let splices = match self {
            Self::Json | Self::Jsonc => json::replace(source, at, index, value),
            Self::Toml => toml::replace(source, at, index, value),
            Self::Yaml => yaml::replace(source, at, index, value),
        };
        Ok(vec![splices?])
    }
}

/// Lists of splices, each of which makes the edit.
type Ways = Result<Vec<Vec<Splice>>, Fault>;

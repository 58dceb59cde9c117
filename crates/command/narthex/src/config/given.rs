//! The value of a setting as it was given.

use toml::Value;

/// A value, and where it was given: for messages.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Given {
    pub(crate) value: Value,
    pub(crate) source: String,
}

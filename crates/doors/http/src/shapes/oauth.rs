//! Shapes of the door as a protected resource and an authorization server. The standards of OAuth
//! define the content.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::door::Decision;

/// A document or an answer as the standards of OAuth define it.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct OAuthDocument(Map<String, Value>);

/// A form as the standards of OAuth define it.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct OAuthForm(Map<String, Value>);

/// An error as the standards of OAuth define it.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(extend("additionalProperties" = true))]
pub(crate) struct OAuthFailure {
    /// The code for programs.
    pub(crate) error: String,
    /// The description for people.
    pub(crate) error_description: String,
}

/// The answer of a human to a program that asks for tokens.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ConsentForm {
    /// CSRF token of the page.
    pub(crate) csrf: String,
    pub(crate) decision: Decision,
    /// The servers that the program sees: a choice of the page. An approval needs it.
    #[schemars(default, with = "String")]
    pub(crate) servers: Option<String>,
}

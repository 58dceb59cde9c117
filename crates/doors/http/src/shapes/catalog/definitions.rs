//! Definitions of servers: tools, prompts and the like, under review.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use crate::shapes::{
    ids::{DefinitionDigest, DefinitionState, RunId, Time},
    page::Listed,
    part::As,
};

raw! {
    /// Kind of a definition.
    DefinitionKind = {
        "type": "string",
        "enum": ["tool", "prompt", "template", "resource", "instructions"],
    };
}

/// The state of a definition.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DefinitionDecision {
    #[schemars(with = "DefinitionKind")]
    pub(crate) kind: String,
    /// The name. For a template, the URI template.
    pub(crate) name: String,
    pub(crate) digest: DefinitionDigest,
    pub(crate) state: DefinitionState,
    pub(crate) first_run_id: RunId,
    pub(crate) first_seen: Time,
    /// Time when the definition was last seen, with the precision of an hour.
    pub(crate) last_seen: Time,
    pub(crate) decided_at: Option<Time>,
    pub(crate) decided_by: Option<String>,
}

raw! {
    /// Cause of a review.
    DefinitionReason = {
        "type": "string",
        "enum": ["changed", "renamed", "look_alike", "flagged"],
    };
}

raw! {
    /// Kind of the likeness of two names.
    Likeness = { "type": "string", "enum": ["cut", "prefixed", "confusable"] };
}

/// A tool of another server that can be confused with this one.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DefinitionLike {
    pub(crate) server: String,
    pub(crate) name: String,
    pub(crate) how: Likeness,
}

/// A suspicious part of a definition.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DefinitionFinding {
    pub(crate) rule: String,
    /// Place in the definition, as a JSON pointer.
    pub(crate) place: String,
    /// The suspicious text. Do not show it to models.
    pub(crate) excerpt: String,
}

/// The change of one place.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct DefinitionChange {
    /// Place in the definition, as a JSON pointer.
    pub(crate) place: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) old: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) new: Option<String>,
}

/// The changes since the definition that runs use.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DefinitionDifference {
    #[schemars(extend("maxItems" = 64))]
    pub(crate) changes: Vec<DefinitionChange>,
    /// Number of further places that changed.
    pub(crate) left_out: u64,
}

/// A tool, a prompt, a resource or a resource template, as its server defines it.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Definition")]
pub(crate) struct SeenDefinition {
    #[serde(flatten)]
    pub(crate) decision: DefinitionDecision,
    /// The cause of the review. Null for a definition without objections.
    pub(crate) reason: As<Option<DefinitionReason>>,
    /// The former name.
    pub(crate) renamed_from: As<Option<String>>,
    pub(crate) like: As<Option<DefinitionLike>>,
    #[schemars(extend("maxItems" = 32))]
    pub(crate) findings: As<Vec<DefinitionFinding>>,
    /// The text of the server on one line, with invisible characters as `\u{…}`. Do not show it to
    /// models.
    pub(crate) text: String,
    pub(crate) difference: As<Option<DefinitionDifference>>,
}

impl Listed for SeenDefinition {
    const PAGE: &str = "DefinitionPage";
    const ABOUT: &str = "Definitions of a server, by kind and name.";
}

/// The digests of the definitions to decide on, as they were shown.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({
    "digests": ["1f2e3d4c5b6a79880f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a6978"]
}))]
pub(crate) struct DefinitionChoice {
    #[schemars(extend("minItems" = 1))]
    pub(crate) digests: Vec<DefinitionDigest>,
}

/// The new states.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DefinitionDecisions {
    pub(crate) items: Vec<DefinitionDecision>,
}

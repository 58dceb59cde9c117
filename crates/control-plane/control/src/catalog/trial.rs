//! The effective configuration of an agent that is not stored, and a run of it on trial.

use std::fmt;

use narthex_catalog::fields::{CatalogError, FieldError};
use narthex_model::CatalogKind;
use serde_json::{Map, Value};

use super::checks::{Definition, Stored, Workspace};

/// The inputs of a run on trial. `Debug` shows no value.
#[derive(Clone, Default)]
pub struct TrialInputs {
    /// The agent's parameters.
    pub params: Map<String, Value>,
    /// The scope of the run.
    pub scope: Map<String, Value>,
}

/// A run on trial: its configuration was made, and nothing was started.
#[derive(Debug, Clone, PartialEq)]
pub struct CatalogTrial {
    /// The merged view, as of [`crate::Control::catalog_preview`].
    pub merged: Value,
    /// The resolved run for people, or all faults of it. Hidden values are not in it.
    pub run: Result<Value, Vec<FieldError>>,
}

/// The workspace with the agent of this text, and the agent's name.
pub(super) fn with_agent(
    stored: &Stored,
    text: &[u8],
) -> Result<(String, Workspace), CatalogError> {
    let parsed = Definition::parse(CatalogKind::Agent, text, None);
    let (definition, _) = parsed.map_err(CatalogError::Refused)?;
    let (id, mut workspace) = (definition.id().to_owned(), stored.read());
    workspace.put(definition);
    Ok((id, workspace))
}

impl fmt::Debug for TrialInputs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrialInputs").finish_non_exhaustive()
    }
}

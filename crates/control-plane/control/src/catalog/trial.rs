//! The effective configuration of an agent that is not stored, and a run of it on trial.

use std::fmt;

use narthex_catalog::fields::{CatalogError, FieldError};
use narthex_model::{CatalogKind, RunScope, WorkspaceId};
use serde_json::{Map, Value};

use super::checks::{Definition, Stored, Workspace};
use crate::{Control, ControlError};

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
    /// The merged view, as of [`Control::catalog_preview`].
    pub merged: Value,
    /// The resolved run for people, or all faults of it. Hidden values are not in it.
    pub run: Result<Value, Vec<FieldError>>,
}

impl Control {
    /// The merged view of an agent that is not stored. Faults of its servers are in the view
    /// (O101).
    ///
    /// # Errors
    /// When the text is no agent; when there is no store or no such workspace, or the store or the
    /// vault fails.
    pub async fn catalog_preview(
        &self,
        workspace: &WorkspaceId,
        text: Vec<u8>,
    ) -> Result<Value, ControlError> {
        let stored = self.catalog_stored(workspace).await?;
        let preview = self.catalog_work(move || {
            let (id, workspace) = with_agent(&stored, &text)?;
            Ok::<_, CatalogError>(workspace.merged(&id).expect("the agent was put there"))
        });
        Ok(preview.await??)
    }

    /// The merged view of an agent that is not stored, and a run of it with these inputs. Starts
    /// nothing, and opens no secret. The ids of the run are zeros.
    ///
    /// # Errors
    /// As for [`Control::catalog_preview`].
    pub async fn catalog_trial(
        &self,
        workspace: &WorkspaceId,
        text: Vec<u8>,
        inputs: TrialInputs,
    ) -> Result<CatalogTrial, ControlError> {
        let stored = self.catalog_stored(workspace).await?;
        let trial = self.catalog_work(move || {
            let (id, workspace) = with_agent(&stored, &text)?;
            let merged = workspace.merged(&id).expect("the agent was put there");
            let run = workspace.tried(&id, &inputs.params, &RunScope::new(inputs.scope));
            let run = run.expect("the agent was put there");
            Ok::<_, CatalogError>(CatalogTrial { merged, run })
        });
        Ok(trial.await??)
    }
}

/// The workspace with the agent of this text, and the agent's name.
fn with_agent(stored: &Stored, text: &[u8]) -> Result<(String, Workspace), CatalogError> {
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

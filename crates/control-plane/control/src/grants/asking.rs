//! Limits on the requests of a run: the models (X-E87), the number, and the names.

use narthex_gateway::RunView;
use narthex_model::{GrantOf, SpawnGrant, WorkspaceId};
use narthex_store::OPEN_MAX;

use super::{GrantError, RequestOf, requested::fault};
use crate::{CatalogError, Control, ControlError};

impl Control {
    /// Replaces the names of models in a grant by the ids that they mean now. Requests of runs are
    /// compared by ids: later, a short name may mean another model, which no human has allowed.
    ///
    /// # Errors
    /// When the workspace has not enabled one of the models, or there is no such workspace.
    pub fn grant_of_models(
        &self,
        workspace: &WorkspaceId,
        of: GrantOf,
    ) -> Result<GrantOf, ControlError> {
        let GrantOf::Spawn(SpawnGrant { allowed_models: Some(names), .. }) = &of else {
            return Ok(of);
        };
        let models = self.workspace(workspace)?.models;
        let (mut ids, mut faults) = (Vec::with_capacity(names.len()), Vec::new());
        for (index, name) in names.iter().enumerate() {
            match models.resolve(name) {
                Some(id) if ids.iter().any(|known| known == id) => {}
                Some(id) => ids.push(id.to_owned()),
                None => faults.push(fault(
                    &format!("details.allowed_models[{index}]"),
                    "model_not_enabled",
                    &format!("the workspace has not enabled a model `{name}`"),
                    "name one of its `models`",
                )),
            }
        }
        if !faults.is_empty() {
            return Err(CatalogError::Refused(faults).into());
        }
        let GrantOf::Spawn(spawn) = of else { return Ok(of) };
        Ok(GrantOf::Spawn(SpawnGrant { allowed_models: Some(ids), ..spawn }))
    }

    /// True if a run has used this request id for a different request. One id for two decisions
    /// would be ambiguous.
    pub async fn grant_request_is_other(
        &self,
        run: &RunView,
        asked: &RequestOf,
    ) -> Result<bool, ControlError> {
        let store = self.catalog_store(&run.workspace).await?;
        let place = (run.id, run.authority.actors().session);
        let found = store.grant_requests().is_other(place, &asked.asked_as, &asked.of).await;
        found.map_err(ControlError::Store)
    }

    /// Checks that a run may have these requests open in addition to its others.
    ///
    /// # Errors
    /// When the run would have too many open requests; when there is no such workspace or no store,
    /// or the store fails.
    pub async fn grant_requests_fit(
        &self,
        run: &RunView,
        all: &[GrantOf],
    ) -> Result<(), ControlError> {
        let store = self.catalog_store(&run.workspace).await?;
        match store.grant_requests().is_room(run.id, all).await.map_err(ControlError::Store)? {
            true => Ok(()),
            false => Err(GrantError::TooMany(OPEN_MAX).into()),
        }
    }
}

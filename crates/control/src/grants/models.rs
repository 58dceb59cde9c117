//! For which models a spawn grant is (X-E87).

use narthex_model::{GrantOf, SpawnGrant, WorkspaceId};

use super::asked::own;
use crate::{CatalogError, Control, ControlError};

impl Control {
    /// A grant with the models for which the names in it stand now: what runs ask for is compared
    /// by ids, and a short name may mean another model tomorrow, which nobody has allowed.
    ///
    /// # Errors
    /// When the workspace has not enabled one of them, or there is no such workspace.
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
                None => faults.push(own(
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
}

//! The users of a secret: places in the catalog, in files, channels and webhooks, bindings to the
//! environment of agents, and live runs. The API and the console ask the same functions.

use narthex_control::{By, Control, SecretUses};
use narthex_model::{EnvBindingId, SecretName, WorkspaceId};
use narthex_runs::SecretRun;

use crate::{door::Door, problem::Problem};

/// The warning about a value that is so short that redaction would find it everywhere.
pub(crate) const TOO_SHORT: &str = "the value is too short to be redacted in results, logs and \
                                    the audit: it has fewer than 6 bytes, or is a number of fewer \
                                    than 8 digits";

/// The warning after clearing a secret that agents have in their own environment.
pub(crate) const TOLD: &str = "agents that were started with the value still have it, and narthex \
                               cannot take it back: revoke the value where it was issued, and end \
                               these agents";

/// The users of one secret.
#[derive(Debug)]
pub(crate) struct SecretUsers {
    /// The places that name it.
    pub(crate) places: Vec<String>,
    /// The live runs that hold its value.
    pub(crate) runs: Vec<SecretRun>,
    /// The bindings to the environment of agents.
    pub(crate) bound: Vec<EnvBindingId>,
}

/// The places in the catalog, in files, in channels and in webhooks that refer to secrets.
pub(crate) async fn uses(
    door: &Door,
    control: &Control,
    workspace: &WorkspaceId,
) -> Result<SecretUses, Problem> {
    let mut uses = control.secret_uses(workspace).await?;
    if let Some(outbound) = &door.options.outbound {
        for (name, places) in outbound.secret_uses(workspace).await? {
            uses.entry(name).or_default().extend(places);
        }
    }
    Ok(uses)
}

impl SecretUsers {
    /// Reads the users of a secret.
    pub(crate) async fn of(
        door: &Door,
        control: &Control,
        workspace: &WorkspaceId,
        name: &SecretName,
    ) -> Result<Self, Problem> {
        let places = uses(door, control, workspace).await?.remove(name.as_str());
        let runs = match &door.options.runs {
            Some(runs) => runs.secret_runs(workspace, name).await?,
            None => Vec::new(),
        };
        let bound = control.env_bindings_of(workspace, name).await?;
        Ok(Self { places: places.unwrap_or_default(), runs, bound })
    }

    /// Clears a secret, and returns its users from before.
    pub(crate) async fn clear(
        door: &Door,
        control: &Control,
        workspace: &WorkspaceId,
        name: &SecretName,
        by: &By,
    ) -> Result<Self, Problem> {
        let users = Self::of(door, control, workspace, name).await?;
        control.secret_clear(workspace, name, by).await?;
        Ok(users)
    }

    /// True if agents keep the value in their own environment.
    pub(crate) fn keep_the_value(&self) -> bool {
        !self.bound.is_empty() || self.runs.iter().any(|run| !run.env.is_empty())
    }

    /// True if nothing refers to the secret, and no run holds it.
    pub(crate) fn are_none(&self) -> bool {
        self.places.is_empty() && self.runs.is_empty() && self.bound.is_empty()
    }
}

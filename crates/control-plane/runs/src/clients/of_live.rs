//! Registered clients that see the live configuration, mostly through a profile: each has a run of
//! its own, which ends when the client may not connect any more.

use std::{sync::Arc, time::SystemTime};

use narthex_catalog::fields::{CatalogError, FieldError};
use narthex_control::{By, ControlError, DoorDesk, KnownClient};
use narthex_gateway::{LiveClient, RunView};
use narthex_model::{McpClientId, ProfileName, RunEnd, WorkspaceId, command::narthex};

use crate::{RunError, Runs};

impl Runs {
    /// Checks that a client of this workspace can see this profile.
    pub(super) fn check_profile(
        &self,
        workspace: &WorkspaceId,
        profile: &ProfileName,
    ) -> Result<(), RunError> {
        let (message, remedy) = if !self.is_home(workspace) {
            let home = self.control().home();
            let message = "profiles are of the live configuration, which this workspace lacks";
            // The command has the flag itself, since its reader may work in another workspace.
            let flags = "clients register NAME --profile {} --workspace {}";
            let register = narthex(flags, &[profile, home]);
            (message.to_owned(), format!("`{register}` registers it where profiles are"))
        } else if self.shared.gateway.profile_run(profile.as_str()).is_none() {
            let list = narthex("profiles list", &[]);
            (format!("there is no usable profile `{profile}`"), format!("`{list}` shows all"))
        } else {
            return Ok(());
        };
        let fault = FieldError::invalid("profile", message, remedy);
        Err(ControlError::Catalog(CatalogError::Refused(vec![fault])).into())
    }

    /// The run of a client of the live configuration, which begins if none is active.
    pub(super) fn begin_in_live(&self, client: &KnownClient) -> Result<Arc<RunView>, RunError> {
        let (gateway, id) = (&self.shared.gateway, client.row.id.clone());
        let profile = client.row.profile.as_ref().map(ProfileName::as_str);
        let (run, is_new) = gateway
            .begin_client_run(&id, LiveClient { profile, user: client.acts_for() })
            .map_err(ControlError::Audit)?
            .ok_or_else(|| {
                let profile = profile.unwrap_or_default();
                RunError::Malformed(format!("there is no usable profile `{profile}`"))
            })?;
        if is_new {
            self.end_with(client, &run);
        }
        Ok(run)
    }

    /// Has the run of a client end once the client may not connect any more.
    pub(super) fn end_with(&self, client: &KnownClient, run: &Arc<RunView>) {
        let (workspace, id) = (client.row.workspace.clone(), client.row.id.clone());
        let run = run.clone();
        self.until_closed(|runs| async move { runs.end_with_client(workspace, id, run).await });
    }

    /// Ends the run of a client once the client is revoked, disabled or expired, or tokens of it
    /// are revoked, at this daemon or another.
    async fn end_with_client(self, workspace: WorkspaceId, id: McpClientId, run: Arc<RunView>) {
        let mut changes = self.control().access_changes();
        let revoked = || DoorDesk::of(self.control()).and_then(|desk| desk.family_end(&id));
        let revoked_before = revoked();
        loop {
            changes.mark_unchanged();
            if revoked() > revoked_before {
                break;
            }
            let expires_at = match self.live_client(&workspace, &id) {
                Ok(Some(client)) => client.row.expires_at,
                Ok(None) => break,
                // Unknown for a moment: the next change tells.
                Err(error) => {
                    tracing::debug!(client.id = %id, "the client cannot be looked up: {error}");
                    None
                }
            };
            let expiry = async {
                match expires_at.map(|end| end.duration_since(SystemTime::now())) {
                    Some(left) => tokio::time::sleep(left.unwrap_or_default()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = run.ended() => return,
                () = expiry => {}
                changed = changes.changed() => if changed.is_err() {
                    break;
                },
            }
        }
        if run.is_beside() {
            return self.shared.gateway.end_client_run(&id).await;
        }
        let ended = self.end_stored(&workspace, run.id, RunEnd::Ended, By::system(), None).await;
        if let Err(error) = ended {
            tracing::warn!(client.id = %id, "the run of a client cannot be ended: {error}");
        }
    }
}

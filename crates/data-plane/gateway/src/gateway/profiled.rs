//! Runs by which clients see the live configuration through its profiles.

use std::sync::Arc;

use narthex_audit::AuditFull;
use narthex_model::{McpClientId, PrincipalId};

use crate::{Gateway, RunView, VisibleTool};

/// The part of the live configuration that a registered client sees, and its human.
#[derive(Debug, Clone, Copy)]
pub struct LiveClient<'a> {
    /// The profile; `None` for all servers.
    pub profile: Option<&'a str>,
    /// The human for whom the client acts; `None` for the one of the daemon's own run.
    pub user: Option<&'a PrincipalId>,
}

impl Gateway {
    /// Lets clients see the servers of `base`, the daemon's own run, through the profiles of the
    /// live configuration. Follows these until the gateway stops. Needs a tokio runtime.
    pub fn follow_profiles(&self, base: &Arc<RunView>) {
        let mut changes = self.shared.registry.profile_changes();
        changes.mark_unchanged();
        if !self.profiles.begin(base) {
            return tracing::error!("the profiles are followed already");
        }
        self.apply_profiles();
        let (gateway, stopping) = (self.clone(), self.shared.shutdown.clone());
        self.shared.spawn(async move {
            while let Some(Ok(())) = stopping.run_until_cancelled(changes.changed()).await {
                gateway.apply_profiles();
            }
        });
    }

    fn apply_profiles(&self) {
        let profiles = self.shared.registry.profiles();
        let gone = self.profiles.apply(&profiles, |run| self.begin_run(run));
        for run in gone {
            self.shared.runs.remove(run.id);
            let shared = self.shared.clone();
            self.shared.spawn(async move { shared.end_run(&run).await });
        }
    }

    /// The run of a registered client of the live configuration, if it has begun and not ended.
    #[must_use]
    pub fn client_run(&self, client: &McpClientId) -> Option<Arc<RunView>> {
        self.profiles.of_client(client)
    }

    /// The run of a registered client of the live configuration, which begins if there is none, and
    /// `true` if it has begun now. `None` if there is no such profile.
    ///
    /// # Errors
    /// When the record cannot be written: the run has not begun then.
    pub fn begin_client_run(
        &self,
        client: &McpClientId,
        of: LiveClient<'_>,
    ) -> Result<Option<(Arc<RunView>, bool)>, AuditFull> {
        let base = match of.profile {
            Some(profile) => self.profile_run(profile),
            None => self.profiles.base(),
        };
        let Some(base) = base else { return Ok(None) };
        let run = RunView::of_client(&base, client, of.user);
        self.profiles.begin_client(client, run, |run| self.begin_run(run)).map(Some)
    }

    /// Ends the run of a registered client of the live configuration, with its sessions, streams
    /// and calls.
    pub async fn end_client_run(&self, client: &McpClientId) {
        if let Some(run) = self.profiles.leave(client) {
            self.end_run(run.id).await;
        }
    }

    /// The run by which a caller sees a profile. Clients of the daemon's own run may choose any
    /// profile, and those of a profile's run only their own. `None` for all others, and for an
    /// unknown profile (D5).
    #[must_use]
    pub fn in_profile(&self, run: &Arc<RunView>, name: &str) -> Option<Arc<RunView>> {
        match run.profile() {
            Some(own) => (own.name().as_str() == name).then(|| run.clone()),
            None => self.may_choose_profile(run).then(|| self.profile_run(name)).flatten(),
        }
    }

    /// True if clients of a run may choose a profile by the address.
    #[must_use]
    pub fn may_choose_profile(&self, run: &RunView) -> bool {
        self.profiles.is_base(run)
    }

    /// The run of a profile; `None` if there is no such profile.
    #[must_use]
    pub fn profile_run(&self, name: &str) -> Option<Arc<RunView>> {
        self.profiles.get(name).or_else(|| {
            // A profile may have been added just now.
            self.apply_profiles();
            self.profiles.get(name)
        })
    }

    /// The runs of all profiles.
    #[must_use]
    pub fn profile_runs(&self) -> Vec<Arc<RunView>> {
        self.apply_profiles();
        self.profiles.all()
    }

    /// The tools of servers that clients of a run see now at the aggregated endpoint.
    #[must_use]
    pub fn visible_tools(&self, run: &RunView) -> Vec<VisibleTool> {
        let rows = run.rows_once(&self.shared.registry);
        self.shared.kept_view(&rows, run).tools().collect()
    }
}

//! Begins and ends runs, and shows what they see.

use std::{borrow::Cow, sync::Arc};

use narthex_audit::AuditFull;
use narthex_model::Alias;
use narthex_registry::Snapshot;

use crate::{Endpoint, Gateway, RunId, RunSource, RunToken, RunView, runs::run::Changes};

impl Gateway {
    /// Sets the source of runs that are not in the table. Only the first call counts.
    pub fn set_run_source(&self, source: Arc<dyn RunSource>) {
        if !self.shared.run_source.set(source) {
            tracing::warn!("a second source of runs was set and is ignored");
        }
    }

    /// The run that a token opens, also a run that began before this process; `None` for any other
    /// text.
    pub async fn find_run(&self, token: &str) -> Option<Arc<RunView>> {
        if let Some(run) = self.shared.runs.identify(token) {
            return Some(run);
        }
        let source = self.shared.run_source.get()?;
        let token = RunToken::parse(token)?;
        // Only its own token opens a run of this table, whatever the store has.
        match self.shared.runs.get(token.run_id()) {
            Some(_) => None,
            None => source.find(&token).await,
        }
    }

    /// Begins a run: from now on its token opens it. Records the tools that the run sees (E20).
    /// Needs a tokio runtime.
    ///
    /// # Errors
    /// When the record cannot be written: the run has not started then.
    pub fn begin_run(&self, run: &Arc<RunView>) -> Result<(), AuditFull> {
        let shared = &self.shared;
        run.contents.go_by(shared.audit.contents_switch(&run.workspace));
        let snapshot = run.rows_once(&shared.registry);
        if !run.is_plain() {
            run.tell_missing(&snapshot);
            shared.record_tools(run, &shared.kept_tools(&snapshot, run))?;
            shared.runs.insert(run);
            return Ok(());
        }
        let view = shared.live_view(&snapshot);
        shared.record_tools(run, &shared.tools_of(&view))?;
        shared.runs.insert(run);
        // Changes from before the run was in the table were reported to no run.
        let now = shared.live_view(&run.rows_once(&shared.registry));
        if now.seq != view.seq {
            shared.note_tools([&**run].into_iter(), &shared.tools_of(&now));
        }
        Ok(())
    }

    /// Ends a run: its token opens nothing any more, and its sessions, streams and open calls end.
    /// The servers of the calls get a cancellation, and the callers are answered at once. Does not
    /// wait for the end of the run's own servers. Returns the run; `None` if there is no such run.
    pub async fn end_run(&self, id: RunId) -> Option<Arc<RunView>> {
        let run = self.shared.runs.remove(id)?;
        // The task completes also if the caller disconnects.
        let (shared, ending) = (self.shared.clone(), run.clone());
        let ending = self.shared.spawn_awaited(async move { shared.end_run(&ending).await });
        if let Err(error) = ending.await {
            tracing::error!(run.id = %id, %error, "a run could not be ended");
        }
        Some(run)
    }

    /// The servers of a run: the shared servers that its policy attaches, and its own servers.
    #[must_use]
    pub fn snapshot(&self, run: &RunView) -> Arc<Snapshot> {
        run.rows_once(&self.shared.registry).shown().clone()
    }

    /// A text without the values of secrets that the run and its servers know, for watchers of the
    /// run. For a run that has ended, these servers are its own and all shared servers.
    #[must_use]
    pub fn without_secrets<'t>(&self, run: &RunView, text: &'t str) -> Cow<'t, str> {
        let seen = match run.has_ended() {
            true => self.shared.registry.snapshot(),
            false => self.snapshot(run),
        };
        run.contents.redactor(&seen).text(text)
    }

    /// The servers with an endpoint in a run, including the built-in server.
    #[must_use]
    pub fn aliases(&self, run: &RunView) -> Vec<Alias> {
        let rows = run.rows_once(&self.shared.registry);
        let aliases = rows.servers().map(|row| row.alias().clone());
        aliases.chain(run.built_in_aliases()).collect()
    }

    /// The endpoint of a server; `None` if the run has none of this name (D5). A run that sees by a
    /// profile has one endpoint, with the profile's names.
    #[must_use]
    pub fn endpoint(&self, run: &RunView, alias: &str) -> Option<Endpoint> {
        if run.policy.profile().is_some() {
            return None;
        }
        if let Some(alias) = run.built_in(alias) {
            return Some(Endpoint::Transparent(alias));
        }
        let row = run.rows_once(&self.shared.registry).get(alias)?;
        Some(Endpoint::Transparent(row.alias().clone()))
    }

    /// Watches for changes of the servers that a run may see.
    #[must_use]
    pub fn changes(&self, run: &RunView) -> Changes {
        run.changes(&self.shared.registry)
    }

    /// Number of open sessions of a run.
    #[must_use]
    pub fn sessions_of(&self, id: RunId) -> usize {
        self.shared.sessions.of(id).len()
    }
}

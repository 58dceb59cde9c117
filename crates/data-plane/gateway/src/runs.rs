//! Starts and ends runs, and records and reports the tools of live runs.

pub(crate) mod run;

mod reviews;
mod source;

use std::sync::Arc;

use narthex_audit::{AuditFull, ToolSet};
use narthex_wire::{ListKind, Notification};
use tokio::{task::JoinSet, time::Duration};

pub(crate) use self::source::Source;
pub use self::source::{FindingRun, LookingAt, RunSource};
use crate::{
    Endpoint, RunView, Session,
    links::LinkKind,
    runs::{
        reviews::LookedAt,
        run::{Changes, RunRows},
    },
    shared::Shared,
    subscriptions::Seen,
    view::View,
};

impl Shared {
    /// The servers that a run has. The call marks the run as used, and starts the task that watches
    /// it before its view is read: so later changes are reported.
    pub(crate) fn snapshot(&self, run: &RunView) -> RunRows {
        if !run.is_plain() && !run.usage.note() {
            self.watch(run);
        }
        run.rows(&self.registry)
    }

    /// Starts a task that watches a live run, if none does.
    fn watch(&self, run: &RunView) {
        let (Some(shared), Some(run)) = (self.this.upgrade(), self.runs.get(run.id)) else {
            return;
        };
        let watched = run.clone();
        run.usage.watch(|| {
            // Subscribed before the view is read, so that no change is missed.
            let changes = watched.changes(&shared.registry);
            let view = shared.run_view(&watched, &watched.rows(&shared.registry));
            // Records the changes from before the watching began.
            shared.note_tools([&*watched].into_iter(), &shared.tools_of(&view));
            self.spawn(watch_run(shared, watched, changes, view));
        });
    }

    /// Waits until `is_done` holds for a run's rows, or the deadline; returns the last rows.
    pub(crate) async fn wait_until(
        &self,
        run: &RunView,
        within: Duration,
        is_done: impl Fn(&RunRows) -> bool,
    ) -> RunRows {
        let mut changes = run.changes(&self.registry);
        let waiting = async {
            loop {
                changes.mark_seen();
                let snapshot = self.snapshot(run);
                if is_done(&snapshot) || !changes.next().await {
                    return snapshot;
                }
            }
        };
        tokio::time::timeout(within, waiting).await.unwrap_or_else(|_late| self.snapshot(run))
    }

    pub(crate) async fn end_run(self: &Arc<Self>, run: &Arc<RunView>) {
        run.ended.cancel();
        self.options.tap.run_ended(run.id);
        let sessions = self.sessions.of(run.id);
        sessions.iter().for_each(|session| session.close());
        let mut ending = JoinSet::new();
        for session in sessions {
            let shared = self.clone();
            ending.spawn(async move { shared.end_session(&session).await });
        }
        // The servers are released now, not when slow servers have ended: no call begins on
        // released servers.
        run.release();
        run.forget_seen();
        self.tasks.forget(run.id);
        while ending.join_next().await.is_some() {}
        self.forget_gone(run.own_keys());
    }

    /// Records the tools that a run sees, if they differ from the last record.
    pub(crate) fn record_tools(
        &self,
        run: &RunView,
        tools: &Arc<ToolSet>,
    ) -> Result<(), AuditFull> {
        if run.tools.load().as_ref().is_none_or(|before| before.digest != tools.digest) {
            // The first tools of a run are no news if the daemon has no server yet.
            let is_news = !tools.tools.is_empty() || run.has_own() || run.tools.load().is_some();
            if is_news {
                self.audit.note_tools(&run.workspace, run.id, tools)?;
            }
            run.tools.store(Some(tools.clone()));
        }
        Ok(())
    }

    /// As [`Self::record_tools`], for several runs. Tools that cannot be recorded are recorded with
    /// their next change.
    pub(crate) fn note_tools<'r>(
        &self,
        runs: impl Iterator<Item = &'r RunView>,
        tools: &Arc<ToolSet>,
    ) {
        for run in runs {
            if let Err(error) = self.record_tools(run, tools) {
                tracing::warn!(
                    run.id = %run.id,
                    "the tools of a run could not be recorded in the audit: {error}"
                );
            }
        }
    }
}

/// Notifies the clients of a run with a view of its own of changes to its lists. Records the
/// changes, for as long as the run is used.
async fn watch_run(
    shared: Arc<Shared>,
    run: Arc<RunView>,
    mut changes: Changes,
    mut last: Arc<View>,
) {
    let mut looks = tokio::time::interval(shared.options.run_idle);
    let mut looked = LookedAt::new();
    let mut arrived = LookedAt::new();
    // Reviews the changes from before the watching began.
    shared.run_source.look_at_changed(&run, &mut looked, &shared.tracker);
    loop {
        tokio::select! {
            biased;
            () = shared.shutdown.cancelled() => return,
            () = run.ended.cancelled() => break,
            has_changed = changes.next() => if !has_changed { break },
            _ = looks.tick() => match run.usage.rest(|| run.forget_seen()) {
                true => return,
                // At once for the first time. A review may have failed since.
                false => {
                    arrived.clear();
                    shared.run_source.look_at_arrived(&run, &mut arrived, &shared.tracker);
                    continue;
                }
            },
        }
        changes.mark_seen();
        let snapshot = shared.snapshot(&run);
        shared.run_source.look_at_changed(&run, &mut looked, &shared.tracker);
        shared.run_source.look_at_arrived(&run, &mut arrived, &shared.tracker);
        for key in run.own_keys() {
            let row = snapshot.get(key.alias.as_str());
            if let Some(link) = row.as_ref().and_then(|row| row.link.as_ref()) {
                shared.tell_new_link(link, &key, LinkKind::Shared);
            }
        }
        if run.has_ended() {
            break;
        }
        let view = shared.run_view(&run, &snapshot);
        let is_here = |of: &RunView| of.id == run.id;
        if shared.tell_lists(&last, &view, &Seen::Run(run.id), is_here) {
            shared.note_tools([&*run].into_iter(), &shared.tools_of(&view));
        }
        last = view;
    }
    // Forgets notes on the run's links from after its end, and views that it has seen.
    run.forget_seen();
    shared.forget_gone(run.own_keys());
}

impl Shared {
    /// Announces the lists of an aggregated endpoint that differ. `true` if the list of tools
    /// differs.
    pub(crate) fn tell_lists(
        &self,
        last: &View,
        now: &View,
        seen: &Seen,
        is_seen_by: impl Fn(&RunView) -> bool,
    ) -> bool {
        if std::ptr::eq(last, now) {
            return false;
        }
        let is_concerned =
            |one: &Session| one.endpoint == Endpoint::Aggregated && is_seen_by(&one.run);
        let differs =
            |known: &&Notification| known.lists().iter().any(|kind| now.differs(last, *kind));
        for known in Notification::of_lists().filter(differs) {
            let sessions = self.sessions.all().into_iter();
            let concerned: Vec<_> = sessions.filter(|one| is_concerned(one)).collect();
            self.announce_list(seen.clone(), known, &concerned);
        }
        now.differs(last, ListKind::Tools)
    }
}

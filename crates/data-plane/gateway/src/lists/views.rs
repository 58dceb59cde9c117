//! The view of a caller, and the lists that it has.

mod kept;

use std::{
    sync::{Arc, MutexGuard, PoisonError},
    time::Duration,
};

use narthex_audit::ToolSet;
use narthex_model::Alias;
use narthex_policy::RunPolicy;
use narthex_registry::Snapshot;
use narthex_upstream::Inventory;
use narthex_wire::{Era, method, rpc};
use tokio::{
    sync::mpsc,
    time::{Instant, timeout_at},
};

use crate::{
    Caller, RunView, Session,
    links::{LinkKind, link_kind},
    refusal::Refusal,
    runs::run::{LastView, RunRows},
    shared::Shared,
    view::View,
};

/// Longest wait of a view for servers that list for one client alone. Slower servers show their
/// shared lists until the client's own lists have arrived.
const VIEW_PATIENCE: Duration = Duration::from_secs(3);

pub(crate) use self::kept::Kept;
use self::kept::sources;

impl Shared {
    /// The view of a caller at the aggregated endpoint. Built once per registry snapshot; clients
    /// that servers may ask questions see the lists that the servers make for their capabilities.
    pub(crate) async fn view(self: &Arc<Self>, caller: &Caller) -> Arc<View> {
        let snapshot = self.snapshot(&caller.run);
        match caller.session.as_ref().filter(|session| session.can_be_asked()) {
            None => self.run_view(&caller.run, &snapshot),
            Some(session) => Box::pin(self.session_view(session, &snapshot)).await,
        }
    }

    /// The view of a client that servers may ask questions: each legacy server lists for its
    /// capabilities. A server that fails to do so shows its shared lists.
    async fn session_view(
        self: &Arc<Self>,
        session: &Arc<Session>,
        snapshot: &RunRows,
    ) -> Arc<View> {
        if let Some(view) = session.view(snapshot.seq) {
            return view;
        }
        session.run.tell_missing(snapshot);
        let mut seen = self.parts(snapshot, &session.run.policy, Some(&session.run));
        let (opened, mut openings) = mpsc::channel(seen.len().max(1));
        for (index, part) in seen.iter().enumerate() {
            let row = snapshot.get(part.alias.as_str());
            let shared = row.as_ref().and_then(|row| row.link.as_ref().map(|link| (row, link)));
            if shared
                .is_some_and(|(row, link)| link_kind(session, row, link.facts()) == LinkKind::Own)
            {
                let opening = open_for(self.clone(), session.clone(), part.alias.clone());
                self.spawn(tell_or_retract(session.clone(), index, opening, opened.clone()));
            }
        }
        drop(opened);
        let deadline = Instant::now() + VIEW_PATIENCE;
        while let Ok(Some((index, inventory))) = timeout_at(deadline, openings.recv()).await {
            if let Some(inventory) = inventory {
                seen[index].sees(&inventory, Era::Legacy);
            }
        }
        let view = Arc::new(self.options.view_of(snapshot.seq, &seen));
        session.set_view(view.clone());
        // From here on, a late list finds no receiver and retracts the view. A list that came while
        // the view was built is in the queue.
        openings.close();
        if openings.try_recv().is_ok() {
            session.forget_view();
        }
        view
    }

    /// The view of a run: lists and calls use the same view (D5).
    pub(crate) fn run_view(&self, run: &RunView, snapshot: &RunRows) -> Arc<View> {
        if run.is_plain() {
            return self.live_view(snapshot);
        }
        if let Some(seen) = run.view.load().as_ref().filter(|seen| seen.seq == snapshot.seq) {
            return seen.view.clone();
        }
        run.tell_missing(snapshot);
        let view = self.kept_view(snapshot, run);
        run.view.store(Some(Arc::new(LastView { seq: snapshot.seq, view: view.clone() })));
        view
    }

    pub(crate) fn live_view(&self, snapshot: &Snapshot) -> Arc<View> {
        if let Some(view) = self.live_view.load_full().filter(|view| view.seq == snapshot.seq) {
            return view;
        }
        let parts = self.parts(snapshot, &RunPolicy::AllAttached, None);
        let view = Arc::new(self.options.view_of(snapshot.seq, &parts));
        self.live_view.store(Some(view.clone()));
        view
    }
}

impl Shared {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept_views.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The view of a run on a snapshot: all runs that see the same share one view.
    pub(crate) fn kept_view(&self, snapshot: &Snapshot, run: &RunView) -> Arc<View> {
        let policy = &run.policy;
        let offers = self.offers(snapshot, policy, Some(run));
        let sources = sources(snapshot, policy, &offers);
        if let (Some(view), _) = self.kept().find(&sources) {
            return view;
        }
        // The view is built without the lock, since that may take long.
        let view =
            Arc::new(self.options.view_of(snapshot.seq, &self.parts(snapshot, policy, Some(run))));
        self.kept().keep(sources, view)
    }

    /// The tools that a run sees of a snapshot. Builds nothing if another run sees the same tools.
    pub(crate) fn kept_tools(&self, snapshot: &Snapshot, run: &RunView) -> Arc<ToolSet> {
        let offers = self.offers(snapshot, &run.policy, Some(run));
        let sources = sources(snapshot, &run.policy, &offers);
        let (_, tools) = self.kept().find(&sources);
        tools.unwrap_or_else(|| self.tools_of(&self.kept_view(snapshot, run)))
    }

    /// The tools of a view, for the record.
    pub(crate) fn tools_of(&self, view: &View) -> Arc<ToolSet> {
        self.kept().set_of(view)
    }
}

/// The lists of a server for one client. `None` if the server makes none: the client then sees the
/// shared lists.
async fn open_for(
    shared: Arc<Shared>,
    session: Arc<Session>,
    alias: Alias,
) -> Option<Arc<Inventory>> {
    match shared.own_link(&session, &alias).await {
        Ok(chosen) => Some(chosen.inventory),
        Err(Refusal::Cancelled) => None,
        Err(_) if is_modern_only(&shared, &session, &alias) => None,
        Err(_) => {
            let text = "could not list for this client's capabilities";
            tracing::warn!(server.name = %alias, "{text}");
            None
        }
    }
}

/// True if a server has only its shared link for every session.
fn is_modern_only(shared: &Shared, session: &Session, alias: &Alias) -> bool {
    shared.snapshot(&session.run).get(alias.as_str()).is_some_and(|row| row.is_modern_only())
}

/// Sends the lists to the builder of the view. If the view was built meanwhile, retracts it.
async fn tell_or_retract(
    session: Arc<Session>,
    index: usize,
    opening: impl Future<Output = Option<Arc<Inventory>>>,
    opened: mpsc::Sender<(usize, Option<Arc<Inventory>>)>,
) {
    let inventory = opening.await;
    let has_opened = inventory.is_some();
    if opened.send((index, inventory)).await.is_err() && has_opened {
        session.forget_view();
        session.deliver(rpc::notification(method::TOOLS_LIST_CHANGED, None));
    }
}

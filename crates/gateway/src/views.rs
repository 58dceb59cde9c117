//! Which view a caller has, and lists out of it.

use std::sync::Arc;

use narthex_policy::RunPolicy;
use narthex_registry::Snapshot;
use narthex_wire::Message;

use crate::{
    Answering, Caller, RunView,
    gateway::Shared,
    method::ListKind,
    pipeline::result,
    refusal::Refusal,
    view::{View, parts},
};

impl Shared {
    pub(crate) async fn list(
        self: &Arc<Self>,
        caller: &Caller,
        kind: ListKind,
        request: &Message,
    ) -> Result<Answering, Refusal> {
        let view = self.view(caller).await;
        let cursor = request.get("cursor").filter(|raw| raw.as_bytes() != b"null");
        let cursor = match cursor {
            None => None,
            Some(raw) => {
                Some(raw.as_str().ok_or_else(|| Refusal::invalid("`cursor` must be a string"))?)
            }
        };
        let page = view.page(kind, caller.era(), cursor.as_deref());
        let page = page.ok_or_else(|| Refusal::invalid("`cursor` is none of ours"))?;
        Ok(result(request, page))
    }

    /// What a caller of the aggregated endpoint sees. Built once per registry snapshot; clients
    /// that servers may ask something see what the servers list for their capabilities.
    pub(crate) async fn view(self: &Arc<Self>, caller: &Caller) -> Arc<View> {
        let snapshot = self.registry.snapshot();
        match caller.session.as_ref().filter(|session| session.can_be_asked()) {
            None => self.run_view(&caller.run, &snapshot),
            Some(session) => Box::pin(self.session_view(session, &snapshot)).await,
        }
    }

    /// What a run sees: lists and calls ask the same view (D5).
    pub(crate) fn run_view(&self, run: &RunView, snapshot: &Snapshot) -> Arc<View> {
        if run.policy == RunPolicy::AllAttached {
            return self.live_view(snapshot);
        }
        if let Some(view) = run.view.load_full().filter(|view| view.seq == snapshot.seq) {
            return view;
        }
        let view = Arc::new(self.build_view(snapshot.seq, &parts(snapshot, &run.policy)));
        run.view.store(Some(view.clone()));
        view
    }

    pub(crate) fn live_view(&self, snapshot: &Snapshot) -> Arc<View> {
        if let Some(view) = self.live_view.load_full().filter(|view| view.seq == snapshot.seq) {
            return view;
        }
        let parts = parts(snapshot, &RunPolicy::AllAttached);
        let view = Arc::new(self.build_view(snapshot.seq, &parts));
        self.live_view.store(Some(view.clone()));
        view
    }

    pub(crate) fn build_view(&self, seq: u64, parts: &[crate::view::Part]) -> View {
        View::build(seq, parts, self.options.name_limit, &self.options.server_info)
    }
}

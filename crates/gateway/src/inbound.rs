//! What a client sends that is no request: notifications, responses; and its log level.

use std::sync::Arc;

use bytes::Bytes;
use narthex_model::Alias;
use narthex_policy::{Item, Request};
use narthex_registry::ServerKey;
use narthex_upstream::Link;
use narthex_wire::{Era, LogLevel, Message, Rewrite, method, translate};
use tokio::task::JoinSet;

use crate::{
    Answering, Caller, Endpoint, Session,
    gateway::Shared,
    grants::Target,
    handshake::aggregated,
    links::{Chosen, LinkKind},
    pipeline::{own_alias, result},
    refusal::Refusal,
};
use narthex_view::Handling;

impl Shared {
    /// `logging/setLevel` of a legacy client: kept, and told to the servers that log for it.
    pub(crate) async fn set_level(
        self: &Arc<Self>,
        caller: &Caller,
        request: Message,
    ) -> Result<Answering, Refusal> {
        let level = request.get("level").and_then(LogLevel::read);
        let Some(level) = level else {
            let levels = "debug, info, notice, warning, error, critical, alert or emergency";
            return Err(Refusal::invalid(format!("`params.level` must be one of {levels}")));
        };
        let Some(session) = &caller.session else {
            return Err(Refusal::unknown_method(request.method()));
        };
        if let Some(alias) = own_alias(caller) {
            let row = self.settled(&caller.run, alias).await?;
            let chosen = self.choose_link(caller, &row).await?;
            if !chosen.link.facts().capabilities.logging {
                return Err(Refusal::unknown_method(request.method()));
            }
            session.set_log_level(level);
            if chosen.kind == LinkKind::Own {
                return self.forward(caller, Handling::Vendor, request).await;
            }
            self.lower_level(caller, &request, &chosen, level).await;
        } else {
            let snapshot = self.snapshot(&caller.run);
            let view = self.run_view(&caller.run, &snapshot);
            if !aggregated(view.capabilities, &snapshot).logging {
                return Err(Refusal::unknown_method(request.method()));
            }
            session.set_log_level(level);
            self.lower_levels(caller, &request, level).await;
        }
        Ok(result(&request, &Bytes::from_static(b"{}")))
    }

    /// Tells all servers the level, side by side.
    async fn lower_levels(self: &Arc<Self>, caller: &Caller, request: &Message, level: LogLevel) {
        let mut telling = JoinSet::new();
        let snapshot = self.snapshot(&caller.run);
        // Those that are not there, or asleep, are told when they are.
        for row in snapshot.servers.iter().filter(|row| row.link.is_some()) {
            let (shared, caller, row) = (self.clone(), caller.clone(), row.clone());
            let request = request.clone();
            telling.spawn(async move {
                if let Ok(chosen) = shared.choose_link(&caller, &row).await {
                    shared.lower_level(&caller, &request, &chosen, level).await;
                }
            });
        }
        while telling.join_next().await.is_some() {}
    }

    /// Tells a server the level, if nobody on the same link asked for as much before. What it then
    /// says too much for others is filtered on its way to them.
    async fn lower_level(
        &self,
        caller: &Caller,
        request: &Message,
        chosen: &Chosen,
        level: LogLevel,
    ) {
        if !has_levels(&chosen.link) {
            return;
        }
        let wanted = Request::new(chosen.link.alias().clone(), request.clone(), Item::Server);
        let Ok(errand) = self.errand(caller, wanted).await else { return };
        let key = caller.run.key(chosen.link.alias());
        let needed = match chosen.kind {
            LinkKind::Own => Some(level),
            LinkKind::Shared | LinkKind::Pooled(_) => {
                self.hub.lowers(&chosen.link, &key, chosen.kind, level)
            }
        };
        let done = match needed {
            Some(level) => self.set_level_on(&key, &chosen.link, level).await,
            None => Ok(()),
        };
        note_level(&chosen.link, errand.end(done));
    }

    async fn set_level_on(
        &self,
        key: &ServerKey,
        link: &Link,
        level: LogLevel,
    ) -> Result<(), Refusal> {
        let members = format!(r#""level":"{}""#, level.as_str());
        self.ask(key, link, method::LOGGING_SET_LEVEL, members.as_bytes()).await
    }

    /// Takes a notification of a client.
    pub(crate) async fn notify(self: &Arc<Self>, caller: &Caller, message: Message) {
        match message.method() {
            method::CANCELLED => {
                // Modern callers cancel by closing their stream, or by dropping the answering.
                if let (Some(session), Some(id)) = (&caller.session, message.get("requestId")) {
                    session.cancel_call(id.as_bytes());
                }
            }
            method::INITIALIZED => {}
            method::ROOTS_LIST_CHANGED => self.roots_changed(caller, &message).await,
            _ => self.pass_on(caller, message).await,
        }
    }

    /// Each server that was offered roots hears of their change.
    async fn roots_changed(&self, caller: &Caller, message: &Message) {
        let Some(session) = &caller.session else { return };
        for link in session.own_links() {
            let request = Request::new(link.alias().clone(), message.clone(), Item::Server);
            // It is about no tool, resource or prompt, which are all that rules are about.
            let Ok(permitted) = self.permit(caller, Target::of(None), request, &[]).await else {
                continue;
            };
            if let Err(error) = link.notify(permitted).await {
                tracing::debug!(
                    server.name = link.name(),
                    %error,
                    "a server did not hear of roots"
                );
            }
        }
    }

    /// Any other notification goes to the one server of a transparent endpoint.
    async fn pass_on(self: &Arc<Self>, caller: &Caller, message: Message) {
        let Endpoint::Transparent(alias) = &caller.endpoint else {
            tracing::debug!(method = message.method(), "dropped a notification for no server");
            return;
        };
        let Ok(row) = self.settled(&caller.run, alias).await else { return };
        let Ok(chosen) = self.choose_link(caller, &row).await else { return };
        if is_shared(caller, alias, chosen.kind) {
            tracing::debug!(
                server.name = %alias,
                "dropped a notification: other callers share the connection"
            );
            return;
        }
        let mut request = Request::new(alias.clone(), message, Item::Server);
        let up = chosen.link.facts().revision.era();
        if caller.era() == Era::Modern && up == Era::Legacy {
            request.rewrite = translate::request_to_legacy();
        }
        let permitted = self.permit(caller, Target::of(Some(&row)), request, &[]).await;
        let Ok(permitted) = permitted else { return };
        if let Err(error) = chosen.link.notify(permitted).await {
            tracing::debug!(server.name = %alias, %error, "a notification was not taken");
        }
    }

    /// Takes a client's answer to a server's question.
    pub(crate) async fn respond(&self, session: &Arc<Session>, response: &Message) {
        let Some(ask) = session.answered(response) else {
            tracing::debug!(session.id = %session.id, "dropped an answer to no question");
            return;
        };
        let mut rewrite = Rewrite { id: Some(ask.id.to_vec().into()), ..Rewrite::default() };
        session.task_owner(ask.link.alias()).restore(response, &mut rewrite);
        if let Err(error) = ask.link.respond(rewrite.apply(response)).await {
            tracing::debug!(server.name = ask.link.name(), %error, "an answer was not taken");
        }
    }
}

/// Whether callers of other runs use a link, too. A notification has no answer, and may be about any
/// request on its link: on a shared one it could end the calls of others.
fn is_shared(caller: &Caller, alias: &Alias, kind: LinkKind) -> bool {
    kind != LinkKind::Own && !caller.run.is_alone_at(alias)
}

/// Whether a server takes levels: modern ones have one in each request.
pub(crate) fn has_levels(link: &Link) -> bool {
    let facts = link.facts();
    facts.capabilities.logging && !facts.revision.is_modern()
}

fn note_level(link: &Link, done: Result<(), Refusal>) {
    if let Err(refusal) = done {
        tracing::debug!(server.name = link.name(), ?refusal, "kept its log level");
    }
}

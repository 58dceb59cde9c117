//! Messages of a client other than requests: notifications, responses; and its log level.

use std::sync::Arc;

use bytes::Bytes;
use narthex_model::Alias;
use narthex_policy::{Item, Request};
use narthex_registry::ServerKey;
use narthex_upstream::{Asking, Link};
use narthex_wire::{Era, LogLevel, Message, Rewrite, rpc, translate};
use tokio::task::JoinSet;

use crate::{
    Answering, Caller, Session,
    call::{handshake::aggregated, own_answer::result},
    links::{Chosen, LinkKind, has_levels},
    names::own_alias,
    refusal::Refusal,
    session::Asker,
    shared::Shared,
    view::{Handling, Notice, notice},
};

impl Shared {
    /// Handles `logging/setLevel` of a legacy client: stores the level, and sends it to the servers
    /// that log for the client.
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
                return self.call_server(caller, Handling::Vendor, request).await;
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

    /// Sends the level to all servers of the run, side by side.
    async fn lower_levels(self: &Arc<Self>, caller: &Caller, request: &Message, level: LogLevel) {
        let mut telling = JoinSet::new();
        let rows = self.snapshot(&caller.run);
        // Servers that are absent or asleep get the level when they are connected.
        for row in rows.servers().filter(|row| row.link.is_some()) {
            let (shared, caller) = (self.clone(), caller.clone());
            let request = request.clone();
            telling.spawn(async move {
                if let Ok(chosen) = shared.choose_link(&caller, &row).await {
                    shared.lower_level(&caller, &request, &chosen, level).await;
                }
            });
        }
        while telling.join_next().await.is_some() {}
    }

    /// Sends the level to a server, if no caller on the same link asked for one as low before.
    /// Messages that others did not ask for are filtered on their way to them.
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
        if let (Some(level), Err(_)) = (needed, &done) {
            // A session's own link is not in the hub.
            self.hub.forget_level(&chosen.link, &key, chosen.kind, level);
        }
        note_level(&chosen.link, errand.end(done));
    }

    async fn set_level_on(
        &self,
        key: &ServerKey,
        link: &Link,
        level: LogLevel,
    ) -> Result<(), Refusal> {
        let members = format!(r#""level":"{}""#, level.as_str());
        self.ask(key, link, Asking::SetLevel, members.as_bytes()).await
    }

    /// Takes a notification of a client. One table defines its handling.
    pub(crate) async fn notify(self: &Arc<Self>, caller: &Caller, message: Message) {
        match notice(message.method()) {
            Some(Notice::Cancel) => {
                // Modern callers cancel by closing their stream, or by dropping the answering.
                if let (Some(session), Some(id)) = (&caller.session, message.get("requestId")) {
                    session.cancel_call(id.as_bytes());
                }
            }
            Some(Notice::Opened) => {}
            Some(Notice::Roots) => self.roots_changed(caller, &message).await,
            Some(Notice::OfServers) => {
                tracing::debug!(
                    method = message.method(),
                    "dropped a message that only servers can send"
                );
            }
            Some(notice @ (Notice::OfQuestion | Notice::Vendor | Notice::Listed)) => {
                self.pass_on(caller, notice, message).await;
            }
            // Recorded: a caller may try to get past a check (S12).
            None => self.not_passed_on(caller, &message, unknown_notice(message.method())),
        }
    }

    /// Notifies each server that was offered the client's roots of their change.
    async fn roots_changed(&self, caller: &Caller, message: &Message) {
        let Some(session) = &caller.session else { return };
        for link in session.own_links() {
            let request = Request::new(link.alias().clone(), message.clone(), Item::Server);
            let sent = match self.errand(caller, request).await {
                Ok(errand) => errand.notify(&link).await,
                Err(refusal) => Err(refusal),
            };
            if let Err(refusal) = sent {
                tracing::debug!(
                    server.name = link.name(),
                    ?refusal,
                    "a server could not be notified of changed roots"
                );
            }
        }
    }

    /// Sends any other notification to the one server of a transparent endpoint. The notification
    /// is counted, decided on and recorded like a request.
    async fn pass_on(self: &Arc<Self>, caller: &Caller, notice: Notice, message: Message) {
        let is_server = |alias: &&Alias| !caller.run.is_built_in(alias);
        let Some(alias) = own_alias(caller).filter(is_server) else {
            tracing::debug!(method = message.method(), "dropped a notification for no server");
            return;
        };
        let chosen = match self.link_for(caller, alias, notice, message.method()).await {
            Ok(Some(chosen)) => chosen,
            Ok(None) => {
                tracing::debug!(
                    server.name = %alias,
                    "dropped a notification: other callers share the connection"
                );
                return;
            }
            Err(refusal) => return self.not_passed_on(caller, &message, refusal),
        };
        let mut request = Request::new(alias.clone(), message, Item::Server);
        let up = chosen.link.facts().revision.era();
        if caller.era() == Era::Modern && up == Era::Legacy {
            request.rewrite = translate::request_to_legacy();
        }
        let sent = match self.errand(caller, request).await {
            Ok(errand) => errand.notify(&chosen.link).await,
            Err(refusal) => Err(refusal),
        };
        if let Err(refusal) = sent {
            tracing::debug!(
                server.name = %alias, ?refusal,
                "a notification could not be delivered"
            );
        }
    }

    /// The link for a notification. `None` if callers of other runs use that link too, or if the
    /// notification belongs to no question that its server can have asked.
    async fn link_for(
        self: &Arc<Self>,
        caller: &Caller,
        alias: &Alias,
        notice: Notice,
        name: &str,
    ) -> Result<Option<Chosen>, Refusal> {
        let row = self.settled(&caller.run, alias).await?;
        let is_listed = || row.definition.as_ref().is_some_and(|one| one.takes_notification(name));
        if notice == Notice::Listed && !is_listed() {
            return Err(unknown_notice(name));
        }
        let chosen = self.choose_link(caller, &row).await?;
        let is_taken = match notice {
            Notice::OfQuestion => chosen.kind == LinkKind::Own,
            _ => !is_shared(caller, alias, chosen.kind),
        };
        Ok(is_taken.then_some(chosen))
    }

    /// Records a notification that no server gets.
    fn not_passed_on(&self, caller: &Caller, message: &Message, refusal: Refusal) {
        let refusal = self.refused(caller, Handling::Vendor, message, refusal);
        tracing::debug!(?refusal, "a notification could not be forwarded");
    }

    /// Takes a client's answer to a server's question.
    pub(crate) async fn respond(&self, session: &Arc<Session>, response: &Message) {
        let Some(ask) = session.answered(response) else {
            tracing::debug!(session.id = %session.id, "dropped an answer to an unknown question");
            return;
        };
        let (link, id) = match ask.asker {
            Asker::Server { link, id } => (link, id),
            Asker::Call { answers, place } => {
                if answers.try_send((place, response.clone())).is_err() {
                    tracing::debug!(session.id = %session.id, "dropped an answer to an ended call");
                }
                return;
            }
        };
        let mut rewrite = Rewrite { id: Some(id.to_vec().into()), ..Rewrite::default() };
        session.task_owner(link.alias()).restore(response, &mut rewrite);
        if let Err(error) = link.respond(rewrite.apply(response)).await {
            tracing::debug!(server.name = link.name(), %error, "an answer could not be delivered");
        }
    }
}

/// True if callers of other runs use a link, too. A notification has no answer, and may be about
/// any request on its link: on a shared one it could end the calls of others.
fn is_shared(caller: &Caller, alias: &Alias, kind: LinkKind) -> bool {
    kind != LinkKind::Own && !caller.run.is_alone_at(alias)
}

fn unknown_notice(name: &str) -> Refusal {
    let shown: String = name.chars().take(100).collect();
    let text = format!("notification `{shown}` is not forwarded");
    Refusal::rpc(rpc::code::METHOD_NOT_FOUND, text)
}

fn note_level(link: &Link, done: Result<(), Refusal>) {
    if let Err(refusal) = done {
        tracing::debug!(server.name = link.name(), ?refusal, "kept its log level");
    }
}

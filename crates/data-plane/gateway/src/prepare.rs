//! Changes a request before it is checked and sealed: adds the parts that the server's era needs.

use bytes::Bytes;
use narthex_model::Alias;
use narthex_policy::{Paid, Payment, Request, bound_arguments};
use narthex_upstream::ClientIdentity;
use narthex_wire::{
    Era, Revision, Rewrite,
    json::encode_string,
    translate::{self, ClientStamp},
};

use crate::{
    Caller, RunId, Session,
    gateway::Shared,
    refusal::Refusal,
    rounds::{INPUT_RESPONSES, REQUEST_STATE, has_rounds},
};

impl Shared {
    /// Rewrites the request for the server's era, before it is checked and sealed. Grants that
    /// earlier rounds of the same call have used up are added to its own.
    pub(crate) fn prepare(
        &self,
        caller: &Caller,
        request: &mut Request,
        up: Revision,
        payment: &mut Payment,
    ) -> Result<(), Refusal> {
        match (caller.era(), up.era()) {
            (Era::Legacy, Era::Modern) => {
                if let Some(session) = &caller.session {
                    merge(&mut request.rewrite, stamp_of(session));
                }
                without_claims(request);
            }
            (Era::Modern, Era::Legacy) => {
                merge(&mut request.rewrite, translate::request_to_legacy());
                return self.bring_payment(caller, request, payment);
            }
            (Era::Modern, Era::Modern) => return self.open_state(caller, request, payment),
            (Era::Legacy, Era::Legacy) => {}
        }
        Ok(())
    }

    /// The gateway's description of itself, for requests that carry no client's.
    pub(crate) fn own_identity(&self) -> ClientIdentity {
        ClientIdentity {
            info: self.options.server_info.clone(),
            capabilities: Bytes::from_static(b"{}"),
            revision: Revision::LEGACY_LATEST,
        }
    }

    /// Gives a server back its own request state, byte for byte (§1.3).
    fn open_state(
        &self,
        caller: &Caller,
        request: &mut Request,
        payment: &mut Payment,
    ) -> Result<(), Refusal> {
        let Some(state) = request.message.get("requestState") else { return Ok(()) };
        let binding = binding(caller.run.id, request);
        let opened = state.as_str().and_then(|text| self.sealer.open(&text, &binding));
        let read = opened.as_ref().and_then(|(id, state)| Some((*id, Paid::read(state)?)));
        let Some((id, (paid, state))) = read else {
            return Err(Refusal::invalid(
                "`params.requestState` is not one that this request was given, or has expired",
            ));
        };
        match state {
            Some(state) => request.rewrite.body.set("requestState", state.to_vec()),
            None => request.rewrite.body.remove("requestState"),
        }
        // Grants used up by the call count for these arguments, and for one further round.
        if !paid.grants.is_empty() && paid.arguments == bound_arguments(request) {
            let now = std::time::SystemTime::now();
            payment.bring((id, paid.grants), &self.sealer.spent, now);
        }
        Ok(())
    }
}

/// The bytes that a sealed state is bound to.
fn binding(run: RunId, request: &Request) -> Vec<u8> {
    state_binding(run, &request.alias, request.message.method(), request.item.name())
}

/// The bytes that a sealed state is bound to: run, server, method and item.
pub(crate) fn state_binding(run: RunId, alias: &Alias, method: &str, item: &str) -> Vec<u8> {
    let run = run.to_text();
    [&run, alias.as_str(), method, item].map(str::as_bytes).join(&0)
}

/// The description of a legacy client in its requests to a modern server: its identity, its
/// capabilities, and the level of log messages that its session has set.
fn stamp_of(session: &Session) -> Rewrite<'static> {
    let level = session.log_level();
    translate::request_to_modern(ClientStamp {
        info: Some(session.client.info.to_vec().into()),
        capabilities: session.declared.to_vec().into(),
        log_level: level.map(|level| encode_string(level.as_str()).into()),
    })
}

/// Takes out what only a further round may bring: a legacy client knows of none.
fn without_claims(request: &mut Request) {
    if !has_rounds(request.message.method()) {
        return;
    }
    for member in [REQUEST_STATE, INPUT_RESPONSES] {
        let is_brought = request.rewrite.body.get(member).is_some();
        if !is_brought && request.message.get(member).is_some() {
            request.rewrite.body.remove(member);
        }
    }
}

fn merge(into: &mut Rewrite<'static>, from: Rewrite<'static>) {
    into.body.append(from.body);
    into.meta.append(from.meta);
}

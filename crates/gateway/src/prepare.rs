//! What a request is given before it is checked and sealed: what the server's era needs.

use bytes::Bytes;
use narthex_model::Alias;
use narthex_policy::{Paid, Payment, Request, bound_arguments};
use narthex_upstream::ClientIdentity;
use narthex_wire::{Era, LogLevel, Revision, Rewrite, json::encode_string, meta_key, translate};

use crate::{Caller, RunId, gateway::Shared, refusal::Refusal};

impl Shared {
    /// Rewrites what the server's era needs, before the request is checked and sealed. What earlier
    /// rounds of the same call have used up of grants is added to what it has.
    pub(crate) fn prepare(
        &self,
        caller: &Caller,
        request: &mut Request,
        up: Revision,
        payment: &mut Payment,
    ) -> Result<(), Refusal> {
        match (caller.era(), up.era()) {
            (Era::Legacy, Era::Modern) => {
                let stamp = match &caller.session {
                    Some(session) => stamp_of(&session.client, session.log_level()),
                    None => stamp_of(&self.own_identity(), None),
                };
                merge(&mut request.rewrite, stamp);
            }
            (Era::Modern, Era::Legacy) => {
                merge(&mut request.rewrite, translate::request_to_legacy());
            }
            (Era::Modern, Era::Modern) => return self.open_state(caller, request, payment),
            (Era::Legacy, Era::Legacy) => {}
        }
        Ok(())
    }

    /// What we say of ourselves where no client's words fit.
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
        // What is used up is used up for these arguments, and for one further round.
        if !paid.grants.is_empty() && paid.arguments == bound_arguments(request) {
            let now = std::time::SystemTime::now();
            payment.bring((id, paid.grants), &self.sealer.spent, now);
        }
        Ok(())
    }
}

/// What a sealed state is bound to.
fn binding(run: RunId, request: &Request) -> Vec<u8> {
    state_binding(run, &request.alias, request.message.method(), request.item.name())
}

/// What a sealed state is bound to: run, server, method and item.
pub(crate) fn state_binding(run: RunId, alias: &Alias, method: &str, item: &str) -> Vec<u8> {
    let run = run.to_text();
    [&run, alias.as_str(), method, item].map(str::as_bytes).join(&0)
}

/// What a legacy client's requests carry to a modern server. Until questions are bridged between
/// the eras, none of its capabilities is declared: a server must not ask what cannot be answered.
/// `level` is the one that its session has set.
fn stamp_of(client: &ClientIdentity, level: Option<LogLevel>) -> Rewrite<'static> {
    let mut rewrite = Rewrite::default();
    let version = encode_string(Revision::LATEST.as_str());
    rewrite.meta.set(meta_key::PROTOCOL_VERSION, version);
    rewrite.meta.set(meta_key::CLIENT_CAPABILITIES, &b"{}"[..]);
    rewrite.meta.set(meta_key::CLIENT_INFO, client.info.to_vec());
    match level {
        Some(level) => rewrite.meta.set(meta_key::LOG_LEVEL, encode_string(level.as_str())),
        None => rewrite.meta.remove(meta_key::LOG_LEVEL),
    }
    rewrite
}

fn merge(into: &mut Rewrite<'static>, from: Rewrite<'static>) {
    into.body.append(from.body);
    into.meta.append(from.meta);
}

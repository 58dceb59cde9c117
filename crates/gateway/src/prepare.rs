//! What a request is given before it is checked and sealed: what the server's era needs.

use bytes::Bytes;
use narthex_model::{Alias, ArgumentsDigest, GrantId};
use narthex_policy::Request;
use narthex_upstream::ClientIdentity;
use narthex_wire::{Era, Revision, Rewrite, json::encode_string, meta_key, translate};

use crate::{Caller, RunId, gateway::Shared, refusal::Refusal};

impl Shared {
    /// Rewrites what the server's era needs, before the request is checked and sealed. Gives the
    /// grants that earlier rounds of the same call have used up.
    pub(crate) fn prepare(
        &self,
        caller: &Caller,
        request: &mut Request,
        up: Revision,
    ) -> Result<Vec<GrantId>, Refusal> {
        match (caller.era(), up.era()) {
            (Era::Legacy, Era::Modern) => {
                let stamp = match &caller.session {
                    Some(session) => stamp_of(&session.client),
                    None => stamp_of(&self.own_identity()),
                };
                merge(&mut request.rewrite, stamp);
            }
            (Era::Modern, Era::Legacy) => {
                merge(&mut request.rewrite, translate::request_to_legacy());
            }
            (Era::Modern, Era::Modern) => return self.open_state(caller, request),
            (Era::Legacy, Era::Legacy) => {}
        }
        Ok(Vec::new())
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
    fn open_state(&self, caller: &Caller, request: &mut Request) -> Result<Vec<GrantId>, Refusal> {
        let Some(state) = request.message.get("requestState") else { return Ok(Vec::new()) };
        let binding = binding(caller.run.id, request);
        let opened = state.as_str().and_then(|text| self.sealer.open(&text, &binding));
        let Some((paid, state)) = opened.as_deref().and_then(Paid::read) else {
            return Err(Refusal::invalid(
                "`params.requestState` is not one that this request was given, or has expired",
            ));
        };
        match state {
            Some(state) => request.rewrite.body.set("requestState", state.to_vec()),
            None => request.rewrite.body.remove("requestState"),
        }
        // What is used up is used up for these arguments.
        let is_same = paid.grants.is_empty() || paid.arguments == request.arguments_digest();
        Ok(if is_same { paid.grants } else { Vec::new() })
    }
}

/// What earlier rounds of a call have used up, as it travels in the sealed state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Paid {
    pub(crate) grants: Vec<GrantId>,
    /// The digest of the call's arguments, if they have one.
    pub(crate) arguments: Option<ArgumentsDigest>,
}

impl Paid {
    /// A server's state with this in front: whether there is a state and a digest, how many grants,
    /// and these.
    pub(crate) fn with_state(&self, state: Option<&[u8]>) -> Vec<u8> {
        let grants = self.grants.iter().take(usize::from(u8::MAX));
        let ids: Vec<u8> = grants.clone().flat_map(|id| id.bytes()).collect();
        let digest = self.arguments.map(ArgumentsDigest::bytes);
        let flags = [u8::from(state.is_some()), u8::from(digest.is_some())];
        let count = [u8::try_from(grants.count()).unwrap_or(u8::MAX)];
        let digest = digest.as_ref().map_or(&[][..], |digest| digest);
        [&flags[..], &count, &ids, digest, state.unwrap_or_default()].concat()
    }

    /// Reads it, with the server's state.
    fn read(bytes: &[u8]) -> Option<(Self, Option<&[u8]>)> {
        let (&[has_state, has_digest, count], mut rest) = bytes.split_first_chunk::<3>()?;
        let mut grants = Vec::new();
        for _ in 0..count {
            let (id, after) = rest.split_first_chunk()?;
            grants.push(GrantId::new(*id));
            rest = after;
        }
        let mut arguments = None;
        if has_digest == 1 {
            let (digest, after) = rest.split_first_chunk()?;
            arguments = Some(ArgumentsDigest::new(*digest));
            rest = after;
        }
        Some((Self { grants, arguments }, (has_state == 1).then_some(rest)))
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
fn stamp_of(client: &ClientIdentity) -> Rewrite<'static> {
    let mut rewrite = Rewrite::default();
    let version = encode_string(Revision::LATEST.as_str());
    rewrite.meta.set(meta_key::PROTOCOL_VERSION, version);
    rewrite.meta.set(meta_key::CLIENT_CAPABILITIES, &b"{}"[..]);
    rewrite.meta.set(meta_key::CLIENT_INFO, client.info.to_vec());
    rewrite
}

fn merge(into: &mut Rewrite<'static>, from: Rewrite<'static>) {
    into.body.append(from.body);
    into.meta.append(from.meta);
}

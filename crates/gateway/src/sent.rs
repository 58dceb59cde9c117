//! A request between being sealed and being answered: what its answer will need.

use std::{borrow::Cow, sync::Arc};

use bytes::Bytes;
use narthex_policy::Request;
use narthex_upstream::Link;
use narthex_wire::{Raw, Revision, meta_key, method, rpc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{
    Caller,
    answering::ForwardedCall,
    finish::{Finish, StateSeal, TaskOwner},
    gateway::Shared,
    log_level::LogLevel,
    pipeline::{id_of, name_of},
    record::CallRecord,
    refusal::Refusal,
};

/// What is sent and waits to be finished.
pub(crate) struct Sent {
    pub(crate) forwarded: narthex_upstream::Forwarded,
    pub(crate) finish: FinishParts,
    pub(crate) link: Arc<Link>,
    pub(crate) down: Revision,
    pub(crate) timeout: Option<std::time::Duration>,
    pub(crate) deadline: Instant,
    pub(crate) stop: Option<CancellationToken>,
}

/// What is read from the request before it is given away.
pub(crate) struct FinishParts {
    id: Bytes,
    progress_token: Option<Bytes>,
    method: Cow<'static, str>,
    log_level: Option<LogLevel>,
    session: Option<Arc<crate::Session>>,
    pub(crate) open_call: Option<crate::session::OpenCall>,
    state: Option<StateSeal>,
    tasks: Option<TaskOwner>,
    server_info: Bytes,
}

impl FinishParts {
    pub(crate) fn read(
        shared: &Arc<Shared>,
        caller: &Caller,
        request: &Request,
        up: Revision,
    ) -> Result<Self, Refusal> {
        let message = &request.message;
        let id = id_of(message);
        let raw = |raw: Raw<'_>| message.bytes().slice_ref(raw.as_bytes());
        let session = caller.session.clone();
        let open_call = match &session {
            None => None,
            Some(session) => {
                let open = session.open_call(id.clone(), request.alias.clone());
                let code = rpc::code::INVALID_REQUEST;
                Some(open.ok_or_else(|| Refusal::rpc(code, "a request with this id is open"))?)
            }
        };
        let log_level = match &session {
            None => message.meta_value(meta_key::LOG_LEVEL).and_then(LogLevel::read),
            Some(session) => session.log_level(),
        };
        let is_call = message.method() == method::TOOLS_CALL;
        let is_modern_pair = up.is_modern() && session.is_none();
        Ok(Self {
            id,
            progress_token: message.meta_value(meta_key::PROGRESS_TOKEN).map(raw),
            method: name_of(message),
            log_level,
            session,
            open_call,
            state: is_modern_pair.then(|| StateSeal {
                sealer: shared.sealer.clone(),
                run: caller.run.id,
                alias: request.alias.clone(),
                item: request.item.clone(),
            }),
            tasks: is_call.then(|| TaskOwner {
                routes: shared.tasks.clone(),
                alias: request.alias.clone(),
                run: caller.run.id,
            }),
            server_info: shared.options.server_info.clone(),
        })
    }
}

impl Sent {
    pub(crate) fn into_call(self, record: CallRecord) -> ForwardedCall {
        let Self { forwarded, finish, link, down, timeout, deadline, stop } = self;
        let up = link.facts().revision;
        let finish = Finish {
            id: finish.id,
            progress_token: finish.progress_token,
            method: finish.method,
            down,
            up,
            log_level: finish.log_level,
            link,
            session: finish.session,
            open_call: finish.open_call,
            record,
            state: finish.state,
            tasks: finish.tasks,
            server_info: finish.server_info,
        };
        ForwardedCall { forwarded, finish, timeout, deadline, stop }
    }
}

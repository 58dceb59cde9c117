//! A request between being sealed and being answered: the parts that its answer will need.

use std::{borrow::Cow, sync::Arc};

use bytes::Bytes;
use narthex_model::{OutputLimits, Reader, ServerDefinition};
use narthex_policy::{Basis, Item, Origin, Paid, Permitted, Request, bound_arguments};
use narthex_registry::ServerRow;
use narthex_upstream::Inventory;
use narthex_wire::{LogLevel, Raw, Revision, meta_key, method};
use tokio_util::sync::CancellationToken;

use crate::tasks::TaskOwner;
use crate::view::{OwnCall, shown};
use crate::{
    Caller, Endpoint, RunView,
    answering::ForwardedCall,
    clock::CallLimit,
    finish::{Finish, Held, StateSeal},
    gateway::Shared,
    grants::Over,
    hub::Ear,
    open::Open,
    parked::Asking,
    pipeline::{id_of, name_of},
    rounds::Rounds,
    route::Routed,
};

/// A request that was sent and waits to be finished.
pub(crate) struct Sent {
    pub(crate) forwarded: narthex_upstream::Forwarded,
    pub(crate) finish: FinishParts,
    pub(crate) link: Held,
    pub(crate) down: Revision,
    /// `None` for streams that live until they are closed.
    pub(crate) limit: Option<CallLimit>,
    pub(crate) stop: Option<[CancellationToken; 2]>,
    /// Held as long as the stream.
    pub(crate) over: Option<Over>,
}

/// The parts of the request that are read before it is given away.
pub(crate) struct FinishParts {
    id: Bytes,
    progress_token: Option<Bytes>,
    method: Cow<'static, str>,
    log_level: Option<LogLevel>,
    session: Option<Arc<crate::Session>>,
    state: Option<StateSeal>,
    tasks: Option<TaskOwner>,
    server_info: Bytes,
    item: Item,
    limits: OutputLimits,
    is_aggregated: bool,
    definition: Option<Arc<ServerDefinition>>,
    own_call: Option<Box<OwnCall>>,
    frozen: Option<Arc<Inventory>>,
    told_by: Option<Box<(Arc<RunView>, Arc<ServerRow>)>>,
    basis: Basis,
    is_shaped: bool,
    reader: Reader,
    run_over: Option<CancellationToken>,
    /// The parts of the call that let its server ask its client.
    pub(crate) asking: Option<Box<Asking>>,
    /// The call's receiver of log messages on its server's own stream.
    pub(crate) ear: Option<Box<Ear>>,
}

impl FinishParts {
    pub(crate) fn read(
        shared: &Arc<Shared>,
        caller: &Caller,
        routed: &Routed,
        up: Revision,
    ) -> Self {
        let Routed { row, request, own_tool, frozen, listening: _, turn: _, is_shaped } = routed;
        let message = &request.message;
        let id = id_of(message);
        let raw = |raw: Raw<'_>| message.bytes().slice_ref(raw.as_bytes());
        let session = caller.session.clone();
        let log_level = match &session {
            None => message.meta_value(meta_key::LOG_LEVEL).and_then(LogLevel::read),
            Some(session) => session.log_level(),
        };
        let method = message.method();
        let has_tasks = method == method::TOOLS_CALL || method.starts_with("tasks/");
        let is_modern_pair = up.is_modern() && session.is_none();
        Self {
            id,
            progress_token: message.meta_value(meta_key::PROGRESS_TOKEN).map(raw),
            method: match own_tool {
                Some(_) => method::TOOLS_CALL.into(),
                None => name_of(message),
            },
            log_level,
            session,
            state: is_modern_pair.then(|| StateSeal {
                sealer: shared.sealer.clone(),
                run: caller.run.id,
                alias: request.alias.clone(),
                paid: Paid::default(),
            }),
            tasks: has_tasks.then(|| TaskOwner {
                routes: shared.tasks.clone(),
                server: caller.run.key(&request.alias),
                run: caller.run.id,
                is_aggregated: caller.endpoint == Endpoint::Aggregated,
                tool: match &request.item {
                    Item::Tool(name) => Some(name.clone()),
                    Item::Prompt(_) | Item::Resource(_) | Item::Task(_) | Item::Server => None,
                },
                origin: None,
            }),
            server_info: shared.options.server_info.clone(),
            item: request.item.clone(),
            limits: shared.output_limits(caller, row),
            is_aggregated: caller.endpoint == Endpoint::Aggregated,
            definition: row.definition.clone(),
            own_call: own_tool.map(|tool| Box::new(OwnCall { tool, inventory: shown(row) })),
            frozen: frozen.clone(),
            told_by: (method == method::SERVER_DISCOVER)
                .then(|| Box::new((caller.run.clone(), Arc::clone(row)))),
            basis: Basis::default(),
            is_shaped: *is_shaped,
            reader: caller.run.reader(),
            run_over: match message.method() {
                method::SUBSCRIPTIONS_LISTEN => None,
                _ => caller.session.is_none().then(|| caller.run.calls_end().clone()),
            },
            asking: None,
            ear: None,
        }
    }

    /// The level from which on a modern call wants log messages, if it names one.
    pub(crate) fn named_level(&self) -> Option<LogLevel> {
        self.log_level.filter(|_| self.session.is_none())
    }

    /// Notes by which grants the request goes, for what comes of it: its task, and its further
    /// rounds.
    pub(crate) fn allowed(&mut self, permitted: &Permitted<Request>) {
        if permitted.basis().is_empty() {
            return;
        }
        self.basis = permitted.basis().clone();
        let paid: Vec<_> = self.basis.single().collect();
        let arguments = permitted.arguments_digest();
        if let Some(tasks) = self.tasks.as_mut().filter(|_| self.method == method::TOOLS_CALL) {
            let tool = self.item.name().into();
            tasks.origin = Some(Arc::new(Origin { tool, arguments, paid: paid.clone() }));
        }
        if let Some(state) = &mut self.state {
            state.paid = Paid { grants: paid, arguments: bound_arguments(permitted) };
        }
    }

    pub(crate) fn basis(&self) -> &Basis {
        &self.basis
    }
}

impl Sent {
    /// The call that is answered with this; with `rounds` the gateway makes its further rounds.
    pub(crate) fn into_call(self, open: Open, rounds: Option<Box<Rounds>>) -> ForwardedCall {
        let Self { forwarded, finish, link, down, limit, stop, over } = self;
        let up = link.get().facts().revision;
        let (asking, ear) = (finish.asking, finish.ear);
        let finish = Finish {
            id: finish.id,
            progress_token: finish.progress_token,
            method: finish.method,
            down,
            up,
            log_level: finish.log_level,
            link,
            session: finish.session,
            open_call: open.open_call,
            run_over: finish.run_over,
            record: open.record,
            state: finish.state,
            tasks: finish.tasks,
            server_info: finish.server_info,
            item: finish.item,
            limits: finish.limits,
            is_aggregated: finish.is_aggregated,
            definition: finish.definition,
            own_call: finish.own_call,
            frozen: finish.frozen,
            told_by: finish.told_by,
            is_shaped: finish.is_shaped,
            reader: finish.reader,
        };
        let (clock, mut payment) = (open.clock, open.payment);
        let rounds = rounds.map(|rounds| rounds.paid(std::mem::take(&mut payment)));
        let again = None;
        let has_talked = false;
        ForwardedCall {
            forwarded,
            finish,
            limit,
            stop,
            rounds,
            asking,
            ear,
            tail: None,
            clock,
            payment,
            again,
            has_talked,
            _over: over,
        }
    }
}

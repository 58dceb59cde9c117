//! Facts about a request that its answer needs, read before the request is sent.

use std::{borrow::Cow, sync::Arc};

use bytes::Bytes;
use narthex_model::{OutputLimits, Reader, ServerDefinition};
use narthex_policy::{Item, Paid};
use narthex_registry::ServerRow;
use narthex_upstream::Inventory;
use narthex_wire::{LogLevel, Raw, Revision, meta_key, method};
use tokio_util::sync::CancellationToken;

use crate::{
    Caller, Endpoint, GatewayOptions, RunView, Session,
    call::routed::Routed,
    names::{id_of, name_of},
    seal::{Sealer, StateSeal},
    tasks::{TaskOwner, TaskRoutes},
    view::{OwnCall, shown},
};

/// Facts about a forwarded request that its answer needs.
#[derive(Debug)]
pub(crate) struct RequestFacts {
    /// The caller's id, as JSON.
    pub(crate) id: Bytes,
    /// The caller's progress token, as JSON.
    pub(crate) progress_token: Option<Bytes>,
    pub(crate) method: Cow<'static, str>,
    /// The caller's revision of the protocol.
    pub(crate) down: Revision,
    /// The server's revision of the protocol.
    pub(crate) up: Revision,
    /// The lowest level of log messages for the caller. `None` with a legacy caller means all that
    /// the server sends.
    pub(crate) log_level: Option<LogLevel>,
    pub(crate) session: Option<Arc<Session>>,
    /// Cancelled when the run of a modern client ends; `None` for streams, which end otherwise.
    pub(crate) run_over: Option<CancellationToken>,
    pub(crate) state: Option<StateSeal>,
    pub(crate) tasks: Option<TaskOwner>,
    pub(crate) server_info: Bytes,
    /// The item of the call, by the server's own name.
    pub(crate) item: Item,
    /// Limits on the length of the result.
    pub(crate) limits: OutputLimits,
    pub(crate) is_aggregated: bool,
    pub(crate) definition: Option<Arc<ServerDefinition>>,
    /// The gateway's own tool, if this is a call of one.
    pub(crate) own_call: Option<Box<OwnCall>>,
    /// The server's whole inventory, if it is pinned, or frozen in the run.
    pub(crate) frozen: Option<Arc<Inventory>>,
    /// The run and the row by which a server's text about itself may be shown, if the call asks for
    /// such a text.
    pub(crate) told_by: Option<Box<(Arc<RunView>, Arc<ServerRow>)>>,
    /// True if the item is a tool with an output schema.
    pub(crate) is_shaped: bool,
    /// The reader of the call's failure.
    pub(crate) reader: Reader,
}

/// The parts of the gateway that the facts are read from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sources<'a> {
    pub(crate) sealer: &'a Arc<Sealer>,
    pub(crate) tasks: &'a Arc<TaskRoutes>,
    pub(crate) options: &'a GatewayOptions,
}

impl RequestFacts {
    /// Reads the facts from a request of `caller` to a server of revision `up`.
    pub(crate) fn read(from: Sources<'_>, caller: &Caller, routed: &Routed, up: Revision) -> Self {
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
            down: session.as_ref().map_or(Revision::LATEST, |session| session.revision),
            up,
            progress_token: message.meta_value(meta_key::PROGRESS_TOKEN).map(raw),
            method: match own_tool {
                Some(_) => method::TOOLS_CALL.into(),
                None => name_of(message),
            },
            log_level,
            session,
            state: is_modern_pair.then(|| StateSeal {
                sealer: from.sealer.clone(),
                run: caller.run.id,
                alias: request.alias.clone(),
                paid: Paid::default(),
            }),
            tasks: has_tasks.then(|| TaskOwner {
                routes: from.tasks.clone(),
                server: caller.run.key(&request.alias),
                run: caller.run.id,
                is_aggregated: caller.endpoint == Endpoint::Aggregated,
                tool: match &request.item {
                    Item::Tool(name) => Some(name.clone()),
                    Item::Prompt(_) | Item::Resource(_) | Item::Task(_) | Item::Server => None,
                },
                origin: None,
            }),
            server_info: from.options.server_info.clone(),
            item: request.item.clone(),
            limits: from.options.output_limits(&caller.endpoint, row),
            is_aggregated: caller.endpoint == Endpoint::Aggregated,
            definition: row.definition.clone(),
            own_call: own_tool.map(|tool| Box::new(OwnCall { tool, inventory: shown(row) })),
            frozen: frozen.clone(),
            told_by: (method == method::SERVER_DISCOVER)
                .then(|| Box::new((caller.run.clone(), Arc::clone(row)))),
            is_shaped: *is_shaped,
            reader: caller.run.reader(),
            run_over: match message.method() {
                method::SUBSCRIPTIONS_LISTEN => None,
                _ => caller.session.is_none().then(|| caller.run.calls_end().clone()),
            },
        }
    }

    /// The level from which on a modern call wants log messages, if it names one.
    pub(crate) fn named_level(&self) -> Option<LogLevel> {
        self.log_level.filter(|_| self.session.is_none())
    }
}

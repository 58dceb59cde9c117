//! What is written of a call: never arguments, results or tokens.

use std::{borrow::Cow, sync::Arc};

use narthex_audit::{Actor, ActorKind, AuditEvent, kind};
use narthex_model::{Alias, CallErrorKind, WorkspaceId};
use narthex_policy::Item;

use super::Entry;
use crate::{Endpoint, RunId, SessionId};

/// The longest name that is written, in characters.
const NAME_CHARS: usize = 256;

/// One call, as far as it is known before it is forwarded.
#[derive(Debug, Clone)]
pub struct AuditRecord {
    /// Whose the run is.
    pub workspace: WorkspaceId,
    /// The run that called.
    pub run: RunId,
    /// The session, for legacy clients.
    pub session: Option<SessionId>,
    /// Where the call came in.
    pub endpoint: Endpoint,
    /// The server it went to, if it is one.
    pub server: Option<Alias>,
    /// The method.
    pub method: Cow<'static, str>,
    /// What it was about, under the server's own name.
    pub item: Item,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// With a result.
    Ok,
    /// With a tool result that says it failed.
    ToolError,
    /// With a JSON-RPC error of this code.
    RpcError(i64),
    /// Not forwarded: policy refused.
    Denied,
    /// With a failure that the gateway reported.
    Failed(CallErrorKind),
    /// The client gave it up.
    Cancelled,
    /// Nobody waited for the end: the session or the gateway went away.
    Abandoned,
}

impl Outcome {
    /// How many values [`Outcome::index`] has.
    pub(crate) const COUNT: usize = 6 + CallErrorKind::ALL.len();

    /// The outcome's spelling in the record and in metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::ToolError => "tool_error",
            Self::RpcError(_) => "rpc_error",
            Self::Denied => "denied",
            Self::Failed(kind) => kind.as_str(),
            Self::Cancelled => "cancelled",
            Self::Abandoned => "abandoned",
        }
    }

    /// A small number for each spelling.
    pub(crate) fn index(self) -> usize {
        match self {
            Self::Ok => 0,
            Self::ToolError => 1,
            Self::RpcError(_) => 2,
            Self::Denied => 3,
            Self::Cancelled => 4,
            Self::Abandoned => 5,
            Self::Failed(kind) => {
                6 + CallErrorKind::ALL.iter().position(|other| *other == kind).unwrap_or_default()
            }
        }
    }
}

impl AuditRecord {
    /// Cuts what a client may have made long. Costs nothing for what is short.
    pub(super) fn shorten(&mut self) {
        if let Some(end) = cut_at(&self.method) {
            self.method = Cow::Owned(self.method[..end].to_owned());
        }
        match &mut self.item {
            Item::Tool(name) | Item::Prompt(name) | Item::Resource(name) | Item::Task(name) => {
                if let Some(end) = cut_at(name) {
                    *name = Arc::from(&name[..end]);
                }
            }
            Item::Server => {}
        }
    }
}

/// Where to cut a text that is too long.
fn cut_at(text: &str) -> Option<usize> {
    if text.len() <= NAME_CHARS {
        return None;
    }
    text.char_indices().nth(NAME_CHARS).map(|(at, _)| at)
}

impl Entry {
    /// What is written of the call (X-M62).
    pub(super) fn event(&self) -> AuditEvent<'_> {
        let Self { record, outcome, time, started: _, took } = self;
        let AuditRecord { workspace, run, session, endpoint, server, method, item } = record;
        let run = run.to_text();
        let kind = if method == "tools/call" { kind::TOOL_CALLED } else { kind::REQUESTED };
        let mut event = AuditEvent::new(kind, Actor::new(ActorKind::Run, run.clone()));
        let place = match endpoint {
            Endpoint::Aggregated => "aggregated",
            Endpoint::Transparent(alias) => alias.as_str(),
        };
        event = match (item, server) {
            (Item::Tool(name), _) => {
                event.tool = Some(Cow::Borrowed(&**name));
                event.on("tool", &**name)
            }
            (Item::Prompt(name), _) => event.on("prompt", &**name),
            (Item::Resource(name), _) => event.on("resource", &**name),
            (Item::Task(name), _) => event.on("task", &**name),
            (Item::Server, Some(server)) => event.on("server", server.as_str()),
            (Item::Server, None) => event.on("endpoint", place),
        };
        event = event.in_workspace(workspace).of_run(run).with("endpoint", place);
        event = event.with("method", &**method);
        if let Outcome::RpcError(code) = outcome {
            event = event.with("code", *code);
        }
        event.time = *time + *took;
        event.session = session.as_deref().map(Cow::Borrowed);
        event.server = server.as_ref().map(|server| Cow::Borrowed(server.as_str()));
        event.outcome = Cow::Borrowed(outcome.as_str());
        event.duration_us = Some(u64::try_from(took.as_micros()).unwrap_or(u64::MAX >> 12));
        event
    }
}

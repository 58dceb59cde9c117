//! The record of a call: never tokens, and contents only in workspaces with that setting.

use std::{borrow::Cow, sync::Arc};

use narthex_model::{Alias, CallErrorKind, PrincipalId, RunId, WorkspaceId};

use super::Entry;
use crate::{Actor, ActorKind, AuditEvent, CONTENTS, kind};

/// The longest name that is written, in characters.
const NAME_CHARS: usize = 256;
/// The kind of a tool as a resource.
pub const TOOL: &str = "tool";

/// The known facts about one call before it is forwarded.
#[derive(Debug, Clone)]
pub struct AuditRecord {
    /// The workspace that owns the run.
    pub workspace: WorkspaceId,
    /// The calling run.
    pub run: RunId,
    /// The human whose turn it is in the run; `None` if the run acts for no human.
    pub user: Option<PrincipalId>,
    /// Id of the session of a legacy client.
    pub session: Option<Arc<str>>,
    /// The alias of the endpoint; `None` for the endpoint of all servers.
    pub endpoint: Option<Alias>,
    /// The server of the call; `None` if there is none.
    pub server: Option<Alias>,
    /// The method.
    pub method: Cow<'static, str>,
    /// The kind of the called item, such as [`TOOL`], and the server's own name for it. `None` for
    /// the server itself, or the endpoint.
    pub item: Option<(&'static str, Arc<str>)>,
    /// The ids of the grants that allowed the call, separated by spaces; empty if no grant was
    /// required.
    pub granted_via: Box<str>,
    /// The check that refused the call, if one did.
    pub refused_by: Option<&'static str>,
    /// The rule of the workspace that refused the call, if one did.
    pub rule: Option<Arc<str>>,
    /// Number of further rounds, for answers that did not end the call (2026-07-28).
    pub rounds: u32,
}

/// The outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The call ended with a result.
    Ok,
    /// The call ended with a tool result that reports a failure.
    ToolError,
    /// The call ended with a JSON-RPC error of this code.
    RpcError(i64),
    /// Policy refused the call, which was not forwarded.
    Denied,
    /// The gateway reported this failure.
    Failed(CallErrorKind),
    /// The client gave the call up.
    Cancelled,
    /// No caller waited for the end: the session or the gateway ended.
    Abandoned,
}

impl Outcome {
    /// Number of values of [`Outcome::index`].
    pub const COUNT: usize = 6 + CallErrorKind::ALL.len();

    /// The outcome's name in the record and in metrics.
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

    /// A number below [`Outcome::COUNT`] for each outcome's name.
    #[must_use]
    pub fn index(self) -> usize {
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
    /// Cuts texts that a client may have made long. Costs nothing for short ones.
    pub(super) fn shorten(&mut self) {
        if let Some(end) = cut_at(&self.method) {
            self.method = Cow::Owned(self.method[..end].to_owned());
        }
        if let Some((_, name)) = &mut self.item
            && let Some(end) = cut_at(name)
        {
            *name = Arc::from(&name[..end]);
        }
    }
}

/// The position at which to cut a text that is too long.
fn cut_at(text: &str) -> Option<usize> {
    if text.len() <= NAME_CHARS {
        return None;
    }
    text.char_indices().nth(NAME_CHARS).map(|(at, _)| at)
}

impl Entry {
    /// The event of the call (X-M62).
    pub(super) fn event(&self) -> AuditEvent<'_> {
        let Self { record, outcome, time, started: _, took, contents } = self;
        let AuditRecord { workspace, run, session, endpoint, server, method, item, .. } = record;
        let run = run.to_text();
        let kind = if method == "tools/call" { kind::TOOL_CALLED } else { kind::REQUESTED };
        let mut event = AuditEvent::new(kind, Actor::new(ActorKind::Run, run.clone()));
        let place = endpoint.as_ref().map_or("aggregated", Alias::as_str);
        event = match (item, server) {
            (Some((kind, name)), _) => {
                event.tool = (*kind == TOOL).then_some(Cow::Borrowed(&**name));
                event.on(*kind, &**name)
            }
            (None, Some(server)) => event.on("server", server.as_str()),
            (None, None) => event.on("endpoint", place),
        };
        event = event.in_workspace(workspace).of_run(run).with("endpoint", place);
        event = event.with("method", &**method);
        if let Some(user) = &record.user {
            event = event.with("acts_for", user.as_str());
        }
        if let Outcome::RpcError(code) = outcome {
            event = event.with("code", *code);
        }
        if record.rounds > 0 {
            event = event.with("rounds", record.rounds);
        }
        if let Some(check) = record.refused_by {
            event = event.with("refused_by", check);
        }
        if let Some(rule) = &record.rule {
            event = event.with("rule", &**rule);
        }
        event.granted_via =
            Some(&*record.granted_via).filter(|ids| !ids.is_empty()).map(Into::into);
        if let Some(contents) = contents {
            event = event.with(CONTENTS, contents.shown());
        }
        event.time = *time + *took;
        event.session = session.as_deref().map(Cow::Borrowed);
        event.server = server.as_ref().map(|server| Cow::Borrowed(server.as_str()));
        event.outcome = Cow::Borrowed(outcome.as_str());
        event.duration_us = Some(u64::try_from(took.as_micros()).unwrap_or(u64::MAX >> 12));
        event
    }
}

//! What is written of a call: never arguments, results or tokens.

use std::{borrow::Cow, sync::Arc};

use narthex_model::{Alias, CallErrorKind, Timestamp};
use narthex_policy::Item;
use serde::Serialize;

use super::Entry;
use crate::{Endpoint, RunId, SessionId};

/// The longest name that is written, in characters.
const NAME_CHARS: usize = 256;
/// The version of the lines' shape. Readers ignore members that they do not know.
pub(super) const VERSION: u32 = 1;

/// One call, as far as it is known before it is forwarded.
#[derive(Debug, Clone)]
pub struct AuditRecord {
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

/// A line of the file.
#[derive(Serialize)]
struct Line<'a> {
    v: u32,
    time: String,
    run: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<&'a str>,
    endpoint: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<&'a str>,
    method: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    item: Option<LineItem<'a>>,
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<i64>,
    duration_ms: f64,
}

#[derive(Serialize)]
struct LineItem<'a> {
    kind: &'static str,
    name: &'a str,
}

impl Entry {
    /// Adds the record's line, with its end.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let Self { record, outcome, time, started: _, took } = self;
        let AuditRecord { run, session, endpoint, server, method, item } = record;
        let line = Line {
            v: VERSION,
            time: Timestamp::new(*time).to_string(),
            run: run.to_text(),
            session: session.as_deref(),
            endpoint: match endpoint {
                Endpoint::Aggregated => "aggregated",
                Endpoint::Transparent(alias) => alias.as_str(),
            },
            server: server.as_ref().map(Alias::as_str),
            method,
            item: line_item(item),
            outcome: outcome.as_str(),
            code: match outcome {
                Outcome::RpcError(code) => Some(*code),
                _ => None,
            },
            // Microseconds are what the number is good for.
            duration_ms: (took.as_secs_f64() * 1e6).round() / 1e3,
        };
        serde_json::to_writer(&mut *out, &line).expect("strings and numbers serialize");
        out.push(b'\n');
    }
}

fn line_item(item: &Item) -> Option<LineItem<'_>> {
    let (kind, name) = match item {
        Item::Tool(name) => ("tool", name),
        Item::Prompt(name) => ("prompt", name),
        Item::Resource(name) => ("resource", name),
        Item::Task(name) => ("task", name),
        Item::Server => return None,
    };
    Some(LineItem { kind, name })
}

/// A line that is about the file itself.
pub(super) fn note(text: &str, time: std::time::SystemTime) -> Vec<u8> {
    let time = Timestamp::new(time).to_string();
    let mut line = serde_json::json!({"v": VERSION, "time": time, "note": text}).to_string();
    line.push('\n');
    line.into_bytes()
}

//! The rules of a workspace: what they are asked, and what they say. They can only narrow.

use std::{
    fmt::Debug,
    sync::{Arc, LazyLock},
    time::SystemTime,
};

use arc_swap::ArcSwapOption;
use narthex_model::{Alias, ToolScopes};
use narthex_wire::method;
use tokio::sync::watch;

use crate::{Actors, Item, Request};

/// Rules in a form that can be asked. Asking takes no lock, waits for nothing and never fails: a
/// rule that cannot be asked something says the strictest thing that it could.
pub trait Rules: Debug + Send + Sync {
    /// What they say of one request.
    fn ask(&self, question: &Question<'_>) -> Ruling;
}

/// The rules of one workspace, as they are at the moment. A change counts for the next request,
/// also in runs that have begun.
#[derive(Debug, Default)]
pub struct WorkspaceRules {
    current: ArcSwapOption<Box<dyn Rules>>,
    changed: watch::Sender<()>,
}

/// What there is to know of one request.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// Whose run it is.
    pub actors: &'a Actors,
    /// The server, as the run calls it.
    pub server: &'a Alias,
    /// What it is about; of a task the tool that made it.
    pub item: &'a Item,
    /// The method.
    pub method: &'a str,
    /// Where it comes from.
    pub origin: CallOrigin,
    /// The arguments.
    pub arguments: Arguments<'a>,
    /// What is known besides.
    pub site: Site<'a>,
    /// When it is made.
    pub at: SystemTime,
}

/// Where a request comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CallOrigin {
    /// It is made for itself.
    #[default]
    Call,
    /// It goes on with a task that an earlier call began.
    Task,
}

/// The arguments of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arguments<'a> {
    /// This JSON object.
    Json(&'a [u8]),
    /// Those of an earlier call, on which was decided when it was made.
    Judged,
}

/// Where a request comes in, and what is known of what it is about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Site<'a> {
    /// The workspace of the run.
    pub workspace: &'a str,
    /// The server's id in the catalog; `None` for one of the live configuration.
    pub server_id: Option<&'a str>,
    /// A tool's annotations, as its server declares them: a JSON object, of which nothing is
    /// checked.
    pub annotations: Option<&'a [u8]>,
    /// The kind of endpoint; empty if it is not known.
    pub endpoint: &'a str,
    /// The caller's protocol era; empty if it is not known.
    pub era: &'a str,
}

/// What rules say of one request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ruling {
    /// The rule that forbids it: the first, if there are several.
    pub forbidden: Option<Forbidding>,
    /// What must be granted for it, besides what the server requires.
    pub scopes: ToolScopes,
    /// The ids of all rules that match, in their order.
    pub matched: Vec<Arc<str>>,
    /// Those among them that could not be asked, and so count as matching.
    pub failed: Vec<Arc<str>>,
}

/// A rule that forbids something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forbidding {
    /// Its id.
    pub rule: Arc<str>,
    /// What the caller is told of why; empty if nothing.
    pub reason: Arc<str>,
}

/// The rules of who has none.
static NONE: LazyLock<Arc<WorkspaceRules>> = LazyLock::new(Arc::default);

impl CallOrigin {
    /// Both of them.
    pub const ALL: [Self; 2] = [Self::Call, Self::Task];

    /// The word in rules and documents.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Task => "task",
        }
    }

    fn of(item: &Item) -> Self {
        match item {
            Item::Task(_) => Self::Task,
            Item::Tool(_) | Item::Prompt(_) | Item::Resource(_) | Item::Server => Self::Call,
        }
    }
}

impl WorkspaceRules {
    /// No rules, and never any.
    #[must_use]
    pub fn none() -> Arc<Self> {
        NONE.clone()
    }

    /// These rules hold from now on.
    pub fn set(&self, rules: Option<Box<dyn Rules>>) {
        self.current.store(rules.map(Arc::new));
        self.changed.send_replace(());
    }

    /// Tells of each change, for whoever keeps something open that they have let through.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.current.load().is_none()
    }

    /// What they say of a request, where they are asked at all.
    pub(crate) fn ask<'s>(
        &self,
        actors: &Actors,
        request: &Request,
        site: impl FnOnce(&Request) -> Site<'s>,
        now: fn() -> SystemTime,
    ) -> Option<Ruling> {
        let current = self.current.load();
        let rules =
            current.as_ref().filter(|_| is_ruled(&request.item, request.message.method()))?;
        let made_by = request.origin.as_ref().map(|origin| Item::Tool(origin.tool.clone()));
        let arguments = match request.origin {
            Some(_) => Arguments::Judged,
            None => Arguments::Json(match &request.shown {
                Some(shown) => shown,
                None => {
                    let sent = request.message.get("arguments");
                    sent.map_or(&b"{}"[..], narthex_wire::Raw::as_bytes)
                }
            }),
        };
        let question = Question {
            actors,
            server: &request.alias,
            item: made_by.as_ref().unwrap_or(&request.item),
            method: request.message.method(),
            origin: CallOrigin::of(&request.item),
            arguments,
            site: site(request),
            at: now(),
        };
        Some(rules.ask(&question))
    }
}

/// Whether rules are asked about something by this method at all: lists and what only keeps a
/// connection going are nobody's business, and whoever gives something up needs no permission.
#[must_use]
pub fn is_ruled(item: &Item, method: &str) -> bool {
    let free = match item {
        Item::Server => matches!(
            method,
            method::PING
                | method::INITIALIZE
                | method::SERVER_DISCOVER
                | method::TOOLS_LIST
                | method::PROMPTS_LIST
                | method::RESOURCES_LIST
                | method::RESOURCES_TEMPLATES_LIST
                | method::SKILLS_LIST
                | method::TASKS_LIST
                | method::LOGGING_SET_LEVEL
                | method::SUBSCRIPTIONS_LISTEN
                | method::INITIALIZED
                | method::CANCELLED
                | method::PROGRESS
                | method::ROOTS_LIST_CHANGED
        ),
        Item::Tool(_) | Item::Prompt(_) | Item::Resource(_) | Item::Task(_) => {
            method == method::RESOURCES_UNSUBSCRIBE
        }
    };
    !free
}

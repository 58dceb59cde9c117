//! The rules of a workspace: their questions and their rulings. They can only narrow.

use std::{
    fmt::Debug,
    sync::{Arc, LazyLock},
    time::SystemTime,
};

use arc_swap::ArcSwapOption;
use narthex_model::{Alias, ToolScopes};
use narthex_wire::{Notification, method};
use tokio::sync::watch;

use crate::{Actors, Item, Request};

/// Compiled rules. Evaluation takes no lock, never waits and never fails: a rule that cannot be
/// evaluated gives its strictest possible ruling.
pub trait Rules: Debug + Send + Sync {
    /// Returns the ruling on one request.
    fn ask(&self, question: &Question<'_>) -> Ruling;
}

/// The present rules of one workspace. A change counts for the next request, also in active runs.
#[derive(Debug, Default)]
pub struct WorkspaceRules {
    current: ArcSwapOption<Box<dyn Rules>>,
    changed: watch::Sender<()>,
}

/// The facts about one request.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The actors of the run.
    pub actors: &'a Actors,
    /// The server's alias in the run.
    pub server: &'a Alias,
    /// The item of the request; for a task the tool that made it.
    pub item: &'a Item,
    /// The method.
    pub method: &'a str,
    /// The origin of the request.
    pub origin: CallOrigin,
    /// The arguments.
    pub arguments: Arguments<'a>,
    /// Further facts about the request and its item.
    pub site: Site<'a>,
    /// The time of the request.
    pub at: SystemTime,
}

/// The origin of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CallOrigin {
    /// The request is a call by itself.
    #[default]
    Call,
    /// The request continues a task that an earlier call created.
    Task,
}

/// The arguments of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arguments<'a> {
    /// This JSON object.
    Json(&'a [u8]),
    /// The arguments of an earlier call, which were judged at that call.
    Judged,
}

/// The endpoint, workspace and server of a request, and facts about its item.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Site<'a> {
    /// The workspace of the run.
    pub workspace: &'a str,
    /// The server's id in the catalog; `None` for a server of the live configuration.
    pub server_id: Option<&'a str>,
    /// A tool's annotations from its server: a JSON object, otherwise unchecked.
    pub annotations: Option<&'a [u8]>,
    /// The kind of endpoint; empty if unknown.
    pub endpoint: &'a str,
    /// The caller's protocol era; empty if unknown.
    pub era: &'a str,
}

/// The answer of the rules to one request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ruling {
    /// The first rule that forbids the request.
    pub forbidden: Option<Forbidding>,
    /// Tool scopes that the request needs in addition to those that the server requires.
    pub scopes: ToolScopes,
    /// The ids of all matching rules, in their order.
    pub matched: Vec<Arc<str>>,
    /// The ids of the matching rules that could not be evaluated, and so count as matching.
    pub failed: Vec<Arc<str>>,
}

/// A rule that forbids a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forbidding {
    /// The rule's id.
    pub rule: Arc<str>,
    /// The reason for the caller; empty if there is none.
    pub reason: Arc<str>,
}

/// The rules of a workspace without any.
static NONE: LazyLock<Arc<WorkspaceRules>> = LazyLock::new(Arc::default);

impl CallOrigin {
    /// All origins.
    pub const ALL: [Self; 2] = narthex_model::every![Call, Task];

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
    /// A workspace without rules.
    #[must_use]
    pub fn none() -> Arc<Self> {
        NONE.clone()
    }

    /// Replaces the rules from now on.
    pub fn set(&self, rules: Option<Box<dyn Rules>>) {
        self.current.store(rules.map(Arc::new));
        self.changed.send_replace(());
    }

    /// Signals each change, for the owner of an open stream that the rules have allowed.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// True if there are no rules.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.current.load().is_none()
    }

    /// Returns the ruling on a request; `None` where rules are not asked.
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

/// True if rules apply to an item by this method at all. They do not apply to lists, to messages
/// that only maintain a connection, and to a caller's end of its own subscription.
#[must_use]
pub fn is_ruled(item: &Item, method: &str) -> bool {
    let free = match item {
        Item::Server => {
            matches!(
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
            ) || Notification::named(method).is_some_and(Notification::is_upkeep)
        }
        Item::Tool(_) | Item::Prompt(_) | Item::Resource(_) | Item::Task(_) => {
            method == method::RESOURCES_UNSUBSCRIBE
        }
    };
    !free
}

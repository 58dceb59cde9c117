//! `tasks/list` of a legacy client at the aggregated endpoint: its tasks at all servers.
//!
//! Servers know no runs and list for every caller with their credential. So their lists are
//! filtered by the tasks that the gateway knows to be the run's (S18). A page is one page of each
//! server, read side by side. The cursor has the position in each server's list; it is sealed,
//! since the servers' own cursors may reveal tasks of others.

use std::{collections::BTreeMap, sync::Arc};

use narthex_model::Alias;
use narthex_policy::{Item, Request};
use narthex_upstream::{Asking, ServerFacts};
use narthex_wire::{ListKind, Message, Raw, json::encode_string, method, rpc};
use tokio::task::JoinSet;

use crate::{
    Answering, Caller, Endpoint, RunId,
    call::own_answer::result,
    refusal::Refusal,
    shared::Shared,
    tasks::{TaskOwner, with_id},
    view::View,
};

/// Largest number of a server's pages without a task of the run that are skipped for one page of
/// the gateway.
const EMPTY_PAGES_MAX: usize = 20;
/// The longest cursor of a server that is passed on; a longer cursor ends the server's list.
const CURSOR_MAX: usize = 4096;

/// The position in each server's list: its cursor, or nothing if its reading has not started.
type Progress = BTreeMap<String, Option<String>>;

/// One page of one server.
#[derive(Default)]
struct Page {
    tasks: Vec<Vec<u8>>,
    cursor: Option<String>,
}

impl Shared {
    /// One page of a list of a caller's servers.
    pub(crate) async fn list(
        self: &Arc<Self>,
        caller: &Caller,
        kind: ListKind,
        request: &Message,
    ) -> Result<Answering, Refusal> {
        let view = self.view(caller).await;
        caller.run.note_shown(&self.snapshot(&caller.run));
        page(&view, caller, kind, request)
    }

    /// Answers with the run's tasks, as far as a page goes.
    pub(crate) async fn task_list(
        self: &Arc<Self>,
        caller: &Caller,
        request: &Message,
    ) -> Result<Answering, Refusal> {
        let mut progress = self.task_progress(caller, request)?;
        let mut tasks = Vec::new();
        for _ in 0..EMPTY_PAGES_MAX {
            if progress.is_empty() || !tasks.is_empty() {
                break;
            }
            progress = self.read_pages(caller, request, progress, &mut tasks).await;
        }
        let mut body = [br#"{"tasks":["#, &tasks.join(&b","[..])[..], b"]"].concat();
        if !progress.is_empty() {
            let cursor = serde_json::to_vec(&progress).unwrap_or_default();
            let sealed = self.sealer.seal(&cursor, &binding(caller.run.id));
            let sealed = sealed.ok_or_else(|| {
                Refusal::rpc(rpc::code::INTERNAL_ERROR, "the cursor could not be sealed")
            })?;
            body.extend_from_slice(br#","nextCursor":"#);
            body.extend_from_slice(&encode_string(&sealed));
        }
        body.push(b'}');
        Ok(result(request, &body.into()))
    }

    /// The positions at which the page begins: those of the cursor, or the start of each list in
    /// which the run has tasks.
    fn task_progress(&self, caller: &Caller, request: &Message) -> Result<Progress, Refusal> {
        let cursor = request.get("cursor").filter(|raw| raw.as_bytes() != b"null");
        let Some(cursor) = cursor else {
            let servers = self.tasks.servers(caller.run.id);
            return Ok(servers
                .into_iter()
                .map(|alias| (alias.as_str().to_owned(), None))
                .collect());
        };
        let opened = cursor.as_str().and_then(|text| {
            let (_, opened) = self.sealer.open(&text, &binding(caller.run.id))?;
            serde_json::from_slice(&opened).ok()
        });
        opened.ok_or_else(|| {
            Refusal::invalid("`cursor` was not given by this endpoint, or has expired")
        })
    }

    /// Reads one page of each server, and returns the new positions.
    async fn read_pages(
        self: &Arc<Self>,
        caller: &Caller,
        request: &Message,
        progress: Progress,
        tasks: &mut Vec<Vec<u8>>,
    ) -> Progress {
        let mut reading = JoinSet::new();
        for (server, cursor) in progress {
            let (shared, caller, request) = (self.clone(), caller.clone(), request.clone());
            reading.spawn(async move {
                let alias = Alias::new(&server).ok()?;
                match shared.read_page(&caller, request, &alias, cursor).await {
                    Ok(page) => Some((server, page)),
                    Err(refusal) => {
                        tracing::debug!(server.name = server, ?refusal, "did not list its tasks");
                        None
                    }
                }
            });
        }
        // Sorted by server, since answers arrive in any order.
        let mut pages = BTreeMap::new();
        while let Some(joined) = reading.join_next().await {
            pages.extend(joined.ok().flatten());
        }
        let mut further = Progress::new();
        for (server, page) in pages {
            tasks.extend(page.tasks);
            if page.cursor.is_some() {
                further.insert(server, page.cursor);
            }
        }
        further
    }

    async fn read_page(
        self: &Arc<Self>,
        caller: &Caller,
        request: Message,
        alias: &Alias,
        cursor: Option<String>,
    ) -> Result<Page, Refusal> {
        let row = self.settled(&caller.run, alias).await?;
        let chosen = self.choose_link(caller, &row).await?;
        if !has_tasks(chosen.link.facts(), "list") {
            return Ok(Page::default());
        }
        let errand =
            self.errand(caller, Request::new(alias.clone(), request, Item::Server)).await?;
        let members = match &cursor {
            None => Vec::new(),
            Some(cursor) => [br#""cursor":"#, &encode_string(cursor)[..]].concat(),
        };
        let key = caller.run.key(alias);
        let asked = self.asked(&key, &chosen.link, Asking::Tasks, &members).await;
        let answer = errand.end(asked)?;
        let owner = TaskOwner {
            routes: self.tasks.clone(),
            server: key,
            run: caller.run.id,
            is_aggregated: caller.endpoint == Endpoint::Aggregated,
            tool: None,
            origin: None,
        };
        let all = answer.get("tasks").map(Raw::items).unwrap_or_default();
        let own = owner.own(&all).into_iter();
        let tasks = own.map(|(task, shown)| with_id(task, &shown).into_owned()).collect();
        let next = answer.get("nextCursor").and_then(Raw::as_str);
        let next = next.filter(|next| !next.is_empty() && next.len() <= CURSOR_MAX);
        let next = next.map(|next| next.into_owned()).filter(|next| cursor.as_ref() != Some(next));
        Ok(Page { tasks, cursor: next })
    }
}

/// True if a server has legacy tasks, and this part of them.
pub(crate) fn has_tasks(facts: &ServerFacts, part: &str) -> bool {
    let capabilities = Raw::new(&facts.result).get("capabilities");
    let tasks = capabilities.and_then(|capabilities| capabilities.get("tasks"));
    !facts.revision.is_modern() && tasks.is_some_and(|tasks| tasks.get(part).is_some())
}

/// The bytes that a cursor is bound to.
fn binding(run: RunId) -> Vec<u8> {
    [run.to_text().as_bytes(), method::TASKS_LIST.as_bytes()].join(&0)
}

/// One page out of a view.
pub(crate) fn page(
    view: &View,
    caller: &Caller,
    kind: ListKind,
    request: &Message,
) -> Result<Answering, Refusal> {
    let cursor = request.get("cursor").filter(|raw| raw.as_bytes() != b"null");
    let cursor = match cursor {
        None => None,
        Some(raw) => {
            Some(raw.as_str().ok_or_else(|| Refusal::invalid("`cursor` must be a string"))?)
        }
    };
    let page = view.page(kind, caller.era(), cursor.as_deref());
    let page = page.ok_or_else(|| Refusal::invalid("`cursor` was not given by this endpoint"))?;
    Ok(result(request, page))
}

//! Definitions of servers of the catalog: what a run may have of what they list, since it was
//! there before, or a human has looked at it (D10, S22 to S24).
//!
//! The first text of a name is pinned; a run has what is pinned or accepted, and nothing else of
//! tools, prompts, templates, resources, and what the server tells models of itself. All of that is
//! decided by rows of the store, so that restarts and other daemons change nothing.

mod decide;
mod judge;

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use narthex_audit::{ActorKind, AuditEvent, kind};
use narthex_control::{By, ControlError};
use narthex_gateway::{LookingAt, RunView};
use narthex_model::{Alias, CatalogKind, RunId, ServerId, WorkspaceId};
use narthex_registry::{FirstLists, HeldNames, KeptLists, PinnedServer};
use narthex_screen::harmless;
use narthex_store::{DefinitionHead, StatementError};
use narthex_upstream::{Inventory, Listed};

use self::judge::{Known, Seen};
pub use self::{
    decide::{DefinitionPage, DefinitionVerdict, SeenDefinition},
    judge::DefinitionReason,
};
use crate::{RunError, Runs, Shared};

/// The most definitions of one server that are kept; of what comes later nobody has anything.
const KEPT_MAX: usize = 5000;
/// How many names an event tells, and how much of each, in characters.
const NAMES_TOLD: usize = 50;
const NAME_TOLD: usize = 100;

/// Whose lists are looked at.
#[derive(Debug, Clone, Copy)]
struct Of<'a> {
    workspace: &'a WorkspaceId,
    run: RunId,
    server: &'a PinnedServer,
}

/// What is held back of the servers of a run that begins, and what of their lists it may have.
pub(crate) struct LookedAt {
    /// A server that has listed nothing yet has nothing.
    pub(crate) first: FirstLists,
    /// What of it is to be kept: such a server is looked at when it has.
    pub(crate) lists: KeptLists,
    pub(crate) held: HeldNames,
    /// For whoever creates it. No word of a server is in them: a model may read them.
    pub(crate) warnings: Vec<String>,
}

impl Runs {
    /// Looks at what the servers of a run have listed first. What was held back of it before stays
    /// so.
    pub(crate) async fn look_at_all(
        &self,
        (workspace, run): (&WorkspaceId, RunId),
        servers: &BTreeMap<Alias, PinnedServer>,
        first: FirstLists,
    ) -> Result<LookedAt, RunError> {
        let mut held = HeldNames::default();
        let mut warnings = Vec::new();
        let listed: Vec<_> =
            first.listed().map(|(alias, list)| (alias.clone(), list.clone())).collect();
        let (mut beside, mut silent) = (Vec::new(), Vec::new());
        for (alias, list) in &listed {
            let Some(server) = servers.get(alias) else { continue };
            let tools = list.tools.iter();
            beside.extend(tools.map(|tool| (server.id.to_string(), tool.key.to_string())));
        }
        for (alias, inventory) in &listed {
            let Some(server) = servers.get(alias) else { continue };
            let of = Of { workspace, run, server };
            let told = first.told(alias).map(str::to_owned);
            let names = self.look_at_one(of, (inventory, told), &beside).await?;
            if !names.is_empty() {
                let (count, id) = (names.len(), &server.id);
                warnings.push(format!(
                    "server `{id}`: {count} of its definitions are held back until a human has \
                     accepted them: see `narthex servers definitions {id}`"
                ));
            }
            for (list, name) in &names {
                match list {
                    Some(list) => held.add(alias, *list, name),
                    None => silent.push(alias.clone()),
                }
            }
        }
        let first = first.without(&held);
        let first = silent.iter().fold(first, FirstLists::silent);
        let lists = first.kept();
        Ok(LookedAt { first: first.or_nothing(servers.keys()), lists, held, warnings })
    }

    /// What of the lists of a server, and of what it tells models of itself, is held back.
    async fn look_at_one(
        &self,
        of: Of<'_>,
        (inventory, told): (&Arc<Inventory>, Option<String>),
        beside: &[(String, String)],
    ) -> Result<Vec<(Option<Listed>, String)>, RunError> {
        let looked = inventory.clone();
        let looking = move || Seen::all(&looked, told.as_deref());
        let seen = tokio::task::spawn_blocking(looking).await;
        let seen = Arc::new(seen.map_err(ControlError::Bug)?);
        let heads = self.heads(of).await?;
        let is_kept = |heads: &HashMap<String, DefinitionHead>, one: &Seen| {
            heads.contains_key(&one.digest) || !one.can_be_kept()
        };
        let heads = match seen.iter().all(|one| is_kept(&heads, one)) {
            true => {
                self.note_seen(of, &seen, &heads).await?;
                heads
            }
            false => {
                let turn = (of.workspace.clone(), of.server.id.clone());
                let _turn = self.shared.looking.take(&turn).await;
                let heads = self.heads(of).await?;
                self.keep_new(of, &seen, heads, beside).await?
            }
        };
        let is_held = |one: &&Seen| heads.get(&one.digest).is_none_or(|head| !head.state.is_seen());
        Ok(seen.iter().filter(is_held).map(|one| (one.list, one.name.clone())).collect())
    }

    async fn heads(&self, of: Of<'_>) -> Result<HashMap<String, DefinitionHead>, RunError> {
        let heads = self.store()?.definitions().heads(of.workspace, &of.server.id).await;
        Ok(by_digest(heads.map_err(ControlError::Store)?))
    }

    async fn note_seen(
        &self,
        of: Of<'_>,
        seen: &[Seen],
        heads: &HashMap<String, DefinitionHead>,
    ) -> Result<(), RunError> {
        let seen: Vec<_> = seen.iter().filter_map(|one| heads.get(&one.digest)).collect();
        let noted = self.store()?.definitions().seen(of.workspace, &of.server.id, &seen).await;
        Ok(noted.map_err(ControlError::Store)?)
    }

    /// Keeps what is new, and gives how all of the server stand then.
    async fn keep_new(
        &self,
        of: Of<'_>,
        seen: &Arc<Vec<Seen>>,
        heads: HashMap<String, DefinitionHead>,
        beside: &[(String, String)],
    ) -> Result<HashMap<String, DefinitionHead>, RunError> {
        let Of { workspace, run, server } = of;
        let definitions = self.store()?.definitions();
        let texts = definitions.texts(workspace, &server.id).await.map_err(ControlError::Store)?;
        let others = definitions.other_tools(workspace, &server.id).await;
        let mut others = others.map_err(ControlError::Store)?;
        others.extend(beside.iter().filter(|(id, _)| *id != server.id.as_str()).cloned());
        if let Some(built_in) = self.shared.gateway.built_in_inventory() {
            let tools = built_in.tools.iter().map(|tool| tool.key.to_string());
            others.extend(tools.map(|tool| (Alias::built_in().to_string(), tool)));
        }
        let known = Known { texts, others };
        let (all, id, shows) = (seen.clone(), server.id.to_string(), server.shows_flagged);
        let before = heads.len();
        let judged = tokio::task::spawn_blocking(move || {
            let is_known = |one: &Seen| heads.contains_key(&one.digest) || !one.can_be_kept();
            judge::judge(&id, &all, is_known, &known, shows)
        });
        let mut new = judged.await.map_err(ControlError::Bug)?;
        let room = KEPT_MAX.saturating_sub(before);
        if new.len() > room {
            let left = new.len() - room;
            tracing::warn!(
                server.name = %server.id, workspace = %workspace,
                "{left} of its definitions are in no run: no more than {KEPT_MAX} are kept"
            );
            new.truncate(room);
        }
        let intended = Told::new(new.iter().map(|one| (&*one.name, one.is_quarantined)));
        let noted = self.note_looked_at(of, &intended).await?;
        let heads = match definitions.add(workspace, &server.id, run, &new).await {
            Ok(heads) => heads,
            // Nobody decides on a server that is no longer in the catalog.
            Err(StatementError::OwnerMissing { .. }) => Vec::new(),
            Err(error) => return Err(ControlError::Store(error).into()),
        };
        let run = run.to_text();
        let is_own = |head: &&DefinitionHead| {
            head.run == run && new.iter().any(|one| one.digest == head.digest)
        };
        let own = heads.iter().filter(is_own);
        let done = Told::new(own.map(|head| (&*head.name, !head.state.is_seen())));
        // Otherwise somebody else was faster, and what was noted has not come to be.
        let noted = match done == intended {
            true => noted,
            false => self.note_looked_at(of, &done).await?,
        };
        for one in noted {
            one.done().await;
        }
        Ok(by_digest(heads))
    }

    async fn note_looked_at(
        &self,
        of: Of<'_>,
        told: &Told,
    ) -> Result<Vec<narthex_audit::Noted>, RunError> {
        let mut noted = Vec::new();
        let lists = [
            (kind::DEFINITION_PINNED, &told.pinned),
            (kind::DEFINITION_QUARANTINED, &told.quarantined),
        ];
        for (kind, names) in lists.into_iter().filter(|(_, names)| !names.is_empty()) {
            let by = By::new(ActorKind::Run, of.run.to_text());
            let event = event(kind, of.workspace, &of.server.id, by, names);
            noted.push(self.control().note(event.of_run(of.run.to_text())).await?);
        }
        Ok(noted)
    }
}

impl Shared {
    /// See [`narthex_gateway::RunSource::look_at`].
    pub(crate) fn look_at_later<'a>(
        &'a self,
        run: &'a Arc<RunView>,
        alias: &'a Alias,
        listed: &'a Arc<Inventory>,
    ) -> LookingAt<'a> {
        Box::pin(async move {
            let runs = Runs { shared: self.this.upgrade()? };
            let (run, alias, listed) = (run.clone(), alias.clone(), listed.clone());
            let id = run.id;
            let looking = async move {
                let server = run.held_back().server(&alias).cloned()?;
                let of = Of { workspace: &run.workspace, run: run.id, server: &server };
                let names = match runs.look_at_one(of, (&listed, None), &[]).await {
                    Ok(names) => names,
                    Err(error) => {
                        tracing::warn!(run.id = %run.id, "{alias} could not be looked at: {error}");
                        return None;
                    }
                };
                let mut held = HeldNames::default();
                for (list, name) in &names {
                    list.iter().for_each(|list| held.add(&alias, *list, name));
                }
                let seen = listed.only(|list, entry| !held.has(&alias, list, &entry.key));
                run.held_back().add(&held);
                Some(seen)
            };
            // To its end, also if whoever asks goes away: what is noted is then done.
            match self.control.spawn(looking).await {
                Ok(seen) => seen,
                Err(error) => {
                    tracing::error!(run.id = %id, %error, "a list was not looked at");
                    None
                }
            }
        })
    }
}

/// Names of definitions, by what becomes of them.
#[derive(Debug, Default, PartialEq, Eq)]
struct Told {
    pinned: Vec<String>,
    quarantined: Vec<String>,
}

impl Told {
    fn new<'a>(all: impl Iterator<Item = (&'a str, bool)>) -> Self {
        let mut told = Self::default();
        for (name, is_quarantined) in all {
            let names = if is_quarantined { &mut told.quarantined } else { &mut told.pinned };
            names.push(name.to_owned());
        }
        told.pinned.sort();
        told.quarantined.sort();
        told
    }
}

/// An event of definitions of a server. Names are a server's words, and may be many.
fn event(
    kind: &'static str,
    workspace: &WorkspaceId,
    server: &ServerId,
    by: By,
    names: &[String],
) -> AuditEvent<'static> {
    let told: Vec<_> =
        names.iter().take(NAMES_TOLD).map(|name| harmless(name, NAME_TOLD)).collect();
    let event = AuditEvent::new(kind, by).in_workspace(workspace);
    event
        .on(CatalogKind::Server.to_string(), server.to_string())
        .with("names", told)
        .with("count", names.len())
}

fn by_digest(heads: Vec<DefinitionHead>) -> HashMap<String, DefinitionHead> {
    heads.into_iter().map(|head| (head.digest.clone(), head)).collect()
}

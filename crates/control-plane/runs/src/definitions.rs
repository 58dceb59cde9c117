//! Definitions of servers of the catalog, and of live servers whose entries pin them. Callers get
//! those that were there before, or that a human has accepted (D10, S22 to S24).
//!
//! The first text of a name is pinned; callers get the pinned or accepted texts, and nothing else.
//! This covers tools, prompts, templates, resources, and the server's instructions to models. Rows
//! of the store decide all of it, so that restarts and other daemons change nothing.

mod beside;
mod decide;
mod live;
mod named;
mod read;

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use narthex_audit::{ActorKind, AuditEvent, kind};
use narthex_control::{By, ControlError};
use narthex_definitions::harmless;
use narthex_gateway::{LookingAt, RunView};
use narthex_model::{Alias, CatalogKind, RunId, ServerId, WorkspaceId, command::narthex};
use narthex_registry::{FirstLists, HeldNames, KeptLists, PinnedServer};
use narthex_store::{DefinitionHead, DefinitionState, DefinitionsOf, StatementError};
use narthex_upstream::{Inventory, Listed};

use narthex_definitions::judging::judge::{self, Known, Seen};

use self::beside::Beside;
pub use narthex_definitions::judging::judge::DefinitionReason;

pub use self::{
    decide::{DefinitionPage, DefinitionVerdict, SeenDefinition},
    live::DefinitionSource,
};
pub(crate) use self::{live::Decided, read::ReadLists};
use crate::{RunError, RunWarning, Runs, Shared};

/// The most stored definitions of one server; no run gets later ones.
const KEPT_MAX: usize = 5000;
/// Number of names in an event, and the longest text of each, in characters.
const NAMES_TOLD: usize = 50;
const NAME_TOLD: usize = 100;

/// The server whose lists are looked at.
#[derive(Debug, Clone, Copy)]
struct Of<'a> {
    workspace: &'a WorkspaceId,
    run: RunId,
    server: DefinitionsOf<'a>,
    /// True if a definition that is the first of its name is shown although it is flagged.
    shows_flagged: bool,
}

impl<'a> Of<'a> {
    fn catalog(workspace: &'a WorkspaceId, run: RunId, server: &'a PinnedServer) -> Self {
        let shows_flagged = server.shows_flagged;
        let server = DefinitionsOf::Catalog(workspace, &server.id);
        Self { workspace, run, server, shows_flagged }
    }

    /// Another server of the same catalog; for a live server, the server itself.
    fn beside(&self, server: &'a ServerId) -> DefinitionsOf<'a> {
        match self.server {
            DefinitionsOf::Catalog(workspace, _) => DefinitionsOf::Catalog(workspace, server),
            DefinitionsOf::Live(..) => self.server,
        }
    }

    /// The name of the server.
    fn name(&self) -> &'a str {
        name_of(self.server)
    }
}

/// The name of a server, in its catalog or its file.
fn name_of(server: DefinitionsOf<'_>) -> &str {
    match server {
        DefinitionsOf::Catalog(_, id) => id.as_str(),
        DefinitionsOf::Live(_, alias) => alias.as_str(),
    }
}

/// The key of the lock under which new definitions are stored. Live servers of one place share it,
/// since their names are compared with each other's.
fn turn_of(server: DefinitionsOf<'_>) -> String {
    match server {
        DefinitionsOf::Catalog(workspace, id) => format!("catalog {workspace} {id}"),
        DefinitionsOf::Live(place, _) => format!("live {place}"),
    }
}

/// Definitions under review of the servers of a new run, and the part of their lists that it gets.
pub(crate) struct Screened {
    /// The first lists; a server that has listed nothing yet is absent.
    pub(crate) first: FirstLists,
    /// The part of the lists to freeze: a server that has listed nothing is looked at when it has.
    pub(crate) lists: KeptLists,
    pub(crate) held: HeldNames,
    /// Warnings for the creator. No word of a server is in them: a model may read them.
    pub(crate) warnings: Vec<RunWarning>,
}

/// The result of a look at the lists of a server.
#[derive(Debug)]
struct Looked {
    /// Definitions under review; the server's instructions are in no list.
    held: Vec<(Option<Listed>, String)>,
    /// The tools among these that a human has rejected.
    rejected: HashSet<String>,
}

impl Runs {
    /// Looks at the first lists of the servers of a run. Definitions that were under review before
    /// stay so.
    pub(crate) async fn screen_all(
        &self,
        (workspace, run): (&WorkspaceId, RunId),
        servers: &BTreeMap<Alias, PinnedServer>,
        first: FirstLists,
    ) -> Result<Screened, RunError> {
        let mut held = HeldNames::default();
        let mut warnings = Vec::new();
        let listed: Vec<_> =
            first.listed().map(|(alias, list)| (alias.clone(), list.clone())).collect();
        let (mut own, mut silent) = (Vec::new(), Vec::new());
        for (alias, list) in &listed {
            let Some(server) = servers.get(alias) else { continue };
            let told = first.told(alias).map(str::to_owned);
            own.push((server.id.clone(), self.shared.read_lists.of(list, told).await?));
        }
        let beside = self.beside_catalog(workspace, own).await?;
        for (alias, inventory) in &listed {
            let Some(server) = servers.get(alias) else { continue };
            let of = Of::catalog(workspace, run, server);
            let told = first.told(alias).map(str::to_owned);
            let names = self.look_at_one(of, (inventory, told), &beside).await?.held;
            if !names.is_empty() {
                let (count, id) = (names.len(), &server.id);
                let see = narthex("servers definitions {}", &[id]).in_workspace(workspace);
                let held = format!(
                    "{count} of its definitions are under review until a human has accepted"
                );
                let warning = format!("server `{id}`: {held} them: see `{see}`");
                let plain = format!("server `{alias}`: {held} them");
                warnings.push(RunWarning::of_operators(warning).or_for_models(plain));
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
        Ok(Screened { first: first.or_nothing(servers.keys()), lists, held, warnings })
    }

    /// Finds the definitions of a server, and instructions to models, that are under review.
    async fn look_at_one(
        &self,
        of: Of<'_>,
        (inventory, told): (&Arc<Inventory>, Option<String>),
        beside: &Beside,
    ) -> Result<Looked, RunError> {
        let seen = self.shared.read_lists.of(inventory, told).await?;
        let heads = self.heads(of).await?;
        let is_kept = |heads: &HashMap<String, DefinitionHead>, one: &Seen| {
            heads.contains_key(&one.digest) || !one.can_be_kept()
        };
        let unknown = seen.iter().filter(|one| !is_kept(&heads, one)).count();
        // At the limit of stored definitions, no new ones are judged.
        let is_full = heads.len() >= KEPT_MAX;
        if is_full && unknown > 0 {
            beyond(of, unknown);
        }
        let heads = match unknown == 0 || is_full {
            true => {
                self.note_seen(of, &seen, &heads).await?;
                heads
            }
            false => {
                let _turn = self.shared.looking.take(&turn_of(of.server)).await;
                let heads = self.heads(of).await?;
                self.keep_new(of, &seen, heads, beside).await?
            }
        };
        let heads = self.keep_doubted(of, &seen, heads, beside).await?;
        let is_held = |one: &&Seen| heads.get(&one.digest).is_none_or(|head| !head.state.is_seen());
        let held = seen.iter().filter(is_held).map(|one| (one.list, one.name.clone())).collect();
        let is_rejected = |one: &&Seen| {
            let head = heads.get(&one.digest);
            one.list == Some(Listed::Tool)
                && head.is_some_and(|head| head.state == DefinitionState::Rejected)
        };
        let rejected = seen.iter().filter(is_rejected).map(|one| one.name.clone()).collect();
        Ok(Looked { held, rejected })
    }

    async fn heads(&self, of: Of<'_>) -> Result<HashMap<String, DefinitionHead>, RunError> {
        let heads = self.store()?.definitions(of.server).heads().await;
        Ok(by_digest(heads.map_err(ControlError::Store)?))
    }

    async fn note_seen(
        &self,
        of: Of<'_>,
        seen: &[Seen],
        heads: &HashMap<String, DefinitionHead>,
    ) -> Result<(), RunError> {
        let seen: Vec<_> = seen.iter().filter_map(|one| heads.get(&one.digest)).collect();
        let noted = self.store()?.definitions(of.server).seen(&seen).await;
        Ok(noted.map_err(ControlError::Store)?)
    }

    /// Stores new definitions, and returns the states of all of the server then.
    async fn keep_new(
        &self,
        of: Of<'_>,
        seen: &Arc<Vec<Seen>>,
        heads: HashMap<String, DefinitionHead>,
        beside: &Beside,
    ) -> Result<HashMap<String, DefinitionHead>, RunError> {
        let (name, run, shows) = (of.name(), of.run, of.shows_flagged);
        let definitions = self.store()?.definitions(of.server);
        let texts = definitions.texts().await.map_err(ControlError::Store)?;
        let unwanted = definitions.unwanted().await.map_err(ControlError::Store)?;
        let mut others = definitions.other_tools().await.map_err(ControlError::Store)?;
        if let DefinitionsOf::Live(..) = of.server {
            // A server that is gone from the file has no names any more.
            let rows = self.shared.gateway.registry().snapshot();
            others.retain(|(server, _)| rows.get(server).is_some());
        }
        others.extend(self.first_tools(of, beside).await?);
        if let Some(built_in) = self.shared.gateway.built_in_inventory() {
            let tools = built_in.tools.iter().map(|tool| tool.key.to_string());
            others.extend(tools.map(|tool| (Alias::built_in().to_string(), tool)));
        }
        let names = heads.values().map(|head| (head.kind.clone(), head.name.clone())).collect();
        let known = Known { texts, unwanted, names, others, beside: beside.later.clone() };
        let (all, id) = (seen.clone(), name.to_owned());
        let before = heads.len();
        let room = KEPT_MAX.saturating_sub(before);
        let judged = tokio::task::spawn_blocking(move || {
            let is_known = |one: &Seen| heads.contains_key(&one.digest) || !one.can_be_kept();
            let unknown = all.iter().filter(|one| !is_known(one)).count();
            (judge::judge(&id, &all, (is_known, room), &known, shows), unknown)
        });
        let (new, unknown) = judged.await.map_err(ControlError::Bug)?;
        if unknown > room {
            beyond(of, unknown - room);
        }
        let intended = Told::new(new.iter().map(|one| (&*one.name, one.is_quarantined)));
        let noted = self.note_looked_at(of, &intended).await?;
        let heads = match definitions.add(run, &new).await {
            Ok(heads) => heads,
            // No decision is needed on a server that is no longer in the catalog.
            Err(StatementError::OwnerMissing { .. }) => Vec::new(),
            Err(error) => return Err(ControlError::Store(error).into()),
        };
        let run = run.to_text();
        let digests: HashSet<_> = new.iter().map(|one| one.digest.as_str()).collect();
        let is_own =
            |head: &&DefinitionHead| head.run == run && digests.contains(head.digest.as_str());
        let own = heads.iter().filter(is_own);
        let done = Told::new(own.map(|head| (&*head.name, !head.state.is_seen())));
        if new.iter().any(|one| one.kind == "tool") {
            self.named(of.server).await?;
        }
        // Otherwise another writer was faster, and the noted event has not happened.
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
            let event = event(kind, of.workspace, of.server, by, names);
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
                let of = Of::catalog(&run.workspace, run.id, &server);
                let looked = async {
                    let beside = runs.beside_catalog(&run.workspace, Vec::new()).await?;
                    Ok::<_, RunError>(runs.look_at_one(of, (&listed, None), &beside).await?.held)
                };
                let names = match looked.await {
                    Ok(names) => names,
                    Err(error) => {
                        tracing::warn!(
                            run.id = %run.id,
                            "the definitions of {alias} could not be checked: {error}"
                        );
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
            // Runs to its end, also if the caller disconnects: a noted event is then done.
            match self.control.spawn(looking).await {
                Ok(seen) => seen,
                Err(error) => {
                    tracing::error!(
                        run.id = %id, %error,
                        "the definitions of a list could not be checked"
                    );
                    None
                }
            }
        })
    }
}

/// Logs the number of definitions of a server that no run gets, as too many are stored already.
fn beyond(of: Of<'_>, count: usize) {
    tracing::warn!(
        server.name = of.name(), workspace = %of.workspace,
        "no run gets {count} of its definitions: at most {KEPT_MAX} are stored"
    );
}

/// Names of definitions, by their new state.
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
    server: DefinitionsOf<'_>,
    by: By,
    names: &[String],
) -> AuditEvent<'static> {
    let told: Vec<_> =
        names.iter().take(NAMES_TOLD).map(|name| harmless(name, NAME_TOLD)).collect();
    let event = AuditEvent::new(kind, by).in_workspace(workspace);
    let event = event.on(CatalogKind::Server.to_string(), name_of(server).to_owned());
    let event = match server {
        DefinitionsOf::Catalog(..) => event,
        DefinitionsOf::Live(file, _) => event.with("source", "live").with("file", file),
    };
    event.with("names", told).with("count", names.len())
}

fn by_digest(heads: Vec<DefinitionHead>) -> HashMap<String, DefinitionHead> {
    heads.into_iter().map(|head| (head.digest.clone(), head)).collect()
}

//! Screening of the lists of servers, before callers have their definitions.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use narthex_audit::{ActorKind, kind};
use narthex_control::{By, ControlError};
use narthex_gateway::{LookingAt, RunView};
use narthex_model::{Alias, RunId, WorkspaceId, command::narthex};
use narthex_registry::{FirstLists, HeldNames, KeptLists, PinnedServer};
use narthex_store::{DefinitionHead, DefinitionState, DefinitionsOf, StatementError};
use narthex_upstream::{Inventory, Listed};

use crate::{
    judging::judge::{self, Known, Seen},
    reviews::{
        ReviewError, Reviews,
        other_names::OtherNames,
        server::{NamesByState, ReviewedServer, STORED_MAX, event, turn_of},
    },
};

/// A warning that definitions of a server are under review.
#[derive(Debug)]
pub struct ReviewWarning {
    /// With the command that shows them.
    pub for_operators: String,
    /// Without a word of the server, and without a command.
    pub for_models: String,
}

/// Definitions under review of the servers of a new run, and the part of their lists that it gets.
#[derive(Debug)]
pub struct Screened {
    /// The first lists; a server that has listed nothing yet is absent.
    pub first: FirstLists,
    /// The part of the lists to freeze: a server that has listed nothing is looked at when it has.
    pub lists: KeptLists,
    /// The names under review.
    pub held: HeldNames,
    /// Warnings for the creator.
    pub warnings: Vec<ReviewWarning>,
}

/// The result of a look at the lists of a server.
#[derive(Debug)]
pub(crate) struct ServerReview {
    /// Definitions under review; the server's instructions are in no list.
    pub(crate) held: Vec<(Option<Listed>, String)>,
    /// The tools among these that a human has rejected.
    pub(crate) rejected: HashSet<String>,
}

impl Reviews {
    /// Looks at the first lists of the servers of a run. Definitions that were under review before
    /// stay so.
    ///
    /// # Errors
    /// When there is no store, or it fails, or the audit cannot record a definition.
    pub async fn screen_all(
        &self,
        (workspace, run): (&WorkspaceId, RunId),
        servers: &BTreeMap<Alias, PinnedServer>,
        first: FirstLists,
    ) -> Result<Screened, ReviewError> {
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
            let of = ReviewedServer::catalog(workspace, run, server);
            let told = first.told(alias).map(str::to_owned);
            let names = self.review_list(of, (inventory, told), &beside).await?.held;
            if !names.is_empty() {
                let (count, id) = (names.len(), &server.id);
                let see = narthex("servers definitions {}", &[id]).in_workspace(workspace);
                let held = format!(
                    "{count} of its definitions are under review until a human has accepted"
                );
                let warning = format!("server `{id}`: {held} them: see `{see}`");
                let plain = format!("server `{alias}`: {held} them");
                warnings.push(ReviewWarning { for_operators: warning, for_models: plain });
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
    pub(crate) async fn review_list(
        &self,
        of: ReviewedServer<'_>,
        (inventory, told): (&Arc<Inventory>, Option<String>),
        beside: &OtherNames,
    ) -> Result<ServerReview, ReviewError> {
        let seen = self.shared.read_lists.of(inventory, told).await?;
        let heads = self.heads(of).await?;
        let is_kept = |heads: &HashMap<String, DefinitionHead>, one: &Seen| {
            heads.contains_key(&one.digest) || !one.can_be_kept()
        };
        let unknown = seen.iter().filter(|one| !is_kept(&heads, one)).count();
        // At the limit of stored definitions, no new ones are judged.
        let is_full = heads.len() >= STORED_MAX;
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
                self.store_new(of, &seen, heads, beside).await?
            }
        };
        let heads = self.store_doubted(of, &seen, heads, beside).await?;
        let is_held = |one: &&Seen| heads.get(&one.digest).is_none_or(|head| !head.state.is_seen());
        let held = seen.iter().filter(is_held).map(|one| (one.list, one.name.clone())).collect();
        let is_rejected = |one: &&Seen| {
            let head = heads.get(&one.digest);
            one.list == Some(Listed::Tool)
                && head.is_some_and(|head| head.state == DefinitionState::Rejected)
        };
        let rejected = seen.iter().filter(is_rejected).map(|one| one.name.clone()).collect();
        Ok(ServerReview { held, rejected })
    }

    pub(crate) async fn heads(
        &self,
        of: ReviewedServer<'_>,
    ) -> Result<HashMap<String, DefinitionHead>, ReviewError> {
        let heads = self.store()?.definitions(of.server).heads().await;
        Ok(by_digest(heads.map_err(ControlError::Store)?))
    }

    async fn note_seen(
        &self,
        of: ReviewedServer<'_>,
        seen: &[Seen],
        heads: &HashMap<String, DefinitionHead>,
    ) -> Result<(), ReviewError> {
        let seen: Vec<_> = seen.iter().filter_map(|one| heads.get(&one.digest)).collect();
        let noted = self.store()?.definitions(of.server).seen(&seen).await;
        Ok(noted.map_err(ControlError::Store)?)
    }

    /// Stores new definitions, and returns the states of all of the server then.
    async fn store_new(
        &self,
        of: ReviewedServer<'_>,
        seen: &Arc<Vec<Seen>>,
        heads: HashMap<String, DefinitionHead>,
        beside: &OtherNames,
    ) -> Result<HashMap<String, DefinitionHead>, ReviewError> {
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
        others.extend(self.tools_of_run(of, beside).await?);
        others.extend(self.built_in_tools());
        let names = heads.values().map(|head| (head.kind.clone(), head.name.clone())).collect();
        let known = Known { texts, unwanted, names, others, beside: beside.later.clone() };
        let (all, id) = (seen.clone(), name.to_owned());
        let before = heads.len();
        let room = STORED_MAX.saturating_sub(before);
        let judged = tokio::task::spawn_blocking(move || {
            let is_known = |one: &Seen| heads.contains_key(&one.digest) || !one.can_be_kept();
            let unknown = all.iter().filter(|one| !is_known(one)).count();
            (judge::judge(&id, &all, (is_known, room), &known, shows), unknown)
        });
        let (new, unknown) = judged.await.map_err(ControlError::Bug)?;
        if unknown > room {
            beyond(of, unknown - room);
        }
        let intended = NamesByState::new(new.iter().map(|one| (&*one.name, one.is_quarantined)));
        let noted = self.note_reviewed(of, &intended).await?;
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
        let done = NamesByState::new(own.map(|head| (&*head.name, !head.state.is_seen())));
        if new.iter().any(|one| one.kind == "tool") {
            self.names_changed(of.server).await?;
        }
        // Otherwise another writer was faster, and the noted event has not happened.
        let noted = match done == intended {
            true => noted,
            false => self.note_reviewed(of, &done).await?,
        };
        for one in noted {
            one.done().await;
        }
        Ok(by_digest(heads))
    }

    pub(crate) async fn note_reviewed(
        &self,
        of: ReviewedServer<'_>,
        told: &NamesByState,
    ) -> Result<Vec<narthex_audit::Noted>, ReviewError> {
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

impl Reviews {
    /// Reviews a list that a server of a run has given first, as
    /// [`narthex_gateway::RunSource::look_at`] describes.
    pub fn review_later<'a>(
        &'a self,
        run: &'a Arc<RunView>,
        alias: &'a Alias,
        listed: &'a Arc<Inventory>,
    ) -> LookingAt<'a> {
        Box::pin(async move {
            let reviews = self.clone();
            let (run, alias, listed) = (run.clone(), alias.clone(), listed.clone());
            let id = run.id;
            let looking = async move {
                let server = run.held_back().server(&alias).cloned()?;
                let of = ReviewedServer::catalog(&run.workspace, run.id, &server);
                let looked = async {
                    let beside = reviews.beside_catalog(&run.workspace, Vec::new()).await?;
                    Ok::<_, ReviewError>(
                        reviews.review_list(of, (&listed, None), &beside).await?.held,
                    )
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
            // Reviews to its end, also if the caller disconnects: a noted event is then done.
            match self.control().spawn(looking).await {
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
fn beyond(of: ReviewedServer<'_>, count: usize) {
    tracing::warn!(
        server.name = of.name(), workspace = %of.workspace,
        "no run gets {count} of its definitions: at most {STORED_MAX} are stored"
    );
}

fn by_digest(heads: Vec<DefinitionHead>) -> HashMap<String, DefinitionHead> {
    heads.into_iter().map(|head| (head.digest.clone(), head)).collect()
}

//! Definitions of live servers whose entries pin them: looked at before any caller has them, and
//! again after a decision.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use narthex_control::{CatalogError, ControlError, POLL};
use narthex_definitions::judging::waves;
use narthex_model::{Alias, CatalogKind, ServerId, WorkspaceId, command::narthex};
use narthex_registry::{DefinitionPins, Held, HeldNames, LookError, Looking, Said, ServerRow};
use narthex_store::DefinitionsOf;
use tokio::task::JoinSet;

use super::{
    Looked, Of,
    named::{Named, NamesDigest},
};
use crate::{RunError, Runs, Shared};

/// The place of an entry that is from no file.
const NO_FILE: &str = "";

/// The place of configuration of a server whose definitions are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefinitionSource {
    /// In the catalog of the workspace.
    Catalog,
    /// In the live configuration, which the workspace of the daemon has.
    Live,
}

impl DefinitionSource {
    /// All sources.
    pub const ALL: [Self; 2] = [Self::Catalog, Self::Live];

    /// The spelling in queries.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Catalog => "catalog",
            Self::Live => "live",
        }
    }
}

/// A server whose definitions are stored.
#[derive(Debug)]
pub(super) enum KeptServer {
    /// One of the catalog.
    Catalog(WorkspaceId, ServerId),
    /// A live one, with the place of its entry.
    Live(String, Alias),
}

impl KeptServer {
    pub(super) fn of(&self) -> DefinitionsOf<'_> {
        match self {
            Self::Catalog(workspace, id) => DefinitionsOf::Catalog(workspace, id),
            Self::Live(place, alias) => DefinitionsOf::Live(place, alias),
        }
    }
}

/// The applied decisions on the definitions of each live server, by place and alias. `numbers` has
/// the number of the store that was read before the last look at all lists of the server, and
/// `names` the other names that it was compared with.
#[derive(Debug, Default)]
pub(crate) struct Decided {
    numbers: LookedAt<i64>,
    names: LookedAt<NamesDigest>,
    told: Told,
    pub(super) known: Named,
}

/// Definitions under review of each live server, by place and alias, that were logged. A server is
/// looked at several times when it starts: on each of its links, and beside the lists of others.
#[derive(Debug, Default)]
struct Told(Mutex<BTreeMap<(String, String), Vec<Held>>>);

impl Told {
    /// Number of lists of a server, which differ by the link, that are remembered.
    const LISTS_MAX: usize = 8;

    /// True if this was not logged since the last look that found none under review.
    fn is_news(&self, place: &str, server: &str, held: &Held) -> bool {
        let key = (place.to_owned(), server.to_owned());
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if held.count() == 0 {
            known.remove(&key);
            return false;
        }
        let told = known.entry(key).or_default();
        if told.contains(held) {
            return false;
        }
        if told.len() == Self::LISTS_MAX {
            told.remove(0);
        }
        told.push(held.clone());
        true
    }
}

/// A live server with definitions that have to be compared with these names.
#[derive(Debug, Clone, PartialEq)]
struct Behind {
    place: String,
    alias: Alias,
    named: NamesDigest,
}

/// The state with which all lists of each live server, by place and alias, were looked at.
#[derive(Debug)]
struct LookedAt<T>(Mutex<BTreeMap<(String, String), Option<T>>>);

impl<T> Default for LookedAt<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: PartialEq> LookedAt<T> {
    /// Notes the state with which one list of a server was looked at. An earlier state stays: other
    /// lists of it may have been looked at with less.
    fn note_first(&self, place: &str, server: &str, with: T) {
        self.known().entry((place.to_owned(), server.to_owned())).or_insert(Some(with));
    }

    /// Notes the state with which one list of a server was looked at. If it differs from the state
    /// before, the server's state is unknown until all lists were looked at.
    fn note_one(&self, place: &str, server: &str, with: T) {
        let mut known = self.known();
        match known.get_mut(&(place.to_owned(), server.to_owned())) {
            Some(before) if before.as_ref() == Some(&with) => {}
            Some(before) => *before = None,
            None => drop(known.insert((place.to_owned(), server.to_owned()), Some(with))),
        }
    }

    /// Notes the state with which all lists of a server were looked at.
    fn note(&self, place: &str, server: &str, with: T) {
        self.known().insert((place.to_owned(), server.to_owned()), Some(with));
    }

    fn holds(&self, place: &str, server: &str, with: &T) -> bool {
        let known = self.known();
        known
            .get(&(place.to_owned(), server.to_owned()))
            .is_some_and(|it| it.as_ref() == Some(with))
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<(String, String), Option<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of an entry, as it is stored.
fn place(file: Option<&Path>) -> String {
    file.map_or_else(|| NO_FILE.to_owned(), |file| file.display().to_string())
}

impl DefinitionPins for Shared {
    fn look<'a>(&'a self, said: &'a Said) -> Looking<'a> {
        Box::pin(async move {
            let ends = || LookError("the daemon is stopping".to_owned());
            let runs = Runs { shared: self.this.upgrade().ok_or_else(ends)? };
            let said = said.clone();
            let looking = async move { Box::pin(runs.look_at_live(&said)).await };
            // Runs to its end, also if the server goes meanwhile: a noted event is then done.
            match self.control.spawn(looking).await {
                Ok(looked) => looked.map_err(|error| LookError(error.to_string())),
                Err(error) => Err(LookError(error.to_string())),
            }
        })
    }
}

impl Runs {
    async fn look_at_live(&self, said: &Said) -> Result<Held, RunError> {
        let (alias, place) = (&said.alias, place(said.file.as_deref()));
        let server = DefinitionsOf::Live(&place, alias);
        // The look sees all decisions made by now.
        let decided = self.decided_at(&place).await?;
        let (workspace, run) = (self.control().home(), self.shared.options.local);
        let of = Of { workspace, run, server, shows_flagged: said.shows_flagged };
        let (beside, named) = Box::pin(self.beside_live(alias)).await?;
        let looked = self.look_at_one(of, (&said.listed, said.told.clone()), &beside).await?;
        let Looked { held: looked, rejected } = looked;
        self.shared.decided.known.rejects(alias.as_str(), &said.listed, rejected);
        let mut held = Held::default();
        for (list, name) in &looked {
            match list {
                Some(list) => held.names.add(alias, *list, name),
                None => held.is_silent = true,
            }
        }
        let number = decided.get(alias.as_str()).copied().unwrap_or_default();
        self.shared.decided.numbers.note_first(&place, alias.as_str(), number);
        self.shared.decided.names.note_one(&place, alias.as_str(), named);
        if self.shared.decided.told.is_news(&place, alias.as_str(), &held) {
            tell(alias, &held.names, looked.len());
        }
        Ok(held)
    }

    /// The server of this name whose definitions are stored.
    pub(super) async fn kept_server(
        &self,
        workspace: &WorkspaceId,
        server: &str,
        source: Option<DefinitionSource>,
    ) -> Result<KeptServer, RunError> {
        let catalogued = match source {
            Some(DefinitionSource::Live) => None,
            Some(DefinitionSource::Catalog) | None => self.catalogued(workspace, server).await?,
        };
        let snapshot = self.shared.gateway.registry().snapshot();
        let is_meant = self.is_home(workspace) && source != Some(DefinitionSource::Catalog);
        let row = snapshot.get(server).filter(|_| is_meant);
        let live = row.and_then(|row| Some((row, row.alias.clone()?)));
        match (catalogued, live) {
            (Some(_), Some((row, _))) if row.is_pinned() => {
                Err(RunError::TwoServers(server.to_owned()))
            }
            (Some(id), _) => Ok(KeptServer::Catalog(workspace.clone(), id)),
            (None, Some((row, alias))) if row.is_pinned() => {
                Ok(KeptServer::Live(place(row.file.as_deref()), alias))
            }
            (None, Some((_, alias))) => Err(RunError::NotPinned(alias)),
            (None, None) => {
                let kind = CatalogKind::Server;
                let id = server.chars().take(100).collect();
                Err(ControlError::from(CatalogError::Unknown { kind, id }).into())
            }
        }
    }

    /// Applies a decision for callers of a live server.
    pub(super) async fn decided_on(&self, server: &KeptServer) -> Result<(), RunError> {
        let KeptServer::Live(place, alias) = server else { return self.named(server.of()).await };
        // Read before the look: a decision that is made elsewhere meanwhile causes another look.
        let decided = self.decided_at(place).await?;
        let number = decided.get(alias.as_str()).copied().unwrap_or_default();
        self.look_again(place, alias, number).await.map_err(RunError::NotYet)
    }

    /// Looks at all lists of a server, after this number was read.
    async fn look_again(&self, place: &str, alias: &Alias, number: i64) -> Result<(), LookError> {
        self.shared.gateway.registry().look_again(alias).await?;
        self.shared.decided.numbers.note(place, alias.as_str(), number);
        Ok(())
    }

    async fn decided_at(&self, place: &str) -> Result<BTreeMap<String, i64>, RunError> {
        Ok(self.store()?.live_decided(place).await.map_err(ControlError::Store)?)
    }

    /// Applies decisions of other daemons on the store, for as long as it is polled.
    async fn follow_decisions(&self) {
        let mut ticks = tokio::time::interval(POLL);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if let Err(error) = self.follow_once().await {
                tracing::debug!("decisions of other daemons cannot be read: {error}");
            }
        }
    }

    async fn follow_once(&self) -> Result<(), RunError> {
        let registry = self.shared.gateway.registry();
        let snapshot = registry.snapshot();
        let pinned = snapshot.servers.iter().filter(|row| row.pinned.is_some());
        let pinned: Vec<_> = pinned.collect();
        if !pinned.is_empty() {
            // Other daemons change the names of the catalog, too.
            self.follow_catalog().await?;
        }
        let places: BTreeSet<_> = pinned.iter().map(|row| place(row.file.as_deref())).collect();
        let mut looking = JoinSet::new();
        for place_of in places {
            let decided = self.decided_at(&place_of).await?;
            for row in pinned.iter().filter(|row| place(row.file.as_deref()) == place_of) {
                let (Some(alias), Some(number)) = (&row.alias, decided.get(&row.name)) else {
                    continue;
                };
                if self.shared.decided.numbers.holds(&place_of, alias.as_str(), number) {
                    continue;
                }
                let (runs, place, alias) = (self.clone(), place_of.clone(), alias.clone());
                let number = *number;
                // In parallel: a slow server holds up no other.
                looking.spawn(async move { runs.look_again(&place, &alias, number).await });
            }
        }
        while let Some(looked) = looking.join_next().await {
            match looked {
                Ok(Ok(())) => {}
                // It is tried again there, and here.
                Ok(Err(error)) => tracing::debug!("a decision could not be applied yet: {error}"),
                Err(error) => return Err(ControlError::Bug(error).into()),
            }
        }
        Ok(())
    }
}

impl Runs {
    /// Applies decisions made elsewhere, and names that other servers list, for as long as it is
    /// polled.
    pub(crate) async fn follow_live(&self) {
        tokio::join!(self.follow_decisions(), self.follow_names());
    }

    /// Looks at trusted definitions of live servers again whenever other servers have new names to
    /// compare with, for as long as it is polled.
    async fn follow_names(&self) {
        let registry = self.shared.gateway.registry();
        let news = (registry.changes(), self.shared.decided.known.news());
        let is_same =
            |one: &Behind, other: &Behind| (&one.place, &one.alias) == (&other.place, &other.alias);
        let look = |behind: Behind| {
            let runs = self.clone();
            async move { runs.look_beside(&behind).await }
        };
        waves::follow(news, || self.behind(), is_same, look).await;
    }

    /// The servers with definitions that were not compared with the present names of others.
    fn behind(&self) -> Vec<Behind> {
        // Until the catalog's number is read, nothing was compared with it.
        let Some(catalog) = self.shared.decided.known.number() else { return Vec::new() };
        let rows = self.shared.gateway.registry().snapshot();
        let is_meant = |row: &&Arc<ServerRow>| row.pinned.is_some() && !row.is_overridden;
        if !rows.servers.iter().any(|row| is_meant(&row)) {
            return Vec::new();
        }
        let standing = self.shared.decided.known.standing(&rows);
        let behind = rows.servers.iter().filter(is_meant).filter_map(|row| {
            let (place, alias) = (place(row.file.as_deref()), row.alias.clone()?);
            let named = standing.beside(alias.as_str(), catalog);
            let names = &self.shared.decided.names;
            let is_known = names.holds(&place, alias.as_str(), &named);
            (!is_known).then_some(Behind { place, alias, named })
        });
        behind.collect()
    }

    /// Looks at all lists of a server beside the present names of others.
    async fn look_beside(&self, behind: &Behind) {
        let Behind { place, alias, named } = behind;
        match self.shared.gateway.registry().look_again(alias).await {
            Ok(()) => self.shared.decided.names.note(place, alias.as_str(), *named),
            // It is tried again there.
            Err(error) => tracing::debug!("names of tools could not be compared yet: {error}"),
        }
    }
}

/// Logs that definitions are under review.
fn tell(alias: &Alias, names: &HeldNames, count: usize) {
    let held = names.count();
    let see = narthex("servers definitions {} --live --quarantined", &[alias]);
    tracing::warn!(
        server.name = %alias,
        "{count} of its definitions ({held} of its lists) are under review until a human has \
         accepted them: see `{see}`"
    );
}

#[cfg(test)]
mod tests {
    use narthex_upstream::Listed;

    use super::*;

    /// S22: definitions under review are logged once, and again when they change, or when the same
    /// ones return after none were.
    #[test]
    fn s22_definitions_under_review_are_logged_once_for_each_change() {
        let alias = Alias::new("git").unwrap();
        let held = |names: &[&str]| {
            let mut held = Held::default();
            names.iter().for_each(|name| held.names.add(&alias, Listed::Tool, name));
            held
        };
        let told = Told::default();
        let is_news = |names: &[&str]| told.is_news("mcp.json", "git", &held(names));
        let looks: [&[&str]; 7] = [&["a"], &["a"], &["a", "b"], &["a"], &[], &["a"], &["a"]];
        assert_eq!(looks.map(is_news), [true, false, true, false, false, true, false]);
        assert!(told.is_news("mcp.json", "mail", &held(&["a"])), "each server for itself");
    }
}

//! Definitions of live servers whose entries pin them: looked at before any caller has them, and
//! again after a decision.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::Arc,
};

use narthex_control::{CatalogError, ControlError, POLL};
use narthex_model::{Alias, CatalogKind, ServerId, WorkspaceId, command::narthex};
use narthex_registry::{DefinitionPins, Held, HeldNames, LookError, Looking, Said, ServerRow};
use narthex_store::DefinitionsOf;
use tokio::task::JoinSet;

use crate::{
    judging::waves,
    reviews::{
        ReviewError, Reviews, live_names::NamesDigest, screening::ServerReview,
        server::ReviewedServer, shared::Shared,
    },
};

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
    pub const ALL: [Self; 2] = narthex_model::every![Catalog, Live];

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
pub(crate) enum StoredServer {
    /// One of the catalog.
    Catalog(WorkspaceId, ServerId),
    /// A live one, with the place of its entry.
    Live(String, Alias),
}

impl StoredServer {
    pub(crate) fn of(&self) -> DefinitionsOf<'_> {
        match self {
            Self::Catalog(workspace, id) => DefinitionsOf::Catalog(workspace, id),
            Self::Live(place, alias) => DefinitionsOf::Live(place, alias),
        }
    }
}

/// A live server with definitions that have to be compared with these names.
#[derive(Debug, Clone, PartialEq)]
struct Behind {
    place: String,
    alias: Alias,
    named: NamesDigest,
}

/// The place of an entry, as it is stored.
fn place(file: Option<&Path>) -> String {
    file.map_or_else(|| NO_FILE.to_owned(), |file| file.display().to_string())
}

impl DefinitionPins for Shared {
    fn look<'a>(&'a self, said: &'a Said) -> Looking<'a> {
        Box::pin(async move {
            let ends = || LookError("the daemon is stopping".to_owned());
            let reviews = Reviews { shared: self.this.upgrade().ok_or_else(ends)? };
            let said = said.clone();
            let looking = async move { Box::pin(reviews.review_live(&said)).await };
            // Reviews to its end, also if the server goes meanwhile: a noted event is then done.
            match self.control.spawn(looking).await {
                Ok(looked) => looked.map_err(|error| LookError(error.to_string())),
                Err(error) => Err(LookError(error.to_string())),
            }
        })
    }
}

impl Reviews {
    async fn review_live(&self, said: &Said) -> Result<Held, ReviewError> {
        let (alias, place) = (&said.alias, place(said.file.as_deref()));
        let server = DefinitionsOf::Live(&place, alias);
        // The look sees all decisions made by now.
        let decided = self.decided_at(&place).await?;
        let (workspace, run) = (self.control().home(), self.shared.local);
        let of = ReviewedServer { workspace, run, server, shows_flagged: said.shows_flagged };
        let (beside, named) = Box::pin(self.beside_live(alias)).await?;
        let looked = self.review_list(of, (&said.listed, said.told.clone()), &beside).await?;
        let ServerReview { held: looked, rejected } = looked;
        self.shared.applied.known.rejects(alias.as_str(), &said.listed, rejected);
        let mut held = Held::default();
        for (list, name) in &looked {
            match list {
                Some(list) => held.names.add(alias, *list, name),
                None => held.is_silent = true,
            }
        }
        let number = decided.get(alias.as_str()).copied().unwrap_or_default();
        self.shared.applied.numbers.note_first(&place, alias.as_str(), number);
        self.shared.applied.names.note_one(&place, alias.as_str(), named);
        if self.shared.applied.logged.is_news(&place, alias.as_str(), &held) {
            tell(alias, &held.names, looked.len());
        }
        Ok(held)
    }

    /// The server of this name whose definitions are stored.
    pub(crate) async fn stored_server(
        &self,
        workspace: &WorkspaceId,
        server: &str,
        source: Option<DefinitionSource>,
    ) -> Result<StoredServer, ReviewError> {
        let catalogued = match source {
            Some(DefinitionSource::Live) => None,
            Some(DefinitionSource::Catalog) | None => self.catalogued(workspace, server).await?,
        };
        let snapshot = self.shared.gateway.registry().snapshot();
        let is_meant =
            workspace == self.control().home() && source != Some(DefinitionSource::Catalog);
        let row = snapshot.get(server).filter(|_| is_meant);
        let live = row.and_then(|row| Some((row, row.alias.clone()?)));
        match (catalogued, live) {
            (Some(_), Some((row, _))) if row.is_pinned() => {
                Err(ReviewError::TwoServers(server.to_owned()))
            }
            (Some(id), _) => Ok(StoredServer::Catalog(workspace.clone(), id)),
            (None, Some((row, alias))) if row.is_pinned() => {
                Ok(StoredServer::Live(place(row.file.as_deref()), alias))
            }
            (None, Some((_, alias))) => Err(ReviewError::NotPinned(alias)),
            (None, None) if source == Some(DefinitionSource::Live) => {
                Err(ReviewError::NoLive(server.chars().take(100).collect()))
            }
            (None, None) => {
                let kind = CatalogKind::Server;
                let id = server.chars().take(100).collect();
                Err(ControlError::from(CatalogError::Unknown { kind, id }).into())
            }
        }
    }

    /// Applies a decision for callers of a live server.
    pub(crate) async fn decided_on(&self, server: &StoredServer) -> Result<(), ReviewError> {
        let StoredServer::Live(place, alias) = server else {
            return self.names_changed(server.of()).await;
        };
        // Read before the look: a decision that is made elsewhere meanwhile causes another look.
        let decided = self.decided_at(place).await?;
        let number = decided.get(alias.as_str()).copied().unwrap_or_default();
        self.look_again(place, alias, number).await.map_err(ReviewError::NotYet)
    }

    /// Looks at all lists of a server, after this number was read.
    async fn look_again(&self, place: &str, alias: &Alias, number: i64) -> Result<(), LookError> {
        self.shared.gateway.registry().look_again(alias).await?;
        self.shared.applied.numbers.note(place, alias.as_str(), number);
        Ok(())
    }

    async fn decided_at(&self, place: &str) -> Result<BTreeMap<String, i64>, ReviewError> {
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

    async fn follow_once(&self) -> Result<(), ReviewError> {
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
                if self.shared.applied.numbers.holds(&place_of, alias.as_str(), number) {
                    continue;
                }
                let (reviews, place, alias) = (self.clone(), place_of.clone(), alias.clone());
                let number = *number;
                // In parallel: a slow server holds up no other.
                looking.spawn(async move { reviews.look_again(&place, &alias, number).await });
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

impl Reviews {
    /// Applies decisions made elsewhere, and names that other servers list, for as long as it is
    /// polled.
    pub async fn follow_live(&self) {
        tokio::join!(self.follow_decisions(), self.follow_names());
    }

    /// Looks at trusted definitions of live servers again whenever other servers have new names to
    /// compare with, for as long as it is polled.
    async fn follow_names(&self) {
        let registry = self.shared.gateway.registry();
        let news = (registry.changes(), self.shared.applied.known.news());
        let is_same =
            |one: &Behind, other: &Behind| (&one.place, &one.alias) == (&other.place, &other.alias);
        let look = |behind: Behind| {
            let reviews = self.clone();
            async move { reviews.look_beside(&behind).await }
        };
        waves::follow(news, || self.behind(), is_same, look).await;
    }

    /// The servers with definitions that were not compared with the present names of others.
    fn behind(&self) -> Vec<Behind> {
        // Until the catalog's number is read, nothing was compared with it.
        let Some(catalog) = self.shared.applied.known.number() else { return Vec::new() };
        let rows = self.shared.gateway.registry().snapshot();
        let is_meant = |row: &&Arc<ServerRow>| row.pinned.is_some() && !row.is_overridden;
        if !rows.servers.iter().any(|row| is_meant(&row)) {
            return Vec::new();
        }
        let sums = self.shared.applied.known.sums(&rows);
        let behind = rows.servers.iter().filter(is_meant).filter_map(|row| {
            let (place, alias) = (place(row.file.as_deref()), row.alias.clone()?);
            let named = sums.beside(alias.as_str(), catalog);
            let names = &self.shared.applied.names;
            let is_known = names.holds(&place, alias.as_str(), &named);
            (!is_known).then_some(Behind { place, alias, named })
        });
        behind.collect()
    }

    /// Looks at all lists of a server beside the present names of others.
    async fn look_beside(&self, behind: &Behind) {
        let Behind { place, alias, named } = behind;
        match self.shared.gateway.registry().look_again(alias).await {
            Ok(()) => self.shared.applied.names.note(place, alias.as_str(), *named),
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

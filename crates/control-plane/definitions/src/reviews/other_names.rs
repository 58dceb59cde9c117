//! Names of tools of other servers, with which definitions are compared (S24): names known at the
//! first look, or only later. Either puts a definition that no human has decided on under review,
//! so that the order in which servers list does not matter.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use narthex_control::ControlError;
use narthex_model::{Alias, ServerId, WorkspaceId, command::narthex};
use narthex_store::{DefinitionHead, DefinitionState, DefinitionsOf};
use narthex_upstream::Listed;

use crate::{
    Names, harmless,
    judging::judge::{self, Doubted, Seen},
    reviews::{
        ReviewError, Reviews,
        live_names::NamesDigest,
        server::{NAME_SHOWN, NAMES_SHOWN, NamesByState, ReviewedServer},
    },
};

/// Length of a digest in messages: enough to be unique.
const DIGEST_SHOWN: usize = 12;

/// The name of another server, and of a tool of it.
pub(crate) type Tool = (String, String);

/// The names with which the definitions of a server are compared.
#[derive(Debug)]
pub(crate) struct OtherNames {
    /// Lists of the servers of the catalog in the same run: only for new definitions.
    pub(crate) first: Vec<(ServerId, Arc<Vec<Seen>>)>,
    /// Names also for definitions that were trusted before.
    pub(crate) later: Vec<Arc<Names>>,
}

impl Reviews {
    /// The names with which a server of the catalog is compared, with these other servers of its
    /// run.
    pub(crate) async fn beside_catalog(
        &self,
        workspace: &WorkspaceId,
        first: Vec<(ServerId, Arc<Vec<Seen>>)>,
    ) -> Result<OtherNames, ReviewError> {
        let mut later = Vec::new();
        if workspace == self.control().home() {
            let rows = || self.shared.gateway.registry().snapshot();
            later.push(self.shared.applied.known.live(rows).await?.names);
        }
        Ok(OtherNames { first, later })
    }

    /// The names with which a live server is compared, and their digest.
    pub(crate) async fn beside_live(
        &self,
        alias: &Alias,
    ) -> Result<(OtherNames, NamesDigest), ReviewError> {
        let known = &self.shared.applied.known;
        let number = match known.number() {
            Some(number) => number,
            None => self.follow_catalog().await?,
        };
        let catalog = Box::pin(known.catalog(number, self.catalog_tools())).await?;
        let live = known.live(|| self.shared.gateway.registry().snapshot()).await?;
        let digest = live.sums.beside(alias.as_str(), number);
        Ok((OtherNames { first: Vec::new(), later: vec![live.names, catalog] }, digest))
    }

    /// All tools of the catalog of the workspace of the live configuration, and the built-in ones.
    async fn catalog_tools(&self) -> Result<Vec<Tool>, ReviewError> {
        let Ok(built_in) = ServerId::new(Alias::built_in().as_str()) else {
            return Ok(Vec::new());
        };
        let of = DefinitionsOf::Catalog(self.control().home(), &built_in);
        let all = self.store()?.definitions(of).other_tools().await;
        let mut all = all.map_err(ControlError::Store)?;
        all.extend(self.built_in_tools());
        Ok(all)
    }

    /// All tools of the built-in server.
    pub(super) fn built_in_tools(&self) -> Vec<Tool> {
        let inventory = self.shared.gateway.built_in_inventory();
        let tools = inventory.iter().flat_map(|inventory| inventory.tools.iter());
        tools.map(|tool| (Alias::built_in().to_string(), tool.key.to_string())).collect()
    }

    /// Has live servers compared with the present names of the catalog, and returns their number.
    pub(crate) async fn follow_catalog(&self) -> Result<i64, ReviewError> {
        let number = self.store()?.catalog_named(self.control().home()).await;
        let number = number.map_err(ControlError::Store)?;
        self.shared.applied.known.note_number(number);
        Ok(number)
    }

    /// The same, once a definition of this server has changed.
    pub(crate) async fn names_changed(&self, of: DefinitionsOf<'_>) -> Result<(), ReviewError> {
        match of {
            DefinitionsOf::Catalog(workspace, _) if workspace == self.control().home() => {
                self.follow_catalog().await.map(drop)
            }
            DefinitionsOf::Catalog(..) | DefinitionsOf::Live(..) => Ok(()),
        }
    }

    /// The tools of the servers of a run, except those of one server and rejected ones.
    pub(crate) async fn tools_of_run(
        &self,
        of: ReviewedServer<'_>,
        beside: &OtherNames,
    ) -> Result<Vec<Tool>, ReviewError> {
        let mut tools = Vec::new();
        for (server, all) in beside.first.iter().filter(|(server, _)| server.as_str() != of.name())
        {
            let heads = self.heads(ReviewedServer { server: of.beside(server), ..of }).await?;
            let has_name = |one: &&Seen| {
                let state = heads.get(&one.digest).map(|head| head.state);
                one.list == Some(Listed::Tool) && state != Some(DefinitionState::Rejected)
            };
            let own = all.iter().filter(has_name);
            tools.extend(own.map(|one| (server.to_string(), one.name.clone())));
        }
        Ok(tools)
    }

    /// Puts trusted definitions under review that can be taken for a tool known by now, and returns
    /// the states of all of the server then.
    pub(crate) async fn store_doubted(
        &self,
        of: ReviewedServer<'_>,
        seen: &Arc<Vec<Seen>>,
        heads: HashMap<String, DefinitionHead>,
        beside: &OtherNames,
    ) -> Result<HashMap<String, DefinitionHead>, ReviewError> {
        let is_trusted = |head: &&DefinitionHead| head.state == DefinitionState::Pinned;
        let trusted = heads.values().filter(is_trusted).map(|head| head.digest.clone());
        let trusted: HashSet<_> = trusted.collect();
        if trusted.is_empty() || beside.later.is_empty() {
            return Ok(heads);
        }
        let (server, all, names) = (of.name().to_owned(), seen.clone(), beside.later.clone());
        let judging =
            move || judge::doubted(&server, &all, |one| trusted.contains(&one.digest), &names);
        let doubted = tokio::task::spawn_blocking(judging).await.map_err(ControlError::Bug)?;
        if doubted.is_empty() {
            return Ok(heads);
        }
        let told = NamesByState::new(doubted.iter().map(|one| (&*one.name, true)));
        let noted = self.note_reviewed(of, &told).await?;
        for one in doubted.iter().take(NAMES_SHOWN) {
            tell(of, one);
        }
        let whys: Vec<_> = doubted.into_iter().map(|one| (one.digest, one.why)).collect();
        let stored = self.store()?.definitions(of.server).doubt(&whys).await;
        stored.map_err(ControlError::Store)?;
        for one in noted {
            one.done().await;
        }
        self.heads(of).await
    }
}

/// Logs the other server and the command by which a human accepts.
fn tell(of: ReviewedServer<'_>, one: &Doubted) {
    let (server, digest) = (of.name(), &one.digest[..DIGEST_SHOWN.min(one.digest.len())]);
    let accept = match of.server {
        DefinitionsOf::Catalog(workspace, id) => {
            narthex("servers accept {} --catalog --digest {}", &[id, &digest])
                .in_workspace(workspace)
        }
        DefinitionsOf::Live(..) => {
            narthex("servers accept {} --live --digest {}", &[&server, &digest])
        }
    };
    tracing::warn!(
        server.name = server,
        definition.name = harmless(&one.name, NAME_SHOWN),
        like.server = harmless(&one.like_server, NAME_SHOWN),
        like.name = harmless(&one.like_name, NAME_SHOWN),
        "a tool that was accepted on first use is under review: its name is easily confused with a \
         tool of another server that is known now; if the tool is right, accept it with `{accept}`"
    );
}

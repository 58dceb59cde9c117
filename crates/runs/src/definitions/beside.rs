//! Names of tools of other servers, which definitions are held against (S24): known when something
//! is looked at first, or only later. What a human has not decided on is held back by either, so
//! that it is no matter which server listed first.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, PoisonError},
};

use narthex_control::ControlError;
use narthex_model::{Alias, ServerId, WorkspaceId};
use narthex_registry::Snapshot;
use narthex_screen::{Names, harmless};
use narthex_store::{DefinitionHead, DefinitionState, DefinitionsOf};
use sha2::{Digest, Sha256};
use tokio::sync::watch;

use super::{
    NAME_TOLD, Of, Told,
    judge::{self, Seen},
};
use crate::{RunError, Runs};

/// A tool of another server, with that one's name.
type Tool = (String, String);

/// What the definitions of a server are held against.
#[derive(Debug)]
pub(super) struct Beside {
    /// Only when they are new.
    first: Vec<Tool>,
    /// Also when they were taken on trust before.
    later: Vec<Tool>,
    names: Arc<Names>,
}

/// What is known of names.
#[derive(Debug, Default)]
pub(super) struct Named {
    /// Another number whenever the catalog of the workspace of the live configuration may have
    /// tools of other names.
    catalog: watch::Sender<u64>,
    /// The last names of all live servers: most runs begin beside the same.
    live: Mutex<Option<(NamesDigest, Arc<Names>)>>,
}

/// What a live server is looked at beside.
pub(super) type NamesDigest = [u8; 32];

/// These, to be asked what is like them, and that: there may be thousands.
async fn named(tools: Vec<Tool>) -> Result<(Vec<Tool>, Arc<Names>), RunError> {
    if tools.is_empty() {
        return Ok((tools, Arc::default()));
    }
    let naming = move || {
        let names = Names::new(tools.iter().map(|(server, name)| (&**server, &**name)));
        (tools, Arc::new(names))
    };
    let named = tokio::task::spawn_blocking(naming).await;
    Ok(named.map_err(ControlError::Bug)?)
}

impl Beside {
    /// All of them.
    pub(super) fn tools(&self) -> impl Iterator<Item = &Tool> {
        self.first.iter().chain(&self.later)
    }
}

impl Named {
    pub(super) fn number(&self) -> u64 {
        *self.catalog.borrow()
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<u64> {
        self.catalog.subscribe()
    }

    /// The names of all live servers, if they are these.
    fn live(&self, of: &NamesDigest) -> Option<Arc<Names>> {
        let last = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        last.as_ref().filter(|(known, _)| known == of).map(|(_, names)| names.clone())
    }

    fn note_live(&self, of: NamesDigest, names: &Arc<Names>) {
        let mut last = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        *last = Some((of, names.clone()));
    }
}

/// All that live servers list, also what is held back of it, but for one of them.
pub(super) fn live_tools(rows: &Snapshot, but: Option<&Alias>) -> Vec<Tool> {
    let others = rows.servers.iter().filter(|row| but.is_none() || row.alias.as_ref() != but);
    let tools = others.flat_map(|row| {
        let listed = row.pinned.as_ref().map_or(&row.inventory, |said| said.listed());
        listed.tools.iter().map(|tool| (row.name.clone(), tool.key.to_string()))
    });
    tools.collect()
}

/// What stands for these names, and for those of the catalog by its number.
pub(super) fn digest(tools: &[Tool], catalog: u64) -> NamesDigest {
    let mut hash = Sha256::new();
    hash.update(catalog.to_be_bytes());
    let mut tools: Vec<_> = tools.iter().collect();
    tools.sort();
    for text in tools.into_iter().flat_map(|(server, name)| [server, name]) {
        hash.update(text.len().to_be_bytes());
        hash.update(text);
    }
    hash.finalize().into()
}

impl Runs {
    /// What a server of the catalog is looked at beside, where its run has these tools, too.
    pub(super) async fn beside_catalog(
        &self,
        workspace: &WorkspaceId,
        first: Vec<Tool>,
    ) -> Result<Beside, RunError> {
        if !self.is_home(workspace) {
            return Ok(Beside { first, later: Vec::new(), names: Arc::default() });
        }
        let later = live_tools(&self.shared.gateway.registry().snapshot(), None);
        let (of, known) = (digest(&later, 0), &self.shared.decided.known);
        if let Some(names) = known.live(&of) {
            return Ok(Beside { first, later, names });
        }
        let (later, names) = named(later).await?;
        known.note_live(of, &names);
        Ok(Beside { first, later, names })
    }

    /// What a live server is looked at beside, of which others list these tools.
    pub(super) async fn beside_live(
        &self,
        alias: &Alias,
        mut later: Vec<Tool>,
    ) -> Result<Beside, RunError> {
        // One of the same name is most likely the same server.
        if let Ok(own) = ServerId::new(alias.as_str()) {
            let of = DefinitionsOf::Catalog(self.control().home(), &own);
            let catalog = self.store()?.definitions(of).other_tools().await;
            later.extend(catalog.map_err(ControlError::Store)?);
        }
        if let Some(built_in) = self.shared.gateway.built_in_inventory() {
            let tools = built_in.tools.iter().map(|tool| tool.key.to_string());
            later.extend(tools.map(|tool| (Alias::built_in().to_string(), tool)));
        }
        let (later, names) = named(later).await?;
        Ok(Beside { first: Vec::new(), later, names })
    }

    /// Has live servers looked at beside what the catalog has of this server now.
    pub(super) fn named(&self, of: Of<'_>) {
        if matches!(of.server, DefinitionsOf::Catalog(workspace, _) if self.is_home(workspace)) {
            self.shared.decided.known.catalog.send_modify(|number| *number += 1);
        }
    }

    /// Holds back what was taken on trust and can be taken for a tool that is known by now, and
    /// gives how all of the server stand then.
    pub(super) async fn keep_doubted(
        &self,
        of: Of<'_>,
        seen: &Arc<Vec<Seen>>,
        heads: HashMap<String, DefinitionHead>,
        beside: &Beside,
    ) -> Result<HashMap<String, DefinitionHead>, RunError> {
        let is_trusted = |head: &&DefinitionHead| head.state == DefinitionState::Pinned;
        let trusted = heads.values().filter(is_trusted).map(|head| head.digest.clone());
        let trusted: HashSet<_> = trusted.collect();
        if trusted.is_empty() || beside.later.is_empty() {
            return Ok(heads);
        }
        let (server, all, names) = (of.name().to_owned(), seen.clone(), beside.names.clone());
        let judging =
            move || judge::doubted(&server, &all, |one| trusted.contains(&one.digest), &names);
        let doubted = tokio::task::spawn_blocking(judging).await.map_err(ControlError::Bug)?;
        if doubted.is_empty() {
            return Ok(heads);
        }
        let told = Told::new(doubted.iter().map(|one| (&*one.name, true)));
        let noted = self.note_looked_at(of, &told).await?;
        for one in &doubted {
            tracing::warn!(
                server.name = of.name(),
                definition.name = harmless(&one.name, NAME_TOLD),
                "a tool that was taken on trust is held back: its name can be taken for one of \
                 another server that is known by now"
            );
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

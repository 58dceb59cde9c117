//! A server whose definitions are reviewed, and its events.

use narthex_audit::AuditEvent;
use narthex_control::By;
use narthex_model::{CatalogKind, RunId, ServerId, WorkspaceId};
use narthex_registry::PinnedServer;
use narthex_store::DefinitionsOf;

use crate::harmless;

/// The most stored definitions of one server; no run gets later ones.
pub(crate) const STORED_MAX: usize = 5000;
/// Number of names in an event, and the longest text of each, in characters.
pub(crate) const NAMES_SHOWN: usize = 50;
pub(crate) const NAME_SHOWN: usize = 100;

/// The server whose lists are looked at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReviewedServer<'a> {
    pub(crate) workspace: &'a WorkspaceId,
    pub(crate) run: RunId,
    pub(crate) server: DefinitionsOf<'a>,
    /// True if a definition that is the first of its name is shown although it is flagged.
    pub(crate) shows_flagged: bool,
}

impl<'a> ReviewedServer<'a> {
    /// A server of the catalog.
    pub(crate) fn catalog(
        workspace: &'a WorkspaceId,
        run: RunId,
        server: &'a PinnedServer,
    ) -> Self {
        let shows_flagged = server.shows_flagged;
        let server = DefinitionsOf::Catalog(workspace, &server.id);
        Self { workspace, run, server, shows_flagged }
    }

    /// Another server of the same catalog; for a live server, the server itself.
    pub(crate) fn beside(&self, server: &'a ServerId) -> DefinitionsOf<'a> {
        match self.server {
            DefinitionsOf::Catalog(workspace, _) => DefinitionsOf::Catalog(workspace, server),
            DefinitionsOf::Live(..) => self.server,
        }
    }

    /// The name of the server.
    pub(crate) fn name(&self) -> &'a str {
        name_of(self.server)
    }
}

/// The name of a server, in its catalog or its file.
pub(crate) fn name_of(server: DefinitionsOf<'_>) -> &str {
    match server {
        DefinitionsOf::Catalog(_, id) => id.as_str(),
        DefinitionsOf::Live(_, alias) => alias.as_str(),
    }
}

/// The key of the lock under which new definitions are stored. Live servers of one place share it,
/// since their names are compared with each other's.
pub(crate) fn turn_of(server: DefinitionsOf<'_>) -> String {
    match server {
        DefinitionsOf::Catalog(workspace, id) => format!("catalog {workspace} {id}"),
        DefinitionsOf::Live(place, _) => format!("live {place}"),
    }
}

/// Names of definitions, by their new state.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct NamesByState {
    pub(crate) pinned: Vec<String>,
    pub(crate) quarantined: Vec<String>,
}

impl NamesByState {
    /// Names, each with `true` if its definition is under review.
    pub(crate) fn new<'a>(all: impl Iterator<Item = (&'a str, bool)>) -> Self {
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
pub(crate) fn event(
    kind: &'static str,
    workspace: &WorkspaceId,
    server: DefinitionsOf<'_>,
    by: By,
    names: &[String],
) -> AuditEvent<'static> {
    let told: Vec<_> =
        names.iter().take(NAMES_SHOWN).map(|name| harmless(name, NAME_SHOWN)).collect();
    let event = AuditEvent::new(kind, by).in_workspace(workspace);
    let event = event.on(CatalogKind::Server.to_string(), name_of(server).to_owned());
    let event = match server {
        DefinitionsOf::Catalog(..) => event,
        DefinitionsOf::Live(file, _) => event.with("source", "live").with("file", file),
    };
    event.with("names", told).with("count", names.len())
}

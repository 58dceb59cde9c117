//! What a change of the catalog does to runs that there are (D10).

use narthex_model::{CatalogKind, WorkspaceId};
use narthex_registry::{CutReason, MountIdentity};
use narthex_resolve::ServerEntry;

use crate::{Control, keys::server_key};

impl Control {
    /// Has what an object says now count for the runs that there are, as far as it does (D10).
    pub(super) fn cut_through(
        &self,
        workspace: &WorkspaceId,
        kind: CatalogKind,
        (id, document): (&str, &str),
    ) {
        if kind == CatalogKind::Server && is_off(document) {
            let key = server_key(workspace, id);
            let is_meant = |identity: &MountIdentity| identity.server.as_ref() == Some(&key);
            self.cut(&CutReason::SwitchedOff, is_meant);
        }
        self.limits_changed(workspace, kind, (id, document));
    }
}

/// Whether a server is switched off (D10).
fn is_off(document: &str) -> bool {
    let parsed = ServerEntry::parse(document.as_bytes(), None);
    parsed.is_ok_and(|parsed| parsed.value.settings.disabled)
}

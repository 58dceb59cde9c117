//! The effect of a change of the catalog on active runs (D10).

use narthex_catalog::ServerEntry;
use narthex_model::{CatalogKind, WorkspaceId};
use narthex_store::Cut;

use crate::Control;

/// Applies the parts of a changed object that concern live runs at once: the disabling of a server
/// (D10), and limits.
pub(super) fn cut_through(
    control: &Control,
    workspace: &WorkspaceId,
    kind: CatalogKind,
    id: &str,
    document: &str,
) {
    if is_cut(kind, document) {
        control.cut(workspace, &Cut::Server(id.to_owned()));
    }
    control.limits_changed(workspace, kind, (id, document));
}

/// True if the object is a disabled server, which live runs lose at once (D10).
pub(super) fn is_cut(kind: CatalogKind, document: &str) -> bool {
    if kind != CatalogKind::Server {
        return false;
    }
    let parsed = ServerEntry::parse(document.as_bytes(), None);
    parsed.is_ok_and(|parsed| parsed.value.settings.disabled)
}

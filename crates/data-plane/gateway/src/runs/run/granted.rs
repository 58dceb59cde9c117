//! Maps a run's alias to the name that catalogs and grants refer to.

use narthex_model::Alias;

use super::RunView;

impl RunView {
    /// The id of an alias's server in the workspace's catalog; `None` for a server that is not of
    /// the catalog.
    pub(crate) fn catalog_id(&self, alias: &Alias) -> Option<&str> {
        let (workspace, id) = self.own.catalog(alias)?.split_once('/')?;
        (workspace == self.workspace.as_str()).then_some(id)
    }

    /// The name of a server in grants: its id in the catalog, whatever alias the run has for it, or
    /// the alias if the server is of no catalog (D14).
    #[must_use]
    pub fn granted_as(&self, alias: &Alias) -> Alias {
        if self.is_built_in(alias) {
            return Alias::built_in();
        }
        // Ids follow the rule of aliases.
        let id = self.catalog_id(alias).and_then(|id| Alias::new(id).ok());
        id.unwrap_or_else(|| alias.clone())
    }
}

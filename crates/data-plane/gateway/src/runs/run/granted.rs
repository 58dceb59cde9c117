//! Maps a run's alias to the server's name in catalogs and grants.

use narthex_model::Alias;

use super::RunView;

impl RunView {
    /// The id of an alias's server in the workspace's catalog; `None` for a server that is not of
    /// the catalog.
    pub(crate) fn catalog_id(&self, alias: &Alias) -> Option<&str> {
        let (workspace, id) = self.own.catalog(alias)?.split_once('/')?;
        (workspace == self.workspace.as_str()).then_some(id)
    }

    /// The name of a server in grants (D14): its id in the catalog, whatever the run's alias, or
    /// the alias of a server without a catalog.
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

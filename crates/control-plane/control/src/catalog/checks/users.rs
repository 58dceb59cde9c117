//! The objects that attach servers.

use std::collections::BTreeMap;

use narthex_model::CatalogKind;

use super::Workspace;

/// An object that attaches a server.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CatalogUser {
    /// Kind of the object: an agent or a capability.
    pub kind: CatalogKind,
    /// Name of the object.
    pub name: String,
}

impl Workspace {
    /// The objects that attach each server, by its id. An object is there once for a server.
    pub(in crate::catalog) fn users_of_servers(&self) -> BTreeMap<String, Vec<CatalogUser>> {
        let capabilities = self.catalog.capabilities.values();
        let capabilities = capabilities.map(|one| {
            let name = one.name.to_string();
            (CatalogUser { kind: CatalogKind::Capability, name }, &one.servers)
        });
        let agents = self.agents.values().map(|one| {
            let name = one.name.to_string();
            (CatalogUser { kind: CatalogKind::Agent, name }, &one.servers)
        });
        let mut users: BTreeMap<String, Vec<CatalogUser>> = BTreeMap::new();
        for (user, attached) in agents.chain(capabilities) {
            for attachment in attached.values() {
                let of_server = users.entry(attachment.reference.to_string()).or_default();
                if !of_server.contains(&user) {
                    of_server.push(user.clone());
                }
            }
        }
        users
    }
}

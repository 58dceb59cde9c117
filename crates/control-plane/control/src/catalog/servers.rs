//! The servers of a catalog together with the objects that use them.

use std::collections::BTreeMap;

use super::{CatalogObject, checks::CatalogUser};

/// All servers of a catalog, and their users.
#[derive(Debug, Clone, PartialEq)]
pub struct CatalogServers {
    /// The servers, in the order of their ids.
    pub servers: Vec<CatalogObject>,
    /// The objects that attach a server, by its id. Objects that cannot be read are not among them.
    pub users: BTreeMap<String, Vec<CatalogUser>>,
}

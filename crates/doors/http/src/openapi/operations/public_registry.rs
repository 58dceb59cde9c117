//! The catalog as a registry of servers, by the registry API v0.1 of the protocol.

use super::super::operation::{Content, Operation, get, of};
use crate::shapes;

const DELETED: &[&str] = &["registry_include_deleted"];

pub(super) const OPERATIONS: &[Operation] = &[
    get("/v0.1/servers", "registry_servers", "Lists the catalog's servers as a registry does")
        .asks(&[
            "registry_cursor",
            "limit",
            "registry_search",
            "registry_updated_since",
            "registry_version",
            "registry_include_deleted",
        ])
        .gives(of::<shapes::RegistryServers>()),
    get("/v0.1/servers/{name}/versions", "registry_versions", "Lists the one version of a server")
        .asks(DELETED)
        .gives(of::<shapes::RegistryServers>()),
    get(
        "/v0.1/servers/{name}/versions/{version}",
        "registry_version",
        "Shows a server as a registry does",
    )
    .asks(DELETED)
    .answers(200, Content::Json(of::<shapes::RegistryEntry>()), &["ETag"]),
];

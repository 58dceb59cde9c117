//! Addresses of the pages of the registry, and the path of servers in registries.

use crate::console::viewer::Viewer;

/// The path of a search in registries.
pub(super) const SERVERS: &str = "/v0.1/servers";

/// The page of one version of a server.
pub(super) fn of_server(viewer: &Viewer<'_>, name: &str, version: &str) -> String {
    viewer.path(&format!("registry/server?{}", pairs(&[("name", name), ("version", version)])))
}

/// The address of the search with these parameters.
pub(super) fn address(viewer: &Viewer<'_>, of: &[(&str, &str)]) -> String {
    viewer.path(&format!("registry?{}", pairs(of)))
}

/// Parameters of an address; empty ones are left out.
pub(super) fn pairs(of: &[(&str, &str)]) -> String {
    let mut written = form_urlencoded::Serializer::new(String::new());
    written.extend_pairs(of.iter().filter(|(_, value)| !value.is_empty()));
    written.finish()
}

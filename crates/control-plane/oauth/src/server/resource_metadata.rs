//! Metadata of the door as a protected resource (RFC 9728).

use serde_json::{Value, json};

use super::door::{Door, DoorPath};
use crate::scopes::{OFFLINE_ACCESS, Scopes};

/// Headers of each metadata document, which any web page may read.
pub const METADATA_HEADERS: [(&str, &str); 3] = [
    ("content-type", "application/json"),
    ("access-control-allow-origin", "*"),
    ("cache-control", "public, max-age=300"),
];

/// The authorization servers whose tokens open the door.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuthorizationServers {
    /// Narthex itself.
    Own,
    /// The company's own issuers, as they are written in the settings.
    External(Vec<String>),
}

impl AuthorizationServers {
    /// The issuers by name, as clients get them.
    #[must_use]
    pub fn issuers(&self, door: &Door) -> Vec<String> {
        match self {
            Self::Own => vec![door.issuer().to_owned()],
            Self::External(issuers) => issuers.clone(),
        }
    }
}

/// The metadata of the resource at a path of the door.
///
/// `scopes` are the scopes of ordinary work; a short list, since clients ask for all of them.
/// `offline_access` is left out, because it is no right at a resource.
#[must_use]
pub fn resource_metadata(
    door: &Door,
    path: &DoorPath,
    servers: &AuthorizationServers,
    scopes: &Scopes,
) -> Value {
    let scopes: Vec<_> = scopes.iter().filter(|scope| *scope != OFFLINE_ACCESS).collect();
    let mut document = json!({
        "resource": door.resource_url(path),
        "authorization_servers": servers.issuers(door),
        "bearer_methods_supported": ["header"],
        "resource_name": "narthex",
    });
    if !scopes.is_empty() {
        document["scopes_supported"] = json!(scopes);
    }
    document
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn door_r2_r3_the_document_names_the_resource_and_its_issuer() {
        let door = Door::new("https://narthex.example").unwrap();
        let scopes = Scopes::read("mcp offline_access").unwrap();
        let path = DoorPath::parse("/mcp/git").unwrap();
        let document = resource_metadata(&door, &path, &AuthorizationServers::Own, &scopes);
        let wanted = json!({
            "resource": "https://narthex.example/mcp/git",
            "authorization_servers": ["https://narthex.example"],
            "bearer_methods_supported": ["header"],
            "resource_name": "narthex",
            "scopes_supported": ["mcp"],
        });
        assert_eq!(document, wanted);
        assert_eq!(document["authorization_servers"][0], door.issuer());
    }

    #[test]
    fn door_r3_a_company_issuer_is_named_as_it_is_written() {
        let door = Door::new("https://narthex.example").unwrap();
        let servers = AuthorizationServers::External(vec!["https://id.example/".to_owned()]);
        let path = DoorPath::aggregated();
        let document = resource_metadata(&door, &path, &servers, &Scopes::default());
        assert_eq!(document["authorization_servers"], json!(["https://id.example/"]));
        assert_eq!(document.get("scopes_supported"), None);
    }

    #[test]
    fn door_r4_any_web_page_may_read_metadata() {
        assert!(METADATA_HEADERS.contains(&("access-control-allow-origin", "*")));
        assert!(METADATA_HEADERS.contains(&("content-type", "application/json")));
    }
}

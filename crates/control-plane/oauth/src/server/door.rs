//! The addresses of the door: its issuer, its resources, and the documents about them.

use std::fmt;

use serde::{Deserialize, Serialize};
use url::Url;

use crate::address::is_loopback;

/// The path under which the metadata of protected resources is found (RFC 9728, 3).
const OF_RESOURCES: &str = "/.well-known/oauth-protected-resource";
/// The paths under which the metadata of an authorization server is found (RFC 8414, 3, and OpenID
/// Connect Discovery, which older clients ask).
const OF_SERVERS: [&str; 2] =
    ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"];
/// The path of the door for all servers.
const AGGREGATED: &str = "/mcp";
/// The longest segment of a door's path, in bytes.
const SEGMENT_MAX: usize = 200;

/// The door at its public address, which is also the issuer of the authorization server.
///
/// Every address of a document comes from here, and never from the header `Host` of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Door {
    /// Scheme, host and port, without a slash at the end.
    origin: String,
    /// Further origins at which this machine's own clients reach the door.
    names: Vec<String>,
    /// The origin at which the client of a request reaches the door: one of the above.
    reached: String,
}

/// The path of one endpoint of the door: `/mcp`, `/mcp/ALIAS`, `/mcp/p/PROFILE`, or one of these
/// in a workspace, such as `/mcp/w/WORKSPACE` and `/mcp/w/WORKSPACE/ALIAS`.
///
/// A path says nothing about the existence of its server, so that strangers learn nothing from the
/// documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DoorPath(String);

/// The identifier of an endpoint of the door as a protected resource (RFC 8707, RFC 9728): its
/// public URL.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Resource(String);

/// A document that is served at a well-known path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WellKnown {
    /// The metadata of the protected resource at a path of the door.
    Resource(DoorPath),
    /// The metadata of the authorization server.
    AuthorizationServer,
}

/// The reason why a text is no public address of the door.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DoorError {
    /// The text is more or less than scheme, host and port.
    #[error("the public URL must be https://HOST or http://HOST, with a port if there is one")]
    NoOrigin,
    /// Tokens would cross a network in plain text.
    #[error("the public URL must be https, unless its host is `localhost` or a loopback address")]
    NotSecure,
}

/// The resource that a client names is none of the door (`invalid_target`, RFC 8707, 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the resource is no MCP endpoint of this server")]
pub struct UnknownResource;

impl Door {
    /// The door at the address of the setting `http.public_url`.
    ///
    /// # Errors
    /// When the text is no origin, or not a secure one.
    pub fn new(public_url: &str) -> Result<Self, DoorError> {
        let url = Url::parse(public_url).map_err(|_error| DoorError::NoOrigin)?;
        let is_bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
        let has_user = !url.username().is_empty() || url.password().is_some();
        if !matches!(url.scheme(), "http" | "https") || !is_bare || has_user {
            return Err(DoorError::NoOrigin);
        }
        if url.scheme() == "http" && !is_loopback(&url) {
            return Err(DoorError::NotSecure);
        }
        let origin = url.origin().ascii_serialization();
        Ok(Self { reached: origin.clone(), names: Vec::new(), origin })
    }

    /// The door with further origins, such as `http://127.0.0.1:7717`, by which its resources can
    /// be named. All names of a path mean one resource.
    #[must_use]
    pub fn with_names(self, names: impl IntoIterator<Item = String>) -> Self {
        let names = names.into_iter().filter(|name| *name != self.origin).collect();
        Self { names, ..self }
    }

    /// The door as the client of a request reaches it. The header `Host` chooses one of the known
    /// origins, and an unknown host counts as the first.
    #[must_use]
    pub fn reached_at(&self, host: &str) -> Self {
        let is_it = |name: &&String| {
            let authority = name.split_once("://").map_or("", |(_scheme, authority)| authority);
            authority.eq_ignore_ascii_case(host)
        };
        let reached = self.names.iter().find(is_it).unwrap_or(&self.origin).clone();
        Self { reached, ..self.clone() }
    }

    /// The identifier of the authorization server, without a slash at the end. It has the same
    /// bytes wherever it is written.
    #[must_use]
    pub fn issuer(&self) -> &str {
        &self.origin
    }

    /// The URL of a path of this server.
    #[must_use]
    pub fn at(&self, path: &str) -> String {
        format!("{}{path}", self.origin)
    }

    /// The resource at a path of the door.
    #[must_use]
    pub fn resource(&self, path: &DoorPath) -> Resource {
        Resource(self.at(&path.0))
    }

    /// The resource of the door for all servers.
    #[must_use]
    pub fn aggregated(&self) -> Resource {
        Resource(self.at(AGGREGATED))
    }

    /// The URL of a resource as its client wrote it: clients compare the two.
    #[must_use]
    pub fn resource_url(&self, path: &DoorPath) -> String {
        format!("{}{}", self.reached, path.0)
    }

    /// The resource that a client names in the parameter `resource` (RFC 8707). Upper and lower
    /// case of the host and a slash at the end make no difference.
    ///
    /// # Errors
    /// When it is no endpoint of the door.
    pub fn named(&self, text: &str) -> Result<Resource, UnknownResource> {
        let url = Url::parse(text).map_err(|_error| UnknownResource)?;
        let is_bare = url.query().is_none() && url.fragment().is_none();
        let has_user = !url.username().is_empty() || url.password().is_some();
        let origin = url.origin().ascii_serialization();
        let is_own = origin == self.origin || self.names.contains(&origin);
        if !is_own || !is_bare || has_user {
            return Err(UnknownResource);
        }
        DoorPath::parse(url.path()).map(|path| self.resource(&path)).ok_or(UnknownResource)
    }

    /// The address of the metadata of the resource at a path of the door.
    #[must_use]
    pub fn metadata_url(&self, path: &DoorPath) -> String {
        format!("{}{OF_RESOURCES}{}", self.reached, path.0)
    }
}

impl DoorPath {
    /// The path of the door for all servers.
    #[must_use]
    pub fn aggregated() -> Self {
        Self(AGGREGATED.to_owned())
    }

    /// Reads the path of a request; a slash at its end is left out. `None` if it is no path of an
    /// MCP endpoint.
    #[must_use]
    pub fn parse(path: &str) -> Option<Self> {
        let path = path.strip_suffix('/').unwrap_or(path);
        let below = path.strip_prefix(AGGREGATED)?;
        let mut segments = match below.strip_prefix('/') {
            Some(below) => below.split('/').collect::<Vec<_>>(),
            None if below.is_empty() => Vec::new(),
            None => return None,
        };
        if !segments.iter().all(|segment| is_segment(segment)) {
            return None;
        }
        if let ["w", _workspace, ..] = *segments {
            segments.drain(..2);
        }
        let is_endpoint = matches!(*segments, [] | [_] | ["p", _]);
        is_endpoint.then(|| Self(path.to_owned()))
    }

    /// The path, without a slash at its end.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The workspace that the path names, to which alone it leads.
    #[must_use]
    pub fn workspace(&self) -> Option<&str> {
        self.split().0
    }

    /// The profile at whose endpoint the path leads.
    #[must_use]
    pub fn profile(&self) -> Option<&str> {
        self.split().1.strip_prefix("/p/")
    }

    /// True for the endpoint of all servers, also that of a workspace.
    #[must_use]
    pub fn is_for_all(&self) -> bool {
        self.split().1.is_empty()
    }

    /// The workspace, and the rest of the path after it.
    fn split(&self) -> (Option<&str>, &str) {
        let below = self.0.strip_prefix(AGGREGATED).unwrap_or_default();
        let Some(rest) = below.strip_prefix("/w/") else { return (None, below) };
        match rest.find('/') {
            Some(at) => {
                let (workspace, rest) = rest.split_at(at);
                (Some(workspace), rest)
            }
            None => (Some(rest), ""),
        }
    }
}

fn is_segment(text: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~".contains(&b);
    let is_dots = matches!(text, "." | "..");
    (1..=SEGMENT_MAX).contains(&text.len()) && text.bytes().all(is_plain) && !is_dots
}

impl Resource {
    /// The identifier as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The path of the endpoint; `None` for a stored text that names none.
    #[must_use]
    pub fn path(&self) -> Option<DoorPath> {
        let (_scheme, rest) = self.0.split_once("://")?;
        rest.find('/').and_then(|at| DoorPath::parse(rest.split_at(at).1))
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl WellKnown {
    /// The document at the path of a request; `None` for other paths.
    ///
    /// A resource's metadata is found below its well-known path, and that of `/mcp` also at the
    /// root (RFC 9728, 3.1). The authorization server's is found at the root, and with the path of
    /// an endpoint inserted or before the well-known path, since clients of all these kinds exist.
    #[must_use]
    pub fn at(path: &str) -> Option<Self> {
        if let Some(rest) = path.strip_prefix(OF_RESOURCES) {
            let is_root = matches!(rest, "" | "/");
            let found = if is_root { Some(DoorPath::aggregated()) } else { DoorPath::parse(rest) };
            return found.map(Self::Resource);
        }
        let is_root_or_endpoint =
            |rest: &str| matches!(rest, "" | "/") || DoorPath::parse(rest).is_some();
        let inserted = OF_SERVERS.iter().filter_map(|known| path.strip_prefix(known));
        let appended = OF_SERVERS.iter().filter_map(|known| path.strip_suffix(known));
        let mut rests = inserted.chain(appended);
        rests.any(is_root_or_endpoint).then_some(Self::AuthorizationServer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn door() -> Door {
        Door::new("https://Narthex.example/").unwrap()
    }

    #[test]
    fn door_a1_the_issuer_is_the_origin_without_a_slash() {
        assert_eq!(door().issuer(), "https://narthex.example");
        let local = Door::new("http://localhost:7717").unwrap();
        assert_eq!(local.issuer(), "http://localhost:7717");
        for bad in ["narthex.example", "https://a.example/x", "https://a@b.example", "ftp://a"] {
            assert_eq!(Door::new(bad), Err(DoorError::NoOrigin), "{bad}");
        }
        assert_eq!(Door::new("http://a.example"), Err(DoorError::NotSecure));
    }

    #[test]
    fn door_r2_paths_of_endpoints_are_known_by_their_form() {
        let good = ["/mcp", "/mcp/git", "/mcp/p/work", "/mcp/w/team", "/mcp/w/team/git"];
        for path in good.into_iter().chain(["/mcp/w/team/p/work", "/mcp/p", "/mcp/w"]) {
            assert_eq!(DoorPath::parse(path).unwrap().as_str(), path);
            assert_eq!(DoorPath::parse(&format!("{path}/")).unwrap().as_str(), path);
        }
        let long = format!("/mcp/{}", "a".repeat(SEGMENT_MAX + 1));
        for bad in
            ["", "/", "/mcpx", "/mcp//", "/mcp/a/b", "/mcp/..", "/mcp/a%2Fb", "/mcp/\"", &long]
        {
            assert_eq!(DoorPath::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn door_r2_a_path_names_its_workspace_and_profile() {
        for (path, workspace, profile, is_for_all) in [
            ("/mcp", None, None, true),
            ("/mcp/git", None, None, false),
            ("/mcp/w", None, None, false),
            ("/mcp/p/work", None, Some("work"), false),
            ("/mcp/w/team", Some("team"), None, true),
            ("/mcp/w/team/git", Some("team"), None, false),
            ("/mcp/w/team/p", Some("team"), None, false),
            ("/mcp/w/team/p/work", Some("team"), Some("work"), false),
            // Names that look like parts of other paths.
            ("/mcp/w/p/work", Some("p"), None, false),
            ("/mcp/w/mcp/p/work", Some("mcp"), Some("work"), false),
        ] {
            let named = DoorPath::parse(path).unwrap();
            assert_eq!((named.workspace(), named.profile()), (workspace, profile), "{path}");
            assert_eq!(named.is_for_all(), is_for_all, "{path}");
            // A host that is called as the path of the door changes nothing.
            let door = Door::new("https://mcp").unwrap();
            assert_eq!(door.resource(&named).path(), Some(named), "{path}");
        }
    }

    #[test]
    fn door_r2_each_document_has_its_paths() {
        let resource = |path: &str| match WellKnown::at(path) {
            Some(WellKnown::Resource(path)) => Some(path.as_str().to_owned()),
            Some(WellKnown::AuthorizationServer) | None => None,
        };
        let known = "/.well-known/oauth-protected-resource";
        assert_eq!(resource(known).as_deref(), Some("/mcp"));
        assert_eq!(resource(&format!("{known}/")).as_deref(), Some("/mcp"));
        assert_eq!(resource(&format!("{known}/mcp/git")).as_deref(), Some("/mcp/git"));
        assert_eq!(resource(&format!("{known}/api")), None);
        assert_eq!(resource(&format!("{known}x")), None);
    }

    #[test]
    fn door_a1_the_server_is_described_at_both_well_known_paths() {
        for known in ["oauth-authorization-server", "openid-configuration"] {
            let known = format!("/.well-known/{known}");
            for path in [known.clone(), format!("{known}/mcp"), format!("{known}/mcp/git")] {
                assert_eq!(WellKnown::at(&path), Some(WellKnown::AuthorizationServer), "{path}");
            }
            let appended = format!("/mcp/git{known}");
            assert_eq!(WellKnown::at(&appended), Some(WellKnown::AuthorizationServer));
            assert_eq!(WellKnown::at(&format!("/api{known}")), None);
            assert_eq!(WellKnown::at(&format!("{known}/api")), None);
        }
    }

    #[test]
    fn door_r2_all_names_of_this_machine_mean_one_resource() {
        let names = ["http://localhost:7717", "http://127.0.0.1:7717"].map(str::to_owned);
        let door = Door::new("http://localhost:7717").unwrap().with_names(names);
        let (path, canonical) = (DoorPath::parse("/mcp/git").unwrap(), "http://localhost:7717");
        for (host, origin) in [
            ("localhost:7717", canonical),
            ("127.0.0.1:7717", "http://127.0.0.1:7717"),
            ("evil.example", canonical),
        ] {
            let reached = door.reached_at(host);
            assert_eq!(reached.resource_url(&path), format!("{origin}/mcp/git"));
            assert!(reached.metadata_url(&path).starts_with(origin));
            assert_eq!(reached.issuer(), canonical);
            assert_eq!(door.named(&reached.resource_url(&path)), Ok(door.resource(&path)));
        }
        assert_eq!(door.named("http://[::1]:7717/mcp"), Err(UnknownResource));
    }

    #[test]
    fn door_r5_a_named_resource_is_an_endpoint_of_this_door() {
        let named = |text: &str| door().named(text).map(|resource| resource.0);
        assert_eq!(named("https://NARTHEX.example/mcp/"), Ok(door().aggregated().0));
        assert_eq!(
            named("https://narthex.example:443/mcp/git"),
            Ok("https://narthex.example/mcp/git".to_owned())
        );
        for bad in [
            "",
            "https://narthex.example",
            "https://narthex.example/api",
            "http://narthex.example/mcp",
            "https://narthex.example:8443/mcp",
            "https://narthex.example/mcp?a=1",
            "https://narthex.example/mcp#a",
            "https://x@narthex.example/mcp",
            "https://evil.example/mcp",
        ] {
            assert_eq!(named(bad), Err(UnknownResource), "{bad}");
        }
    }
}

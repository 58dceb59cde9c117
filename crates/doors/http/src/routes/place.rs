//! The routes that are served at a path.

use http::Method;
use narthex_oauth::server::DoorPath;

use super::{Caching, ROUTES, Route, Target};

/// The routes that are served at one path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'p> {
    /// The routes of the path; at least one.
    routes: &'static [Route],
    /// The segments of the path that match braces, still encoded. The workspace of an MCP endpoint
    /// is not among them.
    pub(crate) segments: Segments<'p>,
    /// The workspace that the path of an MCP endpoint names, still encoded.
    pub(crate) workspace: Option<&'p str>,
}

/// The beginning of the paths of MCP endpoints that name a workspace.
const IN_WORKSPACE: &str = "/mcp/w/{workspace}";

/// The segments that match the braces of a template, in their order; empty strings for missing
/// braces.
pub(crate) type Segments<'p> = [&'p str; 3];

/// Finds the routes of a path. MCP endpoints are also found with a slash at the end, which people
/// and clients often add.
pub(crate) fn find(path: &str) -> Option<Place<'_>> {
    let path = match path.strip_suffix('/') {
        Some(bare) if bare == "/mcp" || is_below_mcp(bare) => bare,
        _ => path,
    };
    let matching = |route: &Route| route.matches(path);
    let (first, segments) =
        ROUTES.iter().enumerate().find_map(|(index, route)| Some((index, matching(route)?)))?;
    let is_same = |route: &&Route| route.template == ROUTES[first].template;
    let same = ROUTES[first..].iter().take_while(is_same).count();
    let routes = &ROUTES[first..first + same];
    if ROUTES[first].template.starts_with(IN_WORKSPACE) {
        let [workspace, alias, tool] = segments;
        return Some(Place { routes, segments: [alias, tool, ""], workspace: Some(workspace) });
    }
    Some(Place { routes, segments, workspace: None })
}

/// True for the path of a public document, which any cache may store (C12).
pub(crate) fn is_public_document(path: &str) -> bool {
    find(path).is_some_and(|place| place.first().caching == Caching::PublicDocument)
}

/// True if the path is `/mcp/` and one more segment, or `/mcp/p/` and one more, or one of these or
/// nothing after `/mcp/w/` and a workspace.
fn is_below_mcp(path: &str) -> bool {
    let Some(below) = path.strip_prefix("/mcp/") else { return false };
    let segments: Vec<_> = below.split('/').collect();
    let rest = match segments.as_slice() {
        ["w", _workspace, rest @ ..] => rest,
        all => all,
    };
    !segments.contains(&"") && matches!(rest, [] | [_] | ["p", _])
}

impl Place<'_> {
    /// The route for a method.
    pub(crate) fn route(&self, method: &Method) -> Option<&'static Route> {
        self.routes.iter().find(|route| route.takes(method))
    }

    /// The first route of the place, which is often its only one.
    pub(crate) fn first(&self) -> &'static Route {
        &self.routes[0]
    }

    /// The MCP endpoint of a request to this path; `None` for other routes. A posted call belongs
    /// to the endpoint of its server.
    pub(crate) fn endpoint(&self, path: &str) -> Option<DoorPath> {
        match self.first().target {
            Target::ToolCall => DoorPath::parse(path.rsplit_once("/tools/")?.0),
            target if target.is_mcp() => DoorPath::parse(path),
            _ => None,
        }
    }

    /// All methods of the place.
    pub(crate) fn allowed(&self) -> String {
        self.routes.iter().map(|route| route.methods).collect::<Vec<_>>().join(", ")
    }
}

impl Target {
    /// True for an MCP endpoint.
    pub(crate) fn is_mcp(self) -> bool {
        matches!(self, Self::Aggregated | Self::Transparent | Self::InProfile)
    }
}

impl Route {
    fn takes(&self, method: &Method) -> bool {
        self.methods.split(", ").any(|one| one == method.as_str())
    }

    fn matches<'p>(&self, path: &'p str) -> Option<Segments<'p>> {
        let mut found = [""; 3];
        let mut free = found.iter_mut();
        // The rest of the path is one segment, even if it has slashes.
        let count = match self.template.ends_with("/{path}") {
            true => self.template.split('/').count(),
            false => usize::MAX,
        };
        let (mut template, mut path) = (self.template.split('/'), path.splitn(count, '/'));
        loop {
            match (template.next(), path.next()) {
                (None, None) => return Some(found),
                (Some(wanted), Some(segment)) if wanted.starts_with('{') && !segment.is_empty() => {
                    *free.next()? = segment;
                }
                (Some(wanted), Some(segment)) if wanted == segment => {}
                _ => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_paths_find_their_route_and_unknown_paths_find_none() {
        let found = |path| find(path).map(|place| (place.first().template, place.segments));
        let table = [
            ("/mcp", "/mcp", ["", "", ""]),
            ("/mcp/", "/mcp", ["", "", ""]),
            ("/mcp/git", "/mcp/{alias}", ["git", "", ""]),
            ("/mcp/git/", "/mcp/{alias}", ["git", "", ""]),
            ("/mcp/p", "/mcp/{alias}", ["p", "", ""]),
            ("/mcp/p/work", "/mcp/p/{profile}", ["work", "", ""]),
            ("/mcp/p/work/", "/mcp/p/{profile}", ["work", "", ""]),
            ("/mcp/git/tools/a%2Fb", "/mcp/{alias}/tools/{tool}", ["git", "a%2Fb", ""]),
            ("/vfs/mnt//a?/", "/vfs/{path}", ["mnt//a?/", "", ""]),
            ("/api/tools", "/api/tools", ["", "", ""]),
            ("/api/servers/a%2Fb", "/api/servers/{name}", ["a%2Fb", "", ""]),
            ("/api/servers/a/logs", "/api/servers/{name}/logs", ["a", "", ""]),
            ("/api/servers/logs", "/api/servers/{name}", ["logs", "", ""]),
            ("/v0.1/servers/w%2Fa/versions", "/v0.1/servers/{name}/versions", ["w%2Fa", "", ""]),
            ("/api/workspaces/w/secrets", "/api/workspaces/{workspace}/secrets", ["w", "", ""]),
            (
                "/api/workspaces/w/secrets/A",
                "/api/workspaces/{workspace}/secrets/{name}",
                ["w", "A", ""],
            ),
            (
                "/api/workspaces/w/agents/a",
                "/api/workspaces/{workspace}/agents/{id}",
                ["w", "a", ""],
            ),
            (
                "/api/workspaces/w/agents/a/mcp-attachments/b",
                "/api/workspaces/{workspace}/agents/{id}/mcp-attachments/{alias}",
                ["w", "a", "b"],
            ),
        ];
        for (path, template, segments) in table {
            assert_eq!(found(path), Some((template, segments)), "{path}");
        }
        let unknown = [
            "/",
            "/mcp//",
            "/mcp/a//",
            "/mcp/a/b",
            "/mcp/p//",
            "/mcp/p/work/x",
            "/mcp/w//",
            "/mcp/w//git",
            "/mcp/w/team//",
            "/mcp/w/team/p/work/x",
            "/mcp/a/tools/b/",
            "/mcpx",
            "/MCP",
            "/healthz/",
            "//mcp",
            "",
        ];
        let more = ["/api/servers/", "/api/servers//logs", "/api/servers/a/b", "/api/events/"];
        let nested = ["/api/workspaces/", "/api/workspaces//secrets", "/api/workspaces/w/secrets/"];
        for path in unknown.into_iter().chain(more).chain(nested) {
            assert_eq!(found(path), None, "{path}");
        }
    }

    #[test]
    fn door_r2_paths_in_a_workspace_find_the_routes_of_their_endpoints() {
        for (path, template, segments) in [
            ("/mcp/w", "/mcp/{alias}", ["w", "", ""]),
            ("/mcp/w/team", "/mcp/w/{workspace}", ["", "", ""]),
            ("/mcp/w/team/", "/mcp/w/{workspace}", ["", "", ""]),
            ("/mcp/w/team/git", "/mcp/w/{workspace}/{alias}", ["git", "", ""]),
            ("/mcp/w/team/git/", "/mcp/w/{workspace}/{alias}", ["git", "", ""]),
            ("/mcp/w/team/p/work/", "/mcp/w/{workspace}/p/{profile}", ["work", "", ""]),
            (
                "/mcp/w/team/git/tools/log",
                "/mcp/w/{workspace}/{alias}/tools/{tool}",
                ["git", "log", ""],
            ),
            // A workspace that is called as a part of other paths.
            ("/mcp/w/tools/log", "/mcp/w/{workspace}/{alias}", ["log", "", ""]),
        ] {
            let found = find(path).map(|place| (place.first().template, place.segments));
            assert_eq!(found, Some((template, segments)), "{path}");
        }
    }

    /// R2: each MCP endpoint is a resource of its own, and a posted call is one of its server's.
    #[test]
    fn door_r2_each_endpoint_is_the_resource_of_its_path() {
        let endpoint = |path| {
            let place = find(path).unwrap();
            let named = place.workspace.map(str::to_owned);
            (place.endpoint(path).map(|path| path.as_str().to_owned()), named)
        };
        for (path, resource, workspace) in [
            ("/mcp", "/mcp", None),
            ("/mcp/git/", "/mcp/git", None),
            ("/mcp/p/work", "/mcp/p/work", None),
            ("/mcp/git/tools/a%2Fb", "/mcp/git", None),
            ("/mcp/tools/tools/tools", "/mcp/tools", None),
            ("/mcp/w/team", "/mcp/w/team", Some("team")),
            ("/mcp/w/team/git", "/mcp/w/team/git", Some("team")),
            ("/mcp/w/team/p/work", "/mcp/w/team/p/work", Some("team")),
            ("/mcp/w/team/git/tools/log", "/mcp/w/team/git", Some("team")),
        ] {
            let wanted = (Some(resource.to_owned()), workspace.map(str::to_owned));
            assert_eq!(endpoint(path), wanted, "{path}");
        }
        assert_eq!(endpoint("/api/status"), (None, None));
    }

    #[test]
    fn a_path_has_the_methods_of_all_its_rows() {
        let place = find("/api/servers/a").unwrap();
        assert_eq!(place.allowed(), "GET, HEAD, PUT, PATCH, DELETE");
        let target = |method| place.route(&method).map(|route| route.target);
        assert_eq!(target(Method::GET), Some(Target::Server));
        assert_eq!(target(Method::PATCH), Some(Target::ServerEntry));
        assert_eq!(target(Method::POST), None);
    }
}

//! The table of everything that is served. What is not in it does not exist.

use http::Method;
use narthex_model::CatalogKind;

/// One place that is served, with some of its methods.
#[derive(Debug, Clone, Copy)]
pub struct Route {
    /// The path; a segment in braces stands for any one segment. There are two of these at most.
    pub template: &'static str,
    /// The methods, as the header `Allow` lists them.
    pub methods: &'static str,
    /// Who may come in.
    pub access: Access,
    pub(crate) target: Target,
}

/// Who may come in at a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Anybody: only health, which says nothing else.
    Open,
    /// The bearer of a run's token.
    Client,
    /// The bearer of a run's token or of the admin token.
    Operator,
    /// The bearer of the admin token alone: an agent must not switch servers off, change them or
    /// read what they write to stderr.
    Admin,
}

/// What is behind a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    Health,
    Ready,
    Metrics,
    Status,
    Tools,
    Aggregated,
    Transparent,
    Servers,
    Server,
    ServerEntry,
    Disable,
    Enable,
    Reconnect,
    Reauthorize,
    Test,
    Logs,
    Reload,
    Files,
    Events,
    Runs,
    Run,
    Sessions,
    Session,
    Secrets,
    Secret,
    RotateKey,
    Objects(CatalogKind),
    Object(CatalogKind),
    Limits,
    Usage,
    Validate,
    Preview,
}

const READ: &str = "GET, HEAD";

/// Everything that is served. Rows of one path stand together.
pub const ROUTES: [Route; 37] = [
    route("/mcp", "GET, POST, DELETE", Access::Client, Target::Aggregated),
    route("/mcp/{alias}", "GET, POST, DELETE", Access::Client, Target::Transparent),
    route("/healthz", READ, Access::Open, Target::Health),
    route("/readyz", READ, Access::Open, Target::Ready),
    route("/metrics", READ, Access::Operator, Target::Metrics),
    route("/api/status", READ, Access::Operator, Target::Status),
    route("/api/tools", READ, Access::Operator, Target::Tools),
    route("/api/servers", READ, Access::Operator, Target::Servers),
    route("/api/servers/{name}", READ, Access::Operator, Target::Server),
    route("/api/servers/{name}", "PUT, PATCH, DELETE", Access::Admin, Target::ServerEntry),
    route("/api/servers/{name}/disable", "POST", Access::Admin, Target::Disable),
    route("/api/servers/{name}/enable", "POST", Access::Admin, Target::Enable),
    route("/api/servers/{name}/reconnect", "POST", Access::Admin, Target::Reconnect),
    route("/api/servers/{name}/reauthorize", "POST", Access::Admin, Target::Reauthorize),
    route("/api/servers/{name}/test", "POST", Access::Admin, Target::Test),
    route("/api/servers/{name}/logs", READ, Access::Admin, Target::Logs),
    route("/api/reload", "POST", Access::Admin, Target::Reload),
    route("/api/files", READ, Access::Admin, Target::Files),
    route("/api/events", READ, Access::Operator, Target::Events),
    // A run creates its children here, and sees none.
    route("/api/workspaces/{workspace}/runs", "POST", Access::Operator, Target::Runs),
    route("/api/workspaces/{workspace}/runs", READ, Access::Admin, Target::Runs),
    route("/api/workspaces/{workspace}/runs/{id}", "GET, HEAD, DELETE", Access::Admin, Target::Run),
    route("/api/workspaces/{workspace}/sessions", READ, Access::Admin, Target::Sessions),
    route(
        "/api/workspaces/{workspace}/sessions/{id}",
        "GET, HEAD, DELETE",
        Access::Admin,
        Target::Session,
    ),
    route("/api/workspaces/{workspace}/secrets", READ, Access::Admin, Target::Secrets),
    // There is no way to read one (X-M21).
    route(
        "/api/workspaces/{workspace}/secrets/{name}",
        "PUT, DELETE",
        Access::Admin,
        Target::Secret,
    ),
    route("/api/secrets/rotate-key", "POST", Access::Admin, Target::RotateKey),
    objects("/api/workspaces/{workspace}/mcp-servers", CatalogKind::Server),
    object("/api/workspaces/{workspace}/mcp-servers/{id}", CatalogKind::Server),
    objects("/api/workspaces/{workspace}/capabilities", CatalogKind::Capability),
    object("/api/workspaces/{workspace}/capabilities/{id}", CatalogKind::Capability),
    objects("/api/workspaces/{workspace}/agents", CatalogKind::Agent),
    object("/api/workspaces/{workspace}/agents/{id}", CatalogKind::Agent),
    route("/api/workspaces/{workspace}/limits", "GET, HEAD, PUT", Access::Admin, Target::Limits),
    route("/api/workspaces/{workspace}/usage", READ, Access::Admin, Target::Usage),
    route("/api/workspaces/{workspace}/validate", "POST", Access::Admin, Target::Validate),
    route("/api/workspaces/{workspace}/preview", "POST", Access::Admin, Target::Preview),
];

const fn route(
    template: &'static str,
    methods: &'static str,
    access: Access,
    target: Target,
) -> Route {
    Route { template, methods, access, target }
}

/// The objects of a kind. Even who reads them is an operator: which servers there are tells much of
/// a workspace (X-E14).
const fn objects(template: &'static str, kind: CatalogKind) -> Route {
    route(template, "GET, HEAD, POST", Access::Admin, Target::Objects(kind))
}

const fn object(template: &'static str, kind: CatalogKind) -> Route {
    route(template, "GET, HEAD, PUT, PATCH, DELETE", Access::Admin, Target::Object(kind))
}

/// What is served at one path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'p> {
    /// At least one.
    routes: &'static [Route],
    /// What stands in the path for the braces, as it was sent.
    pub(crate) segments: Segments<'p>,
}

/// What stands for the first braces of a template, and for the second; empty if there are none.
pub(crate) type Segments<'p> = [&'p str; 2];

/// The place of a path.
pub(crate) fn find(path: &str) -> Option<Place<'_>> {
    let matching = |route: &Route| route.matches(path);
    let (first, segments) =
        ROUTES.iter().enumerate().find_map(|(index, route)| Some((index, matching(route)?)))?;
    let same = ROUTES[first..].iter().take_while(|route| matching(route).is_some()).count();
    Some(Place { routes: &ROUTES[first..first + same], segments })
}

impl Place<'_> {
    /// The route for a method.
    pub(crate) fn route(&self, method: &Method) -> Option<&'static Route> {
        self.routes.iter().find(|route| route.takes(method))
    }

    /// The place's only route, or the first.
    pub(crate) fn first(&self) -> &'static Route {
        &self.routes[0]
    }

    /// All of its methods.
    pub(crate) fn allowed(&self) -> String {
        self.routes.iter().map(|route| route.methods).collect::<Vec<_>>().join(", ")
    }
}

impl Route {
    fn takes(&self, method: &Method) -> bool {
        self.methods.split(", ").any(|one| one == method.as_str())
    }

    fn matches<'p>(&self, path: &'p str) -> Option<Segments<'p>> {
        let mut found = [""; 2];
        let mut free = found.iter_mut();
        let (mut template, mut path) = (self.template.split('/'), path.split('/'));
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
    fn paths_find_their_route_and_nothing_else_does() {
        let found = |path| find(path).map(|place| (place.first().template, place.segments));
        let table = [
            ("/mcp", "/mcp", ["", ""]),
            ("/mcp/git", "/mcp/{alias}", ["git", ""]),
            ("/api/tools", "/api/tools", ["", ""]),
            ("/api/servers/a%2Fb", "/api/servers/{name}", ["a%2Fb", ""]),
            ("/api/servers/a/logs", "/api/servers/{name}/logs", ["a", ""]),
            ("/api/servers/logs", "/api/servers/{name}", ["logs", ""]),
            ("/api/workspaces/w/secrets", "/api/workspaces/{workspace}/secrets", ["w", ""]),
            (
                "/api/workspaces/w/secrets/A",
                "/api/workspaces/{workspace}/secrets/{name}",
                ["w", "A"],
            ),
            ("/api/workspaces/w/agents/a", "/api/workspaces/{workspace}/agents/{id}", ["w", "a"]),
        ];
        for (path, template, segments) in table {
            assert_eq!(found(path), Some((template, segments)), "{path}");
        }
        let unknown = ["/", "/mcp/", "/mcp/a/b", "/mcpx", "/MCP", "/healthz/", "//mcp", ""];
        let more = ["/api/servers/", "/api/servers//logs", "/api/servers/a/b", "/api/events/"];
        let nested =
            ["/api/workspaces/w", "/api/workspaces//secrets", "/api/workspaces/w/secrets/"];
        for path in unknown.into_iter().chain(more).chain(nested) {
            assert_eq!(found(path), None, "{path}");
        }
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

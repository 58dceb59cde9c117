//! The table of everything that is served. What is not in it does not exist.

/// One place that is served.
#[derive(Debug, Clone, Copy)]
pub struct Route {
    /// The path; a last segment in braces stands for any one segment.
    pub template: &'static str,
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
}

/// Everything that is served.
pub const ROUTES: [Route; 7] = [
    route("/mcp", Access::Client, Target::Aggregated),
    route("/mcp/{alias}", Access::Client, Target::Transparent),
    route("/healthz", Access::Open, Target::Health),
    route("/readyz", Access::Open, Target::Ready),
    route("/metrics", Access::Operator, Target::Metrics),
    route("/api/status", Access::Operator, Target::Status),
    route("/api/tools", Access::Operator, Target::Tools),
];

const fn route(template: &'static str, access: Access, target: Target) -> Route {
    Route { template, access, target }
}

/// The route of a path, and what stands in the place of the braces.
pub(crate) fn find(path: &str) -> Option<(&'static Route, &str)> {
    ROUTES.iter().find_map(|route| Some((route, route.matches(path)?)))
}

impl Route {
    fn matches<'p>(&self, path: &'p str) -> Option<&'p str> {
        let Some(fixed) = self.template.find('{') else {
            return (self.template == path).then_some("");
        };
        let rest = path.strip_prefix(&self.template[..fixed])?;
        (!rest.is_empty() && !rest.contains('/')).then_some(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_find_their_route_and_nothing_else_does() {
        let found = |path| find(path).map(|(route, rest)| (route.template, rest));
        assert_eq!(found("/mcp"), Some(("/mcp", "")));
        assert_eq!(found("/mcp/git"), Some(("/mcp/{alias}", "git")));
        assert_eq!(found("/api/tools"), Some(("/api/tools", "")));
        for path in ["/", "/mcp/", "/mcp/a/b", "/mcpx", "/MCP", "/healthz/", "//mcp", ""] {
            assert_eq!(found(path), None, "{path}");
        }
    }
}

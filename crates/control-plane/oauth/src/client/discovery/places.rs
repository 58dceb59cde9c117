//! Places of metadata documents, in the order in which they are tried.

use url::Url;

const RESOURCE: &str = "/.well-known/oauth-protected-resource";
const SERVER: &str = "/.well-known/oauth-authorization-server";
const OPENID: &str = "/.well-known/openid-configuration";

/// Places of a resource's metadata (RFC 9728, 3.1), without that of a challenge: with the path
/// after the suffix, then for the whole host, then below the resource's own URL.
pub(super) fn of_resource(server: &Url) -> Vec<Url> {
    let path = path(server);
    distinct(
        server,
        [format!("{RESOURCE}{path}"), RESOURCE.to_owned(), format!("{path}{RESOURCE}")],
    )
}

/// Places of an authorization server's metadata (RFC 8414, 3.1; OpenID Connect Discovery, 4.1). An
/// issuer with a path may also have its document for the whole host.
pub(super) fn of_issuer(issuer: &Url) -> Vec<Url> {
    let path = path(issuer);
    let all = [
        format!("{SERVER}{path}"),
        format!("{OPENID}{path}"),
        format!("{path}{OPENID}"),
        SERVER.to_owned(),
    ];
    distinct(issuer, all)
}

fn distinct(base: &Url, paths: impl IntoIterator<Item = String>) -> Vec<Url> {
    let mut places: Vec<Url> = Vec::new();
    for path in paths {
        let mut url = base.clone();
        url.set_path(&path);
        url.set_query(None);
        url.set_fragment(None);
        if !places.contains(&url) {
            places.push(url);
        }
    }
    places
}

/// A path without the slash at its end.
fn path(url: &Url) -> &str {
    url.path().trim_end_matches('/')
}

/// The identifier of a server without metadata: its URL without query, fragment and the slash at
/// its end.
pub(super) fn identifier(server: &Url) -> String {
    format!("{}{}", server.origin().ascii_serialization(), path(server))
}

/// True if a resource is a server, or a parent of it on the same origin. Queries do not take part.
pub(super) fn covers(resource: &str, server: &Url) -> bool {
    let Ok(resource) = Url::parse(resource) else { return false };
    let rest = path(server).strip_prefix(path(&resource));
    // `/mcp` is no parent of `/mcp2`.
    let is_parent = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    is_parent && resource.origin() == server.origin()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    fn texts(places: &[Url]) -> Vec<&str> {
        places.iter().map(Url::as_str).collect()
    }

    /// X-E33.
    #[test]
    fn oauth_c3_places_of_a_resource_in_their_order() {
        assert_eq!(
            texts(&of_resource(&url("https://a.example:8443/v1/mcp/?key=s3cret#x"))),
            [
                "https://a.example:8443/.well-known/oauth-protected-resource/v1/mcp",
                "https://a.example:8443/.well-known/oauth-protected-resource",
                "https://a.example:8443/v1/mcp/.well-known/oauth-protected-resource",
            ]
        );
        let root = "https://a.example/.well-known/oauth-protected-resource";
        assert_eq!(texts(&of_resource(&url("https://a.example"))), [root]);
    }

    #[test]
    fn oauth_c5_places_of_an_issuer_in_their_order() {
        assert_eq!(
            texts(&of_issuer(&url("https://a.example/tenant"))),
            [
                "https://a.example/.well-known/oauth-authorization-server/tenant",
                "https://a.example/.well-known/openid-configuration/tenant",
                "https://a.example/tenant/.well-known/openid-configuration",
                "https://a.example/.well-known/oauth-authorization-server",
            ]
        );
        assert_eq!(
            texts(&of_issuer(&url("https://a.example/"))),
            [
                "https://a.example/.well-known/oauth-authorization-server",
                "https://a.example/.well-known/openid-configuration",
            ]
        );
    }

    #[test]
    fn oauth_c4_a_resource_is_the_server_or_its_parent() {
        let server = url("https://a.example/v1/mcp?key=1");
        for parent in [
            "https://a.example",
            "https://a.example/",
            "https://A.example:443/v1",
            "https://a.example/v1/mcp",
            "https://a.example/v1/mcp/",
            "https://a.example/v1/mcp?other=2",
        ] {
            assert!(covers(parent, &server), "{parent}");
        }
        for other in [
            "http://a.example/v1/mcp",
            "https://b.example/v1/mcp",
            "https://a.example:444/v1/mcp",
            "https://a.example/v1/mc",
            "https://a.example/v1/mcp/x",
            "https://a.example/v2",
            "urn:x",
            "",
        ] {
            assert!(!covers(other, &server), "{other}");
        }
    }

    proptest! {
        #[test]
        fn a_server_is_covered_by_its_own_identifier_and_keeps_its_query(
            path in "(/[a-z0-9%.]{0,6}){0,4}",
            query in "[a-z=&]{0,9}",
        ) {
            let server = url(&format!("https://a.example{path}?{query}"));
            let identifier = identifier(&server);
            prop_assert!(covers(&identifier, &server), "{identifier} {server}");
            prop_assert!(!identifier.contains('?') && !identifier.ends_with('/'));
            for place in of_resource(&server).iter().chain(&of_issuer(&server)) {
                prop_assert_eq!(place.origin(), server.origin());
                prop_assert!(place.query().is_none());
            }
        }
    }
}

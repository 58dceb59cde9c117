//! Tests of browsers' cross-origin requests: pages of allowed origins can use the door, others
//! cannot.

use http::{HeaderMap, Method, StatusCode};
use serde_json::json;

use super::world::{World, initialize};

const ORIGIN: &str = "http://localhost:6274";

/// The headers that the inspector's client sends, and one that is derived from a tool's argument.
const WANTED: &str = "authorization,content-type,last-event-id,mcp-method,mcp-name,\
                      mcp-param-region,mcp-protocol-version,mcp-session-id";

async fn world() -> World {
    World::with_options(|options| options.allowed_origins = vec![format!("{ORIGIN}/")]).await
}

fn header<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name).map(|value| value.to_str().unwrap())
}

/// I-M32: a browser's preflight request, without a token, is answered with all that it needs.
#[tokio::test]
async fn i_m32_a_preflight_of_an_allowed_origin_is_answered() {
    let world = world().await;
    for path in ["/mcp", "/mcp/fixture", "/api/servers", "/nowhere"] {
        let preflight = world
            .request(Method::OPTIONS, path)
            .header("authorization", "")
            .header("origin", ORIGIN)
            .header("access-control-request-method", "POST")
            .header("access-control-request-private-network", "true")
            .header("access-control-request-headers", WANTED);
        let answer = preflight.send().await;
        assert_eq!((answer.status, answer.text()), (StatusCode::NO_CONTENT, ""), "{path}");
        let has = |name| header(&answer.headers, name);
        assert_eq!(has("access-control-allow-origin"), Some(ORIGIN));
        assert_eq!(has("access-control-allow-headers"), Some(WANTED));
        assert!(has("access-control-allow-methods").is_some_and(|all| all.contains("DELETE")));
        assert_eq!(has("access-control-allow-private-network"), Some("true"));
        assert_eq!(has("access-control-allow-credentials"), None, "no cookies");
        assert!(has("vary").is_some_and(|vary| vary.starts_with("Origin")));
    }
    for (origin, status) in [("http://localhost:6275", 403), ("null", 403), ("", 401)] {
        let preflight = world
            .request(Method::OPTIONS, "/mcp")
            .header("authorization", "")
            .header("origin", origin)
            .header("access-control-request-method", "POST");
        let answer = preflight.send().await;
        assert_eq!(answer.status.as_u16(), status, "{origin}");
        assert_eq!(header(&answer.headers, "access-control-allow-origin"), None, "{origin}");
    }
}

/// I-M32: a page can read every answer, including refusals, and the session's id.
#[tokio::test]
async fn i_m32_a_page_of_an_allowed_origin_uses_a_session() {
    let world = world().await;
    let opened = world.post("/mcp", initialize("2025-11-25")).header("origin", ORIGIN);
    let opened = opened.send().await;
    assert_eq!(opened.status, StatusCode::OK);
    assert_eq!(header(&opened.headers, "access-control-allow-origin"), Some(ORIGIN));
    let exposed = header(&opened.headers, "access-control-expose-headers").unwrap();
    let session = header(&opened.headers, "mcp-session-id").unwrap();
    assert!(exposed.contains("Mcp-Session-Id") && exposed.contains("WWW-Authenticate"));
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let listed = world.legacy("/mcp", session, &list).header("origin", ORIGIN).send().await;
    assert!(listed.json()["result"]["tools"].is_array(), "{}", listed.text());
    let refused = world.post("/mcp", "{}").header("origin", ORIGIN).header("authorization", "");
    let refused = refused.send().await;
    assert_eq!(refused.status, StatusCode::UNAUTHORIZED);
    assert_eq!(header(&refused.headers, "access-control-allow-origin"), Some(ORIGIN));
    let plain = world.post("/mcp", initialize("2025-11-25")).send().await;
    assert_eq!(header(&plain.headers, "access-control-allow-origin"), None);
}

/// I-M32: pages of other origins cannot use the sign-in routes.
#[tokio::test]
async fn i_m32_preflights_of_sign_in_routes_are_not_allowed() {
    let world = world().await;
    let mut count = 0;
    for route in narthex_http::ROUTES {
        if matches!(route.access, narthex_http::Access::Own(_)) && !route.template.contains('{') {
            let asked = world
                .request(Method::OPTIONS, route.template)
                .header("origin", ORIGIN)
                .header("access-control-request-method", "POST");
            let answer = asked.send().await;
            assert_eq!(header(&answer.headers, "access-control-allow-origin"), None);
            count += 1;
        }
    }
    assert!(count > 0);
}

//! Tests of admission at the door: tokens, hosts, origins, content types and sizes.

use http::{Method, StatusCode};
use http_body_util::BodyExt;
use narthex_audit::Audit;
use narthex_gateway::{Gateway, GatewayOptions};
use narthex_http::{Access, Caching, ROUTES, Route};
use narthex_policy::RunPolicy;
use narthex_wire::Limits;

use crate::world::{ADMIN, Body, Builder, HOST, MESSAGE_MAX, World, registry, stamped, whole};

const METHODS: [Method; 8] = [
    Method::GET,
    Method::POST,
    Method::PUT,
    Method::DELETE,
    Method::PATCH,
    Method::HEAD,
    Method::OPTIONS,
    Method::TRACE,
];

/// Every path of the table, and some that are not in it.
fn paths() -> Vec<(String, Option<Access>)> {
    let known = ROUTES.iter().map(|route| (filled(route.template), Some(route.access)));
    let unknown = ["/", "/mcp//", "/mcp/a/b", "/api", "/api/x", "/favicon.ico", "/.well-known/x"];
    known.chain(unknown.map(|path| (path.to_owned(), None))).collect()
}

/// A template with ids in its braces.
fn filled(template: &str) -> String {
    let path = template.replace("{alias}", "fixture").replace("{workspace}", "default");
    path.replace("{name}", "fixture").replace("{id}", "fixture").replace("{principal}", "fixture")
}

/// S6, D4: no path answers without a valid token, in the table or not, except health routes and
/// those with a proof of their own. The tests of `signin` cover each of the latter.
#[tokio::test]
async fn s6_no_route_answers_without_a_token() {
    let world = World::empty();
    let stranger = World::empty().token;
    let bad = [
        String::new(),
        "Bearer".to_owned(),
        "Bearer ".to_owned(),
        "Bearer nxt_x".to_owned(),
        format!("Basic {}", world.token),
        world.token.clone(),
        format!("Bearer {}x", world.token),
        format!("Bearer {stranger}"),
    ];
    let all = paths().into_iter().flat_map(|(path, access)| {
        let is_open = matches!(access, Some(Access::Open | Access::Own(_)));
        METHODS.map(|method| (path.clone(), is_open, method))
    });
    for (path, is_open, method) in all {
        for token in &bad {
            let request = world.request(method.clone(), &path).header("authorization", token);
            let answer = request.send().await;
            let what = format!("{method} {path} {token}");
            if is_open {
                assert_ne!(answer.status, StatusCode::UNAUTHORIZED, "{what}");
                continue;
            }
            assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{what}");
            assert_eq!(answer.headers["www-authenticate"], "Bearer", "{what}");
            assert_eq!(answer.headers["connection"], "close", "{what}");
            // Programs read the code, and people the remedy.
            if method != Method::HEAD {
                let problem = answer.json();
                // The code of a posted call is that of JSON-RPC.
                let is_call = path.starts_with("/mcp/") && path.contains("/tools/");
                let code = (!is_call).then_some("token_invalid");
                assert_eq!(problem["code"].as_str(), code, "{what}");
                let detail = problem["detail"].as_str().unwrap();
                assert!(detail.contains("; send one in the header"), "{what}: {detail}");
            }
        }
    }
}

#[tokio::test]
async fn s6_a_request_with_two_tokens_is_refused() {
    let world = World::empty();
    let mut request = world.request(Method::GET, "/api/status");
    let token = request.request.headers()["authorization"].clone();
    request.request.headers_mut().append("authorization", token);
    assert_eq!(request.send().await.status, StatusCode::UNAUTHORIZED);
}

/// D4, A-9, X-E14: each token is accepted only at routes of its kind, whatever the method.
#[tokio::test]
async fn d4_each_token_opens_only_routes_of_its_kind() {
    let world = World::empty();
    for route in ROUTES {
        let path = filled(route.template);
        for method in route.methods.split(", ") {
            let method: Method = method.parse().unwrap();
            let request = || world.request(method.clone(), &path);
            let as_client = request().open().await.status();
            let as_admin = request().header("authorization", &format!("bearer {ADMIN}"));
            let as_admin = as_admin.open().await.status();
            let what = format!("{method} {path}: {as_client} as client, {as_admin} as admin");
            let is_open =
                |status| ![StatusCode::FORBIDDEN, StatusCode::UNAUTHORIZED].contains(&status);
            match route.access {
                // A run is admitted, and then learns that the workspace is not its own.
                Access::Open | Access::Starter(_) => {
                    assert!(is_open(as_client) && is_open(as_admin), "{what}");
                }
                // Humans cannot sign in at this daemon, so these routes do not exist.
                Access::Own(_) => assert_eq!(as_client, StatusCode::NOT_FOUND, "{what}"),
                Access::Shared | Access::Whole => assert_eq!(as_client, as_admin, "{what}"),
                Access::Client | Access::OwnRun => {
                    assert_eq!(as_admin, StatusCode::FORBIDDEN, "{what}");
                }
                Access::Operator | Access::Known | Access::Member(_) => {
                    assert_eq!(as_client, StatusCode::FORBIDDEN, "{what}");
                    assert!(is_open(as_admin), "{what}");
                }
            }
            if matches!(
                route.access,
                Access::Shared | Access::Whole | Access::Client | Access::OwnRun
            ) {
                assert!(is_open(as_client), "{what}");
            }
        }
    }
    for (path, _) in paths().iter().filter(|(_, access)| access.is_none()) {
        let unknown = world.request(Method::GET, path).open().await.status();
        assert_eq!(unknown, StatusCode::NOT_FOUND, "{path}");
    }
}

/// S27, C12: no cache may store an answer, except a public document, and no browser may guess its
/// type, for all callers and answers. Successful answers of MCP have separate rules.
#[tokio::test]
async fn s27_answers_are_not_cached_and_their_type_is_not_guessed() {
    let world = World::empty();
    for (path, access) in paths() {
        let tokens = ["Bearer nxt_x".to_owned(), format!("Bearer {ADMIN}"), world.token.clone()];
        for (method, token) in METHODS.iter().flat_map(|one| tokens.iter().map(move |to| (one, to)))
        {
            let request = world.request(method.clone(), &path).header("authorization", token);
            let answer = request.open().await;
            let what = format!("{method} {path} {token} {}", answer.status());
            if matches!(access, Some(Access::Client)) && answer.status().is_success() {
                continue;
            }
            let kept = cached(&path, answer.status());
            assert_eq!(answer.headers()["cache-control"], kept, "{what}");
            assert_eq!(answer.headers()["x-content-type-options"], "nosniff", "{what}");
        }
    }
}

/// The caching of an answer at a path.
fn cached(path: &str, status: StatusCode) -> &'static str {
    let mut routes = ROUTES.iter().filter(|route| filled(route.template) == path);
    let is_document = routes.any(|route| route.caching == Caching::PublicDocument);
    if is_document && status == StatusCode::OK { "public, max-age=300" } else { "no-store" }
}

/// C12: a route that any cache may store only reads, and needs no proof: its answer is the same for
/// all callers.
#[test]
fn oauth_c12_public_documents_are_read_without_a_proof() {
    let is_document = |route: &&Route| route.caching == Caching::PublicDocument;
    let documents: Vec<_> = ROUTES.iter().filter(is_document).collect();
    let is_known = |route: &&Route| {
        route.template.starts_with("/.well-known/")
            || route.template == "/oauth/client-metadata.json"
    };
    let known: Vec<_> = ROUTES.iter().filter(is_known).map(|route| route.template).collect();
    let listed: Vec<_> = documents.iter().map(|route| route.template).collect();
    assert_eq!(listed, known);
    for route in documents {
        assert_eq!(route.methods, "GET, HEAD", "{}", route.template);
        let Access::Own(proof) = route.access else { panic!("{}", route.template) };
        assert!(proof.starts_with("none: "), "{}: {proof}", route.template);
    }
}

/// A request with a method that a path lacks is answered with the allowed methods.
#[tokio::test]
async fn a_wrong_method_is_answered_with_the_allowed_methods() {
    let world = World::empty();
    let own = |route: &&Route| !matches!(route.access, Access::Client | Access::Own(_));
    for route in ROUTES.iter().filter(own) {
        let path = filled(route.template);
        let rows = ROUTES.iter().filter(|other| other.template == route.template);
        let allowed = rows.map(|row| row.methods).collect::<Vec<_>>().join(", ");
        let all: Vec<_> = allowed.split(", ").collect();
        for method in METHODS.iter().filter(|method| !all.contains(&method.as_str())) {
            let answer = world.request(method.clone(), &path).send().await;
            assert_eq!(answer.status, StatusCode::METHOD_NOT_ALLOWED, "{method} {path}");
            assert_eq!(answer.headers["allow"], allowed, "{method} {path}");
        }
    }
}

/// S7: `Host` and `Origin` are checked before all else, on every route, including health.
#[tokio::test]
async fn s7_foreign_hosts_and_origins_are_refused_on_every_route() {
    let world = World::empty();
    for (path, access) in paths() {
        for method in METHODS {
            let request = || world.request(method.clone(), &path);
            for foreign in [
                request().header("host", "evil.example:7717"),
                request().header("host", ""),
                request().header("origin", "http://evil.example"),
                request().header("origin", "null"),
            ] {
                let answer = foreign.send().await;
                let told = answer.problem(StatusCode::FORBIDDEN, "denied");
                let refused = "this Host or Origin is not allowed; use the daemon's own address, \
                               or add the name to `http.allowed_hosts` or `http.allowed_origins` \
                               in the settings";
                assert_eq!(told, refused, "{method} {path}");
                assert_eq!(answer.status, StatusCode::FORBIDDEN, "{method} {path}");
                assert!(!answer.headers.contains_key("access-control-allow-origin"));
            }
            let own = request().header("origin", &format!("http://{HOST}"));
            let own = own.header("authorization", &format!("Bearer {ADMIN}")).open().await;
            let is_of_runs = access == Some(Access::Client)
                || (access == Some(Access::OwnRun) && method == Method::POST);
            assert_eq!(own.status() == StatusCode::FORBIDDEN, is_of_runs, "{method} {path}");
            assert!(!own.headers().contains_key("access-control-allow-origin"));
        }
    }
}

async fn status(request: Builder<'_>) -> StatusCode {
    request.send().await.status
}

/// S8: a body that is not declared as JSON has no effect.
#[tokio::test]
async fn s8_other_content_types_have_no_effect() {
    let world = World::with_fixture().await;
    let calls = || world.fixture.as_ref().unwrap().fixture.counts().calls;
    let call = || {
        let params = serde_json::json!({"name": "test_simple_text", "arguments": {}});
        world.modern("/mcp/fixture", "tools/call", params)
    };
    let bad = ["", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"];
    for content_type in bad {
        let answer = status(call().header("content-type", content_type)).await;
        assert_eq!(answer, StatusCode::UNSUPPORTED_MEDIA_TYPE, "{content_type}");
    }
    assert_eq!(calls(), 0);
    let good = call().header("content-type", "application/json; charset=utf-8");
    assert_eq!(status(good).await, StatusCode::OK);
    assert_eq!(calls(), 1);
}

#[tokio::test]
async fn clients_that_do_not_accept_json_are_refused() {
    let world = World::empty();
    let list = || world.modern("/mcp", "tools/list", serde_json::json!({}));
    assert_eq!(status(list().header("accept", "text/html")).await, StatusCode::NOT_ACCEPTABLE);
    for accepted in ["", "*/*", "application/json"] {
        assert_eq!(status(list().header("accept", accepted)).await, StatusCode::OK, "{accepted}");
    }
    let legacy = world.post("/mcp", crate::world::initialize("2025-11-25"));
    let legacy = legacy.header("accept", "application/json");
    assert_eq!(status(legacy).await, StatusCode::NOT_ACCEPTABLE);
}

/// S12: a body that is no unambiguous message is refused with the matching error code.
#[tokio::test]
async fn s12_bad_messages_are_refused() {
    let world = World::empty();
    let table = [
        ("", 400, -32700),
        ("{", 400, -32700),
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#, 400, -32700),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}"#, 400, -32600),
        (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, 400, -32600),
        ("[]", 400, -32600),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, 400, -32600),
    ];
    for (body, status, code) in table {
        let answer = world.post("/mcp", body).send().await;
        assert_eq!((answer.status.as_u16(), answer.code()), (status, code), "{body}");
    }
}

/// S12: client capabilities and hints that two readers could read differently reach no server. This
/// holds for modern requests and for the legacy `initialize`.
#[tokio::test]
async fn s12_ambiguous_capabilities_and_hints_of_a_client_are_refused() {
    let world = World::with_fixture().await;
    let params = serde_json::json!({ "name": "echo", "arguments": { "message": "x" } });
    let proper = stamped("tools/call", params).to_string();
    let declared = r#""io.modelcontextprotocol/clientCapabilities":{}"#;
    assert!(proper.contains(declared), "{proper}");
    let key = &declared[..declared.len() - 3];
    for meta in [
        r#"{"sampling":{},"sampling":{}}"#.to_owned(),
        r#"{"Sampling":{}}"#.to_owned(),
        r#"{"elicitation":{"form":{},"form":{}}}"#.to_owned(),
        r#"{"elicitation":{"URL":{}}}"#.to_owned(),
        r#"{"extensions":{"io.modelcontextprotocol/Tasks":{}}}"#.to_owned(),
        r#"{"roots":true}"#.to_owned(),
        r#"{},"io.modelcontextprotocol/logLevel":7"#.to_owned(),
        r#"{},"io.modelcontextprotocol/LogLevel":"debug""#.to_owned(),
        r#"{},"progressToken":{}"#.to_owned(),
        r#"{},"io.modelcontextprotocol/related-task":{"taskId":"a","taskId":"b"}"#.to_owned(),
        r#"{},"io.modelcontextprotocol/ClientCapabilities":{}"#.to_owned(),
    ] {
        let body = proper.replace(declared, &format!("{key}:{meta}"));
        for path in ["/mcp", "/mcp/fixture"] {
            let request = world.post(path, body.clone()).header("mcp-method", "tools/call");
            let request = request.header("mcp-protocol-version", "2026-07-28");
            let answer = request.header("mcp-name", "echo").send().await;
            assert!([-32602, -32700].contains(&answer.code()), "{meta}: {}", answer.text());
        }
        if meta.starts_with("{}") {
            continue;
        }
        let hello = crate::world::initialize("2025-11-25");
        let changed = hello.replace(r#""capabilities":{}"#, &format!(r#""capabilities":{meta}"#));
        let is_legacy = !meta.contains("extensions");
        if is_legacy {
            assert_ne!(hello, changed);
            let answer = world.post("/mcp", changed).send().await;
            assert_eq!(answer.code(), -32602, "{meta}: {}", answer.text());
        }
    }
    let calls = || world.fixture.as_ref().unwrap().fixture.counts().calls;
    assert_eq!(calls(), 0);
    let fine = proper.replace(declared, &format!(r#"{key}:{{"roots":null,"acme":[7]}}"#));
    let request = world.post("/mcp/fixture", fine).header("mcp-method", "tools/call");
    let request = request.header("mcp-protocol-version", "2026-07-28").header("mcp-name", "echo");
    let answer = request.send().await;
    assert_eq!((answer.status, calls()), (StatusCode::OK, 1), "{}", answer.text());
}

/// S12, S14: the size is checked before a body is read, and while it is read.
#[tokio::test]
async fn s12_long_bodies_are_refused() {
    let world = World::empty();
    let padded = |length: usize| {
        let body = stamped("tools/list", serde_json::json!({})).to_string();
        format!("{body}{}", " ".repeat(length - body.len()))
    };
    let send = |body: Body| {
        world
            .post("/mcp", "")
            .body(body)
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "tools/list")
            .send()
    };
    let streamed = |text: String| Unsized(Some(text.into())).boxed_unsync();
    assert_eq!(send(whole(padded(MESSAGE_MAX))).await.status, StatusCode::OK);
    assert_eq!(send(streamed(padded(MESSAGE_MAX))).await.status, StatusCode::OK);
    for body in [whole(padded(MESSAGE_MAX + 1)), streamed(padded(MESSAGE_MAX + 1))] {
        let answer = send(body).await;
        assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE);
        assert_eq!(answer.headers["connection"], "close");
    }
}

/// A body without a declared length.
struct Unsized(Option<bytes::Bytes>);

impl http_body::Body for Unsized {
    type Data = bytes::Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        _cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<bytes::Bytes>, Self::Error>>> {
        std::task::Poll::Ready(self.0.take().map(|data| Ok(http_body::Frame::data(data))))
    }
}

/// D5, R-M31, S18: a server that a run lacks is answered like one that does not exist.
#[tokio::test]
async fn d5_servers_of_other_runs_look_absent() {
    let world = World::with_fixture().await;
    let none = world.other_run(RunPolicy::Attached(std::collections::BTreeSet::new()));
    let list = |path, token: &str| {
        world
            .modern(path, "tools/list", serde_json::json!({}))
            .header("authorization", &format!("Bearer {token}"))
            .send()
    };
    assert_eq!(list("/mcp/fixture", &world.token).await.status, StatusCode::OK);
    let hidden = list("/mcp/fixture", &none).await;
    let absent = list("/mcp/absent", &none).await;
    assert_eq!(hidden.status, StatusCode::NOT_FOUND);
    assert_eq!(hidden.body, absent.body);
    for path in ["/api/status", "/api/tools", "/api/servers"] {
        let seen = world.request(Method::GET, path).send().await;
        assert!(seen.text().contains("fixture"), "{path}");
        let token = format!("Bearer {none}");
        let unseen = world.request(Method::GET, path).header("authorization", &token).send().await;
        assert!(!unseen.text().contains("fixture"), "{path}");
    }
}

/// D5, R-M31: the answer to a misspelt server name suggests a server of the run, but no other
/// server.
#[tokio::test]
async fn d5_a_misspelt_server_name_suggests_only_servers_of_the_run() {
    let world = World::with_fixture().await;
    let none = world.other_run(RunPolicy::Attached(std::collections::BTreeSet::new()));
    for (token, meant) in [(&*world.token, "; did you mean `fixture`?"), (&*none, "")] {
        for path in ["/mcp/fixtur", "/mcp/fixtur/tools/echo"] {
            let request = world.modern(path, "tools/list", serde_json::json!({}));
            let answer = request.header("authorization", &format!("Bearer {token}")).send().await;
            answer.problem(StatusCode::NOT_FOUND, "not_found");
            let told = format!("this run has no server of this name{meant}");
            assert_eq!(answer.json()["detail"], told, "{path}");
        }
    }
}

#[tokio::test]
async fn status_tools_and_metrics_show_the_servers_of_a_run() {
    let world = World::with_fixture().await;
    let status = world.request(Method::GET, "/api/status").send().await.json();
    let row = &status["items"][0];
    assert_eq!((&row["alias"], &row["state"]), (&"fixture".into(), &"ready".into()));
    assert_eq!((&row["transport"], &row["era"]), (&"http".into(), &"modern".into()));
    assert!(row["tools"].as_u64().unwrap() > 5 && row["error"].is_null());
    let tools = world.request(Method::GET, "/api/tools").send().await.json();
    let tool = tools["items"].as_array().unwrap().iter();
    let tool = tool.clone().find(|tool| tool["name"] == "test_simple_text").unwrap();
    assert_eq!(tool["qualified_name"], "mcp__fixture__test_simple_text");
    assert_eq!(tool["description"], "Returns one text");
    let (mut paged, mut after) = (Vec::new(), String::new());
    loop {
        let path = format!("/api/tools?limit=4&after={after}");
        let page = world.request(Method::GET, &path).send().await.json();
        assert!((1..=4).contains(&page["items"].as_array().unwrap().len()));
        paged.extend(page["items"].as_array().unwrap().clone());
        match page["next"].as_str() {
            Some(next) => after = next.to_owned(),
            None => break,
        }
    }
    let all = world.request(Method::GET, "/api/tools?limit=100").send().await.json();
    assert_eq!(
        (serde_json::Value::from(paged), &all["next"]),
        (all["items"].clone(), &serde_json::Value::Null)
    );
    let metrics = world.request(Method::GET, "/metrics").send().await;
    assert!(metrics.text().ends_with("# EOF\n"), "{}", metrics.text());
    assert!(metrics.text().contains("server=\"fixture\""), "{}", metrics.text());
    let ready = world.request(Method::GET, "/readyz").header("authorization", "").send().await;
    assert_eq!(ready.text(), "ok\n");
    let nobody = world.request(Method::GET, "/readyz?verbose").header("authorization", "");
    assert_eq!(nobody.send().await.text(), "ok\n", "who shows no token is told no more");
    let told = world.request(Method::GET, "/readyz?verbose").send().await;
    let told = told.text();
    assert!(told.starts_with("[+] fixture ready, last success 20"), "{told}");
    assert!(told.ends_with(", last failure never\nok\n"), "{told}");
    let metrics = world.request(Method::GET, "/metrics").send().await;
    let seen = "narthex_upstream_last_success_timestamp_seconds{server=\"fixture\"} 1";
    assert!(metrics.text().contains(seen), "{}", metrics.text());
    let hidden = world.other_run(RunPolicy::default());
    let request = world.request(Method::GET, "/readyz?verbose");
    let told = request.header("authorization", &format!("Bearer {hidden}")).send().await;
    assert_eq!(told.text(), "ok\n", "what a run may not see is not there");
}

/// D5, S18, O78: the metrics name all servers, so a run without all servers cannot read them.
#[tokio::test]
async fn d5_metrics_are_refused_to_runs_without_all_servers() {
    let world = World::with_fixture().await;
    let none = world.other_run(RunPolicy::default());
    let metrics = async |method: Method, token: &str| {
        let request = world.request(method, "/metrics");
        request.header("authorization", &format!("Bearer {token}")).send().await
    };
    for method in [Method::GET, Method::HEAD] {
        let refused = metrics(method.clone(), &none).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.text());
        assert!(!refused.text().contains("fixture"), "{}", refused.text());
        for token in [&world.token, ADMIN] {
            assert_eq!(metrics(method.clone(), token).await.status, StatusCode::OK);
        }
    }
}

/// A body that sends these pieces, and then never ends.
pub(crate) struct Unfinished(pub(crate) Vec<bytes::Bytes>);

impl http_body::Body for Unfinished {
    type Data = bytes::Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        _cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<bytes::Bytes>, Self::Error>>> {
        match self.0.pop() {
            Some(data) => std::task::Poll::Ready(Some(Ok(http_body::Frame::data(data)))),
            None => std::task::Poll::Pending,
        }
    }
}

/// S31: unfinished long bodies of one run take no more of the buffer than one run may use. Long
/// bodies of another run are still accepted, and short ones of the same run too.
#[tokio::test]
async fn s31_unfinished_bodies_of_one_run_cannot_take_all_room() {
    let limits = Limits { message_bytes: MESSAGE_MAX };
    // The buffer has room for 16 bodies, and one run may use half of it.
    let options =
        GatewayOptions { limits, body_bytes_max: Some(16 << 20), ..GatewayOptions::default() };
    let gateway = Gateway::new(registry(), Audit::disabled(), options).unwrap();
    let world = World::around(gateway, |_options| {});
    let unfinished = || Unfinished(vec![vec![b' '; 70_000].into(), vec![b' '; 10].into()]);
    let send = |token: &str, body: Body| {
        world
            .post("/mcp", "")
            .body(body)
            .header("authorization", &format!("Bearer {token}"))
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "tools/list")
            .send()
    };
    let mut open: Vec<_> =
        (0..8).map(|_| Box::pin(send(&world.token, unfinished().boxed_unsync()))).collect();
    for request in &mut open {
        let begun = std::future::poll_fn(|cx| {
            std::task::Poll::Ready(request.as_mut().poll(cx).is_pending())
        });
        assert!(begun.await, "it waits for the rest");
    }
    let refused = send(&world.token, unfinished().boxed_unsync()).await;
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS, "{}", refused.text());
    assert!(refused.text().contains("this run has 8388608 bytes"), "{}", refused.text());
    let padded = |length: usize| {
        let body = stamped("tools/list", serde_json::json!({})).to_string();
        format!("{body}{}", " ".repeat(length - body.len()))
    };
    let other = world.other_run(RunPolicy::AllAttached);
    let long = Unsized(Some(padded(80_000).into())).boxed_unsync();
    assert_eq!(send(&other, long).await.status, StatusCode::OK);
    assert_eq!(send(&world.token, whole(padded(1000))).await.status, StatusCode::OK);
    // A cancelled request frees its bytes.
    drop(open);
    let long = Unsized(Some(padded(80_000).into())).boxed_unsync();
    assert_eq!(send(&world.token, long).await.status, StatusCode::OK);
}

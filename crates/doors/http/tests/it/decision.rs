//! Tests of the page on which humans decide grant requests, and of clients that lead humans to it.

use http::{Method, StatusCode};
use narthex_testkit::authenticator::Authenticator;
use serde_json::{Value, json};

use crate::{
    api::{
        built_in::{Run, agent_with_a_gated_tool},
        world::Api,
    },
    browser::{Browser, ORIGIN, Site, options},
    world::{Answer, Stream, message, stamped},
};

const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

fn wanted(justification: &str) -> Value {
    json!({
        "request_id": "ask-1", "grant_type": "tool_scope", "scope": "session",
        "details": { "scope": "demo.write" }, "justification": justification,
    })
}

/// A run's request, and the path of its page.
async fn asked(run: &Run<'_>, justification: &str) -> String {
    let asked = run.called("request_grant", wanted(justification)).await;
    page_of(asked["grant_request_id"].as_str().unwrap())
}

pub(crate) fn page_of(id: &str) -> String {
    format!("/workspaces/default/grant-requests/{id}")
}

/// The page to which the address of a request leads, or its refusal.
pub(crate) async fn look(browser: &Browser<'_>, path: &str) -> Answer {
    let answer = browser.request(Method::GET, path).send().await;
    if answer.status != StatusCode::SEE_OTHER {
        return answer;
    }
    let to = answer.headers["location"].to_str().unwrap().to_owned();
    assert!(to.starts_with("/w/default/approvals/grq_"), "{to}");
    browser.request(Method::GET, &to).header("accept", "text/html").send().await
}

/// Decides with the form of the page.
pub(crate) async fn decide(browser: &mut Browser<'_>, path: &str, more: &str) -> u16 {
    let consent = consent(browser, path).await;
    answer(browser, path, &consent, more).await.status.as_u16()
}

/// The value that the answer to a freshly loaded page must repeat; empty if no decision is due.
async fn consent(browser: &Browser<'_>, path: &str) -> String {
    let page = look(browser, path).await;
    let consent = page.text().split_once("name=\"consent\" value=\"");
    consent.map(|(_, rest)| rest.split('"').next().unwrap().to_owned()).unwrap_or_default()
}

async fn answer(browser: &mut Browser<'_>, path: &str, consent: &str, more: &str) -> Answer {
    browser.page().await;
    let form = format!("csrf={}&consent={consent}&{more}", browser.csrf);
    browser.form(path, &form).await
}

/// X-M56, X-E83, D15, S11: a human who opens the page signs in first, sees the agent and its
/// request, and decides. The agent's own words are marked as such and have no effect.
#[tokio::test]
async fn x_m56_a_human_decides_on_a_page() {
    let site = Site::new().await;
    agent_with_a_gated_tool(&site.api).await;
    let run = Run::begin(&site.api).await;
    let path = asked(&run, "<script>alert(1)</script> \u{202e}ecirp").await;

    let waiting = site.api.get("/api/workspaces/default/grant-requests").await;
    assert_eq!(waiting["items"][0]["page"], format!("{ORIGIN}{path}"));

    let mut browser = Browser::new(&site);
    let first = browser.request(Method::GET, &path).send().await;
    let first = browser.keep(first);
    assert!(first.text().contains("<h1>Sign in</h1>"), "{}", first.text());
    assert!(!first.text().contains("demo.write"), "nobody is told before");
    let link = site.link("ada").await;
    let come_in = browser.form(&link, "").await;
    assert_eq!(come_in.headers["location"], path.as_str(), "to where they were going");
    assert!(browser.onward.is_none());

    let page = look(&browser, &path).await;
    let text = page.text();
    for part in [
        "Approve this request?",
        "<dt>tool scope</dt><dd>demo.write</dd>",
        ">writer</a></dd>",
        "<dt>how long</dt><dd>session</dd>",
        "admin token",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(text.contains("&lt;script&gt;alert(1)&lt;/script&gt; \\u{202e}ecirp"), "{text}");
    assert!(!text.contains("<script>alert"), "{text}");
    assert_eq!(run.echo().await["isError"], true);

    let forged = browser.form(&path, "csrf=AAAA&consent=AAAA&decision=approve").await;
    assert_eq!(forged.status, StatusCode::FORBIDDEN);
    let other_page = browser.post(&path, "application/x-www-form-urlencoded", String::new());
    let other_page = other_page.header("origin", "https://evil.example").send().await;
    assert_eq!(other_page.status, StatusCode::FORBIDDEN);
    assert_eq!(decide(&mut browser, &path, "decision=perhaps").await, 400);
    assert_eq!(run.echo().await["isError"], true);

    assert_eq!(decide(&mut browser, &path, "decision=approve&scope=once&reason=go+on").await, 303);
    let after = look(&browser, &path).await;
    assert!(after.text().contains("<h1>Approved</h1>"), "{}", after.text());
    assert!(!after.text().contains("name=\"consent\""), "{}", after.text());
    assert_eq!(run.echo().await["content"][0]["text"], "x");
    assert_eq!(run.echo().await["isError"], true, "once is once");
    assert_eq!(decide(&mut browser, &path, "decision=deny").await, 409);
    let told = run.events().await;
    let told = told.iter().find(|event| event["type"] == "permission.granted").unwrap();
    assert_eq!(told["payload"]["reason"], "go on");
}

/// D15: the page shows that the requested tool requires a scope other than the requested one.
#[tokio::test]
async fn d15_the_page_names_the_scope_that_the_tool_requires() {
    let site = Site::new().await;
    agent_with_a_gated_tool(&site.api).await;
    let server = json!({ "url": site.api.fixture_url(), "transport": "http",
                         "tool_scopes": { "echo": "demo.write", "add": "demo.read" } });
    let path = "/api/workspaces/default/mcp-servers/demo";
    site.api.send("PUT", path, server.to_string()).await.succeeded();
    let run = Run::begin(&site.api).await;
    let mut asked = wanted("to add");
    asked["details"] = json!({ "scope": "demo.write", "server": "demo", "tool": "add" });
    let asked = run.called("request_grant", asked).await;
    let path = page_of(asked["grant_request_id"].as_str().unwrap());
    let mut browser = Browser::new(&site);
    let link = site.link("ada").await;
    browser.form(&link, "").await;
    let page = look(&browser, &path).await;
    assert!(page.text().contains("requires `demo.read`, not `demo.write`"), "{}", page.text());
}

/// D5, D15: a human who may not decide over the API may not do so here. A request that the human
/// may not see is answered like one that does not exist.
#[tokio::test]
async fn d15_the_page_is_closed_to_humans_who_may_not_decide() {
    let site = Site::new().await;
    agent_with_a_gated_tool(&site.api).await;
    let run = Run::begin(&site.api).await;
    let path = asked(&run, "to write").await;
    for name in ["eve", "mallory"] {
        let body = json!({ "name": name }).to_string();
        site.api.send("POST", "/api/principals", body).await.succeeded();
    }
    let member = "/api/workspaces/default/members/mallory";
    site.api.send("PUT", member, r#"{"roles":["author"]}"#).await.succeeded();

    let mut eve = site.browser("eve").await;
    let hidden = eve.request(Method::GET, &path).send().await;
    assert_eq!(hidden.status, StatusCode::NOT_FOUND, "{}", hidden.text());
    let absent = path.replace("/default/", "/nowhere/");
    let absent = eve.request(Method::GET, &absent).send().await;
    assert_eq!(absent.status, StatusCode::NOT_FOUND);
    assert_eq!(hidden.text().replace("default", "nowhere"), absent.text());
    assert_eq!(decide(&mut eve, &path, "decision=approve").await, 404);

    let mut mallory = site.browser("mallory").await;
    assert_eq!(mallory.request(Method::GET, &path).send().await.status, StatusCode::FORBIDDEN);
    assert_eq!(decide(&mut mallory, &path, "decision=approve").await, 403);
    assert_eq!(run.echo().await["isError"], true);

    let mut ada = site.browser("ada").await;
    for unknown in ["grq_0000000000000001", "nothing", "%2e%2e"] {
        let answer = ada.request(Method::GET, &page_of(unknown)).send().await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{unknown}");
    }
    // An invalid path is also absent at an address other than the public one. A valid path is
    // redirected there.
    let elsewhere = |path: &str| ada.request(Method::GET, path).header("host", "127.0.0.1:7717");
    let answer = elsewhere(&page_of("null%2Cnull")).send().await;
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
    assert_eq!(elsewhere(&path).send().await.status, StatusCode::SEE_OTHER);
    assert_eq!(decide(&mut ada, &path, "decision=deny&reason=no").await, 303);
    let denied = look(&ada, &path).await;
    assert!(denied.text().contains("<h1>Denied</h1>"), "{}", denied.text());
    assert_eq!(run.echo().await["isError"], true);
}

/// X-E82: a page accepts one answer, from the human to whom it was shown, and about the request
/// that it showed. Any other answer decides nothing, and links to the current page.
#[tokio::test]
async fn x_e82_a_page_is_answered_once_by_the_human_to_whom_it_was_shown() {
    let site = Site::new().await;
    agent_with_a_gated_tool(&site.api).await;
    let run = Run::begin(&site.api).await;
    let path = asked(&run, "to write").await;
    let body = json!({ "name": "bob", "is_operator": true }).to_string();
    site.api.send("POST", "/api/principals", body).await.succeeded();
    let (mut ada, mut bob) = (site.browser("ada").await, site.browser("bob").await);

    let page = look(&ada, &path).await;
    for part in [
        "id=\"covers-once\">the next call of the agent writer in this session that needs it",
        "id=\"covers-persistent\">all calls of the agent writer in the workspace",
    ] {
        assert!(page.text().contains(part), "{part}: {}", page.text());
    }
    let first = consent(&ada, &path).await;
    assert_eq!(answer(&mut ada, &path, &first, "decision=perhaps").await.status, 400);
    let approve = "decision=approve&scope=session";
    for (is_ada, token) in [(false, &*first), (true, &*first), (false, "")] {
        let browser = if is_ada { &mut ada } else { &mut bob };
        let refused = answer(browser, &path, token, approve).await;
        assert_eq!(refused.status, StatusCode::CONFLICT, "{}", refused.text());
        let leads = format!("<a class=\"button\" href=\"{path}\">Show the request again</a>");
        assert!(refused.text().contains(&leads), "{}", refused.text());
        assert_eq!(run.echo().await["isError"], true, "nothing was decided");
    }
    let other = run.called("request_grant", {
        let mut other = wanted("to write elsewhere");
        other["request_id"] = json!("ask-2");
        other["details"] = json!({ "scope": "demo.push" });
        other
    });
    let other = page_of(other.await["grant_request_id"].as_str().unwrap());
    let second = consent(&ada, &path).await;
    assert_eq!(answer(&mut ada, &other, &second, approve).await.status, StatusCode::CONFLICT);
    assert_eq!(answer(&mut ada, &path, &second, approve).await.status, StatusCode::CONFLICT);
    // Only the page that was shown last is accepted; the same page from before is not.
    let (third, fourth) = (consent(&ada, &path).await, consent(&ada, &path).await);
    assert_eq!(answer(&mut ada, &path, &third, approve).await.status, StatusCode::CONFLICT);
    assert_eq!(answer(&mut ada, &path, &fourth, approve).await.status, StatusCode::SEE_OTHER);
    assert_eq!(run.echo().await["content"][0]["text"], "x");
    assert_eq!(consent(&ada, &path).await, "", "there is nothing more to decide");
}

/// A cookie that another site has planted leads to no other page.
#[tokio::test]
async fn a_planted_redirect_cookie_does_not_lead_to_another_site() {
    let site = Site::new().await;
    for planted in [
        "//evil.example",
        "evil.example/x",
        "default/../../x",
        "default/grq_",
        "page://evil.example",
        "page:/w/default/../../api/me",
        "page:/api/me",
    ] {
        let mut browser = Browser::new(&site);
        browser.onward = Some(format!("narthex-onward={planted}"));
        let link = site.link("ada").await;
        let come_in = browser.form(&link, "").await;
        assert_eq!(come_in.headers["location"], "/", "{planted}");
    }
}

/// After a sign-in with a passkey, the human also gets to the page.
#[tokio::test]
async fn a_sign_in_with_a_passkey_leads_to_the_page() {
    let (mut site, place) = (Site::new().await, tempfile::tempdir().unwrap());
    let keys = place.path().join("master.key");
    site.api = Api::with_proofs(site.store.clone(), options(), Some(&keys), None).await;
    agent_with_a_gated_tool(&site.api).await;
    let run = Run::begin(&site.api).await;
    let path = asked(&run, "to write").await;
    let mut authenticator = Authenticator::new(ORIGIN);
    site.browser("ada").await.add(&mut authenticator).await;
    let approve = path.replace("/workspaces/", "/api/workspaces/") + "/approve";
    let refused = site.api.send("POST", &approve, "{}").await;
    assert_eq!(refused.json()["code"], "proof_required");
    let told = refused.text();
    assert!(told.contains(&format!("at {ORIGIN}{path}, and decide there")), "{told}");
    let mut browser = Browser::new(&site);
    let first = browser.request(Method::GET, &path).send().await;
    browser.keep(first);
    let come_in = browser.passkey(&mut authenticator).await.succeeded();
    assert_eq!(come_in["location"], path.as_str());
    assert_eq!(decide(&mut browser, &path, "decision=approve").await, 303);
    let grants = site.api.get("/api/workspaces/default/grants").await;
    assert_eq!(grants["items"][0]["is_advisory"], false, "a passkey proves a human");
}

/// A modern call of `request_grant` by a client with these capabilities.
async fn modern(run: &Run<'_>, capabilities: Value, more: Value) -> Value {
    let mut params = json!({ "name": "request_grant", "arguments": wanted("to write") });
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let mut body = stamped("tools/call", params);
    body["params"]["_meta"][CAPABILITIES] = capabilities;
    let request = run.api.world.post("/mcp/narthex", body.to_string());
    let request = request.header("mcp-protocol-version", "2026-07-28");
    let request = request.header("mcp-method", "tools/call").header("mcp-name", "request_grant");
    let bearer = format!("Bearer {}", run.token);
    request.header("authorization", &bearer).send().await.json()["result"].clone()
}

/// X-M56: a modern client that can lead its user to a page is asked to do so, and repeats its call.
#[tokio::test]
async fn x_m56_a_modern_client_leads_its_user_to_the_page() {
    let site = Site::new().await;
    agent_with_a_gated_tool(&site.api).await;
    let run = Run::begin(&site.api).await;
    let by_url = json!({ "elicitation": { "url": {} } });
    for other in [json!({}), json!({ "elicitation": {} }), json!({ "elicitation": {"form": {}} })] {
        let result = modern(&run, other, json!({})).await;
        assert_eq!(result["structuredContent"]["status"], "pending", "{result}");
    }
    let result = modern(&run, by_url.clone(), json!({})).await;
    assert_eq!(result["resultType"], "input_required", "{result}");
    let (key, question) = result["inputRequests"].as_object().unwrap().iter().next().unwrap();
    assert_eq!(question["method"], "elicitation/create");
    assert_eq!(question["params"]["mode"], "url");
    assert_eq!(question["params"].get("elicitationId"), None, "modern clients know none");
    let url = question["params"]["url"].as_str().unwrap();
    let path = url.strip_prefix(ORIGIN).unwrap();
    let state = result["requestState"].clone();
    let answers = json!({ key: { "action": "accept" } });
    let again = json!({ "inputResponses": answers, "requestState": state });

    let early = modern(&run, by_url.clone(), again.clone()).await;
    assert_eq!(early["structuredContent"]["status"], "pending", "accepting is no decision");
    assert_eq!(run.echo().await["isError"], true);
    let mut browser = site.browser("ada").await;
    assert_eq!(decide(&mut browser, path, "decision=approve").await, 303);
    let late = modern(&run, by_url.clone(), again.clone()).await;
    assert_eq!(late["structuredContent"]["status"], "approved", "{late}");
    assert_eq!(run.echo().await["content"][0]["text"], "x");

    // Another run cannot use the id of this run's request.
    let other = Run::begin(&site.api).await;
    let foreign = modern(&other, by_url, again).await;
    assert_eq!(foreign["structuredContent"]["status"], "pending", "{foreign}");
    assert_ne!(foreign["structuredContent"]["grant_request_id"], state);
}

/// A legacy session of a run.
struct Session<'a> {
    run: &'a Run<'a>,
    id: String,
}

impl<'a> Session<'a> {
    async fn open(run: &'a Run<'a>, revision: &str, capabilities: Value) -> Self {
        let info = json!({ "name": "t", "version": "1" });
        let params = json!({ "protocolVersion": revision, "capabilities": capabilities,
                             "clientInfo": info });
        let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let request = run.api.world.post("/mcp/narthex", body.to_string());
        let bearer = format!("Bearer {}", run.token);
        let answer = request.header("authorization", &bearer).send().await;
        let id = answer.headers["mcp-session-id"].to_str().unwrap().to_owned();
        Self { run, id }
    }

    async fn request_grant(&self) -> Vec<Value> {
        let params = json!({ "name": "request_grant", "arguments": wanted("to write") });
        let body = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params});
        let request = self.run.api.world.legacy("/mcp/narthex", &self.id, &body);
        let bearer = format!("Bearer {}", self.run.token);
        let answer = request.header("authorization", &bearer).open().await;
        if answer.headers()["content-type"] == "application/json" {
            use http_body_util::BodyExt;
            let body = answer.into_body().collect().await.unwrap().to_bytes();
            return vec![serde_json::from_slice(&body).unwrap()];
        }
        let mut stream = Stream::of(answer);
        let mut told = Vec::new();
        while let Some(event) = stream.next().await {
            if !event.data.is_empty() {
                told.push(message(&event));
            }
        }
        told
    }
}

/// X-M56: a legacy client that can lead its user to a page is asked to do so, and is notified of
/// the decision.
#[tokio::test]
async fn x_m56_a_legacy_client_leads_its_user_to_the_page() {
    let site = Site::new().await;
    agent_with_a_gated_tool(&site.api).await;
    let run = Run::begin(&site.api).await;
    let by_url = json!({ "elicitation": { "form": {}, "url": {} } });
    for (revision, capabilities) in [
        ("2025-11-25", json!({})),
        ("2025-11-25", json!({ "elicitation": {} })),
        ("2025-06-18", by_url.clone()),
    ] {
        let session = Session::open(&run, revision, capabilities).await;
        let told = session.request_grant().await;
        assert_eq!(told.len(), 1, "{told:?}");
    }
    let session = Session::open(&run, "2025-11-25", by_url).await;
    let stream = site.api.world.request(Method::GET, "/mcp/narthex");
    let stream = stream.header("accept", "text/event-stream").header("mcp-session-id", &session.id);
    let bearer = format!("Bearer {}", run.token);
    let mut stream = Stream::of(stream.header("authorization", &bearer).open().await);
    let told = session.request_grant().await;
    let [question, answer] = &told[..] else { panic!("{told:?}") };
    assert_eq!(question["method"], "elicitation/create", "{question}");
    assert_eq!(question["params"]["mode"], "url");
    assert_eq!(answer["id"], 7);
    assert_eq!(answer["result"]["structuredContent"]["status"], "pending");
    let id = question["params"]["elicitationId"].as_str().unwrap();
    let path = question["params"]["url"].as_str().unwrap().strip_prefix(ORIGIN).unwrap();

    let mut browser = site.browser("ada").await;
    assert_eq!(decide(&mut browser, path, "decision=approve").await, 303);
    let told = loop {
        let event = stream.next().await.unwrap();
        if !event.data.is_empty() {
            break message(&event);
        }
    };
    assert_eq!(told["method"], "notifications/elicitation/complete", "{told}");
    assert_eq!(told["params"]["elicitationId"], id);
    assert_eq!(run.echo().await["content"][0]["text"], "x");
}

/// X-M56: all sessions that wait for a request are notified of the decision, each once, however
/// often it has asked. A session that was closed is not waited for.
#[tokio::test]
async fn x_m56_all_sessions_that_wait_for_a_request_are_notified_once() {
    let site = Site::new().await;
    agent_with_a_gated_tool(&site.api).await;
    let run = Run::begin(&site.api).await;
    let by_url = json!({ "elicitation": { "form": {}, "url": {} } });
    let bearer = format!("Bearer {}", run.token);
    let mut waiting = Vec::new();
    for _ in 0..3 {
        let session = Session::open(&run, "2025-11-25", by_url.clone()).await;
        let stream = site.api.world.request(Method::GET, "/mcp/narthex");
        let stream = stream.header("accept", "text/event-stream");
        let stream = stream.header("mcp-session-id", &session.id).header("authorization", &bearer);
        let stream = Stream::of(stream.open().await);
        let mut ids = Vec::new();
        for _ in 0..3 {
            let told = session.request_grant().await;
            let [question, answer] = &told[..] else { panic!("{told:?}") };
            assert_eq!(answer["result"]["structuredContent"]["status"], "pending");
            ids.push(question["params"]["elicitationId"].as_str().unwrap().to_owned());
        }
        assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
        waiting.push((session, stream, ids.remove(0)));
    }
    let (gone, _stream, id) = waiting.remove(0);
    let request = site.api.world.request(Method::DELETE, "/mcp/narthex");
    let request = request.header("mcp-session-id", &gone.id).header("authorization", &bearer);
    assert!(request.send().await.status.is_success());
    let mut browser = site.browser("ada").await;
    assert_eq!(decide(&mut browser, &page_of(&id), "decision=approve").await, 303);
    for (session, mut stream, id) in waiting {
        let told = loop {
            let event = stream.next().await.unwrap();
            if !event.data.is_empty() {
                break message(&event);
            }
        };
        assert_eq!(told["method"], "notifications/elicitation/complete", "{told}");
        assert_eq!(told["params"]["elicitationId"], id);
        let request = site.api.world.request(Method::DELETE, "/mcp/narthex");
        let request = request.header("mcp-session-id", &session.id);
        assert!(request.header("authorization", &bearer).send().await.status.is_success());
        while let Some(event) = stream.next().await {
            assert!(event.data.is_empty(), "it is told once: {:?}", event.data);
        }
    }
}

/// D15: the human who decides sees the arguments that the grant would permit, as far as the run has
/// given them. No part of them can be hidden.
#[tokio::test]
async fn d15_a_human_who_decides_reads_the_arguments() {
    let site = Site::new().await;
    agent_with_a_gated_tool(&site.api).await;
    let run = Run::begin(&site.api).await;
    let mut browser = Browser::new(&site);
    let link = site.link("ada").await;
    browser.form(&link, "").await;
    let digest = format!("sha256:{}", "0".repeat(64));
    for (number, arguments, api, page) in [
        (1, json!({ "arguments": { "b": "\u{202e}live", "a": 1 } }), "{\"a\":1,", "\\u{202e}live"),
        (2, json!({ "arguments": { "a": "x".repeat(5_000) } }), "xx … (5008 bytes in all)", "… ("),
        (3, json!({ "arguments_digest": digest }), "", "only their digest"),
    ] {
        let mut asked = wanted("to write");
        asked["request_id"] = json!(format!("ask-{number}"));
        asked["details"].as_object_mut().unwrap().extend(arguments.as_object().unwrap().clone());
        let asked = run.called("request_grant", asked).await;
        let id = asked["grant_request_id"].as_str().unwrap();
        let all = site.api.get("/api/workspaces/default/grant-requests").await;
        let all = all["items"].as_array().unwrap();
        let found = all.iter().find(|one| one["id"] == id).unwrap();
        assert!(found["details"]["arguments_digest"].is_string(), "{found}");
        let shown = found["arguments"].as_str().unwrap_or_default();
        assert!(shown.contains(api) && !shown.contains('\u{202e}'), "{found}");
        assert_eq!(shown.is_empty(), api.is_empty(), "{found}");
        let path = page_of(id);
        let text = look(&browser, &path).await;
        assert!(text.text().contains(page), "{}", text.text());
    }
}

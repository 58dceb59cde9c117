//! Tests of the inbox of approvals, and of the page on which a human decides.

use std::time::Duration;

use http::{Method, StatusCode};
use narthex_model::Timestamp;
use narthex_testkit::authenticator::Authenticator;
use serde_json::{Value, json};

use super::{FORM, Html, all, values};
use crate::{
    api::{
        built_in::{Run, agent_with_a_gated_tool},
        world::Api,
    },
    browser::{Browser, ORIGIN, Site, options},
    world::{Answer, SOON, Stream},
};

const LIST: &str = "/w/default/approvals";

/// The id of a request of a run for the scope of its gated tool.
async fn asked(run: &Run<'_>, name: &str, more: Value) -> String {
    let mut wanted = json!({
        "request_id": name, "grant_type": "tool_scope", "scope": "session",
        "details": { "scope": "demo.write" }, "justification": "<b>please</b>",
    });
    wanted.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let asked = run.called("request_grant", wanted).await;
    asked["grant_request_id"].as_str().unwrap().to_owned()
}

impl Browser<'_> {
    /// Answers the page of a request as it is shown now, with these further fields.
    async fn decide(&self, id: &str, more: &str) -> Answer {
        let page = self.see(&format!("{LIST}/{id}")).await;
        let consent = values(&page, "main form input[name=consent]", "value");
        let consent = consent.first().map_or("", String::as_str);
        let csrf = values(&page, "body", "data-csrf").remove(0);
        let form = format!("csrf={csrf}&consent={consent}&{more}");
        self.post(&format!("{LIST}/{id}/decide"), FORM, form).send().await
    }
}

/// A human with one role in the workspace.
pub(super) async fn member<'s>(site: &'s Site, name: &str, role: &str) -> Browser<'s> {
    let made = json!({ "name": name }).to_string();
    let made = site.api.send("POST", "/api/principals", made).await.succeeded();
    let place = format!("/api/workspaces/default/members/{}", made["id"].as_str().unwrap());
    let roles = json!({ "roles": [role] }).to_string();
    site.api.send("PUT", &place, roles).await.succeeded();
    site.browser(name).await
}

/// R1, X-M56: a request is in the inbox and leads to its page; filters are in the address.
#[tokio::test]
async fn r1_the_inbox_has_its_filters_in_the_address() {
    let site = Site::new().await;
    agent_with_a_gated_tool(&site.api).await;
    let run = Run::begin(&site.api).await;
    let browser = site.browser("ada").await;
    let empty = browser.see(LIST).await;
    assert!(all(&empty, "#approvals").remove(0).contains("No agent waits for a decision"));
    let id = asked(&run, "ask-1", json!({})).await;
    let other = json!({ "details": { "scope": "demo.push", "server": "demo", "tool": "echo" } });
    let denied = asked(&run, "ask-2", other).await;
    let answer = browser.decide(&denied, "decision=deny&denial=not+now").await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER, "{}", answer.text());

    let page = browser.see(LIST).await;
    assert_eq!(values(&page, "#waits", "href"), [LIST], "the number leads here");
    assert_eq!(all(&page, "#approvals .title"), ["tool scope demo.write"]);
    assert_eq!(values(&page, "#approvals .button", "href"), [format!("{LIST}/{id}")]);
    assert!(all(&page, "#approvals li q").contains(&"<b>please</b>".to_owned()));
    let found = async |query: &str| {
        let page = browser.see(&format!("{LIST}?{query}")).await;
        (all(&page, "#approvals .title"), all(&page, "#approvals .filter[aria-current]"))
    };
    let push = "tool scope demo.push, only for echo of demo";
    assert_eq!(found("status=decided").await.0, [push]);
    assert_eq!(found("status=denied").await, (vec![push.to_owned()], vec!["denied".to_owned()]));
    assert!(found("status=approved").await.0.is_empty());
    let (rows, current) = found("agent=writer").await;
    assert_eq!((rows.len(), current.len()), (1, 2), "{current:?}");
    assert!(found("agent=reader").await.0.is_empty());
    let page = browser.see(&format!("{LIST}?status=decided")).await;
    let row = all(&page, "#approvals .rows > li").remove(0);
    assert!(row.contains("denied by ada") && row.contains("not now"), "{row}");
    for bad in ["status=broken", "agent=%2F", "after=x", "after=99999999999999999-x", "x=1"] {
        let answer = browser.look(&format!("{LIST}?{bad}")).await;
        assert!(answer.status.is_client_error(), "{bad}: {}", answer.status);
    }
}

/// D15: a human reads the exact arguments as text, and the call that was refused.
#[tokio::test]
async fn d15_the_page_has_the_exact_arguments_and_the_refused_call() {
    let site = Site::new().await;
    agent_with_a_gated_tool(&site.api).await;
    let run = Run::begin(&site.api).await;
    assert_eq!(run.echo().await["isError"], true);
    let arguments = json!({ "details": {
        "scope": "demo.write", "server": "demo", "tool": "echo",
        "arguments": { "message": "x", "\u{202e}a": "<script>" } } });
    let id = asked(&run, "ask-1", arguments).await;
    let browser = site.browser("ada").await;
    let page = browser.see(&format!("{LIST}/{id}")).await;
    let shown = all(&page, "pre.exact").remove(0);
    assert!(shown.contains("\"message\":\"x\"") && shown.contains("<script>"), "{shown}");
    assert!(shown.contains("\\u{202e}a") && !shown.contains('\u{202e}'), "{shown}");
    let main = all(&page, "main").remove(0);
    for part in ["These are all arguments", "echo of demo", "it requires a grant that was missing"]
    {
        assert!(main.contains(part), "{part}: {main}");
    }
}

/// D15, X-M56: a human chooses the calls to allow, and decides once. Nothing is chosen before.
#[tokio::test]
async fn d15_a_human_chooses_what_to_allow_and_decides_once() {
    let site = Site::new().await;
    agent_with_a_gated_tool(&site.api).await;
    let run = Run::begin(&site.api).await;
    let other = json!({ "details": { "scope": "demo.push" } });
    let other = asked(&run, "ask-1", other).await;
    let id = asked(&run, "ask-2", json!({})).await;
    let browser = site.browser("ada").await;
    let path = format!("{LIST}/{id}");
    let page = browser.see(&path).await;
    let words = values(&page, "input[type=radio]", "value");
    assert_eq!(words, ["once", "run", "session", "persistent"]);
    assert!(values(&page, "input[type=radio]", "checked").is_empty(), "nothing is preselected");
    let unchosen = browser.decide(&id, "decision=approve&reason=go+on").await;
    assert_eq!(unchosen.status, StatusCode::BAD_REQUEST);
    let again = Html::parse_document(unchosen.text());
    assert!(all(&again, "#duration-fault").remove(0).contains("choose the calls to allow"));
    assert_eq!(values(&again, "input[name=reason]", "value"), ["go on"]);
    let unknown = browser.decide(&id, "decision=approve&scope=ever").await;
    assert_eq!(unknown.status, StatusCode::BAD_REQUEST, "{}", unknown.text());
    assert_eq!(run.echo().await["isError"], true, "nothing was decided");

    let approved = browser.decide(&id, "decision=approve&scope=once&reason=go+on").await;
    assert_eq!(approved.status, StatusCode::SEE_OTHER, "{}", approved.text());
    assert_eq!(approved.headers["location"], path.as_str());
    let page = browser.see(&path).await;
    assert_eq!(all(&page, "h1"), ["Approved"]);
    let told = all(&page, ".note").remove(0);
    for part in ["approved by ada", "go on", "Nothing proved that a human approved it."] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(all(&page, "main form").is_empty());
    assert_eq!(run.echo().await["content"][0]["text"], "x");
    assert_eq!(run.echo().await["isError"], true, "once is once");
    // A page without a token decides nothing, and shows the request as it is now.
    let late = browser.decide(&id, "decision=deny").await;
    assert_eq!(late.status, StatusCode::CONFLICT);
    assert!(late.text().contains("No decision was made"), "{}", late.text());
    let next = browser.see(&format!("{LIST}/{other}")).await;
    assert!(values(&next, "main a", "href").contains(&path), "what was decided before");
}

/// D15: a human can limit the time of what they approve. The choice is kept when the form is
/// refused, and the page of the decision says when the grant ends.
#[tokio::test]
async fn d15_a_human_limits_the_time_of_a_grant() {
    let site = Site::new().await;
    agent_with_a_gated_tool(&site.api).await;
    let run = Run::begin(&site.api).await;
    let id = asked(&run, "ask-1", json!({})).await;
    let browser = site.browser("ada").await;
    let page = browser.see(&format!("{LIST}/{id}")).await;
    let lives = values(&page, "select[name=within] option", "value");
    assert_eq!(lives, ["", "1h", "8h", "1d", "7d", "30d"]);
    let unchosen = browser.decide(&id, "decision=approve&within=8h").await;
    assert_eq!(unchosen.status, StatusCode::BAD_REQUEST);
    let again = Html::parse_document(unchosen.text());
    assert_eq!(values(&again, "option[selected]", "value"), ["8h"]);
    let unknown = browser.decide(&id, "decision=approve&scope=session&within=9h").await;
    assert_eq!(unknown.status, StatusCode::BAD_REQUEST, "{}", unknown.text());
    assert_eq!(run.echo().await["isError"], true, "nothing was decided");

    let approved = browser.decide(&id, "decision=approve&scope=session&within=8h").await;
    assert_eq!(approved.status, StatusCode::SEE_OTHER, "{}", approved.text());
    let page = browser.see(&format!("{LIST}/{id}")).await;
    assert!(all(&page, ".note").remove(0).contains("and ends"));
    let grants = site.api.get("/api/workspaces/default/grants").await;
    let time = |member: &str| {
        let text = grants["items"][0][member].as_str().unwrap();
        Timestamp::parse(text).unwrap()
    };
    let life = time("expires_at").duration_since(time("granted_at")).unwrap();
    let hours = Duration::from_secs(8 * 60 * 60);
    assert!(hours.abs_diff(life) < Duration::from_secs(60), "{life:?}");
    assert_eq!(run.echo().await["content"][0]["text"], "x");
}

/// D15: who sees runs sees requests, and only admins decide. Others see no request.
#[tokio::test]
async fn d15_only_admins_get_the_forms() {
    let site = Site::new().await;
    agent_with_a_gated_tool(&site.api).await;
    let run = Run::begin(&site.api).await;
    let id = asked(&run, "ask-1", json!({})).await;
    let path = format!("{LIST}/{id}");
    let runner = member(&site, "bob", "runner").await;
    let page = runner.see(&path).await;
    assert!(all(&page, "main form").is_empty());
    let main = all(&page, "main").remove(0);
    assert!(main.contains("An admin of the workspace decides."), "{main}");
    assert!(!main.contains("What the run did before"), "the audit is for others");
    let page = runner.see(LIST).await;
    assert!(all(&page, "#approvals .button").remove(0).starts_with("Look"));
    let refused = runner.decide(&id, "decision=approve&scope=once").await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    let author = member(&site, "eve", "author").await;
    assert_eq!(author.look(&path).await.status, StatusCode::FORBIDDEN);
    let page = author.see(LIST).await;
    assert!(!all(&page, "main").remove(0).contains("demo.write"));
    let ada = site.browser("ada").await;
    let absent = ada.look(&format!("{LIST}/grq_0000000000000001")).await;
    assert_eq!(absent.status, StatusCode::NOT_FOUND);
    assert_eq!(run.echo().await["isError"], true);
}

/// D15: where proof is needed, a sign-in by a link cannot approve. The page says what is needed,
/// leads to a sign-in with a passkey, and that leads back.
#[tokio::test]
async fn d15_a_sign_in_without_proof_is_led_to_a_passkey() {
    let (mut site, place) = (Site::new().await, tempfile::tempdir().unwrap());
    let keys = place.path().join("master.key");
    site.api = Api::with_proofs(site.store.clone(), options(), Some(&keys), None).await;
    agent_with_a_gated_tool(&site.api).await;
    let run = Run::begin(&site.api).await;
    let id = asked(&run, "ask-1", json!({})).await;
    let path = format!("{LIST}/{id}");
    let mut browser = site.browser("ada").await;
    let mut authenticator = Authenticator::new(ORIGIN);
    browser.add(&mut authenticator).await.succeeded();

    let page = browser.see(&path).await;
    let proof = all(&page, "aside.note").remove(0);
    assert!(proof.contains("To approve, sign in with a passkey"), "{proof}");
    let off = all(&page, "main button[aria-disabled=true]");
    assert!(off[0].starts_with("Approve is not possible: "), "{off:?}");
    let refused = browser.decide(&id, "decision=approve&scope=once").await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    assert!(refused.text().contains("passkey"), "{}", refused.text());

    let prove = values(&page, "aside.note a", "href").remove(0);
    assert_eq!(prove, format!("{path}/prove"));
    let ways = browser.look(&prove).await;
    let ways = browser.keep(ways);
    assert!(ways.text().contains("<h1>Sign in</h1>"), "{}", ways.text());
    let come_in = browser.passkey(&mut authenticator).await;
    let come_in = browser.keep(come_in).succeeded();
    assert_eq!(come_in["location"], path.as_str());
    let page = browser.see(&path).await;
    assert!(all(&page, "aside.note").is_empty());
    let approved = browser.decide(&id, "decision=approve&scope=once").await;
    assert_eq!(approved.status, StatusCode::SEE_OTHER, "{}", approved.text());
    let told = all(&browser.see(&path).await, ".note").remove(0);
    assert!(told.contains("proved that a human approved it"), "{told}");
}

/// E65: a new request comes to an open inbox, as the page shows it.
#[tokio::test]
async fn e65_a_new_request_comes_to_the_open_page() {
    let site = Site::new().await;
    agent_with_a_gated_tool(&site.api).await;
    let run = Run::begin(&site.api).await;
    let browser = site.browser("ada").await;
    let page = browser.see(LIST).await;
    let live = values(&page, "[hx-sse\\:connect]", "hx-sse:connect").remove(0);
    let mut stream = Stream::of(browser.request(Method::GET, &live).open().await);
    let id = asked(&run, "ask-1", json!({})).await;
    let mut events = String::new();
    let wanted = format!("request-{id}");
    tokio::time::timeout(SOON, async {
        while !events.contains(&wanted) {
            let event = stream.next().await.unwrap();
            events.push_str(std::str::from_utf8(&event.data).unwrap());
        }
    })
    .await
    .unwrap();
    let page = browser.look(LIST).await.text().replace('\n', " ");
    let (_, row) = page.split_once(&format!("<li id=\"{wanted}\">")).unwrap();
    let (row, _) = row.split_once("</li>").unwrap();
    assert!(events.contains(row), "{events}");
}

/// The page of a request has a heading, the policy, and no form without its tokens.
#[tokio::test]
async fn a_9_the_page_of_a_request_keeps_the_laws_of_pages() {
    let site = Site::new().await;
    agent_with_a_gated_tool(&site.api).await;
    let run = Run::begin(&site.api).await;
    let id = asked(&run, "ask-1", json!({})).await;
    let browser = site.browser("ada").await;
    let answer = browser.look(&format!("{LIST}/{id}")).await;
    let policy = answer.headers["content-security-policy"].to_str().unwrap();
    assert!(policy.starts_with("default-src 'none'; script-src 'self'"), "{policy}");
    assert_eq!(answer.headers["cache-control"], "no-store");
    assert!(answer.body.len() < 100_000, "{} bytes", answer.body.len());
    let page = Html::parse_document(answer.text());
    assert_eq!(all(&page, "h1"), ["Approve this request?"]);
    assert_eq!(values(&page, "main form", "action").len(), 2);
    assert_eq!(values(&page, "main form input[name=csrf]", "value").len(), 2);
    assert_eq!(values(&page, "main form input[name=consent]", "value").len(), 2);
}

//! Tests of the pages of runs and sessions: their rows, the trace, its events, and the actions.

use http::StatusCode;
use serde_json::{Value, json};

use super::{FORM, Html, all, site, values};
use crate::{
    api::built_in::{Run, agent_with_a_gated_tool},
    browser::{Browser, Site},
    world::{Answer, SOON, Stream},
};

const RUNS: &str = "/w/default/runs";
const HERE: &str = "/api/workspaces/default";

/// A site with a run of an agent whose tool `echo` requires a grant.
async fn begun(site: &Site) -> Run<'_> {
    agent_with_a_gated_tool(&site.api).await;
    Run::begin(&site.api).await
}

/// The first run, as the API shows it.
async fn first(site: &Site) -> Value {
    site.api.get(&format!("{HERE}/runs")).await["items"][0].clone()
}

async fn grant(site: &Site) {
    let wanted = json!({
        "grant_type": "tool_scope", "scope": "persistent", "details": { "scope": "demo.write" },
        "agent_subject_id": "writer",
    });
    site.api.send("POST", &format!("{HERE}/grants"), wanted.to_string()).await.succeeded();
}

/// Sends a form with these fields.
async fn send(browser: &Browser<'_>, path: &str, fields: &str) -> Answer {
    let page = browser.see("/w/default/").await;
    let csrf = values(&page, "body", "data-csrf").remove(0);
    browser.post(path, FORM, format!("csrf={csrf}&{fields}")).send().await
}

/// R1, R5: the list has its filters in the address, and an active run is counted.
#[tokio::test]
async fn runs_are_listed_and_filtered() {
    let site = site().await;
    let browser = site.browser("ada").await;
    let page = browser.see(RUNS).await;
    assert!(all(&page, "main").remove(0).contains("No runs yet"));
    let _run = begun(&site).await;
    let id = first(&site).await["run_id"].as_str().unwrap().to_owned();
    let titles = async |query: &str| {
        let page = browser.see(&format!("{RUNS}{query}")).await;
        all(&page, "#runs .title")
    };
    assert_eq!(titles("").await, ["Run 1: writer"]);
    assert_eq!(titles("?status=running").await, ["Run 1: writer"]);
    assert_eq!(titles("?agent=writer").await, ["Run 1: writer"]);
    assert!(titles("?agent=other").await.is_empty());
    assert!(titles("?status=ended").await.is_empty());
    assert!(titles(&format!("?parent={id}")).await.is_empty());
    let page = browser.see(&format!("{RUNS}?agent=writer")).await;
    let filters = all(&page, "#run-filters .filter");
    assert!(filters.contains(&"running 1".to_owned()), "{filters:?}");
    assert!(filters.iter().any(|one| one.starts_with("agent “writer”")), "{filters:?}");
    let found = browser.see("/w/default/search?q=WRIT").await;
    assert!(values(&found, "main a", "href").contains(&format!("{RUNS}/{id}")));
    for bad in ["?status=gone", "?parent=x", "?session=x", "?user=unknown", "?before=x"] {
        let answer = browser.look(&format!("{RUNS}{bad}")).await;
        assert!(answer.status.is_client_error(), "{bad}: {}", answer.status);
    }
}

/// A call that failed is found from the page alone: the reason, the check that refused it, and the
/// way to mend it. After a grant, the page says which one allowed the call.
#[tokio::test]
async fn a_failed_call_is_explained_on_the_page() {
    let site = site().await;
    let run = begun(&site).await;
    let browser = site.browser("ada").await;
    assert_eq!(run.echo().await["isError"], true);
    let page = browser.see(&format!("{RUNS}/1")).await;
    assert_eq!(all(&page, "#calls .title"), ["echo"]);
    assert_eq!(all(&page, "#calls .badge"), ["permission_required"]);
    let cause = all(&page, "#calls .cause").remove(0);
    assert!(cause.contains("echo requires a grant"), "{cause}");
    assert!(cause.contains("narthex grants pending"), "{cause}");
    assert!(all(&page, "#calls .facts").remove(0).contains("refused by the check of grants"));

    grant(&site).await;
    assert_eq!(run.echo().await["isError"], Value::Null);
    let page = browser.see(&format!("{RUNS}/1")).await;
    assert_eq!(all(&page, "#calls .badge"), ["ok", "permission_required"]);
    assert!(all(&page, "#calls .facts").remove(0).contains("allowed by the grant"));
    let titles = async |query: &str| {
        let page = browser.see(&format!("{RUNS}/1?{query}")).await;
        all(&page, "#calls .badge")
    };
    assert_eq!(titles("status=failed").await, ["permission_required"]);
    assert_eq!(titles("status=ok").await, ["ok"]);
    assert_eq!(titles("tool=ECH").await.len(), 2);
    assert_eq!(titles("tool=other").await.len(), 0);
    assert_eq!(titles("server=demo").await.len(), 2);
    let timeline = browser.see(&format!("{RUNS}/1?view=timeline")).await;
    assert_eq!(values(&timeline, "#calls svg.timeline rect", "width").len(), 2);
    assert_eq!(values(&timeline, "#calls rect.failed", "width").len(), 1);
    assert_eq!(all(&page, "nx-copy pre").remove(0).lines().count(), 2);
}

/// The trace grows by the calls that end while someone looks, without the list: a new entry comes
/// first, with the sizes that watchers get. Nothing is watched while no one looks.
#[tokio::test]
async fn r_m35_a_call_is_put_into_the_open_page() {
    let site = site().await;
    let run = begun(&site).await;
    let browser = site.browser("ada").await;
    run.echo().await;
    let page = browser.see(&format!("{RUNS}/1")).await;
    let live = values(&page, "[hx-sse\\:connect]", "hx-sse:connect").remove(0);
    assert!(live.contains("topics=waits%2Crun%2Ccalls"), "{live}");
    assert!(!site.api.world.gateway.tap().is_watched());
    let mut stream = Stream::of(browser.request(http::Method::GET, &live).open().await);
    let mut events = Vec::new();
    tokio::time::timeout(SOON, async {
        let is_entry =
            |event: &String| event.contains("hx-target=\"#calls\" hx-swap=\"afterbegin\"");
        while !events.last().is_some_and(is_entry) {
            run.echo().await;
            let event = stream.next().await.unwrap();
            events.push(String::from_utf8(event.data.to_vec()).unwrap());
        }
    })
    .await
    .unwrap();
    assert!(site.api.world.gateway.tap().is_watched());
    // The first event has all parts if a call has ended since the page was made.
    let is_whole = |event: &String| event.contains("hx-target=\"#calls\" hx-swap=\"outerMorph\"");
    assert!(!events.iter().skip(1).any(is_whole), "{events:?}");
    assert!(events.last().unwrap().contains("bytes in"), "{events:?}");
    drop(stream);
    crate::world::until(|| !site.api.world.gateway.tap().is_watched()).await;
}

/// O82: a page asks before the end of a run, and the end is that of the API.
#[tokio::test]
async fn o82_a_run_is_ended_after_a_question() {
    let site = site().await;
    let _run = begun(&site).await;
    let browser = site.browser("ada").await;
    let page = browser.see(&format!("{RUNS}/1")).await;
    let id = first(&site).await["run_id"].as_str().unwrap().to_owned();
    let ending = format!("{RUNS}/{id}/ending");
    assert!(values(&page, "#run-top a.button", "href").contains(&ending));
    let question = browser.see(&ending).await;
    let end = format!("{RUNS}/{id}/end");
    assert_eq!(values(&question, "main form", "action"), std::slice::from_ref(&end));
    assert_eq!(first(&site).await["status"], "running");
    let answer = browser.press(&end).await;
    assert_eq!(answer.headers["location"], format!("{RUNS}/{id}").as_str());
    assert_eq!(first(&site).await["status"], "ended");
    let page = browser.see(&format!("{RUNS}/1")).await;
    assert_eq!(all(&page, "#run-top .badge")[0], "ended");
    assert_eq!(browser.press(&end).await.status, StatusCode::CONFLICT);
    let question = browser.see(&ending).await;
    assert!(all(&question, "main").remove(0).contains("the run has ended already"));
}

/// R-M23: a session is suspended and ended here; it is resumed only where the token of the new run
/// reaches a program.
#[tokio::test]
async fn r_m23_sessions_are_suspended_and_ended() {
    let site = site().await;
    let _run = begun(&site).await;
    let browser = site.browser("ada").await;
    let id = first(&site).await["session_id"].as_str().unwrap().to_owned();
    let place = format!("/w/default/sessions/{id}");
    let page = browser.see("/w/default/sessions").await;
    assert_eq!(all(&page, "#sessions .title"), std::slice::from_ref(&id));
    let answer = browser.press(&format!("{place}/suspend")).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER, "{}", answer.text());
    let back = answer.headers["location"].to_str().unwrap();
    let page = browser.see(back).await;
    assert!(all(&page, "#told").remove(0).contains("is suspended"));
    assert_eq!(all(&page, "#sessions .badge"), ["suspended"]);
    let shown = site.api.get(&format!("{HERE}/sessions/{id}")).await;
    assert_eq!(shown["status"], "suspended");

    let refused = browser.press(&format!("{place}/resume")).await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    assert!(refused.text().contains("narthex sessions resume"), "{}", refused.text());
    let question = browser.see(&format!("{place}/ending")).await;
    assert_eq!(values(&question, "main form", "action"), [format!("{place}/end")]);
    let ended = browser.press(&format!("{place}/end")).await;
    assert_eq!(ended.status, StatusCode::SEE_OTHER);
    let shown = site.api.get(&format!("{HERE}/sessions/{id}")).await;
    assert_eq!(shown["status"], "ended");
}

/// X-E81: a human sends the agent a message, and a fault is at its field with the value kept.
#[tokio::test]
async fn x_e81_a_message_is_sent_from_the_page() {
    let site = site().await;
    let run = begun(&site).await;
    let browser = site.browser("ada").await;
    let path = format!("{RUNS}/1/message");
    let empty = send(&browser, &path, "text=&request_id=q7").await;
    assert_eq!(empty.status, StatusCode::BAD_REQUEST);
    let page = Html::parse_document(empty.text());
    assert_eq!(all(&page, ".field .fault"), ["Write what the agent shall read."]);
    assert_eq!(values(&page, "input[name=request_id]", "value"), ["q7"]);
    let sent = send(&browser, &path, "text=Take+the+second+one.%0D%0A%3Cb%3E&request_id=q1").await;
    assert_eq!(sent.status, StatusCode::SEE_OTHER, "{}", sent.text());
    let events = run.events().await;
    let message = events.iter().find(|event| event["type"] == "user.message").unwrap();
    assert_eq!(message["payload"]["text"], "Take the second one.\n<b>");
    assert_eq!(message["payload"]["request_id"], "q1");
    let page = browser.see(sent.headers["location"].to_str().unwrap()).await;
    assert_eq!(all(&page, "#told"), ["The message is sent."]);
    assert_eq!(all(&page, "#messages blockquote")[0], "Take the second one.\n<b>");
    assert!(all(&page, "#messages .facts").remove(0).contains("ada"));
}

/// The tabs of a run show what the API has of it: its tools, its servers, its grants and files.
#[tokio::test]
async fn the_tabs_show_what_the_api_has() {
    let site = site().await;
    let run = begun(&site).await;
    grant(&site).await;
    let browser = site.browser("ada").await;
    run.echo().await;
    let tools = browser.see(&format!("{RUNS}/1/tools")).await;
    assert!(all(&tools, "tbody th").contains(&"mcp__demo__echo".to_owned()));
    let config = browser.see(&format!("{RUNS}/1/configuration")).await;
    assert_eq!(all(&config, "main li h3"), ["demo"]);
    assert!(all(&config, "tbody").remove(0).contains("writer"));
    let children = browser.see(&format!("{RUNS}/1/children")).await;
    assert!(all(&children, "main").remove(0).contains("has created no other run"));
    let files = browser.see(&format!("{RUNS}/1/files")).await;
    assert!(all(&files, "li.name").contains(&"/mnt/mcp/1-demo".to_owned()));
    let grants = browser.see(&format!("{RUNS}/1/grants")).await;
    assert!(all(&grants, "main .title").remove(0).contains("demo.write"));
    let revoke = values(&grants, "main ul.rows form", "action").remove(0);
    let done = browser.press(&revoke).await;
    assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text());
    let grants = browser.see(done.headers["location"].to_str().unwrap()).await;
    assert!(all(&grants, "main").remove(0).contains("No grants"));
    assert_eq!(run.echo().await["isError"], true, "it counts no more");
}

/// S27: neither the token of a run nor its sealed inputs are in any of its pages.
#[tokio::test]
async fn s27_pages_of_runs_have_no_secret() {
    let site = site().await;
    agent_with_a_gated_tool(&site.api).await;
    let asked = json!({ "agent_name": "writer", "prompt": "canary-of-the-prompt" }).to_string();
    let made = site.api.send("POST", &format!("{HERE}/runs"), asked).await.succeeded();
    let token = made["token"].as_str().unwrap();
    let browser = site.browser("ada").await;
    for (path, _, _) in narthex_http::pages().filter(|(_, method, _)| *method == "GET") {
        let path = super::filled("default", path);
        if !path.contains("/runs") {
            continue;
        }
        let answer = browser.look(&path).await;
        assert!(!answer.text().contains(&token[4..]), "{path}");
        assert!(!answer.text().contains("canary-of-the-prompt"), "{path}");
    }
}

/// A runner does not read the audit: the calls of before are not shown, and those that end while
/// the page is open are.
#[tokio::test]
async fn a_runner_sees_calls_as_they_end_and_no_audit() {
    let site = site().await;
    let run = begun(&site).await;
    let bob = site.api.send("POST", "/api/principals", r#"{"name":"bob"}"#).await.succeeded();
    let place = format!("{HERE}/members/{}", bob["id"].as_str().unwrap());
    site.api.send("PUT", &place, r#"{"roles":["runner"]}"#).await.succeeded();
    let browser = site.browser("bob").await;
    run.echo().await;
    let page = browser.see(&format!("{RUNS}/1")).await;
    assert!(all(&page, "#calls .title").is_empty());
    assert!(all(&page, "main").remove(0).contains("which admins and auditors read"));
    assert!(values(&page, "main a[download]", "href").is_empty());
    let live = values(&page, "[hx-sse\\:connect]", "hx-sse:connect").remove(0);
    let mut stream = Stream::of(browser.request(http::Method::GET, &live).open().await);
    let mut events = String::new();
    tokio::time::timeout(SOON, async {
        while !events.contains("hx-target=\"#calls\" hx-swap=\"afterbegin\"") {
            run.echo().await;
            let event = stream.next().await.unwrap();
            events.push_str(std::str::from_utf8(&event.data).unwrap());
        }
    })
    .await
    .unwrap();
    assert!(events.contains(">echo<") && events.contains("permission_required"), "{events}");
    assert!(!events.contains("refused by the check"), "{events}");
    assert_eq!(
        browser.press(&format!("{RUNS}/1/revoke?grant=x")).await.status,
        StatusCode::FORBIDDEN
    );
}

//! Tests of the list of grants, and of their revocation.

use http::StatusCode;
use serde_json::{Value, json};

use super::{FORM, all, approvals::member, values};
use crate::{
    api::built_in::{Run, agent_with_a_gated_tool},
    browser::Site,
};

const LIST: &str = "/w/default/grants";
const API: &str = "/api/workspaces/default/grants";

/// The id of a new grant of a scope, with the members that say for whom and how long.
async fn granted(site: &Site, scope: &str, more: Value) -> String {
    let mut grant = json!({
        "grant_type": "tool_scope", "details": { "scope": scope }, "reason": "<b>as agreed</b>",
    });
    grant.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let made = site.api.send("POST", API, grant.to_string()).await.succeeded();
    made["id"].as_str().unwrap().to_owned()
}

fn for_the_agent() -> Value {
    json!({ "agent_subject_id": "writer", "scope": "persistent" })
}

/// R1, X-E76: grants that count are listed, by subject and scope.
#[tokio::test]
async fn r1_grants_are_found_by_subject_and_scope() {
    let site = Site::new().await;
    agent_with_a_gated_tool(&site.api).await;
    let browser = site.browser("ada").await;
    let empty = browser.see(LIST).await;
    assert!(all(&empty, ".empty").remove(0).contains("Nothing is granted"));
    let ended = granted(&site, "demo.write", for_the_agent()).await;
    granted(&site, "demo.push", json!({ "user_subject_id": "ada", "scope": "once" })).await;
    let found = async |query: &str| {
        let page = browser.see(&format!("{LIST}?{query}")).await;
        let mut titles = all(&page, "#grants .title");
        titles.sort_unstable();
        titles
    };
    let (push, write) = ("tool scope demo.push", "tool scope demo.write");
    assert_eq!(found("").await, [push, write]);
    assert_eq!(found("scope=demo.push").await, [push]);
    assert_eq!(found("agent=writer").await, [write]);
    assert_eq!(found(&format!("user={}", site.ada)).await, [push]);
    let page = browser.see(&format!("{LIST}?agent=writer&scope=demo.write")).await;
    let current = values(&page, ".filter[aria-current]", "href");
    let without = [format!("{LIST}?scope=demo.write"), format!("{LIST}?agent=writer")];
    assert!(without.iter().all(|one| current.contains(one)), "{current:?}");
    assert!(all(&page, "#grants q").contains(&"<b>as agreed</b>".to_owned()));
    let wrong = browser.look(&format!("{LIST}?scope=No")).await;
    assert_eq!(wrong.status, StatusCode::BAD_REQUEST);
    assert!(wrong.text().contains("is not a valid tool scope"), "{}", wrong.text());

    site.api.send("DELETE", &format!("{API}/{ended}"), "").await;
    assert_eq!(found("").await, [push]);
    assert_eq!(found("ended=true").await, [push, write]);
    let page = browser.see(&format!("{LIST}?ended=true&agent=writer")).await;
    let row = all(&page, "#grants > li").remove(0);
    assert!(row.contains("Allows no call") && row.contains("revoked it"), "{row}");
    let unknown = browser.look(&format!("{LIST}?after=x")).await;
    assert_eq!(unknown.status, StatusCode::BAD_REQUEST);
}

/// X-E76: the page of a grant names the active runs that lose it, and revokes it as the API does.
#[tokio::test]
async fn x_e76_a_revocation_says_which_runs_lose_the_grant() {
    let site = Site::new().await;
    agent_with_a_gated_tool(&site.api).await;
    let id = granted(&site, "demo.write", for_the_agent()).await;
    let run = Run::begin(&site.api).await;
    assert_eq!(run.echo().await["content"][0]["text"], "x");
    let path = format!("{LIST}/{id}");
    let runner = member(&site, "bob", "runner").await;
    let page = runner.see(&path).await;
    let off = all(&page, "#revoke [aria-disabled=true]");
    assert!(off[0].contains("only an admin"), "{off:?}");
    let csrf = values(&page, "body", "data-csrf").remove(0);
    let revoke = format!("{path}/revoke");
    let refused = runner.post(&revoke, FORM, format!("csrf={csrf}")).send().await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);

    let browser = site.browser("ada").await;
    let page = browser.see(&path).await;
    assert_eq!(all(&page, "h1"), [format!("Grant {id}")]);
    let losing = all(&page, "#revoke").remove(0);
    assert!(losing.contains("1 active run loses it with the next call"), "{losing}");
    let done = browser.press(&revoke).await;
    assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text());
    let back = done.headers["location"].to_str().unwrap();
    assert_eq!(back, format!("{LIST}?done=revoke"));
    assert_eq!(all(&browser.see(back).await, "#told"), ["The grant is revoked."]);
    assert_eq!(run.echo().await["isError"], true);
    assert_eq!(site.api.get(&format!("{API}/{id}")).await["counts"], false);
    let page = browser.see(&path).await;
    assert!(all(&page, "#revoke").is_empty());
    let absent = browser.look(&format!("{LIST}/gra_0000000000000001")).await;
    assert_eq!(absent.status, StatusCode::NOT_FOUND);
}

//! The rights of pages: those of the API's routes that do the same, role by role.

use http::{Method, StatusCode};
use narthex_http::{Access, ROUTES, pages};
use narthex_model::Role;

use super::{
    FORM,
    approvals::member,
    attacked::{Attacked, HERE, fields},
    values,
};

const IN: &str = "/api/workspaces/{workspace}";
/// The route of a page that shows or changes things of its human, of the machine or of the console
/// alone.
const OWN: [&str; 2] = ["", ""];

/// The route of the API that has the data of a page, or does the same: its method, and its path, of
/// which `~` is that of the workspace.
fn route_of(page: &str, method: &str) -> [&'static str; 2] {
    let first = page.split('/').next().unwrap();
    match (method, first) {
        (_, "servers" | "tools" | "reload" | "add-server") => of_servers(page, method),
        (_, "catalog" | "registry" | "secrets") => of_catalog(page, method),
        (_, "capabilities" | "agents" | "new-capability" | "new-agent" | "play") => {
            of_agents(page, method)
        }
        (_, "runs" | "sessions" | "grants" | "approvals") => of_runs(page, method),
        (_, "settings") => of_settings(page, method),
        (_, "audit") => ["GET", "~/audit"],
        ("GET", "") => ["GET", "~/usage"],
        ("GET", "connect" | "search" | "live") => OWN,
        // The machine of the daemon: for operators alone, as all of its settings.
        ("POST", "connect") => ["GET", "/api/files"],
        ("GET", "clients") => ["GET", "~/mcp-clients"],
        ("POST", "clients") => ["DELETE", "~/mcp-clients/{id}"],
        ("GET", "policy") => ["GET", "~/policy"],
        ("POST", "policy") if page == "policy/save" => ["PUT", "~/policy"],
        ("POST", "policy") => ["POST", "~/policy/check"],
        ("GET", "me") => ["GET", "~/users/{user}/mcp-tokens"],
        ("POST", "me") => match page {
            "me/connections/{name}/connect" => {
                ["POST", "~/users/{user}/mcp-tokens/{server}/connect"]
            }
            "me/connections/{name}/disconnect" => ["DELETE", "~/users/{user}/mcp-tokens/{server}"],
            _ => OWN,
        },
        _ => unknown(page, method),
    }
}

fn unknown(page: &str, method: &str) -> ! {
    panic!("{method} {page}: name the route of the API that has the same data or action")
}

/// The same for servers of the configuration.
fn of_servers(page: &str, method: &str) -> [&'static str; 2] {
    match (method, page) {
        ("GET", "servers") => ["GET", "/api/servers"],
        (_, "add-server") => ["PUT", "/api/servers/{name}"],
        ("POST", "reload") => ["POST", "/api/reload"],
        ("POST", "servers/{name}/disable") => ["POST", "/api/servers/{name}/disable"],
        ("POST", "servers/{name}/enable") => ["POST", "/api/servers/{name}/enable"],
        ("POST", "servers/{name}/reconnect") => ["POST", "/api/servers/{name}/reconnect"],
        ("POST", "servers/{name}/test") => ["POST", "/api/servers/{name}/test"],
        ("POST", "servers/{name}/authorize") => ["POST", "/api/servers/{name}/authorize"],
        ("POST", "servers/{name}/reauthorize") => ["POST", "/api/servers/{name}/reauthorize"],
        ("GET", "servers/{name}" | "servers/{name}/configuration") => {
            ["GET", "/api/servers/{name}"]
        }
        ("GET", "servers/{name}/tools" | "tools") => ["GET", "/api/tools"],
        ("POST", "tools/change") => ["PATCH", "/api/servers/{name}"],
        ("GET", "servers/{name}/log" | "servers/{name}/log.txt") => {
            ["GET", "/api/servers/{name}/logs"]
        }
        ("GET", "servers/{name}/definitions") => ["GET", "~/mcp-servers/{id}/definitions"],
        ("POST", "servers/{name}/definitions/accept") => {
            ["POST", "~/mcp-servers/{id}/definitions/accept"]
        }
        ("POST", "servers/{name}/definitions/reject") => {
            ["POST", "~/mcp-servers/{id}/definitions/reject"]
        }
        ("GET", "servers/{name}/calls") => ["GET", "~/audit"],
        ("GET", "servers/{name}/runs") => ["GET", "~/runs"],
        _ => unknown(page, method),
    }
}

/// The same for the catalog, the registry and secrets.
fn of_catalog(page: &str, method: &str) -> [&'static str; 2] {
    match (method, page) {
        ("GET", "catalog") => ["GET", "~/mcp-servers"],
        ("GET", "catalog/{entry}") => ["GET", "~/mcp-servers/{id}"],
        (_, "catalog/new" | "catalog/new/save") => ["POST", "~/mcp-servers"],
        (_, "registry" | "registry/server" | "registry/add") => ["POST", "~/mcp-servers"],
        (_, "catalog/{entry}/remove" | "catalog/{entry}/delete") => {
            ["DELETE", "~/mcp-servers/{id}"]
        }
        (_, entry) if entry.starts_with("catalog/{entry}/") => ["PUT", "~/mcp-servers/{id}"],
        ("GET", "secrets") => ["GET", "~/secrets"],
        (_, "secrets/new" | "secrets/{secret}/set") => ["PUT", "~/secrets/{name}"],
        (_, "secrets/{secret}/clear") => ["DELETE", "~/secrets/{name}"],
        _ => unknown(page, method),
    }
}

/// The same for capabilities, agents and calls from a page.
fn of_agents(page: &str, method: &str) -> [&'static str; 2] {
    match (method, page) {
        (_, "play" | "play/call" | "agents/{agent}/start") => ["POST", "~/runs"],
        ("GET", "capabilities") => ["GET", "~/capabilities"],
        ("POST", "new-capability") => ["POST", "~/capabilities"],
        ("GET", "capabilities/{capability}") => ["GET", "~/capabilities/{id}"],
        ("POST", "capabilities/{capability}/edit") => ["PUT", "~/capabilities/{id}"],
        ("POST", "capabilities/{capability}/delete") => ["DELETE", "~/capabilities/{id}"],
        ("GET", "agents") => ["GET", "~/agents"],
        ("POST", "new-agent") => ["POST", "~/agents"],
        ("GET", "agents/{agent}") => ["GET", "~/agents/{id}"],
        ("POST", "agents/{agent}/edit") => ["PUT", "~/agents/{id}"],
        ("POST", "agents/{agent}/delete") => ["DELETE", "~/agents/{id}"],
        _ => unknown(page, method),
    }
}

/// The same for runs, sessions, grants and requests.
fn of_runs(page: &str, method: &str) -> [&'static str; 2] {
    match (method, page) {
        // Members without the right see the connections and the definitions that wait for them.
        ("GET", "approvals") => OWN,
        ("GET", "approvals/{request}") => ["GET", "~/grant-requests"],
        (_, "approvals/{request}/decide" | "approvals/{request}/prove") => {
            ["POST", "~/grant-requests/{id}/approve"]
        }
        ("GET", "runs") => ["GET", "~/runs"],
        ("GET", "sessions") => ["GET", "~/sessions"],
        (_, "runs/{run}/ending" | "runs/{run}/end") => ["DELETE", "~/runs/{id}"],
        ("POST", "runs/{run}/message") => ["POST", "~/sessions/{id}/messages"],
        ("POST", "runs/{run}/revoke" | "grants/{grant}/revoke") => ["DELETE", "~/grants/{id}"],
        ("GET", run) if run.starts_with("runs/{run}") => ["GET", "~/runs/{id}"],
        (_, "sessions/{session}/ending" | "sessions/{session}/end") => {
            ["DELETE", "~/sessions/{id}"]
        }
        ("POST", "sessions/{session}/suspend") => ["POST", "~/sessions/{id}/suspend"],
        ("POST", "sessions/{session}/resume") => ["POST", "~/sessions/{id}/resume"],
        ("GET", "grants") => ["GET", "~/grants"],
        ("GET", "grants/{grant}") => ["GET", "~/grants/{id}"],
        _ => unknown(page, method),
    }
}

/// The same for the settings of a workspace.
fn of_settings(page: &str, method: &str) -> [&'static str; 2] {
    match (method, page) {
        ("GET", "settings" | "settings/kept" | "settings/sign-in") => ["GET", "~"],
        ("POST", "settings" | "settings/kept/events" | "settings/kept/contents") => ["PATCH", "~"],
        ("POST", "settings/kept/audit") => ["PUT", "~/audit/settings"],
        ("GET", "settings/members" | "settings/members/{member}/roles") => ["GET", "~/members"],
        (_, "settings/members/new" | "settings/members/{member}/roles") => {
            ["PUT", "~/members/{principal}"]
        }
        (_, "settings/members/{member}/remove") => ["DELETE", "~/members/{principal}"],
        ("GET", "settings/limits") => ["GET", "~/limits"],
        ("POST", "settings/limits") => ["PUT", "~/limits"],
        ("GET", "settings/channels") => ["GET", "~/channels"],
        (_, "settings/channels/new" | "settings/channels/{channel}/edit") => {
            ["PUT", "~/channels/{name}"]
        }
        (_, "settings/channels/{channel}/remove") => ["DELETE", "~/channels/{name}"],
        ("GET", "settings/webhooks") => ["GET", "~/webhooks"],
        ("GET", "settings/webhooks/{webhook}/deliveries") => {
            ["GET", "~/webhooks/{name}/deliveries"]
        }
        (_, "settings/webhooks/{webhook}/remove") => ["DELETE", "~/webhooks/{name}"],
        (_, webhooks) if webhooks.starts_with("settings/webhooks/") => ["PUT", "~/webhooks/{name}"],
        ("GET", "settings/tokens") => ["GET", "~/service-tokens"],
        (_, "settings/tokens/new") => ["POST", "~/service-tokens"],
        (_, "settings/tokens/{token}/revoke") => ["DELETE", "~/service-tokens/{id}"],
        _ => unknown(page, method),
    }
}

/// The same access as far as humans are concerned: rights of runs are left out.
fn of_humans(access: Access) -> Access {
    match access {
        Access::Starter(roles) => Access::Member(roles),
        Access::Shared | Access::Whole => Access::Operator,
        other => other,
    }
}

/// S18: a page needs the right that the API needs for the same: no more, and above all no less.
#[test]
fn s18_pages_have_the_rights_of_the_api() {
    for (page, method, access) in pages() {
        let [verb, path] = route_of(page, method);
        if path.is_empty() {
            let every = Access::Member(&[Role::Admin, Role::Author, Role::Runner, Role::Auditor]);
            assert_eq!(access, every, "{method} {page}");
            continue;
        }
        let path = path.replace('~', IN);
        let is_it = |methods: &str| methods.split(", ").any(|one| one == verb);
        let mut routes = ROUTES.iter().filter(|one| one.template == path && is_it(one.methods));
        let route = routes.next().unwrap_or_else(|| panic!("{method} {page}: {verb} {path}"));
        assert_eq!(of_humans(access), of_humans(route.access), "{method} {page}: {verb} {path}");
    }
}

/// S18: each role gets the pages of its right, and no other one: neither to look at, nor by a form
/// with a valid token, nor as a live part. Nothing changes.
#[tokio::test]
async fn s18_each_role_gets_its_own_pages_alone() {
    let all = Attacked::new().await;
    let mut browsers = Vec::new();
    for (name, role) in
        [("amy", Role::Admin), ("bob", Role::Author), ("cem", Role::Runner), ("dan", Role::Auditor)]
    {
        browsers.push((role, member(&all.site, name, role.as_str()).await));
    }
    let before = all.state().await;
    let mut refused = 0;
    for (role, browser) in &browsers {
        let csrf = browser.form_token("default").await;
        for (page, method, access) in pages() {
            let is_admitted = match of_humans(access) {
                Access::Member(roles) => roles.contains(role),
                _ => false,
            };
            if is_admitted && method != "GET" {
                continue;
            }
            let path = all.path("default", page);
            let request = match method {
                "GET" => browser.request(Method::GET, &path),
                _ => browser.post(&path, FORM, format!("csrf={csrf}&{}", fields(page))),
            };
            let status = request.open().await.status();
            let is_refused = status == StatusCode::FORBIDDEN;
            assert_eq!(is_refused, !is_admitted, "{role:?}: {method} {page}: {status}");
            refused += usize::from(is_refused);
        }
    }
    assert!(refused > 60, "{refused}");
    all.is_as_before(&before).await;
}

/// S18: a live part is for those who may open its page.
#[tokio::test]
async fn s18_live_parts_are_for_those_who_may_open_their_page() {
    let all = Attacked::new().await;
    let run = all.value("{run}");
    let of_run = |topic: &str| format!("topics={topic}&run={run}");
    let topics = [
        (of_run("run"), vec!["admin", "runner", "auditor"]),
        (of_run("calls"), vec!["admin", "runner", "auditor"]),
        (of_run("messages"), vec!["admin", "runner", "auditor"]),
        ("topics=runs".to_owned(), vec!["admin", "runner", "auditor"]),
        ("topics=log&server=one".to_owned(), vec![]),
        ("topics=server&server=one".to_owned(), vec![]),
        ("topics=tools&server=one".to_owned(), vec![]),
        ("topics=servers".to_owned(), vec![]),
        ("topics=definitions&server=one".to_owned(), vec![]),
        ("topics=waits,home".to_owned(), vec!["admin", "author", "runner", "auditor"]),
        // One part that may not be seen refuses all, also after parts that may be seen.
        (format!("topics=waits,log&server=one&run={run}"), vec![]),
    ];
    for (name, role) in [("amy", "admin"), ("bob", "author"), ("cem", "runner"), ("dan", "auditor")]
    {
        let browser = member(&all.site, name, role).await;
        for (topic, roles) in &topics {
            let request = browser.request(Method::GET, &format!("/w/default/live?{topic}"));
            let status = request.open().await.status();
            let is_open = status == StatusCode::OK;
            assert_eq!(is_open, roles.contains(&role), "{role}: {topic}: {status}");
        }
    }
}

/// X-M58: who may only send a message does not see the run by an answer that refuses the message.
#[tokio::test]
async fn x_m58_a_refused_message_shows_no_run() {
    let all = Attacked::new().await;
    let author = member(&all.site, "bob", "author").await;
    let csrf = author.form_token("default").await;
    let path = all.path("default", "runs/{run}/message");
    let long = "x".repeat(9_000);
    for text in ["", "%20", &long] {
        let answer = author.post(&path, FORM, format!("csrf={csrf}&text={text}")).send().await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{}", answer.text());
        assert!(!answer.text().contains(super::SESSION), "{}", answer.text());
        assert!(!answer.text().contains(all.value("{run}")), "{}", answer.text());
    }
}

/// D15: a call from a page is made with the rights of its human: a runner reaches no server of the
/// configuration by it.
#[tokio::test]
async fn d15_the_playground_gives_no_rights() {
    let all = Attacked::new().await;
    let runner = member(&all.site, "cem", "runner").await;
    let csrf = runner.form_token("default").await;
    for page in ["play/call", "agents/{agent}/start"] {
        let form = format!("csrf={csrf}&{}", fields(page));
        let answer = runner.post(&all.path("default", page), FORM, form).send().await;
        assert!(!answer.text().contains("The tool has answered"), "{page}: {}", answer.text());
    }
    let audit = format!("{HERE}/audit?kind=session.mcp.tool_called");
    let calls = all.site.api.get(&audit).await;
    let is_of_one = |call: &serde_json::Value| call["server"] == "one";
    assert!(!calls["items"].as_array().unwrap().iter().any(is_of_one), "{calls}");
}

/// X-E82, X-M56: of two humans who look at the same request, the first decides; the other one
/// changes nothing.
#[tokio::test]
async fn x_e82_of_two_humans_the_first_decides() {
    let all = Attacked::new().await;
    let amy = member(&all.site, "amy", "admin").await;
    let ada = all.site.browser("ada").await;
    let path = all.path("default", "approvals/{request}");
    let mut forms = Vec::new();
    for browser in [&ada, &amy] {
        let page = browser.see(&path).await;
        let consent = values(&page, "main form input[name=consent]", "value").remove(0);
        let csrf = values(&page, "body", "data-csrf").remove(0);
        forms.push(format!("csrf={csrf}&consent={consent}"));
    }
    let decide = format!("{path}/decide");
    let [of_ada, of_amy]: [String; 2] = forms.try_into().unwrap();
    let approve = format!("{of_ada}&decision=approve&scope=once");
    let approved = ada.post(&decide, FORM, approve).send().await;
    assert_eq!(approved.status, StatusCode::SEE_OTHER, "{}", approved.text());
    let late = format!("{of_amy}&decision=deny&denial=no");
    let late = amy.post(&decide, FORM, late).send().await;
    assert_eq!(late.status, StatusCode::CONFLICT, "{}", late.text());
    let page = amy.see(&path).await;
    assert_eq!(super::all(&page, "h1"), ["Approved"]);
}

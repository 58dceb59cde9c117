//! Tests of the pages of operators: their readers, all workspaces, the keys, the files, the daemon
//! and the audit of the installation.

use std::collections::BTreeSet;

use fs_err as fs;
use http::{Method, StatusCode};
use narthex_http::operator_pages;
use scraper::Html;
use serde_json::{Value, json};

use super::{FORM, all, site, values};
use crate::browser::{Browser, ORIGIN, Site};

const WORKSPACES: &str = "/operator/workspaces";

/// The path of a page, with a workspace of the test for the name in braces.
fn filled(path: &str) -> String {
    format!("/operator/{}", path.replace("{workspace}", "team"))
}

/// A site with a second workspace.
async fn two() -> Site {
    let site = site().await;
    let team = r#"{"id":"team","name":"The <b>team</b>"}"#;
    site.api.send("POST", "/api/workspaces", team).await.succeeded();
    site
}

/// Makes a human who is an admin of the workspace `default`, and no operator.
async fn add_bob(site: &Site) {
    let bob = site.api.send("POST", "/api/principals", r#"{"name":"bob"}"#).await.succeeded();
    let place = format!("/api/workspaces/default/members/{}", bob["id"].as_str().unwrap());
    site.api.send("PUT", &place, r#"{"roles":["admin"]}"#).await.succeeded();
}

async fn csrf(browser: &Browser<'_>) -> String {
    let page = browser.see("/operator/").await;
    values(&page, "body", "data-csrf").remove(0)
}

/// The cells of the row of a workspace, behind its name.
fn cells(page: &Html, name: &str) -> Vec<String> {
    let names = all(page, ".wide tbody th a");
    let index = names.iter().position(|one| one == name).unwrap_or_else(|| panic!("{names:?}"));
    all(page, &format!(".wide tbody tr:nth-child({}) td.number", index + 1))
}

/// Each page has a title of its own, one heading, the policy, and nothing of another host.
#[tokio::test]
async fn each_page_of_operators_has_a_title_a_heading_and_the_policy() {
    let site = two().await;
    let browser = site.browser("ada").await;
    let mut titles = BTreeSet::new();
    let shown = |path: &str| path != "audit/export";
    for (path, _, _) in operator_pages().filter(|(path, method, _)| *method == "GET" && shown(path))
    {
        let path = filled(path);
        let answer = browser.look(&path).await;
        assert_eq!(answer.status, StatusCode::OK, "{path}: {}", answer.text());
        let policy = answer.headers["content-security-policy"].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'"), "{policy}");
        assert_eq!(answer.headers["cache-control"], "no-store", "{path}");
        let page = Html::parse_document(answer.text());
        assert_eq!(all(&page, "h1").len(), 1, "{path}");
        let title = all(&page, "title").remove(0);
        assert!(title.ends_with(" · Operator · narthex"), "{title}");
        assert!(titles.insert(title), "{path}: {titles:?}");
        for (selector, attribute) in [("[src]", "src"), ("[href]", "href"), ("form", "action")] {
            for to in values(&page, selector, attribute) {
                assert!(to.starts_with('/') || to.starts_with('#'), "{path}: {to}");
            }
        }
        let nav = ["Daemon", "Workspaces", "Master keys", "Files", "Audit"];
        assert_eq!(all(&page, "nav.pages a"), nav, "{path}");
        assert_eq!(values(&page, ".waits", "href"), ["/w/default/approvals"], "{path}");
        assert_eq!(all(&page, ".same dt").len() % 2, 0, "{path}");
        assert!(answer.body.len() < 100_000, "{path}: {} bytes", answer.body.len());
    }
    assert!(titles.len() >= 7, "{titles:?}");
    assert_eq!(browser.look("/operator").await.status, StatusCode::OK);
    let absent = browser.look("/operator/nothing").await;
    assert_eq!(absent.status, StatusCode::NOT_FOUND);
}

/// S18: for a human who is no operator, also for an admin, each page looks like an absent one.
#[tokio::test]
async fn s18_pages_of_operators_look_absent_to_others() {
    let site = two().await;
    add_bob(&site).await;
    let browser = site.browser("bob").await;
    let ask = async |method: &str, path: &str| {
        let request = browser.request(method.parse().unwrap(), path).header("origin", ORIGIN);
        let answer = request.header("accept", "text/html").send().await;
        (answer.status, answer.text().to_owned())
    };
    for (path, method, _) in operator_pages() {
        let (theirs, absent) = (ask(method, &filled(path)).await, ask(method, "/operator/x").await);
        assert_eq!(theirs, absent, "{method} {path}");
        assert_eq!(theirs.0, StatusCode::NOT_FOUND, "{method} {path}");
    }
    let page = browser.see("/w/default/").await;
    assert!(values(&page, "a", "href").iter().all(|to| !to.contains("operator")));
    let operator = site.browser("ada").await;
    let page = operator.see("/w/default/").await;
    let entries = values(&page, ".workspaces a", "href");
    assert_eq!(entries.last().map(String::as_str), Some("/operator/"), "{entries:?}");
    assert_eq!(values(&page, "nav.pages a", "href").last().unwrap(), "/operator/");
}

/// D4: without a login session there is only the sign-in, and then the page that was asked for.
#[tokio::test]
async fn d4_operators_sign_in_first() {
    let site = two().await;
    for (path, method, _) in operator_pages() {
        let mut browser = Browser::new(&site);
        let request = browser.request(method.parse().unwrap(), &filled(path));
        let answer = request.header("origin", ORIGIN).header("accept", "text/html").send().await;
        let answer = browser.keep(answer);
        assert!(answer.text().contains("<h1>Sign in</h1>"), "{method} {path}");
    }
    let mut browser = Browser::new(&site);
    let answer = browser.look("/operator/keys").await;
    browser.keep(answer);
    let link = site.link("ada").await;
    assert_eq!(browser.form(&link, "").await.headers["location"], "/operator/keys");
}

/// A-9: an action needs a form of our own page, with the token of its login session.
#[tokio::test]
async fn a_9_actions_of_operators_need_the_token_of_the_page() {
    let site = two().await;
    let browser = site.browser("ada").await;
    let keys = site.api.get("/api/secrets/keys").await;
    let token = csrf(&browser).await;
    for (path, _, _) in operator_pages().filter(|(_, method, _)| *method == "POST") {
        let path = filled(path);
        for form in ["", "csrf=", "csrf=AAAA", "other=1", "csrf=AAAA&id=new"] {
            let answer = browser.post(&path, FORM, form.to_owned()).send().await;
            let is_refused =
                matches!(answer.status, StatusCode::FORBIDDEN | StatusCode::BAD_REQUEST);
            assert!(is_refused, "{path} {form}: {}", answer.status);
        }
        let foreign = browser.post(&path, FORM, format!("csrf={token}&id=new"));
        let foreign = foreign.header("origin", "https://evil.example").send().await;
        assert!(foreign.status.is_client_error(), "{path}");
    }
    assert_eq!(site.api.get("/api/secrets/keys").await, keys);
    let workspaces = site.api.get("/api/workspaces").await;
    assert_eq!(workspaces["items"].as_array().unwrap().len(), 2);
}

/// R4: the numbers of the page are those of the API, and of the lists that they count.
#[tokio::test]
async fn r4_workspaces_are_counted_as_their_lists() {
    let site = two().await;
    add_bob(&site).await;
    super::begin_run(&site).await;
    let browser = site.browser("ada").await;
    let page = browser.see(WORKSPACES).await;
    let listed = site.api.get("/api/daemon/workspaces").await;
    let items = listed["items"].as_array().unwrap();
    assert_eq!(items.len(), 2, "{listed}");
    let [default, team] = [&items[0], &items[1]];
    let count = |value: &Value| value["items"].as_array().unwrap().len();
    let members = count(&site.api.get("/api/workspaces/default/members").await);
    assert_eq!(default["members"], members);
    assert_eq!((&default["servers"], &default["file_servers"]), (&json!(1), &json!(1)));
    assert_eq!(default["runs"], 1);
    let empty = ["members", "servers", "file_servers", "runs", "calls"];
    assert!(empty.iter().all(|name| team[name] == 0), "{team}");
    for (name, of) in [("Default", default), ("The <b>team</b>", team)] {
        let expected: Vec<_> = empty.iter().map(|name| of[name].to_string()).collect();
        assert_eq!(cells(&page, name), expected, "{name}");
    }
    let page = browser.see(&format!("{WORKSPACES}?q=TEAM")).await;
    assert_eq!(all(&page, ".wide tbody th a"), ["The <b>team</b>"]);
    assert_eq!(values(&page, ".wide tbody th a", "href"), ["/w/team/"]);
    let none = browser.see(&format!("{WORKSPACES}?q=nothing")).await;
    assert!(all(&none, "main").remove(0).contains("No workspace has this text"));
    let wrong = browser.look(&format!("{WORKSPACES}?unknown=1")).await;
    assert!(wrong.status.is_client_error());
}

/// R5: a list of many workspaces has pages.
#[tokio::test]
async fn r5_workspaces_have_pages() {
    let site = site().await;
    for number in 0..45 {
        let body = json!({ "id": format!("team-{number:02}") }).to_string();
        site.api.send("POST", "/api/workspaces", body).await.succeeded();
    }
    let browser = site.browser("ada").await;
    let page = browser.see(&format!("{WORKSPACES}?q=team")).await;
    assert_eq!(all(&page, ".wide tbody th").len(), 40);
    let next = values(&page, "main p.spread a.button", "href").remove(0);
    assert_eq!(next, format!("{WORKSPACES}?q=team&after=team-39"));
    let rest = browser.see(&next).await;
    let rest = all(&rest, ".wide tbody th a");
    assert_eq!(rest, ["team-40", "team-41", "team-42", "team-43", "team-44"]);
}

/// A workspace is created by a form whose faults stand at their fields.
#[tokio::test]
async fn a_workspace_is_created_by_a_form() {
    let site = two().await;
    let browser = site.browser("ada").await;
    let csrf = csrf(&browser).await;
    let path = format!("{WORKSPACES}/new");
    let send =
        async |form: &str| browser.post(&path, FORM, format!("csrf={csrf}&{form}")).send().await;
    let id = "#f-id\\.fault";
    for (form, fault) in [
        ("id=&name=Kept", "1 to 64"),
        ("id=No+Such&name=Kept", "1 to 64"),
        ("id=team&name=Kept", "exists already"),
    ] {
        let answer = send(form).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{form}");
        let page = Html::parse_document(answer.text());
        let faults = all(&page, id);
        assert!(faults[0].contains(fault), "{form}: {faults:?}");
        assert_eq!(values(&page, "#f-name", "value"), ["Kept"], "{form}");
    }
    let made = send("id=sales&name=Sales+%3Cb%3E").await;
    assert_eq!(made.status, StatusCode::SEE_OTHER, "{}", made.text());
    assert_eq!(made.headers["location"], format!("{WORKSPACES}?done=create&name=sales").as_str());
    assert_eq!(site.api.get("/api/workspaces/sales").await["name"], "Sales <b>");
    let page = browser.see(&format!("{WORKSPACES}?done=create&name=sales")).await;
    assert_eq!(all(&page, "#told"), ["The workspace sales is created."]);
}

/// The contents of a workspace are shown before the deletion, and go only by that page's form.
#[tokio::test]
async fn a_workspace_is_deleted_after_a_look_at_its_contents() {
    let site = two().await;
    let browser = site.browser("ada").await;
    let path = format!("{WORKSPACES}/team/delete");
    let entry = json!({ "command": "docs-server" }).to_string();
    site.api.send("PUT", "/api/workspaces/team/mcp-servers/docs", entry).await.succeeded();
    let page = browser.see(&path).await;
    assert_eq!(all(&page, ".effects li"), ["1 server"]);
    assert!(
        all(&page, ".same code").contains(&"narthex workspaces delete team --force".to_owned())
    );
    // Without the field of that page the workspace has to be empty.
    let refused = browser.press(&path).await;
    assert_eq!(refused.status, StatusCode::CONFLICT, "{}", refused.text());
    let csrf = csrf(&browser).await;
    let deleted = browser.post(&path, FORM, format!("csrf={csrf}&force=on")).send().await;
    assert_eq!(deleted.headers["location"], format!("{WORKSPACES}?done=delete&name=team").as_str());
    let gone = site.api.ask("GET", "/api/workspaces/team").send().await;
    assert_eq!(gone.status, StatusCode::NOT_FOUND);
    assert_eq!(browser.look(&path).await.status, StatusCode::NOT_FOUND);
    let first = browser.see(&format!("{WORKSPACES}/default/delete")).await;
    assert_eq!(all(&first, "main button[aria-disabled=true]").len(), 1);
    let refused = browser.press(&format!("{WORKSPACES}/default/delete")).await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
}

/// S27, X-F6: keys are shown by their ids and never themselves, and the key is changed by a button.
#[tokio::test]
async fn s27_the_master_key_is_changed_and_never_shown() {
    let site = two().await;
    let body = json!({ "value": "canary-value" }).to_string();
    site.api.send("PUT", "/api/workspaces/default/secrets/KEY", body).await.succeeded();
    let browser = site.browser("ada").await;
    let known = site.api.get("/api/secrets/keys").await;
    let place = known["place"].as_str().unwrap();
    let file = place.split_whitespace().find(|word| word.ends_with("master.key")).unwrap();
    let secret = fs::read_to_string(file).unwrap();
    let answer = browser.look("/operator/keys").await;
    let (text, page) = (answer.text(), Html::parse_document(answer.text()));
    // The file has comments as well.
    let keys: Vec<_> = secret.split_whitespace().filter(|word| word.len() == 64).collect();
    assert!(keys.len() == 1 && !text.contains(keys[0]));
    assert!(!text.contains("canary-value") && text.contains("master.key"));
    let first = known["keys"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(all(&page, "#keys .title"), std::slice::from_ref(&first));
    assert_eq!(all(&page, "#keys .badge"), ["current: seals"]);
    let facts = all(&page, "#keys .facts").remove(0);
    assert!(facts.contains("seals 1 stored value") && facts.contains("unknown time"), "{facts}");
    assert_eq!(known["keys"][0]["made_at"], Value::Null);

    let rotated = browser.press("/operator/keys/rotate").await;
    assert_eq!(rotated.status, StatusCode::SEE_OTHER, "{}", rotated.text());
    let page = browser.see(rotated.headers["location"].to_str().unwrap()).await;
    let told = "The key is changed: 1 value is sealed under the current key.";
    assert_eq!(all(&page, "#told"), [told]);
    let now = site.api.get("/api/secrets/keys").await;
    assert_ne!(now["keys"][0]["id"], first.as_str());
    assert!(now["keys"][0]["made_at"].is_string(), "{now}");
    assert_eq!(all(&page, "#keys .title"), [now["keys"][0]["id"].as_str().unwrap()]);
    let audit = site.api.get("/api/audit?kind=vault.key.rotated").await;
    assert_eq!(audit["items"][0]["actor"]["id"], "ada");
    assert!(browser.look("/operator/keys?done=other").await.status.is_client_error());
}

/// E118: files stand in the order in which they count, and a fault with its line.
#[tokio::test]
async fn e118_files_are_shown_with_their_faults() {
    let site = two().await;
    let browser = site.browser("ada").await;
    let page = browser.see("/operator/files").await;
    assert_eq!(all(&page, "#files .badge"), ["in use", "in use"]);
    let files = site.api.get("/api/files").await;
    let of = |layer: &str| {
        let items = files["items"].as_array().unwrap();
        let file = items.iter().find(|one| one["provenance"] == layer).unwrap();
        file["file"].as_str().unwrap().to_owned()
    };
    assert_eq!(all(&page, "#files .title"), [of("settings"), of("workspace")]);
    fs::write(of("workspace"), "{\n  \"servers\": <b>").unwrap();
    let reloaded = browser.press("/operator/files/reload").await;
    assert_eq!(reloaded.headers["location"], "/operator/files?done=reload");
    let page = browser.see("/operator/files?done=reload").await;
    assert_eq!(all(&page, "#told"), ["The files were read again, and one of them is refused."]);
    assert_eq!(all(&page, "#files .badge"), ["in use", "refused"]);
    let reason = all(&page, "#files .reason").remove(0);
    assert!(reason.contains("line 2"), "{reason}");
    fs::write(of("workspace"), r#"{"servers":{}}"#).unwrap();
    browser.press("/operator/files/reload").await;
    let page = browser.see("/operator/files?done=reload").await;
    assert_eq!(all(&page, "#told"), ["The files were read again."]);
}

/// R3, R4: the daemon's page states what the API states.
#[tokio::test]
async fn r4_the_daemon_is_shown_as_by_the_api() {
    let site = two().await;
    let browser = site.browser("ada").await;
    let facts = site.api.get("/api/daemon").await;
    let page = browser.see("/operator/").await;
    let text = all(&page, "main").remove(0);
    for place in ["/version", "/listens_at", "/public_origin", "/store/engine", "/store/place"] {
        let value = facts.pointer(place).and_then(Value::as_str).unwrap();
        assert!(text.contains(value), "{place}: {value}");
    }
    assert_eq!(facts["store"]["engine"], "SQLite");
    assert_eq!(values(&page, "main time", "datetime"), [facts["started_at"].as_str().unwrap()]);
    assert!(text.contains("1 of 1"), "{text}");
    assert!(all(&page, ".same code").contains(&"narthex daemon info".to_owned()));
    let metrics = browser.request(Method::GET, "/metrics").send().await;
    assert_eq!(metrics.status, StatusCode::OK);
    assert!(metrics.text().contains("narthex_sessions_open"), "{}", metrics.text());
}

/// The audit of the installation has the events that belong to no workspace.
#[tokio::test]
async fn the_audit_of_the_installation_is_for_operators() {
    let site = two().await;
    let browser = site.browser("ada").await;
    let path = "/operator/audit?kind=workspace.created";
    let page = browser.see(path).await;
    let kinds = all(&page, ".wide tbody th");
    assert!(!kinds.is_empty() && kinds.iter().all(|kind| kind == "workspace.created"), "{kinds:?}");
    let commands = all(&page, ".same code");
    let command = "narthex audit list --installation --kind workspace.created";
    assert_eq!(commands, [command, "GET /api/audit?kind=workspace.created"]);
    let event = values(&page, ".wide tbody a", "href").remove(0);
    assert!(event.starts_with("/operator/audit/event?at="), "{event}");
    let event = browser.see(&event).await;
    assert!(all(&event, "main").remove(0).contains("on workspace team"));
    assert_eq!(values(&event, ".head a", "href"), ["/operator/audit"]);
    let verified = browser.press("/operator/audit/verify").await;
    assert!(verified.text().contains("Verified just now"), "{}", verified.text());
    let export = browser.request(Method::GET, "/operator/audit/export").send().await;
    assert!(export.text().contains("workspace.created"));
    let of_workspace = browser.see("/w/default/audit?kind=workspace.created").await;
    assert!(all(&of_workspace, ".wide tbody th").is_empty());
}

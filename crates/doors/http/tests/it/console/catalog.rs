//! Tests of the catalog: the list, the form with its rows, pasted texts, conflicts, removals.

use http::StatusCode;
use scraper::Html;
use serde_json::{Value, json};

use super::{FORM, all, site, values};
use crate::{
    browser::{Browser, Site},
    world::Answer,
};

const LIST: &str = "/w/default/catalog";
const API: &str = "/api/workspaces/default/mcp-servers";

/// Sends a form with the token of the page.
async fn send(browser: &Browser<'_>, path: &str, fields: &[(&str, &str)]) -> Answer {
    let page = browser.see("/w/default/").await;
    let csrf = values(&page, "body", "data-csrf").remove(0);
    let mut body = form_urlencoded::Serializer::new(String::new());
    body.append_pair("csrf", &csrf).extend_pairs(fields);
    browser.post(path, FORM, body.finish()).send().await
}

/// The fields of the form on a page, as a browser sends them with one of its buttons.
fn sent(page: &Html) -> Vec<(String, String)> {
    let inputs = scraper::Selector::parse("form.entry :is(input, select, textarea)").unwrap();
    let chosen = scraper::Selector::parse("option[selected]").unwrap();
    let mut fields = Vec::new();
    for field in page.select(&inputs) {
        let element = field.value();
        let (Some(name), kind) = (element.attr("name"), element.attr("type")) else { continue };
        if name == "csrf" || kind == Some("checkbox") && element.attr("checked").is_none() {
            continue;
        }
        let value = match element.name() {
            "textarea" => {
                let text = field.text().collect::<String>();
                text.strip_prefix('\n').unwrap_or(&text).to_owned()
            }
            "select" => {
                let option = field.select(&chosen).next().unwrap();
                option.value().attr("value").unwrap().to_owned()
            }
            _ => element.attr("value").unwrap_or("on").to_owned(),
        };
        fields.push((name.to_owned(), value));
    }
    fields
}

/// Presses a button of the form on a page, after some fields were changed.
async fn press(
    browser: &Browser<'_>,
    page: &Html,
    button: &str,
    changed: &[(&str, &str)],
) -> Answer {
    let action = values(page, "form.entry", "action").remove(0);
    let mut fields = sent(page);
    for (name, value) in changed {
        fields.retain(|(own, _)| own != name);
        fields.push(((*name).to_owned(), (*value).to_owned()));
    }
    fields.push(("do".to_owned(), button.to_owned()));
    let fields: Vec<_> = fields.iter().map(|(name, value)| (&**name, &**value)).collect();
    send(browser, &action, &fields).await
}

fn page_of(answer: &Answer, status: StatusCode) -> Html {
    assert_eq!(answer.status, status, "{}", answer.text());
    Html::parse_document(answer.text())
}

async fn stored(site: &Site, id: &str) -> Value {
    site.api.get(&format!("{API}/{id}")).await["definition"].clone()
}

/// X-M9, X-M17: an entry is added by the form: rows are added by a button, and the definition is
/// that of the API.
#[tokio::test]
async fn x_m9_an_entry_is_added_by_the_form() {
    let site = site().await;
    let browser = site.browser("ada").await;
    let page = browser.see(&format!("{LIST}/new")).await;
    assert_eq!(values(&page, "#keys fieldset", "class").len(), 1);
    let typed = [
        ("id", "mail"),
        ("shape", "url"),
        ("url", "http://127.0.0.1:9/${scope.team}/mcp"),
        ("key.0.name", "api_key"),
        ("key.0.secret", "on"),
        ("key.0.description", "The key"),
    ];
    let more = press(&browser, &page, "add.key", &typed).await;
    let page = page_of(&more, StatusCode::OK);
    assert_eq!(values(&page, "#keys fieldset", "class").len(), 2);
    let kept: Vec<_> = sent(&page);
    for (name, value) in typed {
        assert!(kept.contains(&(name.to_owned(), value.to_owned())), "{name}: {kept:?}");
    }
    let fewer = press(&browser, &page, "drop.key.1", &[]).await;
    let page = page_of(&fewer, StatusCode::OK);
    assert_eq!(values(&page, "#keys fieldset", "class").len(), 1);
    assert_eq!(site.api.get(API).await["items"].as_array().unwrap().len(), 1, "nothing is stored");

    let saved = press(&browser, &page, "save", &[]).await;
    assert_eq!(saved.status, StatusCode::SEE_OTHER, "{}", saved.text());
    let place = saved.headers["location"].to_str().unwrap();
    assert_eq!(place, format!("{LIST}/mail?done=saved"));
    let page = browser.see(place).await;
    let told = all(&page, "#told").remove(0);
    assert!(told.starts_with("mail is saved. Attach it"), "{told}");
    assert_eq!(all(&page, "tbody th"), ["api_key"]);
    let definition = stored(&site, "mail").await;
    assert_eq!(definition["url"], "http://127.0.0.1:9/${scope.team}/mcp");
    assert_eq!(definition["config_schema"]["api_key"]["kind"], "secret");
}

/// X-M17, S27: all errors are at their fields at once, with what was typed, and the value of a
/// secret is not shown again.
#[tokio::test]
async fn x_m17_all_errors_are_at_their_fields() {
    let site = site().await;
    let browser = site.browser("ada").await;
    let page = browser.see(&format!("{LIST}/new")).await;
    let typed = [
        ("id", "Not an id"),
        ("shape", "command"),
        ("command", "npx -y x"),
        ("key.0.name", "api_key"),
        ("key.0.secret", "on"),
        ("value.0.key", "api_key"),
        ("value.0.value", "canary-0123456789"),
        ("rest", "{"),
    ];
    for button in ["check", "save"] {
        let answer = press(&browser, &page, button, &typed).await;
        let refused = page_of(&answer, StatusCode::UNPROCESSABLE_ENTITY);
        let bad = values(&refused, "[aria-invalid]", "name");
        for field in ["id", "command", "value.0.value", "rest"] {
            assert!(bad.contains(&field.to_owned()), "{button}: {field}: {bad:?}");
        }
        let kept = sent(&refused);
        assert!(kept.contains(&("command".to_owned(), "npx -y x".to_owned())), "{kept:?}");
        assert!(!answer.text().contains("canary-"), "{button}");
    }
    let twice = press(&browser, &page, "save", &[("id", "docs"), ("url", "http://127.0.0.1:9")]);
    let refused = page_of(&twice.await, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(values(&refused, "[aria-invalid]", "name"), ["id"]);
    assert_eq!(site.api.get(API).await["items"].as_array().unwrap().len(), 1);
}

/// D7: a pasted entry is in the form before anything is stored, with what was rewritten.
#[tokio::test]
async fn d7_a_pasted_entry_is_read_into_the_form() {
    let site = site().await;
    let browser = site.browser("ada").await;
    let page = browser.see(&format!("{LIST}/new")).await;
    let text = "[mcp_servers.issues]\ncommand = \"issues\"\nstartup_timeout_sec = 20\n\
                [mcp_servers.issues.env]\nISSUES_TOKEN = \"canary-0123456789abcdef\"\n";
    let answer = press(&browser, &page, "read", &[("paste", text)]).await;
    let page = page_of(&answer, StatusCode::OK);
    assert!(!answer.text().contains("canary-"), "{}", answer.text());
    let taken = all(&page, "#taken").remove(0);
    assert!(taken.contains("Codex") && taken.contains("ISSUES_TOKEN"), "{taken}");
    let fields = sent(&page);
    for (name, value) in
        [("id", "issues"), ("command", "issues"), ("shape", "command"), ("paste", "")]
    {
        assert!(fields.contains(&(name.to_owned(), value.to_owned())), "{name}: {fields:?}");
    }
    let unset = press(&browser, &page, "save", &[]).await;
    let unset = page_of(&unset, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(values(&unset, "[aria-invalid]", "name"), ["value.0.value"]);
    let secret = "/api/workspaces/default/secrets/ISSUES_TOKEN";
    site.api.send("PUT", secret, r#"{"value":"canary"}"#).await.succeeded();
    let saved = press(&browser, &page, "save", &[]).await;
    assert_eq!(saved.status, StatusCode::SEE_OTHER, "{}", saved.text());
    let definition = stored(&site, "issues").await;
    assert_eq!(definition["default_config"]["ISSUES_TOKEN"]["$secret"], "ISSUES_TOKEN");
    assert_eq!(definition["mountTimeoutMs"], 20_000);
}

/// A form about an older version is shown beside the stored one, and nothing of it is lost.
#[tokio::test]
async fn a_conflict_shows_both_and_loses_nothing() {
    let site = site().await;
    let browser = site.browser("ada").await;
    let page = browser.see(&format!("{LIST}/docs/edit")).await;
    let other = json!({ "command": "docs-server", "name": "Other" }).to_string();
    site.api.send("PUT", &format!("{API}/docs"), other).await.succeeded();
    let answer = press(&browser, &page, "save", &[("name", "Mine")]).await;
    let both = page_of(&answer, StatusCode::PRECONDITION_FAILED);
    assert!(all(&both, "del").iter().any(|line| line.contains("Other")), "{}", answer.text());
    assert!(all(&both, "ins").iter().any(|line| line.contains("Mine")));
    assert!(sent(&both).contains(&("name".to_owned(), "Mine".to_owned())));
    assert_eq!(stored(&site, "docs").await["name"], "Other");
    let saved = press(&browser, &both, "save", &[]).await;
    assert_eq!(saved.status, StatusCode::SEE_OTHER, "{}", saved.text());
    assert_eq!(stored(&site, "docs").await["name"], "Mine");
}

/// O41: the page of a removal names what breaks, and removes no other version.
#[tokio::test]
async fn o41_a_removal_names_what_breaks() {
    let site = site().await;
    let browser = site.browser("ada").await;
    let page = browser.see(&format!("{LIST}/docs/remove")).await;
    assert!(all(&page, "main").remove(0).contains("Nothing refers to"));
    let tag = values(&page, "main input[name=tag]", "value").remove(0);
    let agent = json!({ "name": "analyst", "mcpServers": { "library": { "ref": "docs" } } });
    let agents = "/api/workspaces/default/agents";
    site.api.send("POST", agents, agent.to_string()).await.succeeded();

    let delete = format!("{LIST}/docs/delete");
    let used = send(&browser, &delete, &[("tag", &tag)]).await;
    let used = page_of(&used, StatusCode::CONFLICT);
    assert_eq!(all(&used, "main li.name"), ["agents.analyst.mcpServers.library"]);
    let listed = browser.see(LIST).await;
    assert!(all(&listed, "#catalog .facts").remove(0).contains("attached by agent analyst"));
    let old = send(&browser, &delete, &[("tag", "1-1"), ("force", "on")]).await;
    assert_eq!(old.status, StatusCode::CONFLICT);
    let gone = send(&browser, &delete, &[("tag", &tag), ("force", "on")]).await;
    assert_eq!(gone.headers["location"], format!("{LIST}?done=removed&name=docs").as_str());
    assert_eq!(browser.look(&format!("{LIST}/docs")).await.status, StatusCode::NOT_FOUND);
    assert_eq!(browser.look(&format!("{LIST}/docs/edit")).await.status, StatusCode::NOT_FOUND);
}

/// R1, R5: filters are in the address and searched on the server; an entry may have the name of a
/// page.
#[tokio::test]
async fn filters_and_names_are_in_the_address() {
    let site = site().await;
    for (id, entry) in [
        ("new", json!({ "image": "registry.example.com/new:1" })),
        ("mail", json!({ "url": "http://127.0.0.1:9/mcp", "disabled": true })),
    ] {
        site.api.send("PUT", &format!("{API}/{id}"), entry.to_string()).await.succeeded();
    }
    let browser = site.browser("ada").await;
    let names = async |query: &str| {
        let page = browser.see(&format!("{LIST}{query}")).await;
        all(&page, "#catalog .title")
    };
    assert_eq!(names("").await, ["docs", "mail", "new"]);
    assert_eq!(names("?is=url").await, ["mail"]);
    assert_eq!(names("?is=disabled").await, ["mail"]);
    assert_eq!(names("?q=EXAMPLE.com").await, ["new"]);
    assert_eq!(names("?after=docs&is=image").await, ["new"]);
    let page = browser.see(&format!("{LIST}?q=new")).await;
    let link = values(&page, "#catalog .title", "href").remove(0);
    assert_eq!(all(&browser.see(&link).await, "h1"), ["new"]);
    assert_eq!(all(&browser.see(&format!("{link}/edit")).await, "h1"), ["Edit new"]);
    let found = browser.see("/w/default/search?q=mai").await;
    assert!(values(&found, "main a", "href").contains(&format!("{LIST}/mail")));
}

/// The list, the page and the form of a draft call it a draft, and one button enables it. An entry
/// that is disabled later is no draft.
#[tokio::test]
async fn a_draft_is_enabled_by_its_button() {
    let site = site().await;
    let entry = json!({ "command": "mail-server", "disabled": true, "timeoutMs": 1234 });
    for id in ["mail", "post"] {
        site.api.send("PUT", &format!("{API}/{id}"), entry.to_string()).await.succeeded();
    }
    let browser = site.browser("ada").await;
    let list = browser.see(&format!("{LIST}?is=draft")).await;
    let object = site.api.get(&format!("{API}/mail")).await;
    assert_eq!(all(&list, "#catalog .title"), ["mail", "post"], "{object}");
    assert_eq!(all(&list, "#catalog .badge"), ["draft", "draft"]);
    assert!(all(&list, "#catalog").remove(0).contains("runs do not get it before it is enabled"));
    let enable = values(&list, "#catalog li form", "action");
    assert_eq!(enable, [format!("{LIST}/mail/enable"), format!("{LIST}/post/enable")]);
    let done = browser.press(&enable[0]).await;
    assert_eq!(done.headers["location"], format!("{LIST}/mail?done=enabled").as_str());
    let definition = stored(&site, "mail").await;
    assert!(definition.get("disabled").is_none_or(|flag| flag == false), "{definition}");
    assert_eq!(definition["timeoutMs"], 1234, "nothing else has changed");
    let page = browser.see(&format!("{LIST}/mail?done=enabled")).await;
    assert!(all(&page, "#told").remove(0).contains("mail is enabled"));
    assert!(all(&page, "main .badge").is_empty());

    let form = browser.see(&format!("{LIST}/post/edit")).await;
    assert!(all(&form, "#draft").remove(0).contains("This entry is a draft"));
    let saved = press(&browser, &form, "enable", &[("description", "Reads mail")]).await;
    assert_eq!(saved.status, StatusCode::SEE_OTHER, "{}", saved.text());
    let definition = stored(&site, "post").await;
    assert!(definition.get("disabled").is_none_or(|flag| flag == false), "{definition}");
    assert_eq!(definition["description"], "Reads mail");
    let form = browser.see(&format!("{LIST}/post/edit")).await;
    assert!(all(&form, "#draft").is_empty());

    site.api.send("PUT", &format!("{API}/post"), entry.to_string()).await.succeeded();
    let page = browser.see(&format!("{LIST}/post")).await;
    assert_eq!(all(&page, "main .badge"), ["disabled"]);
}

/// X-D12: authors read the part that attaching takes, and change nothing.
#[tokio::test]
async fn x_d12_authors_read_a_part_and_change_nothing() {
    let site = site().await;
    let bob = site.api.send("POST", "/api/principals", r#"{"name":"bob"}"#).await.succeeded();
    let place = format!("/api/workspaces/default/members/{}", bob["id"].as_str().unwrap());
    site.api.send("PUT", &place, r#"{"roles":["author"]}"#).await.succeeded();
    let browser = site.browser("bob").await;
    let found = browser.see(&format!("{LIST}?q=docs-server")).await;
    assert!(all(&found, "#catalog").remove(0).contains("No server fits"));
    for path in [LIST.to_owned(), format!("{LIST}/docs")] {
        let answer = browser.look(&path).await;
        assert_eq!(answer.status, StatusCode::OK, "{path}");
        let page = Html::parse_document(answer.text());
        let shown = all(&page, "main").remove(0);
        assert!(!shown.contains("docs-server") && !shown.contains("Edit"), "{path}: {shown}");
    }
    for path in ["new", "docs/edit", "docs/remove"] {
        let answer = browser.look(&format!("{LIST}/{path}")).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{path}");
    }
    for path in ["new/save", "docs/save", "docs/enable", "docs/delete"] {
        let answer = send(&browser, &format!("{LIST}/{path}"), &[]).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{path}");
    }
    assert_eq!(stored(&site, "docs").await["command"], "docs-server");
}

//! Tests of capabilities and agents: attachments, the origin of each value, previews and runs.

use std::collections::BTreeMap;

use http::StatusCode;
use scraper::{ElementRef, Selector};
use serde_json::{Value, json};

use super::{Answer, Browser, FORM, Html, Site, all, site, values};

const PAPERS: &str = "/w/default/capabilities/papers";
const READER: &str = "/w/default/agents/reader";
const API: &str = "/api/workspaces/default";
const CANARY: &str = "canary-6f10";

/// The fields of a form as a browser sends them.
type Fields = BTreeMap<String, String>;

/// A site with a server in the catalog, a secret, and the objects of every site.
async fn library() -> Site {
    let site = site().await;
    let secret = json!({ "value": CANARY }).to_string();
    site.api.send("PUT", &format!("{API}/secrets/DOCS_KEY"), secret).await.succeeded();
    let server = json!({
        "id": "docs", "name": "Papers", "url": "http://localhost:9501/mcp",
        "config_schema": {
            "context_id": { "type": "string", "required": true, "description": "The <folder>" },
            "workflow_id": { "type": "string" },
            "limit": { "type": "integer", "default": 5 },
            "strict": { "type": "boolean" },
            "mode": { "type": "string", "enum": ["fast", "exact"] },
            "filter": { "type": "json" },
            "api_key": { "type": "string", "kind": "secret" },
        },
        "default_config": { "context_id": "default" },
    });
    site.api.send("PUT", &format!("{API}/mcp-servers/docs"), server.to_string()).await.succeeded();
    site
}

fn one<'p>(page: &'p Html, selector: &str) -> ElementRef<'p> {
    let parsed = Selector::parse(selector).unwrap();
    page.select(&parsed).next().unwrap_or_else(|| panic!("no {selector}: {}", page.html()))
}

/// The fields of the form of a page, as a browser would send them.
fn fields(page: &Html) -> Fields {
    let form = one(page, "form#form");
    let mut found = Fields::new();
    let selector = Selector::parse("input, textarea, select").unwrap();
    for input in form.select(&selector) {
        let attribute = |name| input.value().attr(name);
        let Some(name) = attribute("name") else { continue };
        let value = match (input.value().name(), attribute("type")) {
            ("select", _) => {
                let chosen = Selector::parse("option[selected]").unwrap();
                let first = Selector::parse("option").unwrap();
                let option = input.select(&chosen).next().or_else(|| input.select(&first).next());
                option.unwrap().value().attr("value").unwrap().to_owned()
            }
            ("textarea", _) => {
                let text = input.text().collect::<String>();
                text.strip_prefix('\n').unwrap_or(&text).replace('\n', "\r\n")
            }
            (_, Some("checkbox")) if attribute("checked").is_none() => continue,
            (_, Some("checkbox")) => "on".to_owned(),
            _ => attribute("value").unwrap_or_default().to_owned(),
        };
        assert!(found.insert(name.to_owned(), value).is_none(), "two fields `{name}`");
    }
    found
}

/// The fields of a page with some of them changed.
fn filled(page: &Html, changes: &[(&str, &str)]) -> Fields {
    let mut fields = fields(page);
    fields.extend(changes.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    fields
}

async fn send(browser: &Browser<'_>, path: &str, fields: &Fields) -> Answer {
    let mut written = form_urlencoded::Serializer::new(String::new());
    written.extend_pairs(fields);
    browser.post(path, FORM, written.finish()).send().await
}

/// Presses a button of the page of an object, and returns the page that comes.
async fn press(browser: &Browser<'_>, own: &str, fields: &Fields, verb: &str) -> (u16, Html) {
    let mut fields = fields.clone();
    fields.insert("do".to_owned(), verb.to_owned());
    let answer = send(browser, &format!("{own}/edit"), &fields).await;
    match answer.headers.get("location") {
        Some(to) => (answer.status.as_u16(), browser.see(to.to_str().unwrap()).await),
        None => (answer.status.as_u16(), Html::parse_document(answer.text())),
    }
}

/// Attaches the server to an object, sets values and saves.
async fn attach(browser: &Browser<'_>, own: &str, changes: &[(&str, &str)]) {
    let page = browser.see(own).await;
    let chosen = [("attach.server", "docs"), ("attach.alias", "library")];
    let (status, page) = press(browser, own, &filled(&page, &chosen), "attach").await;
    assert_eq!(status, 200, "{}", page.html());
    let (status, page) = press(browser, own, &filled(&page, changes), "save").await;
    assert_eq!(status, 303, "{}", page.html());
    assert!(all(&page, "#told")[0].starts_with("Saved."), "{:?}", all(&page, "#told"));
}

/// A library whose capability and agent attach the server.
async fn composed() -> Site {
    let site = library().await;
    let browser = site.browser("ada").await;
    attach(&browser, PAPERS, &[("v.library.context_id", "archive")]).await;
    let agent = [
        ("cap.papers", "on"),
        ("v.library.context_id", "${scope.context_id}"),
        ("v.library.api_key", "${DOCS_KEY}"),
        ("v.library.strict", "true"),
        ("v.library.filter", "{\"tags\": [\"new\"]}"),
    ];
    attach(&browser, READER, &agent).await;
    site
}

async fn definition(site: &Site, path: &str) -> Value {
    site.api.get(&format!("{API}/{path}")).await["definition"].clone()
}

/// O101: under each value stands its level, then what it overrides, from the function of the
/// API. Values are stored by the type of their key.
#[tokio::test]
async fn o101_each_value_shows_its_level_and_what_it_overrides() {
    let site = composed().await;
    let stored = definition(&site, "agents/reader").await;
    assert_eq!(stored["capabilities"], json!(["papers"]));
    let config = &stored["mcpServers"]["library"]["config"];
    assert_eq!(config["strict"], json!(true));
    assert_eq!(config["filter"], json!({ "tags": ["new"] }));
    let browser = site.browser("ada").await;
    let page = browser.see(READER).await;
    let origin = one(&page, "#f-v-2e-library-2e-context-5f-id\\.origin").text();
    let origin = origin.collect::<String>();
    assert_eq!(
        origin,
        "from the agent reader; overrides archive of the capability papers; overrides default of \
         the catalog entry docs"
    );
    let effective = all(&page, "#effective .chain dd").concat();
    assert!(effective.contains("${scope.context_id} from the agent reader"), "{effective}");
    assert_eq!(all(&page, "#effective .lost s"), ["archive", "default"]);
    assert!(all(&page, "mark.source").contains(&"${DOCS_KEY}".to_owned()));
    // A value of the schema shows where it is not set.
    assert_eq!(values(&page, "[name='v.library.limit']", "placeholder"), ["5"]);
    let capability = browser.see(PAPERS).await;
    assert_eq!(all(&capability, "#effective .lost s"), ["default"]);
}

/// A form that is sent as it is changes nothing, whatever the definition has.
#[tokio::test]
async fn a_form_without_a_change_changes_nothing() {
    let site = composed().await;
    let more = json!({
        "description": "Reads.\nWrites.", "system_prompt": "You read.\nSlowly.",
        "limits": { "calls_per_day": 7 },
        "params_schema": { "topic": { "type": "string", "required": true } },
        "mcpServers": { "library": { "config": { "limit": null, "mode": "exact" },
                                     "optional": true } },
    });
    // A null of a patch takes a member out, so that the whole is stored.
    let mut stored = definition(&site, "agents/reader").await;
    for name in ["description", "system_prompt", "limits", "params_schema"] {
        stored[name] = more[name].clone();
    }
    let library = &more["mcpServers"]["library"];
    stored["mcpServers"]["library"]["optional"] = library["optional"].clone();
    for name in ["limit", "mode"] {
        stored["mcpServers"]["library"]["config"][name] = library["config"][name].clone();
    }
    let path = format!("{API}/agents/reader");
    site.api.send("PUT", &path, stored.to_string()).await.succeeded();
    let before = definition(&site, "agents/reader").await;
    let browser = site.browser("ada").await;
    let page = browser.see(READER).await;
    let (status, _) = press(&browser, READER, &fields(&page), "save").await;
    assert_eq!(status, 303);
    assert_eq!(definition(&site, "agents/reader").await, before);
}

/// O101: a preview with parameters and a scope shows the values of a run, and starts none. Without
/// the scope it shows why the run would be refused.
#[tokio::test]
async fn o101_a_preview_shows_the_values_of_a_run() {
    let site = composed().await;
    let browser = site.browser("ada").await;
    let page = browser.see(READER).await;
    let scoped = filled(&page, &[("scope.context_id", "ctx-9"), ("description", "not saved")]);
    let (status, shown) = press(&browser, READER, &scoped, "preview").await;
    assert_eq!(status, 200);
    assert!(all(&shown, "#effective .in-run").concat().contains("ctx-9"), "{}", shown.html());
    assert!(!shown.html().contains(CANARY));
    let bare = filled(&page, &[("scope_more", "{"), ("scope.context_id", "")]);
    let (status, shown) = press(&browser, READER, &bare, "preview").await;
    assert_eq!(status, 422);
    assert!(all(&shown, ".fault").concat().contains("no object of JSON"));
    let (_, shown) = press(&browser, READER, &fields(&page), "preview").await;
    assert!(all(&shown, "#effective").concat().contains("would be refused"), "{}", shown.html());
    assert_eq!(definition(&site, "agents/reader").await.get("description"), None);
    let runs = site.api.get(&format!("{API}/runs")).await;
    assert!(runs["items"].as_array().unwrap().iter().all(|run| run["agent_name"].is_null()));
}

/// X-M52, S27: a key for secrets takes a reference. A value that is sent anyway is refused, and
/// shown nowhere.
#[tokio::test]
async fn x_m52_a_secret_is_named_and_never_shown() {
    let site = composed().await;
    let browser = site.browser("ada").await;
    let page = browser.see(READER).await;
    let options = values(&page, "[name='v.library.api_key'] option", "value");
    assert_eq!(options, ["", "${DOCS_KEY}"]);
    let typed = filled(&page, &[("v.library.api_key", CANARY)]);
    for verb in ["save", "preview"] {
        let (_, shown) = press(&browser, READER, &typed, verb).await;
        assert!(!shown.html().contains(CANARY), "{verb}");
    }
    let (status, shown) = press(&browser, READER, &typed, "save").await;
    assert_eq!(status, 422);
    assert_eq!(values(&shown, "[aria-invalid=true]", "name"), ["v.library.api_key"]);
    // A literal of a key that is only sensitive stays, and is not shown.
    let server =
        json!({ "config_schema": { "token_id": { "type": "string", "sensitive": true } } });
    let path = format!("{API}/mcp-servers/docs");
    site.api.send("PATCH", &path, server.to_string()).await.succeeded();
    let agent = json!({ "mcpServers": { "library": { "config": { "token_id": "plain-6f10" } } } });
    let path = format!("{API}/agents/reader");
    site.api.send("PATCH", &path, agent.to_string()).await.succeeded();
    let page = browser.see(READER).await;
    assert!(!page.html().contains("plain-6f10"));
    let (status, told) = press(&browser, READER, &fields(&page), "save").await;
    assert_eq!(status, 200);
    assert!(told.html().contains("Saved, with the warnings below."), "{}", told.html());
    assert!(!told.html().contains("plain-6f10"));
    let stored = definition(&site, "agents/reader").await;
    assert_eq!(stored["mcpServers"]["library"]["config"]["token_id"], "plain-6f10");
}

/// D9: all faults are shown at once, each at its field, and the texts stay.
#[tokio::test]
async fn d9_faults_are_at_their_fields_and_texts_stay() {
    let site = composed().await;
    let browser = site.browser("ada").await;
    let page = browser.see(READER).await;
    let wrong =
        [("v.library.limit", "many"), ("v.library.filter", "{\"a\": "), ("params_schema", "[]")];
    let (status, shown) = press(&browser, READER, &filled(&page, &wrong), "save").await;
    assert_eq!(status, 422);
    let mut faulty = values(&shown, "[aria-invalid=true]", "name");
    faulty.sort();
    let mut expected = wrong.map(|(name, _)| name);
    expected.sort_unstable();
    assert_eq!(faulty, expected, "{}", shown.html());
    let kept = fields(&shown);
    for (name, value) in wrong {
        assert_eq!(kept[name], value);
    }
    assert_eq!(definition(&site, "agents/reader").await.get("params_schema"), None);
}

/// A form of an older version changes nothing before the person has seen that, and loses no text.
#[tokio::test]
async fn a_form_of_an_older_version_is_not_saved_at_once() {
    let site = composed().await;
    let browser = site.browser("ada").await;
    let page = browser.see(READER).await;
    let path = format!("{API}/agents/reader");
    site.api.send("PATCH", &path, r#"{"description":"theirs"}"#.to_owned()).await.succeeded();
    let mine = filled(&page, &[("description", "mine")]);
    let (status, shown) = press(&browser, READER, &mine, "save").await;
    assert_eq!(status, 412);
    assert_eq!(definition(&site, "agents/reader").await["description"], "theirs");
    let kept = fields(&shown);
    assert_eq!(kept["description"], "mine");
    assert_eq!(press(&browser, READER, &kept, "save").await.0, 303);
    assert_eq!(definition(&site, "agents/reader").await["description"], "mine");
}

/// O41: the page of a deletion names what would break. Then it deletes by a second step.
#[tokio::test]
async fn o41_a_deletion_names_what_breaks() {
    let site = composed().await;
    let browser = site.browser("ada").await;
    let page = browser.see(PAPERS).await;
    let token = |page: &Html| -> Fields {
        let form = fields(page);
        ["csrf", "tag"].map(|name| (name.to_owned(), form[name].clone())).into()
    };
    let path = format!("{PAPERS}/delete");
    let refused = send(&browser, &path, &token(&page)).await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    let refused = Html::parse_document(refused.text());
    assert!(all(&refused, "#delete li").concat().contains("agents.reader.capabilities"));
    let mut forced = token(&refused);
    forced.insert("force".to_owned(), "true".to_owned());
    let done = send(&browser, &path, &forced).await;
    assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text());
    let list = browser.see(done.headers["location"].to_str().unwrap()).await;
    assert_eq!(all(&list, "#told"), ["The capability papers is deleted."]);
    let page = browser.see(READER).await;
    assert!(page.html().contains("which does not exist"), "the agent says what is broken");
}

/// D39: a runner sees an agent without values, changes nothing, and may start a run.
#[tokio::test]
async fn d39_a_runner_sees_no_value_and_starts_a_run() {
    let site = composed().await;
    let bob = site.api.send("POST", "/api/principals", r#"{"name":"bob"}"#.to_owned()).await;
    let bob = bob.succeeded()["id"].as_str().unwrap().to_owned();
    let place = format!("{API}/members/{bob}");
    site.api.send("PUT", &place, r#"{"roles":["runner"]}"#.to_owned()).await.succeeded();
    site.api.send("PUT", &format!("{API}/agents/idle"), "{}".to_owned()).await.succeeded();
    let browser = site.browser("bob").await;
    let page = browser.see(READER).await;
    assert!(!all(&page, "#attachments + .attached .title, .attached .name").is_empty());
    for hidden in ["archive", "DOCS_KEY", "context_id", "Save"] {
        assert!(!one(&page, "main").html().contains(hidden), "{hidden}");
    }
    let refused = press(&browser, READER, &fields(&page), "save").await;
    assert_eq!(refused.0, 403);
    let idle = browser.see("/w/default/agents/idle").await;
    let started = send(&browser, "/w/default/agents/idle/start", &fields(&idle)).await;
    assert_eq!(started.status, StatusCode::SEE_OTHER, "{}", started.text());
    let place = started.headers["location"].to_str().unwrap();
    let id = place.strip_prefix("/w/default/runs/").unwrap();
    let run = site.api.get(&format!("{API}/runs/{id}")).await;
    assert_eq!((&run["agent_name"], &run["user"]), (&json!("idle"), &json!(bob)));
}

/// A run that is refused shows the reasons on the page, and keeps the inputs.
#[tokio::test]
async fn a_refused_run_keeps_its_inputs() {
    let site = composed().await;
    let path = format!("{API}/agents/reader");
    let schema = json!({ "params_schema": { "topic": { "type": "string", "required": true } } });
    site.api.send("PATCH", &path, schema.to_string()).await.succeeded();
    let browser = site.browser("ada").await;
    let page = browser.see(READER).await;
    let inputs = filled(&page, &[("prompt", "Sum it up"), ("scope.context_id", "ctx-9")]);
    let refused = send(&browser, &format!("{READER}/start"), &inputs).await;
    assert!(refused.status.is_client_error(), "{}", refused.status);
    let shown = Html::parse_document(refused.text());
    assert!(shown.html().contains("topic"), "{}", shown.html());
    let kept = fields(&shown);
    assert_eq!((&*kept["prompt"], &*kept["scope.context_id"]), ("Sum it up", "ctx-9"));
}

/// X-E113, R7: a run without one of its secrets is refused by a sentence that names it, and the
/// page leads to where it is set.
#[tokio::test]
async fn x_e113_a_missing_secret_is_set_from_the_refusal_of_a_run() {
    let site = composed().await;
    let browser = site.browser("ada").await;
    assert_eq!(all(&browser.see(READER).await, "#unset a"), [""; 0]);
    let path = format!("{API}/secrets/DOCS_KEY");
    site.api.send("DELETE", &path, String::new()).await.succeeded();
    let page = browser.see(READER).await;
    let inputs = filled(&page, &[("scope.context_id", "ctx-9")]);
    let refused = send(&browser, &format!("{READER}/start"), &inputs).await;
    assert!(refused.status.is_client_error(), "{}", refused.status);
    let shown = Html::parse_document(refused.text());
    let told = all(&shown, "#told").concat();
    assert!(told.contains("needs the secret `DOCS_KEY`"), "{told}");
    assert_eq!(all(&shown, "#unset a"), ["Set DOCS_KEY"]);
    let href = values(&shown, "#unset a", "href").remove(0);
    let secrets = browser.see(&href).await;
    assert!(all(&secrets, "#secret-DOCS_KEY").concat().contains("not set"));
}

/// The program that carries out the runs of an agent is one of the daemon's settings, or none.
#[tokio::test]
async fn an_agent_gets_an_executor_of_the_daemon() {
    let site = site().await;
    let browser = site.browser("ada").await;
    for (chosen, stored) in [("crew", json!("crew")), ("", Value::Null)] {
        let page = browser.see(READER).await;
        assert_eq!(values(&page, "[name='executor'] option", "value"), ["", "crew"]);
        let fields = filled(&page, &[("executor", chosen)]);
        assert_eq!(press(&browser, READER, &fields, "save").await.0, 303);
        assert_eq!(definition(&site, "agents/reader").await["executor"], stored);
    }
}

/// X-E60: an agent with credentials in its environment has a badge, in the list and on its page.
#[tokio::test]
async fn x_e60_injected_credentials_have_a_badge() {
    let site = composed().await;
    let browser = site.browser("ada").await;
    assert!(!browser.see(READER).await.html().contains("operator-injected"));
    let body = json!({ "scope": "agent", "scope_id": "reader", "name": "GITHUB_TOKEN",
                       "secret": "DOCS_KEY" });
    let path = format!("{API}/env-bindings");
    site.api.send("POST", &path, body.to_string()).await.succeeded();
    for path in [READER, "/w/default/agents"] {
        let page = browser.see(path).await;
        assert!(all(&page, ".badge").contains(&"operator-injected credentials".to_owned()));
    }
    let page = browser.see(READER).await;
    assert_eq!(all(&page, ".note code"), ["GITHUB_TOKEN"]);
}

/// R5: lists are filtered on the server, and new objects begin in them.
#[tokio::test]
async fn lists_are_filtered_and_begin_new_objects() {
    let site = site().await;
    for name in ["re", "rdz", "writer"] {
        let path = format!("{API}/agents/{name}");
        site.api.send("PUT", &path, "{}".to_owned()).await.succeeded();
    }
    let browser = site.browser("ada").await;
    let names = async |query: &str| {
        all(&browser.see(&format!("/w/default/agents{query}")).await, "#rows h3")
    };
    assert_eq!(names("").await, ["rdz", "re", "reader", "writer"]);
    assert_eq!(names("?q=RE").await, ["re", "reader"]);
    assert_eq!(names("?q=x").await, [""; 0]);
    let page = browser.see("/w/default/agents").await;
    let csrf = values(&page, "body", "data-csrf").remove(0);
    let create = async |name: &str| {
        let form: Fields = [("csrf", &*csrf), ("name", name)]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into();
        send(&browser, "/w/default/new-agent", &form).await
    };
    let made = create("critic").await;
    assert_eq!(made.headers["location"], "/w/default/agents/critic?done=created");
    for bad in ["Not a name", "critic"] {
        let refused = create(bad).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
        let refused = Html::parse_document(refused.text());
        assert_eq!(values(&refused, "[aria-invalid=true]", "value"), [bad]);
    }
    let found = browser.see("/w/default/search?q=crit").await;
    assert!(values(&found, "main a", "href").contains(&"/w/default/agents/critic".to_owned()));
}

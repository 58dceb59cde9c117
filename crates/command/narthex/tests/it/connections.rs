//! Connections of humans to servers of the catalog, with the whole program, browsers and an
//! authorization server: each run acts as the human who drives it, and as no other.

mod exchange;
mod site;

use narthex_testkit::{
    authorization::Endpoint,
    canary::{Canary, Everything},
};
use serde_json::{Value, json};

use self::site::{HOME, LetIn, SERVER, Site};
use crate::server_sign_ins::note_files;

const TRACKER: &str = "/users/me/mcp-tokens/tracker";

/// X-M14, C27, E149: of two humans and one server, each run has the token of its own driver, at the
/// same time and in whatever order; another driver of the same agent gets no link of the first.
/// X-E50: the agent has the endpoint of narthex and the token of its run, and no other token.
#[tokio::test(flavor = "multi_thread")]
async fn x_m14_each_run_acts_as_its_driver() {
    let site = Site::start();
    let (ada, bob) = (site.signs_in("ada"), site.signs_in("bob"));
    // A save, and the beginning of a sign-in, ask for the challenge of a refusal. Runs do not.
    let has_no_anonymous = || {
        let asked = site.fixture.asked_of(Endpoint::Mcp);
        assert!(asked.iter().all(|asked| asked.bearer().is_some()), "no anonymous request");
        !asked.is_empty()
    };
    site.connects(&ada);
    site.fixture.forget_asked();
    let of_ada = site.run_of(Some("ada"));
    site.until_is(&of_ada, "ada").await;
    // The link of the first driver is open.
    let of_bob = site.run_of(Some("bob"));
    site.until_refused(&of_bob).await;
    assert!(has_no_anonymous());
    site.connects(&bob);
    site.fixture.forget_asked();
    site.until_is(&of_bob, "bob").await;
    for _ in 0..3 {
        site.until_is(&of_ada, "ada").await;
        site.until_is(&of_bob, "bob").await;
    }
    let again = site.run_of(Some("ada"));
    site.until_is(&again, "ada").await;
    assert!(has_no_anonymous());
}

/// X-E47, D17, R9: a run starts without a connection. The call says what its human must do, and the
/// server is ready in the open run once the human has done it.
#[tokio::test(flavor = "multi_thread")]
async fn x_e47_a_run_starts_without_its_server_and_gets_it_later() {
    let site = Site::start();
    let ada = site.signs_in("ada");
    let run = site.run_of(Some("ada"));
    let refused = site.whoami(&run).await.json().to_string();
    assert!(refused.contains("auth_unavailable"), "{refused}");
    let page = site.connection(&ada)["page"].as_str().unwrap().to_owned();
    assert!(refused.contains(&page), "{page}: {refused}");
    assert_eq!(site.connection(&ada)["connected"], false);
    site.connects(&ada);
    site.until_is(&run, "ada").await;
    let connection = site.connection(&ada);
    let facts = (&connection["connected"], &connection["has_refresh_token"]);
    assert_eq!(facts, (&json!(true), &json!(true)), "{connection}");
}

/// A12, R9, X-M14, S16: a client that a human has let in at the door uses that human's connection,
/// and no other human's. Until there is one, its calls name the page. The client's own token
/// reaches no server.
#[tokio::test(flavor = "multi_thread")]
async fn door_a12_a_client_of_a_human_acts_as_that_human() {
    let site = Site::start();
    let (ada, bob) = (site.signs_in("ada"), site.signs_in("bob"));
    let (of_ada, of_bob) = (site.lets_in(&ada), site.lets_in(&bob));
    let refused = site.whoami(&of_ada.access).await.json().to_string();
    let page = site.connection(&ada)["page"].as_str().unwrap().to_owned();
    assert!(refused.contains("auth_unavailable") && refused.contains(&page), "{refused}");
    site.connects(&ada);
    site.until_is(&of_ada.access, "ada").await;
    site.until_refused(&of_bob.access).await;
    site.connects(&bob);
    site.until_is(&of_bob.access, "bob").await;
    site.until_is(&of_ada.access, "ada").await;
    for asked in site.fixture.asked() {
        for LetIn { access, refresh, .. } in [&of_ada, &of_bob] {
            let text = asked.text();
            assert!(!text.contains(access.as_str()) && !text.contains(refresh.as_str()), "{text}");
        }
    }
}

/// X-E43, C16: the answer of an authorization server counts in the browser of its human alone, and
/// never for another one.
#[tokio::test(flavor = "multi_thread")]
async fn x_e43_the_answer_of_another_human_is_refused() {
    let site = Site::start();
    let (ada, bob) = (site.signs_in("ada"), site.signs_in("bob"));
    let back = site.agrees(&ada);
    let refused = site.brings(&bob, &back);
    assert!((400..500).contains(&refused.status), "{refused:?}");
    for human in [&ada, &bob] {
        assert_eq!(site.connection(human)["connected"], false);
    }
    // The attempt names its workspace, whose admins learn of it.
    let listed = ["audit", "list", "--kind", "workspace.connection.refused", "--json"];
    let events = site.place.run(listed).succeeded().stdout;
    assert!(events.contains("bob") && events.contains("tracker"), "{events}");
    // An answer to no attempt names no workspace.
    let stray = "http://localhost/oauth/callback/catalog%2Ftracker?code=c&state=none";
    assert!((400..500).contains(&site.brings(&bob, stray).status));
    let listed =
        ["audit", "list", "--installation", "--kind", "workspace.connection.refused", "--json"];
    let events = site.place.run(listed).succeeded().stdout;
    assert!(events.contains("bob"), "{events}");
    // Without a login session, too: the address leads to the origin that has the cookie.
    let back = site.agrees(&ada);
    let path = &back[back.find("/oauth/").unwrap()..];
    let led = site.bearer("none", "GET", path, &Value::Null);
    assert_eq!(led.status, 303, "{led:?}");
    assert!(led.head.to_ascii_lowercase().contains("location: http://localhost:"), "{led:?}");
    assert_eq!(site.brings(&ada, &back).status, 200);
}

/// X-E49, C29: a human who disconnects ends the open links of their own runs, and of no other.
#[tokio::test(flavor = "multi_thread")]
async fn x_e49_a_disconnect_ends_the_links_of_the_humans_runs() {
    let site = Site::start();
    let (ada, bob) = (site.signs_in("ada"), site.signs_in("bob"));
    site.connects(&ada);
    site.connects(&bob);
    let (of_ada, of_bob) = (site.run_of(Some("ada")), site.run_of(Some("bob")));
    site.until_is(&of_ada, "ada").await;
    let path = format!("{HOME}{TRACKER}");
    assert_eq!(site.human(&ada, "DELETE", &path, "").status, 204);
    site.until_refused(&of_ada).await;
    site.until_is(&of_bob, "bob").await;
    assert_eq!(site.human(&ada, "DELETE", &path, "").status, 204, "again");
    let events = site.place.run(["audit", "list", "--kind", "workspace.connection.ended"]);
    assert!(events.succeeded().stdout.contains("ada"));
    // Another human's connection is theirs, unless an admin ends it.
    let foreign = format!("{HOME}/users/bob/mcp-tokens/tracker");
    assert_eq!(site.human(&ada, "DELETE", &foreign, "").status, 403);
    assert_eq!(site.operator("DELETE", &foreign, &Value::Null).status, 204);
    site.until_refused(&of_bob).await;
}

/// C29: the tokens of a disabled human are gone, and so are the links of their runs.
#[tokio::test(flavor = "multi_thread")]
async fn oauth_c29_a_disabled_human_has_no_connection() {
    let site = Site::start();
    let ada = site.signs_in("ada");
    site.connects(&ada);
    let run = site.run_of(Some("ada"));
    site.until_is(&run, "ada").await;
    site.place.run(["users", "disable", "ada"]).succeeded();
    site.until(&run, |reply| reply.json()["result"]["content"][0]["text"] != "ada").await;
}

/// X-E31, X-E122: a run that no human drives has no human's token, also while one is connected.
#[tokio::test(flavor = "multi_thread")]
async fn x_e31_an_unattended_run_has_no_token() {
    let site = Site::start();
    let ada = site.signs_in("ada");
    site.connects(&ada);
    let token = site.place.run(["tokens", "create", "ci", "--role", "runner", "--quiet"]);
    let token = token.succeeded().stdout.trim().to_owned();
    let request = json!({ "type": "start_session", "agent_name": "clerk", "prompt": "go" });
    let begun = site.bearer(&token, "POST", &format!("{HOME}/runs"), &request).succeeded().json();
    site.until_refused(begun["token"].as_str().unwrap()).await;
    // A service is no human, and connects no account.
    let path = format!("{HOME}{TRACKER}/connect");
    assert_eq!(site.bearer(&token, "POST", &path, &Value::Null).status, 403);
    let foreign = format!("{HOME}/users/ada/mcp-tokens/tracker/connect");
    assert_eq!(site.operator("POST", &foreign, &Value::Null).status, 403);
}

/// E149: a connection counts in its workspace alone.
#[tokio::test(flavor = "multi_thread")]
async fn e149_a_connection_counts_in_its_workspace_alone() {
    let site = Site::start();
    let ada = site.signs_in("ada");
    site.operator("POST", "/api/workspaces", &json!({ "id": "team" })).succeeded();
    let roles = json!({ "roles": ["runner"] });
    site.operator("PUT", "/api/workspaces/team/members/ada", &roles).succeeded();
    site.has_server("team");
    site.connects(&ada);
    let request =
        json!({ "type": "start_session", "agent_name": "clerk", "prompt": "go", "user": "ada" });
    let begun = site.operator("POST", "/api/workspaces/team/runs", &request).succeeded().json();
    site.until_refused(begun["token"].as_str().unwrap()).await;
    let all = site.human(&ada, "GET", "/api/users/me/mcp-tokens", "").succeeded().json();
    let state = |workspace: &str| {
        let items = all["items"].as_array().unwrap().iter();
        let found = items.clone().find(|one| one["workspace"] == workspace);
        found.unwrap_or_else(|| panic!("{all}"))["connected"].clone()
    };
    assert_eq!((state("default"), state("team")), (json!(true), json!(false)));
}

/// X-M13, X-E35: a server is stored only if humans can sign in to it, and narthex is registered
/// there at that time. Else the fault names the field, and nothing is stored.
#[tokio::test(flavor = "multi_thread")]
async fn x_m13_a_save_discovers_and_registers() {
    let site = Site::empty();
    site.fixture.quirks(|quirks| quirks.no_s256_advertised = true);
    let refused = site.operator("PUT", SERVER, &site.entry());
    assert_eq!(refused.status, 422, "{refused:?}");
    assert_eq!(refused.json()["errors"][0]["field"], "url", "{refused:?}");
    site.fixture.quirks(|quirks| {
        quirks.no_s256_advertised = false;
        quirks.dcr_refuses = Some(403);
    });
    let refused = site.operator("PUT", SERVER, &site.entry());
    assert_eq!(refused.json()["errors"][0]["field"], "auth.registration", "{refused:?}");
    let gone = json!({ "id": "tracker", "kind": "remote_oauth", "url": "http://127.0.0.1:9/mcp" });
    let refused = site.operator("PUT", SERVER, &gone);
    assert_eq!(refused.json()["errors"][0]["field"], "url", "{refused:?}");
    assert_eq!(site.operator("GET", SERVER, &Value::Null).status, 404, "nothing is stored");
    // Unreachable servers can be stored on purpose.
    site.operator("PUT", &format!("{SERVER}?offline=true"), &gone).succeeded();
    let mut off = gone.clone();
    off["disabled"] = json!(true);
    site.operator("PUT", SERVER, &off).succeeded();
    site.fixture.quirks(|quirks| quirks.dcr_refuses = None);
    site.fixture.forget_asked();
    site.operator("PUT", SERVER, &site.entry()).succeeded();
    assert_eq!(site.fixture.asked_of(Endpoint::Registration).len(), 1);
    // The client belongs to the workspace: no human registers anew.
    site.has_server("default");
    let (ada, bob) = (site.signs_in("ada"), site.signs_in("bob"));
    site.connects(&ada);
    site.connects(&bob);
    assert_eq!(site.fixture.asked_of(Endpoint::Registration).len(), 1);
}

/// S27, X-E44: no token, code or secret of a connection, or of a client at the door, is in an
/// answer, a page, the log, the audit or a file, also after refusals.
#[tokio::test(flavor = "multi_thread")]
async fn s27_tokens_of_connections_and_clients_are_shown_nowhere() {
    let (site, logs) = Site::logged();
    let ada = site.signs_in("ada");
    site.connects(&ada);
    let run = site.run_of(Some("ada"));
    site.until_is(&run, "ada").await;
    let client = site.lets_in(&ada);
    site.until_is(&client.access, "ada").await;
    let mut everything = Everything::default();
    for token in [&client.refresh, &client.code, &client.secret] {
        let refused = site.whoami(token).await;
        assert_eq!(refused.status, 401, "{refused:?}");
        everything.note("refused", format!("{refused:?}").as_bytes());
    }
    for path in [
        &format!("{HOME}/users/me/mcp-tokens"),
        "/api/users/me/mcp-tokens",
        "/workspaces/default/connections/tracker",
    ] {
        everything.note(path.to_owned(), site.human(&ada, "GET", path, "").body.as_bytes());
    }
    for path in [SERVER, &format!("{HOME}/runs"), &format!("{HOME}/audit")] {
        let answer = site.operator("GET", path, &Value::Null);
        everything.note(path.to_owned(), answer.body.as_bytes());
    }
    for words in [&["clients", "list", "--json"][..], &["connections", "list", "--json"]] {
        let done = site.place.run(words).succeeded();
        everything.note(words.join(" "), done.stdout.as_bytes());
        everything.note(words.join(" "), done.stderr.as_bytes());
    }
    for token in [&run, &client.access] {
        everything.note("call", format!("{:?}", site.whoami(token).await).as_bytes());
        site.fixture.end_access_tokens();
    }
    let (place, fixture) = site.stop();
    note_files(&place.path(""), &mut everything);
    note_files(logs.path(), &mut everything);
    let log = fs_err::read_to_string(logs.path().join("log")).unwrap();
    assert!(log.contains("DEBUG") || log.contains("TRACE"), "{log}");
    let mut canaries = fixture.canaries();
    let LetIn { secret, code, access, refresh } = &client;
    for (name, value) in
        [("secret", secret), ("code", code), ("access", access), ("refresh", refresh)]
    {
        canaries.push(Canary::of(name, value));
    }
    let leaks = everything.leaks(&canaries);
    assert!(leaks.is_empty(), "{leaks:#?}");
}

/// The page of a connection begins and ends it, and asks a stranger to sign in first.
#[tokio::test(flavor = "multi_thread")]
async fn x_m14_the_page_of_a_connection_connects() {
    let site = Site::start();
    let (ada, path) = (site.signs_in("ada"), "/workspaces/default/connections/tracker");
    let page = site.human(&ada, "GET", path, "").succeeded().body;
    assert!(page.contains("is not connected"), "{page}");
    let csrf = page.split_once("name=\"csrf\" value=\"").unwrap().1.split('"').next().unwrap();
    let sent = site.human(&ada, "POST", path, &format!("csrf={csrf}&verb=connect"));
    let link = sent.body.split_once("href=\"http").unwrap_or_else(|| panic!("{sent:?}")).1;
    let link = format!("http{}", link.split('"').next().unwrap()).replace("&amp;", "&");
    site.fixture.change(|settings| "ada".clone_into(&mut settings.subject));
    let back = site.fixture.browse(&link).unwrap();
    assert_eq!(site.brings(&ada, &back).status, 200);
    let page = site.human(&ada, "GET", path, "").succeeded().body;
    assert!(page.contains("is connected") && page.contains("Disconnect"), "{page}");
    let forged = site.human(&ada, "POST", path, "csrf=x&verb=disconnect");
    assert_eq!(forged.status, 403, "{forged:?}");
    let ended = site.human(&ada, "POST", path, &format!("csrf={csrf}&verb=disconnect"));
    assert_eq!(ended.status, 303, "{ended:?}");
    assert_eq!(site.connection(&ada)["connected"], false);
}

/// X-E43, X-M14: a page of a failed connection leads its human back to try again. It shows nothing
/// of the connection to another browser, nor when an answer comes a second time.
#[tokio::test(flavor = "multi_thread")]
async fn x_e43_a_failed_connection_leads_its_human_back() {
    let site = Site::start();
    let (ada, bob) = (site.signs_in("ada"), site.signs_in("bob"));
    let path = "/workspaces/default/connections/tracker";
    site.fixture.quirks(|quirks| quirks.denies = Some("access_denied".to_owned()));
    let back = site.agrees(&ada);
    let failed = site.brings(&ada, &back);
    assert!((400..500).contains(&failed.status), "{failed:?}");
    assert!(failed.body.contains(&format!("href=\"{path}\"")), "{failed:?}");
    assert!(!failed.body.contains("<code"), "a page leads back, and no command: {failed:?}");
    let again = site.brings(&ada, &back);
    let stolen = site.brings(&bob, &site.agrees(&ada));
    let unsigned = site.visit(&site.agrees(&ada));
    for page in [again, stolen, unsigned] {
        assert!((400..500).contains(&page.status), "{page:?}");
        assert!(!page.body.contains("/connections/") && !page.body.contains("<code"), "{page:?}");
    }
    site.fixture.quirks(|quirks| quirks.denies = None);
    let done = site.brings(&ada, &site.agrees(&ada)).succeeded();
    assert!(done.body.contains(&format!("href=\"{path}\"")), "{done:?}");
}

/// E149, X-E27: the holder of the operator's token connects for the runs that this token creates.
#[tokio::test(flavor = "multi_thread")]
async fn e149_the_command_line_lists_and_ends_connections() {
    let site = Site::start();
    let path = format!("{HOME}{TRACKER}/connect");
    let begun = site.operator("POST", &path, &Value::Null).succeeded().json();
    let back = site.fixture.browse(begun["url"].as_str().unwrap()).unwrap();
    assert_eq!(site.visit(&back).status, 200);
    let run = site.run_of(None);
    site.until_is(&run, "ada").await;
    let list = site.place.run(["connections", "list", "--json"]).succeeded().json();
    let row = &list["data"]["items"][0];
    assert_eq!((&row["server"], &row["connected"]), (&json!("tracker"), &json!(true)), "{list}");
    let status = format!("{HOME}/agents/clerk/mcp-attachments/connection-status");
    let status = site.operator("GET", &status, &Value::Null).succeeded().json();
    assert_eq!(status["items"][0]["connected"], true, "{status}");
    site.place.run(["connections", "disconnect", "tracker"]).succeeded();
    site.until_refused(&run).await;
    // E59: once more does nothing. A server that is not there is no disconnected one.
    site.place.run(["connections", "disconnect", "tracker"]).succeeded();
    let unknown = site.place.run(["connections", "disconnect", "trakcer"]);
    let words = ["`default` has no server `trakcer`", "narthex connections list"];
    let told = unknown.failed(1, &words);
    assert!(!told.stdout.contains("is disconnected"), "{told:?}");
}

/// D5, X-E14: a server that a human may not see is absent for them.
#[tokio::test(flavor = "multi_thread")]
async fn d5_a_hidden_server_cannot_be_disconnected() {
    let site = Site::start();
    let ada = site.signs_in("ada");
    let hidden = json!({ "id": "vault", "kind": "remote_oauth", "url": site.fixture.url });
    let path = format!("{HOME}/mcp-servers/vault?offline=true");
    site.operator("PUT", &path, &hidden).succeeded();
    let refusal = |name: &str| {
        let path = format!("{HOME}/users/me/mcp-tokens/{name}");
        let refused = site.human(&ada, "DELETE", &path, "");
        assert_eq!(refused.status, 404, "{refused:?}");
        refused.body.replace(name, "NAME")
    };
    assert_eq!(refusal("vault"), refusal("absent"));
    // An admin sees it, and has nothing to end.
    let own = format!("{HOME}/users/me/mcp-tokens/vault");
    assert_eq!(site.operator("DELETE", &own, &Value::Null).status, 204);
}

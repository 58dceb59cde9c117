//! Tests of humans in a browser: links, passkeys, sessions, and the limits of cookies.

use std::time::{Duration, SystemTime};

use http::{Method, StatusCode};
use narthex_audit::kind;
use narthex_control::LoginOptions;
use narthex_http::{Access, Caching, ROUTES};
use narthex_login::{PublicOrigin, TokenHash};
use narthex_model::{PrincipalId, WorkspaceId};
use narthex_store::NewSignInLink;
use narthex_testkit::authenticator::Authenticator;
use serde_json::{Value, json};

use crate::{
    api::world::Api,
    browser::{Browser, ORIGIN, Site, options},
    world::{Answer, Builder, whole},
};

/// A-9: a link shows a button, and signs in once.
#[tokio::test]
async fn a_link_shows_a_button_and_signs_in_once() {
    let site = Site::new().await;
    let link = site.link("ada").await;
    let mut browser = Browser::new(&site);
    // Mail programs and chats load previews of links too.
    for _ in 0..3 {
        let page = browser.request(Method::GET, &link).send().await;
        assert_eq!(page.status, StatusCode::OK);
        assert!(page.text().contains("Sign in as ada?"), "{}", page.text());
        assert!(page.headers.get("set-cookie").is_none());
    }
    assert_eq!(browser.form(&link, "").await.status, StatusCode::SEE_OTHER);
    assert!(browser.page().await.contains("Signed in as ada"));
    let mut second = Browser::new(&site);
    let used = second.form(&link, "").await;
    assert_eq!(used.status, StatusCode::FORBIDDEN);
    assert!(used.text().contains("used already or is too old"), "{}", used.text());
    assert!(second.cookie.is_none());
    let never = second.form("/signin/link/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "").await;
    assert_eq!(never.text(), used.text(), "used and never made look the same");
}

/// S27: the browser's cache stores no answer to a signed-in human, on any route but those of public
/// documents.
#[tokio::test]
async fn s27_answers_to_a_cookie_are_not_stored() {
    let site = Site::new().await;
    let browser = site.browser("ada").await;
    for route in ROUTES {
        let path = route.template.replace("{workspace}", "default").replace(['{', '}'], "");
        for method in route.methods.split(", ") {
            let answer = browser.request(method.parse().unwrap(), &path).open().await;
            let what = format!("{method} {path}: {}", answer.status());
            let is_document = route.caching == Caching::PublicDocument;
            let is_document = is_document && answer.status() == StatusCode::OK;
            let kept = if is_document { "public, max-age=300" } else { "no-store" };
            assert_eq!(answer.headers()["cache-control"], kept, "{what}");
            assert_eq!(answer.headers()["x-content-type-options"], "nosniff", "{what}");
        }
    }
}

/// S32, X-M63: sign-ins and sign-outs are in the audit with their human and method, and so are the
/// acts between them. Failed attempts are counted there.
#[tokio::test]
async fn s32_x_m63_humans_are_actors_and_their_sign_ins_are_recorded() {
    let site = Site::new().await;
    let link = site.link("ada").await;
    let mut browser = Browser::new(&site);
    assert_eq!(browser.form(&link, "").await.status, StatusCode::SEE_OTHER);
    let mut authenticator = Authenticator::new(ORIGIN);
    let passkey = browser.add(&mut authenticator).await.succeeded()["id"].clone();
    browser.page().await;
    let create = browser.post("/api/principals", "application/json", r#"{"name":"bob"}"#.into());
    let bob = with(create, &browser.csrf).send().await.succeeded()["id"].clone();
    let form = format!("csrf={}", browser.csrf);
    let remove = format!("/signin/passkeys/{}/remove", passkey.as_str().unwrap());
    assert_eq!(browser.form(&remove, &form).await.status, StatusCode::SEE_OTHER);
    assert_eq!(browser.form("/signout", &form).await.status, StatusCode::SEE_OTHER);
    // These proofs are not valid.
    assert_eq!(browser.form(&link, "").await.status, StatusCode::FORBIDDEN);
    let gone = Browser::new(&site).passkey(&mut authenticator).await;
    gone.problem(StatusCode::UNAUTHORIZED, "unauthenticated");

    let page = site.api.get("/api/audit?order=oldest&kind=principal.").await;
    let ada = json!(site.ada);
    let shown = |event: &Value| {
        assert_eq!(event["outcome"], "ok", "{event}");
        assert_eq!(event["resource"]["kind"], "principal", "{event}");
        let [kind, by, whom] =
            [&event["kind"], &event["actor"], &event["resource"]["id"]].map(Clone::clone);
        (kind.as_str().unwrap().to_owned(), by, whom)
    };
    let events = page["items"].as_array().unwrap();
    let shown: Vec<_> = events.iter().map(shown).collect();
    let admin = json!({ "kind": "local_admin", "id": "admin" });
    let human = json!({ "kind": "human", "id": "ada" });
    let expected = [
        (kind::PRINCIPAL_CREATED, &admin, &ada),
        (kind::LINK_CREATED, &admin, &ada),
        (kind::SIGNED_IN, &human, &ada),
        (kind::PASSKEY_ADDED, &human, &ada),
        (kind::PRINCIPAL_CREATED, &human, &bob),
        (kind::PASSKEY_REMOVED, &human, &ada),
        (kind::SIGNED_OUT, &human, &ada),
    ];
    let expected: Vec<_> = expected
        .into_iter()
        .map(|(kind, by, whom)| (kind.to_owned(), by.clone(), whom.clone()))
        .collect();
    assert_eq!(shown, expected);
    assert_eq!(events[2]["details"]["method"], "link");
    assert_eq!(events[3]["details"]["passkey"], passkey);
    let refused = site.api.get("/api/audit?order=oldest&kind=auth.refused").await;
    let refused = refused["items"].as_array().unwrap();
    for reason in ["sign_in_link", "sign_in_passkey"] {
        let of = refused.iter().filter(|event| event["details"]["reason"] == reason);
        let count: u64 = of.map(|event| event["details"]["count"].as_u64().unwrap()).sum();
        assert_eq!(count, 1, "{reason}: {refused:?}");
    }
    let all = site.api.get("/api/audit?limit=100").await.to_string();
    assert!(!all.contains(link.rsplit('/').next().unwrap()), "{all}");
}

#[tokio::test]
async fn an_expired_sign_in_link_is_refused() {
    let site = Site::new().await;
    let ada = PrincipalId::new(&site.ada).unwrap();
    let (hash, past) = (TokenHash::of("old"), SystemTime::now() - Duration::from_secs(1));
    for is_invitation in [false, true] {
        let (hash, principal, by) = (hash.as_str(), &ada, "admin");
        let link = NewSignInLink { hash, principal, by, expires_at: past, is_invitation };
        site.store.logins().make_link(link).await.unwrap();
        let mut browser = Browser::new(&site);
        assert_eq!(browser.form("/signin/link/old", "").await.status, StatusCode::FORBIDDEN);
        let page = browser.request(Method::GET, "/signin/link/old").send().await;
        assert_eq!(page.status, StatusCode::FORBIDDEN);
    }
}

/// D15: a link is made with the admin token and proves no human. A passkey proves one.
#[tokio::test]
async fn d15_a_passkey_proves_a_human_and_a_link_does_not() {
    let site = Site::new().await;
    let mut browser = site.browser("ada").await;
    let me = browser.me().await.succeeded();
    assert_eq!((&me["name"], &me["kind"]), (&json!("ada"), &json!("human")));
    assert_eq!((&me["method"], &me["assurance"]), (&json!("link"), &json!("advisory")));
    let mut authenticator = Authenticator::new(ORIGIN);
    assert_eq!(browser.add(&mut authenticator).await.status, StatusCode::CREATED);
    assert!(browser.page().await.contains("&lt;phone&gt;"));
    let mut other = Browser::new(&site);
    assert_eq!(other.passkey(&mut authenticator).await.status, StatusCode::OK);
    let me = other.me().await.succeeded();
    assert_eq!((&me["method"], &me["assurance"]), (&json!("passkey"), &json!("authenticated")));
    let admin = site.api.get("/api/me").await;
    assert_eq!((&admin["kind"], &admin["assurance"]), (&json!("local_admin"), &json!("advisory")));
    let listed = site.api.get("/api/principals/ada/passkeys").await;
    assert_eq!(listed["items"][0]["enrolled_by"], "link");
    assert!(listed["items"][0]["used_at"].is_string());
}

/// Checks that a refusal names the ways to grant: no page creates a grant.
fn names_the_ways(told: &str, route: &str) {
    let post = format!("`POST {route}`");
    for way in ["`request_grant`", "narthex grants pending", &post, "/signin"] {
        assert!(told.contains(way), "{told}");
    }
    assert!(!told.contains("decide there"), "{told}");
}

/// D15, X-M58: where proof is required, neither the admin token nor a link can create grants. A
/// link adds only the first passkey, and an earlier advisory grant no longer counts.
#[tokio::test]
async fn d15_only_proved_humans_create_grants_if_proof_is_required() {
    const GRANTS: &str = "/api/workspaces/default/grants";
    let mut site = Site::new().await;
    site.api.send("PUT", "/api/workspaces/default/agents/writer", "{}").await.succeeded();
    let grant = json!({
        "grant_type": "tool_scope",
        "details": { "scope": "demo.write" },
        "scope": "persistent",
        "agent_subject_id": "writer",
    });
    let advisory = site.api.send("POST", GRANTS, grant.to_string()).await.succeeded();
    let counting = |api: &Api| api.control.grants_of(&WorkspaceId::default()).ids();
    assert_eq!(counting(&site.api).len(), 1);

    let place = tempfile::tempdir().unwrap();
    let keys = place.path().join("master.key");
    site.api = Api::with_proofs(site.store.clone(), options(), Some(&keys), Some(true)).await;
    assert_eq!(counting(&site.api), []);
    assert!(!site.api.control.has_proofs().await.unwrap());
    let by_token = site.api.send("POST", GRANTS, grant.to_string()).await;
    let told = by_token.problem(StatusCode::FORBIDDEN, "denied");
    assert!(told.contains("grants.require_proof"), "{told}");
    names_the_ways(&told, GRANTS);
    let mut ada = site.browser("ada").await;
    let by_link = ada.script(GRANTS, &grant).await;
    by_link.problem(StatusCode::FORBIDDEN, "denied");
    let mut authenticator = Authenticator::new(ORIGIN);
    ada.add(&mut authenticator).await.succeeded();
    assert!(site.api.control.has_proofs().await.unwrap());
    // The holder of the admin token makes another link, which has no further rights.
    let mut thief = site.browser("ada").await;
    thief.page().await;
    let begun = thief.script("/signin/passkeys/new", &json!({})).await;
    begun.problem(StatusCode::FORBIDDEN, "denied");

    // The passkeys of humans stay, and no run is driven by a human who is not present.
    let keys = site.api.get("/api/principals/ada/passkeys").await;
    let key = keys["items"][0]["id"].as_str().unwrap().to_owned();
    let path = format!("/api/principals/ada/passkeys/{key}");
    let removed = site.api.ask("DELETE", &path).send().await;
    removed.problem(StatusCode::FORBIDDEN, "denied");
    let path = format!("/signin/passkeys/{key}/remove");
    let removed = thief.form(&path, &format!("csrf={}", thief.csrf)).await;
    assert_eq!(removed.status, StatusCode::FORBIDDEN, "{}", removed.text());
    let run = json!({ "agent_name": "writer", "user": "ada" });
    const RUNS: &str = "/api/workspaces/default/runs";
    let driven = site.api.send("POST", RUNS, run.to_string()).await;
    driven.problem(StatusCode::FORBIDDEN, "denied");
    thief.script(RUNS, &run).await.problem(StatusCode::FORBIDDEN, "denied");

    let mut human = Browser::new(&site);
    human.passkey(&mut authenticator).await.succeeded();
    human.page().await;
    speaks_by_a_proved_token_alone(&site, &mut human).await;
    let made = human.script(GRANTS, &grant).await.succeeded();
    assert_eq!(made["is_advisory"], false);
    let listed = site.api.get(GRANTS).await;
    let counts = |one: &Value| {
        let row = listed["items"].as_array().unwrap().iter().find(|row| row["id"] == one["id"]);
        row.unwrap()["counts"].clone()
    };
    assert_eq!((counts(&advisory), counts(&made)), (json!(false), json!(true)));
    assert_eq!(counting(&site.api).len(), 1);
    human.script("/signin/passkeys/new", &json!({})).await.succeeded();
    // A revocation needs no proof.
    for one in [&made, &advisory] {
        let path = format!("{GRANTS}/{}", one["id"].as_str().unwrap());
        assert!(site.api.ask("DELETE", &path).send().await.status.is_success());
    }
    assert_eq!(counting(&site.api), []);
}

/// D28: from the first passkey on, only humans with proof can grant, and earlier advisory grants no
/// longer count. With the setting off, nothing changes.
#[tokio::test]
async fn d28_the_first_passkey_makes_proof_required_for_grants() {
    const GRANTS: &str = "/api/workspaces/default/grants";
    let grant = json!({
        "grant_type": "tool_scope",
        "details": { "scope": "demo.write" },
        "scope": "persistent",
        "agent_subject_id": "writer",
    });
    let counting = |api: &Api| api.control.grants_of(&WorkspaceId::default()).ids().len();
    for setting in [None, Some(false)] {
        let is_on = setting.is_none();
        let mut site = Site::new().await;
        site.api = Api::with_proofs(site.store.clone(), options(), None, setting).await;
        site.api.send("PUT", "/api/workspaces/default/agents/writer", "{}").await.succeeded();
        let granted = site.api.send("POST", GRANTS, grant.to_string()).await.succeeded();
        assert_eq!((counting(&site.api), &granted["counts"]), (1, &json!(true)));
        let mut ada = site.browser("ada").await;
        let mut authenticator = Authenticator::new(ORIGIN);
        ada.add(&mut authenticator).await.succeeded();
        assert_eq!(counting(&site.api), usize::from(!is_on), "at once");
        let again = site.api.send("POST", GRANTS, grant.to_string()).await;
        assert_eq!(again.status == StatusCode::FORBIDDEN, is_on, "{}", again.text());
        // The holder of the admin token cannot prove a human with a passkey of their own.
        let mut thief = site.browser("ada").await;
        thief.page().await;
        let begun = thief.script("/signin/passkeys/new", &json!({})).await;
        assert_eq!(begun.status == StatusCode::FORBIDDEN, is_on, "{}", begun.text());
        // A daemon that starts later has the same rule from its start.
        let other = Api::with_proofs(site.store.clone(), options(), None, setting).await;
        assert_eq!(other.control.needs_proof(), is_on);
        assert_eq!(counting(&other) == 0, is_on);
    }
}

/// Checks that the holder of the admin token cannot create a service that acts for humans. A
/// service may act for humans only as far as the creator of its token, and that creator's creator.
async fn speaks_by_a_proved_token_alone(site: &Site, human: &mut Browser<'_>) {
    const HERE: &str = "/api/workspaces/default";
    let tokens = format!("{HERE}/service-tokens");
    let asked = json!({ "service": "chat", "roles": ["runner", "admin"] });
    let by_file = site.api.send("POST", &tokens, asked.to_string()).await.succeeded();
    assert_eq!(by_file["is_proved"], false);
    let of_file = by_file["token"].as_str().unwrap();
    let again = as_service(&site.api, of_file, &tokens, &asked).await.succeeded();
    assert_eq!(again["is_proved"], false);
    let by_human = human.script(&tokens, &asked).await.succeeded();
    assert_eq!(by_human["is_proved"], true);
    let of_human = by_human["token"].as_str().unwrap();
    let next = as_service(&site.api, of_human, &tokens, &asked).await.succeeded();
    assert_eq!(next["is_proved"], true);

    let (runs, driven) = (format!("{HERE}/runs"), json!({ "agent_name": "writer", "user": "ada" }));
    let made = as_service(&site.api, of_human, &runs, &driven).await.succeeded();
    let session = made["session_id"].as_str().unwrap();
    let messages = format!("{HERE}/sessions/{session}/messages");
    let says = json!({ "text": "hi", "user": "ada" });
    let (run, of_run) = (made["run_id"].as_str().unwrap(), format!("{HERE}/runs/"));
    let acts_for = async || site.api.get(&format!("{of_run}{run}")).await["acts_for"].clone();
    for token in [of_file, again["token"].as_str().unwrap()] {
        let refused = as_service(&site.api, token, &runs, &driven).await;
        let told = refused.problem(StatusCode::FORBIDDEN, "denied");
        assert!(told.contains("grants.require_proof"), "{told}");
        let refused = as_service(&site.api, token, &messages, &says).await;
        refused.problem(StatusCode::FORBIDDEN, "denied");
        assert_eq!(acts_for().await, json!(site.ada));
    }
    as_service(&site.api, of_human, &messages, &json!({ "text": "hi" })).await.succeeded();
    assert_eq!(acts_for().await, json!(site.ada), "who names nobody leaves the turn");
    as_service(&site.api, of_file, &messages, &json!({ "text": "hi" })).await.succeeded();
    assert_eq!(acts_for().await, Value::Null, "what was granted to ada is not theirs to use");
    let next = next["token"].as_str().unwrap();
    as_service(&site.api, next, &messages, &says).await.succeeded();
    assert_eq!(acts_for().await, json!(site.ada));
}

pub(crate) async fn as_service(api: &Api, token: &str, path: &str, body: &Value) -> Answer {
    let request = api.world.request(Method::POST, path);
    let request = request.header("authorization", &format!("Bearer {token}"));
    let request = request.header("content-type", "application/json");
    request.body(whole(body.to_string())).send().await
}

#[tokio::test]
async fn an_answer_of_a_passkey_counts_once() {
    let site = Site::new().await;
    let mut browser = site.browser("ada").await;
    let mut authenticator = Authenticator::new(ORIGIN);
    browser.add(&mut authenticator).await;
    let mut other = Browser::new(&site);
    let begun = other.script("/signin/passkey/begin", &json!({})).await.succeeded();
    let credential = authenticator.get(&begun["options"]);
    let body = json!({"ceremony": begun["ceremony"], "credential": credential});
    assert_eq!(other.script("/signin/passkey/finish", &body).await.status, StatusCode::OK);
    let mut thief = Browser::new(&site);
    let again = thief.script("/signin/passkey/finish", &body).await;
    again.problem(StatusCode::UNAUTHORIZED, "unauthenticated");
    assert!(thief.cookie.is_none());
    // A copy of the passkey with an older counter.
    authenticator.credentials[0].counter = 0;
    let copied = thief.passkey(&mut authenticator).await;
    let told = copied.problem(StatusCode::UNAUTHORIZED, "unauthenticated");
    assert!(told.contains("may have been copied"), "{told}");
}

#[tokio::test]
async fn a_passkey_ceremony_belongs_to_the_human_who_started_it() {
    let site = Site::new().await;
    site.api.send("POST", "/api/principals", r#"{"name":"bob"}"#).await.succeeded();
    let (mut ada, mut bob) = (site.browser("ada").await, site.browser("bob").await);
    ada.page().await;
    bob.page().await;
    let begun = ada.script("/signin/passkeys/new", &json!({})).await.succeeded();
    let credential = Authenticator::new(ORIGIN).create(&begun["options"]);
    let body = json!({"ceremony": begun["ceremony"], "credential": credential, "label": ""});
    let taken = bob.script("/signin/passkeys", &body).await;
    taken.problem(StatusCode::UNAUTHORIZED, "unauthenticated");
    let mut authenticator = Authenticator::new(ORIGIN);
    let added = ada.add(&mut authenticator).await.succeeded();
    let (path, form) = (
        format!("/signin/passkeys/{}/remove", added["id"].as_str().unwrap()),
        |browser: &Browser<'_>| format!("csrf={}", browser.csrf),
    );
    let of_bob = form(&bob);
    assert_eq!(bob.form(&path, &of_bob).await.status, StatusCode::NOT_FOUND);
    let of_ada = form(&ada);
    assert_eq!(ada.form(&path, &of_ada).await.status, StatusCode::SEE_OTHER);
    let gone = Browser::new(&site).passkey(&mut authenticator).await;
    gone.problem(StatusCode::UNAUTHORIZED, "unauthenticated");
}

/// S19: each sign-in gives a new session, whatever session the browser had before.
#[tokio::test]
async fn s19_each_sign_in_gives_a_new_session_and_ends_the_earlier_session() {
    let site = Site::new().await;
    let mut browser = Browser::new(&site);
    browser.cookie = Some("narthex=chosen-by-somebody-else".to_owned());
    let link = site.link("ada").await;
    browser.form(&link, "").await;
    let first = browser.cookie.clone().unwrap();
    assert_ne!(first, "narthex=chosen-by-somebody-else");
    assert_eq!(first.len(), "narthex=".len() + 43);
    let link = site.link("ada").await;
    browser.form(&link, "").await;
    let second = browser.cookie.clone().unwrap();
    assert_ne!(first, second);
    browser.cookie = Some(first);
    assert_eq!(browser.me().await.status, StatusCode::UNAUTHORIZED, "the first is over");
    browser.cookie = Some(format!("{second}; {second}"));
    assert_eq!(browser.me().await.status, StatusCode::UNAUTHORIZED, "two are none");
}

/// Adds the token that only our page can read.
fn with<'w>(request: Builder<'w>, csrf: &str) -> Builder<'w> {
    request.header("x-narthex-csrf", csrf)
}

#[tokio::test]
async fn a_request_with_a_cookie_changes_objects_only_from_our_own_page() {
    let site = Site::new().await;
    let mut browser = site.browser("ada").await;
    browser.page().await;
    let create = |name: &str| {
        let body = json!({ "name": name }).to_string();
        browser.post("/api/principals", "application/json", body)
    };
    let csrf = browser.csrf.clone();
    let refused = [
        create("a"),
        create("a").header("x-narthex-csrf", "AAAA"),
        with(create("a"), &csrf).header("origin", ""),
        with(create("a"), &csrf).header("origin", "http://127.0.0.1:7717"),
        with(create("a"), &csrf).header("sec-fetch-site", "same-site"),
        with(create("a"), &csrf).header("sec-fetch-site", "cross-site"),
    ];
    for (number, request) in refused.into_iter().enumerate() {
        assert_eq!(request.send().await.status, StatusCode::FORBIDDEN, "{number}");
    }
    with(create("a"), &csrf).send().await.succeeded();
    let made = site.api.get("/api/principals/a").await;
    assert_eq!(made["created_by"], "ada");
    let across = browser.request(Method::GET, "/api/me").header("sec-fetch-site", "cross-site");
    assert_eq!(across.send().await.status, StatusCode::FORBIDDEN);
    // A client that sends a token is judged by the token, not by its cookie.
    let both = browser.request(Method::GET, "/api/me").header("authorization", "Bearer nonsense");
    assert_eq!(both.send().await.status, StatusCode::UNAUTHORIZED);
    let mcp = browser.post("/mcp", "application/json", "{}".to_owned());
    assert_eq!(with(mcp, &csrf).send().await.status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn forms_are_accepted_only_from_our_own_page() {
    let site = Site::new().await;
    let link = site.link("ada").await;
    let browser = Browser::new(&site);
    let form = "application/x-www-form-urlencoded";
    let post = |kind| browser.post(&link, kind, String::new());
    let refused = [
        (post(form).header("origin", ""), StatusCode::FORBIDDEN),
        (post(form).header("origin", "http://127.0.0.1:7717"), StatusCode::FORBIDDEN),
        (post(form).header("sec-fetch-site", "cross-site"), StatusCode::FORBIDDEN),
        (post(form).header("host", "127.0.0.1:7717"), StatusCode::FORBIDDEN),
        (post("text/plain"), StatusCode::UNSUPPORTED_MEDIA_TYPE),
    ];
    for (number, (request, status)) in refused.into_iter().enumerate() {
        assert_eq!(request.send().await.status, status, "{number}");
    }
    assert_eq!(post(form).send().await.status, StatusCode::SEE_OTHER, "it was not used up");
}

#[tokio::test]
async fn a_session_ends_at_once_when_its_human_signs_out_or_is_disabled() {
    let site = Site::new().await;
    let mut browser = site.browser("ada").await;
    browser.page().await;
    assert_eq!(browser.form("/signout", "csrf=AAAA").await.status, StatusCode::FORBIDDEN);
    assert_eq!(browser.me().await.status, StatusCode::OK);
    let (cookie, form) = (browser.cookie.clone(), format!("csrf={}", browser.csrf));
    assert_eq!(browser.form("/signout", &form).await.status, StatusCode::SEE_OTHER);
    assert!(browser.cookie.is_none(), "the browser forgets it");
    browser.cookie = cookie;
    assert_eq!(browser.me().await.status, StatusCode::UNAUTHORIZED, "and so do we");

    let mut browser = site.browser("ada").await;
    let mut authenticator = Authenticator::new(ORIGIN);
    browser.add(&mut authenticator).await;
    let waiting = site.link("ada").await;
    site.api.send("PATCH", "/api/principals/ada", r#"{"is_disabled":true}"#).await.succeeded();
    assert_eq!(browser.me().await.status, StatusCode::UNAUTHORIZED);
    let mut other = Browser::new(&site);
    other.passkey(&mut authenticator).await.problem(StatusCode::FORBIDDEN, "denied");
    assert_eq!(other.form(&waiting, "").await.status, StatusCode::FORBIDDEN);
    let refused = site.api.post("/api/principals/ada/sign-in-links").await;
    refused.problem(StatusCode::FORBIDDEN, "denied");
}

/// Sessions are stored as hashes, and outlive the process that created them.
#[tokio::test]
async fn a_session_outlives_the_daemon() {
    let site = Site::new().await;
    let browser = site.browser("ada").await;
    let token = browser.cookie.as_ref().unwrap().strip_prefix("narthex=").unwrap().to_owned();
    let stored = site.store.logins().sessions().await.unwrap();
    assert_eq!(stored.len(), 1);
    assert_eq!(stored[0].hash, TokenHash::of(&token).as_str());
    let login = LoginOptions::new(PublicOrigin::parse(ORIGIN).unwrap());
    let again = Api::with_login(site.store.clone(), login, None).await;
    let signed_in = again.control.signed_in(&token).unwrap().unwrap();
    assert_eq!(signed_in.account.name.as_str(), "ada");
}

/// D4, A-9: the routes that need no token are listed with the proof that they require instead.
#[test]
fn d4_routes_without_a_token_are_listed_with_their_proof() {
    let document = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/guides/sign-in.md");
    let document = fs_err::read_to_string(document).unwrap();
    let listed: Vec<_> = document.lines().filter(|line| line.starts_with("| `/")).collect();
    let own: Vec<_> = ROUTES
        .iter()
        .filter_map(|route| match route.access {
            Access::Own(proof) => {
                Some(format!("| `{}` | {} | {proof} |", route.template, route.methods))
            }
            _ => None,
        })
        .collect();
    assert_eq!(listed, own);
}

#[tokio::test]
async fn pages_have_security_headers_and_exist_only_at_the_public_origin() {
    let site = Site::new().await;
    let browser = Browser::new(&site);
    for path in ["/signin", "/signin/script.js", "/signin/style.css", "/signin/link/nothing"] {
        let answer = browser.request(Method::GET, path).send().await;
        let policy = answer.headers["content-security-policy"].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'self'"), "{path}: {policy}");
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(answer.headers["x-frame-options"], "DENY");
        assert_eq!(answer.headers["x-content-type-options"], "nosniff");
        assert_eq!(answer.headers["referrer-policy"], "same-origin");
        assert_eq!(answer.headers["cache-control"], "no-store");
    }
    let elsewhere = browser.request(Method::GET, "/signin?x=1").header("host", "127.0.0.1:7717");
    let elsewhere = elsewhere.send().await;
    assert_eq!(elsewhere.status, StatusCode::SEE_OTHER);
    assert_eq!(elsewhere.headers["location"], format!("{ORIGIN}/signin?x=1"));
    let unknown = browser.request(Method::GET, "/signin/oidc/nobody").send().await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
    let callback = browser.request(Method::GET, "/signin/oidc/nobody/callback?code=c&state=s");
    assert_eq!(callback.send().await.status, StatusCode::FORBIDDEN);
}

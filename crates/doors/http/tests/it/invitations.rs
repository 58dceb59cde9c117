//! Tests of invitations by humans with proof, and of the way to replace a lost passkey.

use http::StatusCode;
use narthex_testkit::authenticator::Authenticator;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    api::world::Api,
    browser::{Browser, ORIGIN, Site, options},
    signin::as_service,
};

const NEW_PASSKEY: &str = "/signin/passkeys/new";

/// A site that requires proof as soon as a human can give it.
async fn site(keys: &TempDir) -> Site {
    let mut site = Site::new().await;
    let keys = keys.path().join("master.key");
    site.api = Api::with_proofs(site.store.clone(), options(), Some(&keys), None).await;
    site
}

/// The browser of Ada, an operator who has signed in with the first passkey. Bob has an account.
async fn proved_ada(site: &Site) -> Browser<'_> {
    let mut authenticator = Authenticator::new(ORIGIN);
    let mut ada = site.browser("ada").await;
    ada.add(&mut authenticator).await.succeeded();
    site.api.send("POST", "/api/principals", r#"{"name":"bob"}"#).await.succeeded();
    let mut ada = Browser::new(site);
    ada.passkey(&mut authenticator).await.succeeded();
    ada.page().await;
    ada
}

/// A browser that has used a link.
async fn with_link<'s>(site: &'s Site, url: &str) -> Browser<'s> {
    let mut browser = Browser::new(site);
    let path = url.strip_prefix(ORIGIN).unwrap();
    assert_eq!(browser.form(path, "").await.status, StatusCode::SEE_OTHER);
    let again = Browser::new(site).form(path, "").await;
    assert_eq!(again.status, StatusCode::FORBIDDEN, "a link works once");
    browser
}

/// D15, D28: where proof is required, a link from a human with proof adds one passkey for another
/// human. A link made with the admin token adds none.
#[tokio::test]
async fn d15_a_proved_human_invites_another_human() {
    const LINKS: &str = "/api/principals/bob/sign-in-links";
    let place = tempfile::tempdir().unwrap();
    let site = site(&place).await;
    let mut ada = proved_ada(&site).await;

    let by_token = site.api.post(LINKS).await.succeeded();
    assert_eq!(by_token["adds_passkey"], false);
    let mut bob = with_link(&site, by_token["url"].as_str().unwrap()).await;
    let page = bob.page().await;
    assert!(page.contains("Your link adds no passkey") && !page.contains("id=\"add\""), "{page}");
    let refused = bob.script(NEW_PASSKEY, &json!({})).await;
    let told = refused.problem(StatusCode::FORBIDDEN, "denied");
    assert!(told.contains(&format!("{ORIGIN}/signin")), "{told}");

    let invitation = ada.script(LINKS, &json!({})).await.succeeded();
    assert_eq!(invitation["adds_passkey"], true);
    let mut bob = with_link(&site, invitation["url"].as_str().unwrap()).await;
    let me = bob.me().await.succeeded();
    let how = (&me["method"], &me["assurance"]);
    assert_eq!(how, (&json!("invitation"), &json!("advisory")));
    assert!(bob.page().await.contains("id=\"add\""));
    let mut phone = Authenticator::new(ORIGIN);
    bob.add(&mut phone).await.succeeded();
    // An invitation adds one passkey, even if another page of the session is open.
    assert!(bob.page().await.contains("Your link adds no passkey"));
    assert_eq!(bob.me().await.succeeded()["method"], "link");
    bob.script(NEW_PASSKEY, &json!({})).await.problem(StatusCode::FORBIDDEN, "denied");
    let mut proved = Browser::new(&site);
    proved.passkey(&mut phone).await.succeeded();
    let me = proved.me().await.succeeded();
    assert_eq!((&me["name"], &me["assurance"]), (&json!("bob"), &json!("authenticated")));
    let listed = site.api.get("/api/principals/bob/passkeys").await;
    assert_eq!(listed["items"][0]["enrolled_by"], "invitation");

    let audit = site.api.get("/api/audit?order=oldest&kind=principal.link.created").await;
    let is_invitation = |event: &Value| event["details"]["is_invitation"].as_bool().unwrap();
    let invitations: Vec<_> =
        audit["items"].as_array().unwrap().iter().map(is_invitation).collect();
    assert_eq!(invitations, [false, false, true]);
}

/// D15: operators can create links on the sign-in page. The links of operators with proof are
/// invitations.
#[tokio::test]
async fn d15_operators_make_links_on_the_sign_in_page() {
    let place = tempfile::tempdir().unwrap();
    let site = site(&place).await;
    let mut ada = proved_ada(&site).await;
    let page = ada.page().await;
    assert!(page.contains("lets them add a passkey"), "{page}");
    let form = format!("csrf={}&name=bob", ada.csrf);
    let made = ada.form("/signin/links", &form).await;
    assert_eq!(made.status, StatusCode::OK, "{}", made.text());
    let url = made.text().split("value=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let mut bob = with_link(&site, &url).await;
    let mut phone = Authenticator::new(ORIGIN);
    bob.add(&mut phone).await.succeeded();

    let nobody = format!("csrf={}&name=nobody", ada.csrf);
    assert_eq!(ada.form("/signin/links", &nobody).await.status, StatusCode::NOT_FOUND);
    let forged = ada.form("/signin/links", "csrf=forged&name=bob").await;
    assert_eq!(forged.status, StatusCode::FORBIDDEN, "{}", forged.text());
    // The links of an operator who signed in by a link add no passkey.
    let mut thief = site.browser("ada").await;
    assert!(thief.page().await.contains("adds no passkey"));
    let form = format!("csrf={}&name=bob", thief.csrf);
    let made = thief.form("/signin/links", &form).await;
    assert!(made.text().contains("bob can add no passkey with it"), "{}", made.text());
    // Other humans cannot create links, whatever their method of sign-in.
    let mut bob = Browser::new(&site);
    bob.passkey(&mut phone).await.succeeded();
    assert!(!bob.page().await.contains("/signin/links"));
    let form = format!("csrf={}&name=ada", bob.csrf);
    let refused = bob.form("/signin/links", &form).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.text());
}

/// D15: neither an agent nor a service can create a link, even if a human with proof created its
/// token.
#[tokio::test]
async fn d15_no_token_of_an_agent_or_a_service_makes_a_link() {
    const HERE: &str = "/api/workspaces/default";
    const LINKS: &str = "/api/principals/bob/sign-in-links";
    let place = tempfile::tempdir().unwrap();
    let site = site(&place).await;
    site.api.send("PUT", &format!("{HERE}/agents/writer"), "{}").await.succeeded();
    let mut ada = proved_ada(&site).await;
    let asked = json!({ "service": "chat", "roles": ["runner", "admin"] });
    let made = ada.script(&format!("{HERE}/service-tokens"), &asked).await.succeeded();
    let run = json!({ "agent_name": "writer" });
    let run = ada.script(&format!("{HERE}/runs"), &run).await.succeeded();
    for token in [&made["token"], &run["token"]] {
        let token = token.as_str().unwrap();
        let refused = as_service(&site.api, token, LINKS, &json!({})).await;
        refused.problem(StatusCode::FORBIDDEN, "denied");
    }
}

/// D15: if the last passkey is lost, a human who may change the settings can replace it. With the
/// setting off, the admin token removes the lost passkey, and a link adds one. Each act is in the
/// audit.
#[tokio::test]
async fn d15_a_lost_passkey_is_replaced_with_the_setting_off() {
    let place = tempfile::tempdir().unwrap();
    let mut site = site(&place).await;
    drop(proved_ada(&site).await);
    let lost = site.api.get("/api/principals/ada/passkeys").await["items"][0]["id"].clone();
    let path = format!("/api/principals/ada/passkeys/{}", lost.as_str().unwrap());
    let refused = site.api.ask("DELETE", &path).send().await;
    let told = refused.problem(StatusCode::FORBIDDEN, "denied");
    assert!(told.contains("NARTHEX_GRANTS_REQUIRE_PROOF=false narthex"), "{told}");

    site.api = Api::with_proofs(site.store.clone(), options(), None, Some(false)).await;
    let mut ada = site.browser("ada").await;
    ada.add(&mut Authenticator::new(ORIGIN)).await.succeeded();
    let removed = site.api.ask("DELETE", &path).send().await;
    assert_eq!(removed.status, StatusCode::NO_CONTENT, "{}", removed.text());
    let audit = site.api.get("/api/audit?order=oldest&kind=principal.passkey.removed").await;
    let event = &audit["items"][0];
    assert_eq!(event["actor"]["kind"], "local_admin", "{event}");
    assert_eq!(event["details"]["passkey"], lost, "{event}");

    site.api = Api::with_proofs(site.store.clone(), options(), None, None).await;
    assert!(site.api.control.needs_proof());
}

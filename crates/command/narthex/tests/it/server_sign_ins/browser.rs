//! Redirects that belong to no open sign-in, and the way of the browser back.

use narthex_testkit::authorization::{AuthorizationFixture, Endpoint, Settings};
use serde_json::json;

use super::{address, place, remote, row, until_in, visit, visit_with};
use crate::support::Place;

/// X-E42: an answer with a state that is unknown, was used, or is missing finishes nothing,
/// and does not end the open sign-in.
#[test]
fn oauth_c16_an_answer_without_an_open_sign_in_finishes_nothing() {
    let fixture = AuthorizationFixture::start(Settings::default());
    let place = place(&fixture);
    let _daemon = place.up();
    let back = fixture.browse(&address(&place, "tracker")).unwrap();
    let (base, _) = back.split_once('?').unwrap();
    for query in ["", "?code=c", "?code=c&state=unknown", "?error=access_denied&state=unknown"] {
        let page = visit(&format!("{base}{query}"));
        assert!((400..500).contains(&page.status), "{query}: {page:?}");
        assert!(page.text.contains("That did not work"), "{query}: {page:?}");
    }
    assert_eq!(fixture.asked_of(Endpoint::Token).len(), 0, "nothing was exchanged");
    assert_eq!(visit(&back).status, 200);
    until_in(&place, "tracker", "ready");
    let again = visit(&back);
    assert!((400..500).contains(&again.status), "{again:?}");
    assert_eq!(fixture.counts().codes, 1);
    until_in(&place, "tracker", "ready");
}

/// S11: a text of the authorization server is not shown, and the page names the next step.
#[test]
fn oauth_c17_a_refusal_shows_no_text_of_the_authorization_server() {
    let fixture = AuthorizationFixture::start(Settings::default());
    let place = place(&fixture);
    let _daemon = place.up();
    let back = fixture.browse(&address(&place, "tracker")).unwrap();
    let of = |name: &str| {
        let (_, rest) = back.split_once(&format!("{name}=")).unwrap();
        rest.split('&').next().unwrap().to_owned()
    };
    let (base, _) = back.split_once('?').unwrap();
    let (state, iss) = (of("state"), of("iss"));
    let hostile = "error=access_denied&error_description=%3Cscript%3Eevil";
    let page = visit(&format!("{base}?{hostile}&state={state}&iss={iss}"));
    assert!((400..500).contains(&page.status), "{page:?}");
    assert!(!page.text.contains("evil") && !page.text.contains("<script"), "{page:?}");
    assert!(page.text.contains("mcp authorize tracker"), "{page:?}");
    let events = place.run(["audit", "list", "--kind", "workspace.mcp.sign_in_failed"]);
    assert!(events.succeeded().stdout.contains("tracker"));
}

/// S7: a page of another host cannot reach the redirect, whatever state it knows.
#[test]
fn s7_a_redirect_at_another_host_is_refused() {
    let fixture = AuthorizationFixture::start(Settings::default());
    let place = place(&fixture);
    let _daemon = place.up();
    let back = fixture.browse(&address(&place, "tracker")).unwrap();
    // A second `Host` is as foreign as another one.
    let page = visit_with(&back, "Host: evil.example\r\n");
    assert!(matches!(page.status, 400 | 403), "{page:?}");
    assert_eq!(visit(&back).status, 200, "the sign-in is still open");
}

/// The state of one server at the address of another finishes the sign-in that it belongs to.
#[test]
fn oauth_c16_a_state_belongs_to_one_server() {
    let other = "/other".to_owned();
    let settings = Settings { other_mcp_paths: vec![other], ..Settings::default() };
    let fixture = AuthorizationFixture::start(settings);
    let elsewhere = fixture.url.replace("/mcp", "/other");
    let servers = json!({ "tracker": remote(&fixture.url), "notes": remote(&elsewhere) });
    let place = Place::with(&servers);
    let _daemon = place.up();
    address(&place, "notes");
    let back = fixture.browse(&address(&place, "tracker")).unwrap();
    visit(&back.replace("/callback/tracker", "/callback/notes"));
    assert_eq!(row(&place, "notes")["status"], "authenticating");
}

//! Redirects that belong to no open sign-in, and the way of the browser back.

use std::{
    io::{Read, Write},
    net::TcpStream,
};

use narthex_testkit::authorization::{AuthorizationFixture, Endpoint, Settings};
use serde_json::Value;

use super::{Page, address, place, row, two_servers, until_in, visit, visit_with};

/// The public address of a daemon behind a proxy, and the head of its pages' requests.
const PUBLIC: &str = "https://narthex.example";
const HEAD: &str = "Host: narthex.example\r\nOrigin: https://narthex.example\r\n\
                    Sec-Fetch-Site: same-origin\r\n";

/// E60, X-E42: an answer with a state that is unknown, was used, or is missing finishes nothing,
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
        assert!(!page.text.contains("<code"), "a stranger sees no command: {page:?}");
    }
    assert_eq!(fixture.asked_of(Endpoint::Token).len(), 0, "nothing was exchanged");
    assert_eq!(visit(&back).status, 200);
    until_in(&place, "tracker", "ready");
    let again = visit(&back);
    assert!((400..500).contains(&again.status), "{again:?}");
    assert_eq!(fixture.counts().codes, 1);
    until_in(&place, "tracker", "ready");
}

/// S11, X-E44: a text of the authorization server is not shown, and the page names the next step.
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

/// E108, S20: an answer counts at the redirect URI of its own sign-in. At that of another server it
/// finishes neither, and its code goes nowhere.
#[test]
fn oauth_c16_a_state_belongs_to_one_server() {
    let (fixture, place) = two_servers();
    let _daemon = place.up();
    address(&place, "notes");
    let back = fixture.browse(&address(&place, "tracker")).unwrap();
    let page = visit(&back.replace("/callback/tracker", "/callback/notes"));
    assert!((400..500).contains(&page.status), "{page:?}");
    assert_eq!(fixture.counts().exchanged_codes, 0);
    for name in ["tracker", "notes"] {
        assert_eq!(row(&place, name)["status"], "authenticating", "{name}");
    }
}

/// A browser at the public address, behind a proxy.
struct Browser {
    /// The daemon's own address.
    host: String,
    cookie: String,
}

impl Browser {
    fn ask(&self, method: &str, path: &str, head: &str) -> Page {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        let request = format!(
            "{method} {path} HTTP/1.1\r\n{HEAD}{head}Cookie: {}\r\nContent-Length: \
             0\r\nConnection: close\r\n\r\n",
            self.cookie
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let status = text.split(' ').nth(1).unwrap().parse().unwrap();
        Page { status, text }
    }

    /// Signs a human in by a link, and begins a sign-in to a server. Gives its address.
    fn begin(&mut self, link: &str) -> String {
        let form = "Content-Type: application/x-www-form-urlencoded\r\n";
        let page = self.ask("POST", link.strip_prefix(PUBLIC).unwrap(), form);
        let (_, cookie) = page.text.split_once("__Host-narthex=").unwrap();
        self.cookie = format!("__Host-narthex={}", cookie.split(';').next().unwrap());
        self.authorize()
    }

    fn authorize(&self) -> String {
        let page = self.ask("GET", "/signin", "");
        let (_, csrf) = page.text.split_once("data-csrf=\"").unwrap();
        let head = format!("X-Narthex-Csrf: {}\r\n", csrf.split('"').next().unwrap());
        let begun = self.ask("POST", "/api/servers/tracker/authorize", &head);
        let (_, body) = begun.text.split_once("\r\n\r\n").unwrap();
        let begun: Value = serde_json::from_str(body).unwrap();
        begun["url"].as_str().unwrap().to_owned()
    }
}

/// C16, X-E42, E154: a sign-in that a signed-in human began is finished in the browser of that
/// session alone, at the public address.
#[test]
fn oauth_c16_a_sign_in_of_a_human_belongs_to_the_browser() {
    let fixture = AuthorizationFixture::start(Settings::default());
    let place = place(&fixture);
    let words = ["up", "--config", "mcp.json", "--listen", "127.0.0.1:0"];
    let daemon = place.start_with(&words, |command| {
        command.env("NARTHEX_HTTP_PUBLIC_URL", PUBLIC);
    });
    daemon.event("ready");
    place.run(["users", "create", "ada", "--operator"]).succeeded();
    let link = place.run(["users", "link", "ada", "--json"]).succeeded().json();
    let state = fs_err::read_to_string(place.path("data/daemon.json")).unwrap();
    let state: Value = serde_json::from_str(&state).unwrap();
    let host = state["url"].as_str().unwrap().strip_prefix("http://").unwrap().to_owned();
    let mut browser = Browser { host: host.clone(), cookie: String::new() };
    let url = browser.begin(link["data"]["url"].as_str().unwrap());
    let back = fixture.browse(&url).unwrap();
    let back = back.strip_prefix(PUBLIC).unwrap().to_owned();
    let other = Browser { host, cookie: String::new() };
    let refused = other.ask("GET", &back, "");
    assert!((400..500).contains(&refused.status), "{refused:?}");
    assert_eq!(fixture.counts().exchanged_codes, 0);
    let back = fixture.browse(&browser.authorize()).unwrap();
    let done = browser.ask("GET", back.strip_prefix(PUBLIC).unwrap(), "");
    assert_eq!(done.status, 200, "{done:?}");
    until_in(&place, "tracker", "ready");
    let document = browser.ask("GET", "/oauth/client-metadata.json", "");
    assert!(document.text.contains("https://narthex.example/oauth/callback\""), "{document:?}");
    // C12: authorization servers may keep it for a while.
    assert!(document.text.contains("public, max-age=300"), "{document:?}");
    assert!(!document.text.contains("no-store"), "{document:?}");
}

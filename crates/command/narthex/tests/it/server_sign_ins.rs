//! Sign-ins to servers, with the whole program and an authorization server: from the first 401 to
//! a ready server, without a restart.

mod browser;
mod commands;

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::SystemTime,
};

use narthex_testkit::{
    authorization::{AuthorizationFixture, Endpoint, Quirks, Settings},
    canary::Everything,
};
use serde_json::{Value, json};

use crate::support::{Daemon, Place, SOON};

/// The answer of the door to a browser.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) status: u16,
    pub(super) text: String,
}

fn remote(url: &str) -> Value {
    json!({ "transport": "http", "url": url })
}

/// A place with one server behind a sign-in.
pub(super) fn place(fixture: &AuthorizationFixture) -> Place {
    Place::with(&json!({ "tracker": remote(&fixture.url) }))
}

/// A place with the servers `tracker` and `notes`, behind sign-ins at one authorization server.
pub(super) fn two_servers() -> (AuthorizationFixture, Place) {
    let other = "/other".to_owned();
    let settings = Settings { other_mcp_paths: vec![other], ..Settings::default() };
    let fixture = AuthorizationFixture::start(settings);
    let elsewhere = fixture.url.replace("/mcp", "/other");
    let servers = json!({ "tracker": remote(&fixture.url), "notes": remote(&elsewhere) });
    let place = Place::with(&servers);
    (fixture, place)
}

/// The present row of a server.
#[track_caller]
pub(super) fn row(place: &Place, name: &str) -> Value {
    let list = place.run(["mcp", "list", "--json"]).succeeded().json();
    let rows = list["data"]["mounts"].as_array().unwrap().clone();
    let found = rows.into_iter().find(|row| row["name"] == name);
    found.unwrap_or_else(|| panic!("{name} is not in {list}"))
}

/// The first answer of `read` that is one.
#[track_caller]
pub(super) fn until<T>(read: impl Fn() -> Option<T>) -> T {
    let began = SystemTime::now();
    loop {
        if let Some(found) = read() {
            return found;
        }
        assert!(began.elapsed().unwrap() < SOON, "it does not happen");
        std::thread::yield_now();
    }
}

/// The address at which a person signs in, once it is open.
#[track_caller]
pub(super) fn address(place: &Place, name: &str) -> String {
    until(|| row(place, name)["authUrl"].as_str().map(str::to_owned))
}

#[track_caller]
pub(super) fn until_in(place: &Place, name: &str, state: &str) {
    until(|| (row(place, name)["status"] == state).then_some(()));
}

/// Visits an address of the daemon as a browser does.
pub(super) fn visit(address: &str) -> Page {
    visit_with(address, "")
}

/// As [`visit`], with further lines of the request's head.
pub(super) fn visit_with(address: &str, head: &str) -> Page {
    let rest = address.strip_prefix("http://").unwrap();
    let (host, path) = rest.split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    let request =
        format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{head}\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let status = text.split(' ').nth(1).unwrap().parse().unwrap();
    Page { status, text }
}

/// Signs in by a browser that agrees.
#[track_caller]
pub(super) fn sign_in(fixture: &AuthorizationFixture, place: &Place, name: &str) {
    let back = fixture.browse(&address(place, name)).unwrap();
    let page = visit(&back);
    assert_eq!(page.status, 200, "{page:?}");
    until_in(place, name, "ready");
}

fn stop(mut daemon: Daemon) {
    daemon.signal("TERM");
    assert!(daemon.wait().success());
}

/// Q6: an app of the settings is the client of an entry that names none, with the redirect URI that
/// all servers have.
#[test]
fn oauth_q6_an_app_of_the_settings_is_the_client_of_servers() {
    let fixture = AuthorizationFixture::start(Settings::default());
    let place = place(&fixture);
    let issuer = fixture.issuer(0);
    let section = format!("[oauth.clients.chat]\nissuer = \"{issuer}\"\nclient_id = \"app\"\n");
    fs_err::create_dir_all(place.path("config/narthex")).unwrap();
    place.write("config/narthex/narthex.toml", &section);
    let words = ["up", "--config", "mcp.json", "--listen", "127.0.0.1:0"];
    let daemon = place.start_with(&words, |command| {
        command.env("NARTHEX_OAUTH_SECRET_CHAT", "canary-5e1d-app");
    });
    daemon.event("ready");
    let address = address(&place, "tracker").replace("%2F", "/");
    assert!(address.contains("client_id=app"), "{address}");
    assert!(address.contains("/oauth/callback"), "{address}");
    assert!(!address.contains("/oauth/callback/"), "{address}");
    assert!(!address.contains("canary"), "{address}");
    assert_eq!(fixture.counts().registrations, 0);
}

/// E30: a server that asks for a sign-in is `authenticating` with an address and the
/// command; once a person has agreed it is ready, without a restart.
#[test]
fn e30_a_server_is_ready_after_a_sign_in_without_a_restart() {
    let fixture = AuthorizationFixture::start(Settings::default());
    let place = place(&fixture);
    let daemon = place.up();
    until_in(&place, "tracker", "authenticating");
    let url = address(&place, "tracker");
    let list = place.run(["mcp", "list"]).succeeded();
    let command = place.printed("mcp authorize tracker");
    assert!(list.stderr.contains(&command), "{list:?}");
    let back = fixture.browse(&url).unwrap();
    assert!(back.contains("/oauth/callback/tracker?"), "{back}");
    let page = visit(&back);
    assert_eq!(page.status, 200, "{page:?}");
    assert!(page.text.contains("<h1>Signed in to tracker</h1>"), "{page:?}");
    for header in ["no-store", "no-referrer", "frame-ancestors 'none'"] {
        assert!(page.text.contains(header), "{header}: {page:?}");
    }
    daemon.server_in("tracker", "ready");
    let called = place.run(["call", "tracker", "whoami"]).succeeded();
    assert_eq!(called.stdout.trim(), "ada");
    let sign_in = row(&place, "tracker")["signIn"].clone();
    assert_eq!(sign_in["issuer"], fixture.issuer(0).as_str(), "{sign_in}");
    assert_eq!((&sign_in["canRenew"], &sign_in["failure"]), (&json!(true), &json!(null)));
    assert_eq!(sign_in["clientOrigin"], "registration", "{sign_in}");
    let events = place.run(["audit", "list", "--kind", "workspace.mcp.signed_in"]).succeeded();
    assert!(events.stdout.contains("tracker"), "{events:?}");
}

/// Q18: a server that hides its refusals in tool errors asks for a sign-in, and its token is
/// renewed within the call, if the entry names the error.
#[test]
fn q18_a_server_that_hides_its_refusals_has_a_sign_in() {
    let quirks = Quirks { hides_401_in_200: true, ..Quirks::default() };
    let fixture = AuthorizationFixture::start(Settings::with(quirks));
    let mut entry = remote(&fixture.url);
    entry["auth"] = json!({ "mode": "authorizationCode", "authError": "HTTP 401" });
    let place = Place::with(&json!({ "tracker": entry }));
    let _daemon = place.up();
    until_in(&place, "tracker", "ready");
    place.run(["call", "tracker", "whoami"]).failed(1, &[]);
    sign_in(&fixture, &place, "tracker");
    let whoami = || place.run(["call", "tracker", "whoami"]).succeeded().stdout.trim().to_owned();
    assert_eq!(whoami(), "ada");
    fixture.end_access_tokens();
    assert_eq!(whoami(), "ada");
    assert_eq!(fixture.counts().refreshes, 1);
}

/// E27, C25: a failed renewal is in the row and in the audit when it happens.
#[test]
fn e27_a_failed_renewal_is_recorded_when_it_happens() {
    let fixture = AuthorizationFixture::start(Settings::default());
    let place = place(&fixture);
    let _daemon = place.up();
    sign_in(&fixture, &place, "tracker");
    fixture.quirks(|quirks| quirks.failing_token_requests = 1000);
    fixture.end_access_tokens();
    drop(place.run(["call", "tracker", "whoami"]));
    let sign_in = row(&place, "tracker")["signIn"].clone();
    assert!(sign_in["failedAt"].is_string() && sign_in["failure"].is_string(), "{sign_in}");
    until(|| {
        let listed = place.run(["audit", "list", "--kind", "workspace.mcp.renewal_failed"]);
        listed.succeeded().stdout.contains("tracker").then_some(())
    });
}

/// E31, E57: a restart, and a server that is disabled and enabled again, need no further consent.
#[test]
fn e31_a_sign_in_outlives_a_restart_and_a_pause() {
    let fixture = AuthorizationFixture::start(Settings::default());
    let place = place(&fixture);
    let daemon = place.up();
    sign_in(&fixture, &place, "tracker");
    place.run(["mcp", "disable", "tracker"]).succeeded();
    until_in(&place, "tracker", "disabled");
    let refused = place.run(["mcp", "authorize", "tracker", "--no-browser"]);
    refused.failed(1, &["is disabled", &place.printed("mcp enable tracker")]);
    place.run(["mcp", "enable", "tracker"]).succeeded();
    until_in(&place, "tracker", "ready");
    stop(daemon);
    let _daemon = place.up();
    until_in(&place, "tracker", "ready");
    let called = place.run(["call", "tracker", "whoami"]).succeeded();
    assert_eq!(called.stdout.trim(), "ada");
    assert_eq!(fixture.counts().codes, 1, "one consent is enough");
}

/// An access token that has ended is renewed during a call, which succeeds.
#[test]
fn oauth_c23_an_ended_token_is_renewed_for_the_call_that_needs_it() {
    let fixture = AuthorizationFixture::start(Settings::default());
    let place = place(&fixture);
    let _daemon = place.up();
    sign_in(&fixture, &place, "tracker");
    fixture.end_access_tokens();
    let called = place.run(["call", "tracker", "whoami"]).succeeded();
    assert_eq!(called.stdout.trim(), "ada");
    assert_eq!(fixture.counts().refreshes, 1);
    fixture.end_all_tokens();
    place.run(["call", "tracker", "whoami"]).failed(1, &[]);
    until_in(&place, "tracker", "authenticating");
    sign_in(&fixture, &place, "tracker");
}

/// E107: two servers are signed in to at once, in the other order than they asked.
#[test]
fn e107_two_sign_ins_are_open_at_once() {
    let (fixture, place) = two_servers();
    let _daemon = place.up();
    let (tracker, notes) = (address(&place, "tracker"), address(&place, "notes"));
    for url in [notes, tracker] {
        assert_eq!(visit(&fixture.browse(&url).unwrap()).status, 200);
    }
    for name in ["tracker", "notes"] {
        until_in(&place, name, "ready");
        place.run(["call", name, "whoami"]).succeeded();
    }
}

/// C1, E30: a server that lists its tools to anyone is ready without a sign-in, and nothing is
/// asked of a provider. Its first call needs a person, and works once the person has agreed.
#[test]
fn oauth_c1_a_server_that_asks_at_a_call_works_after_the_sign_in() {
    let quirks = Quirks { handshake_is_open: true, ..Quirks::default() };
    let fixture = AuthorizationFixture::start(Settings::with(quirks));
    let place = place(&fixture);
    let daemon = place.up();
    assert_eq!(row(&place, "tracker")["status"], "ready");
    assert!(fixture.asked().iter().all(|asked| asked.endpoint == Endpoint::Mcp));
    let words = ["call", "tracker", "whoami"];
    let remedy = place.printed("mcp authorize tracker");
    place.run(words).failed(1, &["auth_unavailable", &remedy]);
    sign_in(&fixture, &place, "tracker");
    assert_eq!(place.run(words).succeeded().stdout.trim(), "ada");
    stop(daemon);
}

/// E112: an entry that excludes a sign-in never starts one.
#[test]
fn e112_a_server_with_mode_none_never_starts_a_sign_in() {
    let fixture = AuthorizationFixture::start(Settings::default());
    let mut entry = remote(&fixture.url);
    entry["auth"] = json!({ "mode": "none" });
    let place = Place::with(&json!({ "tracker": entry }));
    let _daemon = place.up();
    let row = row(&place, "tracker");
    assert_eq!((&row["status"], &row["authUrl"]), (&json!("error"), &json!(null)), "{row}");
    let refused = place.run(["mcp", "authorize", "tracker", "--no-browser"]);
    refused.failed(1, &["has no sign-in", &place.printed("mcp reconnect tracker")]);
    assert!(fixture.asked().iter().all(|asked| asked.endpoint == Endpoint::Mcp));
}

/// S27: no code, token or secret of a client is in anything that the daemon and its commands
/// print, record or leave behind, and a token goes to its server alone.
#[test]
fn s27_tokens_of_sign_ins_are_printed_and_stored_nowhere() {
    let fixture = AuthorizationFixture::start(Settings::default());
    let place = place(&fixture);
    let words = ["up", "--config", "mcp.json", "--listen", "127.0.0.1:0"];
    let log = fs_err::File::create(place.path("log")).unwrap();
    let daemon = place.start_with(&words, |command| {
        command.env("NARTHEX_LOG", "trace").stderr(log.into_parts().0);
    });
    daemon.event("ready");
    sign_in(&fixture, &place, "tracker");
    fixture.end_access_tokens();
    let mut everything = Everything::default();
    for command in [
        &["call", "tracker", "whoami"][..],
        &["mcp", "list", "--json"],
        &["mcp", "list"],
        &["status", "--json"],
        &["tools", "tracker", "--json"],
        &["audit", "list", "--json", "--limit", "100"],
        &["mcp", "test", "tracker", "--json"],
    ] {
        let done = place.run(command).succeeded();
        everything.note(command.join(" "), done.stdout.as_bytes());
        everything.note(command.join(" "), done.stderr.as_bytes());
    }
    let metrics = metrics(&place);
    for line in [
        "narthex_oauth_token_expiry_seconds{server=\"tracker\"} ",
        "narthex_oauth_renewals_total{result=\"succeeded\"} 2",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    everything.note("metrics", metrics.as_bytes());
    fixture.end_all_tokens();
    everything.note("refused call", place.run(["call", "tracker", "whoami"]).stderr.as_bytes());
    stop(daemon);
    note_files(&place.path(""), &mut everything);
    let leaks = everything.leaks(&fixture.canaries());
    assert!(leaks.is_empty(), "{leaks:#?}");
    for asked in fixture.asked() {
        let is_mcp = asked.endpoint == Endpoint::Mcp;
        assert!(is_mcp || asked.bearer().is_none(), "{:?}", asked.endpoint);
    }
}

/// The metrics of the daemon, as an operator reads them.
fn metrics(place: &Place) -> String {
    let read = |name: &str| fs_err::read_to_string(place.path(name)).unwrap();
    let state: Value = serde_json::from_str(&read("data/daemon.json")).unwrap();
    let head = format!("Authorization: Bearer {}\r\n", read("data/admin.token").trim());
    visit_with(&format!("{}/metrics", state["url"].as_str().unwrap()), &head).text
}

pub(crate) fn note_files(folder: &std::path::Path, everything: &mut Everything) {
    for entry in fs_err::read_dir(folder).unwrap().map(Result::unwrap) {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        if kind.is_dir() {
            note_files(&path, everything);
        } else if kind.is_file() {
            everything.note(path.display().to_string(), &fs_err::read(&path).unwrap());
        }
    }
}

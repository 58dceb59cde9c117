//! The commands of sign-ins: in a browser, at another device, again, and out.

use std::{
    io::{BufRead, BufReader, Read},
    os::unix::fs::PermissionsExt,
    process::{Child, Stdio},
};

use fs_err as fs;
use narthex_testkit::authorization::{AuthorizationFixture, Settings};
use serde_json::json;

use super::{place, row, sign_in, until, until_in, visit};
use crate::support::{Done, Place};

/// A command that waits, and the lines of its standard error.
struct Waiting {
    child: Child,
    errors: BufReader<std::process::ChildStderr>,
}

impl Waiting {
    fn start(place: &Place, words: &[&str]) -> Self {
        Self::start_with(place, words, |_command| {})
    }

    fn start_with(
        place: &Place,
        words: &[&str],
        change: impl FnOnce(&mut std::process::Command),
    ) -> Self {
        let mut command = place.command(words);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        change(&mut command);
        let mut child = command.spawn().unwrap();
        let errors = BufReader::new(child.stderr.take().unwrap());
        Self { child, errors }
    }

    /// The rest of the first line that has this text, behind the text.
    #[track_caller]
    fn line_after(&mut self, text: &str) -> String {
        loop {
            let mut line = String::new();
            assert!(self.errors.read_line(&mut line).unwrap() > 0, "no line with {text}");
            if let Some((_, rest)) = line.split_once(text) {
                return rest.trim().to_owned();
            }
        }
    }

    fn done(mut self) -> Done {
        let mut stderr = String::new();
        self.errors.read_to_string(&mut stderr).unwrap();
        let output = self.child.wait_with_output().unwrap();
        Done { stderr, ..Done::from(output) }
    }
}

/// Starts the command that opens the browser, with a program in place of the browser's. Returns
/// what that program was given, and the command.
fn opened(place: &Place) -> (String, Waiting) {
    fs::create_dir_all(place.path("bin")).unwrap();
    let opener = place.path("bin/xdg-open");
    fs::write(
        &opener,
        "#!/bin/sh\nenv > opened.env\nprintf '%s\\n' \"$@\" > opened.tmp\n\
                        mv opened.tmp opened\n",
    )
    .unwrap();
    fs::set_permissions(&opener, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var_os("PATH").unwrap().into_string().unwrap();
    let path = format!("{}:{path}", place.path("bin").display());
    let waiting = Waiting::start_with(place, &["mcp", "authorize", "tracker"], |command| {
        command.env("PATH", path).env("DISPLAY", ":0");
    });
    let url = until(|| fs::read_to_string(place.path("opened")).ok());
    (url.strip_suffix('\n').unwrap().to_owned(), waiting)
}

/// E28: the command prints the address, waits for the person, and ends when the server is ready.
#[test]
fn e28_a_command_signs_in_and_waits_until_the_server_is_ready() {
    let fixture = AuthorizationFixture::start(Settings::default());
    let place = place(&fixture);
    let _daemon = place.up();
    let mut waiting = Waiting::start(&place, &["mcp", "authorize", "tracker", "--no-browser"]);
    let url = waiting.line_after("sign in to tracker at ");
    assert_eq!(visit(&fixture.browse(&url).unwrap()).status, 200);
    let done = waiting.done().succeeded();
    assert_eq!(done.stdout, "tracker is ready: 3 tools\n");
    let events = place.run(["audit", "list", "--kind", "workspace.mcp.sign_in_begun"]);
    assert!(events.succeeded().stdout.contains("tracker"));
}

/// E28, S1: with a screen the browser opens the address, and gets nothing of narthex's
/// environment.
#[test]
fn e28_a_command_opens_the_browser_of_the_machine() {
    let fixture = AuthorizationFixture::start(Settings::default());
    let place = place(&fixture);
    let _daemon = place.up();
    let (url, waiting) = opened(&place);
    let environment = fs::read_to_string(place.path("opened.env")).unwrap();
    assert!(environment.contains("DISPLAY=:0") && !environment.contains("NARTHEX_"));
    assert_eq!(visit(&fixture.browse(&url).unwrap()).status, 200);
    waiting.done().succeeded();
}

/// S1: an authorization server names an address with text for a shell. The opener gets the address
/// as its one argument, and no part of it is carried out.
#[test]
fn s1_shell_text_in_an_address_is_not_carried_out() {
    const SHELL: &str = "x=$(touch${IFS}canary);touch${IFS}canary&y=`touch${IFS}canary`|'x";
    let fixture = AuthorizationFixture::start(Settings::default());
    let endpoint = format!("{}/authorize?{SHELL}", fixture.issuer(0));
    fixture.quirks(|quirks| quirks.authorization_endpoint = Some(endpoint));
    let place = place(&fixture);
    let _daemon = place.up();
    let (url, waiting) = opened(&place);
    assert!(url.contains("$(touch${IFS}canary)") && url.lines().count() == 1, "{url}");
    assert_eq!(visit(&fixture.browse(&url).unwrap()).status, 200);
    waiting.done().succeeded();
    assert!(!place.path("canary").exists());
}

/// S1: an address that is none of the web leads to no sign-in, and is not shown as one.
#[test]
fn s1_other_addresses_than_those_of_the_web_lead_to_no_sign_in() {
    for hostile in ["file:///etc/passwd", "javascript:alert(1)", "C:\\Windows\\calc.exe"] {
        let fixture = AuthorizationFixture::start(Settings::default());
        fixture.quirks(|quirks| quirks.authorization_endpoint = Some(hostile.to_owned()));
        let place = place(&fixture);
        let _daemon = place.up();
        let row = row(&place, "tracker");
        let shown = (&row["status"], &row["authUrl"]);
        assert_eq!(shown, (&json!("error"), &json!(null)), "{hostile}: {row}");
        let refused = place.run(["mcp", "authorize", "tracker", "--no-browser"]);
        refused.failed(1, &["`authorization_endpoint` cannot be used"]);
    }
}

/// A person who stops the wait can still sign in, and the command says so.
#[test]
fn oauth_c16_a_stopped_wait_leaves_the_sign_in_open() {
    let fixture = AuthorizationFixture::start(Settings::default());
    let place = place(&fixture);
    let _daemon = place.up();
    let mut waiting = Waiting::start(&place, &["mcp", "authorize", "tracker", "--no-browser"]);
    let url = waiting.line_after("sign in to tracker at ");
    let pid = waiting.child.id().to_string();
    let kill = std::process::Command::new("kill").args(["-s", "INT", &pid]).status().unwrap();
    assert!(kill.success());
    waiting.done().failed(130, &["stays open", &place.printed("mcp list")]);
    assert_eq!(visit(&fixture.browse(&url).unwrap()).status, 200);
    until_in(&place, "tracker", "ready");
}

/// A person without a browser on this machine signs in with a code, at another device.
#[test]
fn e28_a_sign_in_at_another_device_needs_its_code_alone() {
    let fixture = AuthorizationFixture::start(Settings::default());
    let place = place(&fixture);
    let _daemon = place.up();
    let mut waiting = Waiting::start(&place, &["mcp", "authorize", "tracker", "--device"]);
    let code = waiting.line_after("enter the code ");
    let code = code.split(';').next().unwrap().to_owned();
    assert!(fixture.approve_device(&code), "{code}");
    let done = waiting.done().succeeded();
    assert!(done.stdout.starts_with("tracker is ready"), "{done:?}");
    let mut waiting = Waiting::start(&place, &["mcp", "authorize", "tracker", "--device"]);
    let code = waiting.line_after("enter the code ");
    let code = code.split(';').next().unwrap().to_owned();
    assert!(fixture.deny_device(&code), "{code}");
    waiting.done().failed(1, &["denied", &place.printed("mcp authorize tracker --device")]);
}

/// E59: a sign-out revokes and deletes the tokens, and a server without tokens is signed out
/// of without a failure.
#[test]
fn e59_a_sign_out_ends_the_tokens_and_a_second_one_does_nothing() {
    let fixture = AuthorizationFixture::start(Settings::default());
    let place = place(&fixture);
    let _daemon = place.up();
    sign_in(&fixture, &place, "tracker");
    place.run(["mcp", "sign-out", "tracker"]).succeeded();
    until_in(&place, "tracker", "authenticating");
    place.run(["call", "tracker", "whoami"]).failed(1, &[]);
    place.run(["mcp", "sign-out", "tracker"]).succeeded();
    place.run(["mcp", "sign-out", "absent"]).failed(1, &["no server `absent`"]);
    let events = place.run(["audit", "list", "--kind", "workspace.mcp.signed_out"]);
    assert!(events.succeeded().stdout.contains("tracker"));
}

/// E59, E103: a new sign-in asks the person again, and the old tokens are gone at once.
#[test]
fn e103_a_new_sign_in_drops_the_old_tokens_first() {
    let fixture = AuthorizationFixture::start(Settings::default());
    let place = place(&fixture);
    let _daemon = place.up();
    sign_in(&fixture, &place, "tracker");
    fixture.change(|settings| settings.subject = "grace".to_owned());
    let mut waiting = Waiting::start(&place, &["mcp", "reauthorize", "tracker", "--no-browser"]);
    let url = waiting.line_after("sign in to tracker at ");
    until(|| (row(&place, "tracker")["status"] != "ready").then_some(()));
    assert_eq!(visit(&fixture.browse(&url).unwrap()).status, 200);
    waiting.done().succeeded();
    let called = place.run(["call", "tracker", "whoami"]).succeeded();
    assert_eq!(called.stdout.trim(), "grace");
}

/// Decision 142: a command that connects the server itself has no tokens, and names the command
/// that uses those of the daemon.
#[test]
fn a_command_beside_the_daemon_names_the_one_that_works() {
    let fixture = AuthorizationFixture::start(Settings::default());
    let place = place(&fixture);
    let words = ["call", "--config", "mcp.json", "tracker", "whoami"];
    let refused = place.run(words).failed(1, &[&place.printed("mcp authorize tracker")]);
    assert!(refused.stderr.contains("leave out --config"), "{refused:?}");
}

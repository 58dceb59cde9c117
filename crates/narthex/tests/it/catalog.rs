//! `narthex servers`, `capabilities` and `agents` with a real daemon.

use std::{io::Write, process::Stdio};

use serde_json::{Value, json};

use crate::support::{Done, Place};

fn data(done: Done) -> Value {
    done.succeeded().json()["data"].take()
}

/// Runs a command with a text on its standard input.
fn pipe(place: &Place, words: &[&str], text: &str) -> Done {
    let mut command = place.command(words);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    Done::from(child.wait_with_output().unwrap())
}

/// O2: stored from a file, listed in all three ways, printed in the form that is stored, deleted.
#[test]
fn o2_objects_are_applied_listed_shown_and_deleted() {
    let place = Place::with(&json!({}));
    let _daemon = place.up();
    assert!(place.run(["servers", "list"]).succeeded().stdout.contains("none yet"));
    let server = json!({ "id": "docs", "name": "Papers", "url": "https://docs.test/mcp" });
    place.write("docs.json", &server.to_string());
    let stored = place.run(["servers", "apply", "--file", "docs.json"]).succeeded();
    assert_eq!(stored.stdout, "stored the server docs, revision 1\n");
    let capability = r#"{"name": "papers", "mcpServers": {"library": {"ref": "docs"}}}"#;
    pipe(&place, &["capabilities", "apply", "-f", "-", "--quiet"], capability).succeeded();
    let agent = r#"{"name": "reader", "capabilities": ["papers"]}"#;
    let stored = data(pipe(&place, &["agents", "apply", "-f", "-", "--json"], agent));
    assert_eq!((&stored["revision"], &stored["id"]), (&json!(1), &json!("reader")));

    let listed = place.run(["servers", "list"]).succeeded();
    let lines: Vec<Vec<&str>> =
        listed.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["ID", "ABOUT", "REVISION", "UPDATED", "BY"]);
    assert_eq!((&lines[1][..3], lines[1][4]), (&["docs", "Papers", "1"][..], "admin"));
    assert_eq!(place.run(["agents", "list", "--quiet"]).succeeded().stdout, "reader\n");
    let listed = data(place.run(["capabilities", "list", "--json"]));
    assert_eq!(listed["items"][0]["id"], "papers");

    // What is printed can be applied as it is.
    let shown = place.run(["agents", "get", "reader"]).succeeded().stdout;
    let again = pipe(&place, &["agents", "apply", "-f", "-"], &shown).succeeded();
    assert_eq!(again.stdout, "stored the agent reader, revision 1\n");
    let merged = place.run(["agents", "get", "reader", "--merged"]).succeeded();
    assert_eq!(merged.json()["mcpServers"]["library"]["ref"], "docs");
    place.run(["servers", "get", "docs", "--merged"]).failed(2, &["agents"]);

    place.run(["servers", "delete", "docs"]).failed(1, &["conflict", "capabilities.papers"]);
    place.run(["servers", "delete", "docs", "--force"]).succeeded();
    place.run(["servers", "get", "docs"]).failed(1, &["not_found", "docs"]);
}

/// D9: what is refused is told with every place, and by programs field by field.
#[test]
fn d9_refusals_name_every_place() {
    let place = Place::with(&json!({}));
    let _daemon = place.up();
    let agent =
        r#"{"name": "reader", "capabilities": ["absent"], "mcpServers": {"a": {"ref": "b"}}}"#;
    let words = ["agents", "apply", "-f", "-"];
    pipe(&place, &words, agent).failed(1, &["invalid", "capabilities[0]", "mcpServers.a.ref"]);
    let refused = pipe(&place, &[&words[..], &["--json"]].concat(), agent);
    let errors = refused.json()["error"]["details"]["errors"].take();
    assert_eq!(errors.as_array().map(Vec::len), Some(2), "{errors}");
    for (text, told) in [("{", "no JSON"), ("{}", "`name`"), ("[]", "`name`"), ("3", "`name`")] {
        pipe(&place, &words, text).failed(1, &["invalid", told]);
    }
    place.run(["agents", "apply", "--file", "absent.json"]).failed(1, &["absent.json"]);
    place.run(["agents", "list", "--workspace", "other"]).failed(1, &["not_found", "workspace"]);
    assert_eq!(place.run(["agents", "list", "--quiet"]).succeeded().stdout, "");
}

/// Without a daemon every command says what to do.
#[test]
fn without_a_daemon_the_remedy_is_told() {
    let place = Place::with(&json!({}));
    place.write("a.json", r#"{"id": "a", "name": "a"}"#);
    for group in ["servers", "capabilities", "agents"] {
        for words in [&["list"][..], &["get", "a"], &["delete", "a"], &["apply", "-f", "a.json"]] {
            let done = place.run([&[group], words].concat());
            done.failed(1, &["no daemon runs", "narthex up"]);
        }
    }
}

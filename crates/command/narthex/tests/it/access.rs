//! `narthex workspaces`, `members` and `tokens` with a real daemon, also as a remote operator.

use serde_json::{Value, json};

use crate::support::{Done, Place};

fn data(done: Done) -> Value {
    done.succeeded().json()["data"].take()
}

/// A misspelt role is refused with the nearest one, and other words with all roles, also behind the
/// flag that other commands have for it.
#[test]
fn a_misspelt_role_is_reported_with_the_nearest_role() {
    let place = Place::new();
    for (role, hint) in [("admn", "did you mean `admin`?"), ("wizard", "the roles are admin, ")] {
        for words in
            [&["members", "set", "ada", role][..], &["members", "set", "ada", "--role", role]]
        {
            let refused = place.run(words.iter().copied());
            refused.failed(2, &["there is no such role", hint]);
        }
    }
}

/// A workspace, a service and its token from the command line; then the same daemon from another
/// folder, with its address and that token alone.
#[test]
fn a_remote_author_works_with_a_token_of_a_service() {
    let place = Place::with(&json!({}));
    let daemon = place.start(&["up", "--config", "mcp.json", "--listen", "127.0.0.1:0"]);
    let url = daemon.event("listening")["url"].as_str().unwrap().to_owned();
    daemon.event("ready");
    let made = place.run(["workspaces", "create", "team", "--name", "The team"]).succeeded();
    assert_eq!(made.stdout, "created the workspace team\n");
    let listed = place.run(["workspaces", "list"]).succeeded().stdout;
    assert!(listed.contains("team") && listed.contains("The team"), "{listed}");
    let new = ["tokens", "create", "ci", "--role", "author", "--workspace", "team", "--quiet"];
    let token = place.run(new).succeeded().stdout.trim().to_owned();
    assert!(token.starts_with("nxs_"), "{token}");

    let far = Place::new();
    far.write("ci.token", &format!("{token}\n"));
    far.write("agent.json", r#"{"name": "reader"}"#);
    let remote = ["--daemon-url", &url, "--token-file", "ci.token"];
    let ask = |words: &[&str]| far.run([words, &remote[..]].concat());
    let stored = ask(&["agents", "apply", "-f", "agent.json", "--workspace", "team"]).succeeded();
    assert_eq!(stored.stdout, "created the agent reader\n");
    let agents = data(ask(&["agents", "list", "--workspace", "team", "--json"]));
    assert_eq!(agents["items"][0]["updated_by"], "team/ci");
    assert_eq!(ask(&["workspaces", "list", "--quiet"]).succeeded().stdout, "team\n");
    ask(&["agents", "list"]).failed(1, &["not_found", "there is no workspace `default`"]);
    let role = ["members", "set", "team/ci", "admin", "--workspace", "team"];
    ask(&role).failed(1, &["denied", "the role admin in the workspace `team`"]);
    // The token may come from the environment; the file is asked first.
    let mut command = far.command(["workspaces", "list", "--quiet", "--daemon-url", &url]);
    let done = Done::from(command.env("NARTHEX_TOKEN", &token).output().unwrap()).succeeded();
    assert_eq!(done.stdout, "team\n");

    let id = data(place.run(["tokens", "list", "--workspace", "team", "--json"]));
    let id = id["items"][0]["id"].as_str().unwrap().to_owned();
    place.run(["tokens", "revoke", &id, "--workspace", "team"]).succeeded();
    ask(&["workspaces", "list"])
        .failed(1, &["unauthenticated", "the daemon refused the token of `", "--token-file"]);
}

#[test]
fn members_and_workspaces_are_changed_and_removed() {
    let place = Place::with(&json!({}));
    let _daemon = place.up();
    place.run(["workspaces", "create", "team"]).succeeded();
    place.run(["workspaces", "create", "Team"]).failed(1, &["invalid", "`id`"]);
    let there = ["--workspace", "team"];
    let ask = |words: &[&str]| place.run([words, &there[..]].concat());
    ask(&["tokens", "create", "ci"]).failed(1, &["invalid", "`roles`"]);
    let made = data(ask(&["tokens", "create", "ci", "--role", "runner", "--json"]));
    assert_eq!(made["service"], "team/ci");
    let set = ask(&["members", "set", "team/ci", "author,auditor"]).succeeded();
    assert_eq!(set.stdout, "team/ci is author, auditor now\n");
    let listed = ask(&["members", "list"]).succeeded().stdout;
    let lines: Vec<Vec<&str>> =
        listed.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["NAME", "KIND", "ROLES", "DISABLED", "ID"]);
    assert_eq!(lines[1][..4], ["team/ci", "service", "author,auditor", "no"]);
    ask(&["members", "set", "team/ci", "boss"]).failed(2, &["admin, author, runner, auditor"]);
    ask(&["members", "set", "nosuch", "admin"]).failed(1, &["not_found", "nosuch"]);
    place
        .run(["workspaces", "delete", "team"])
        .failed(1, &["conflict", "it has 1 service; remove everything in it first"]);
    ask(&["members", "remove", "team/ci"]).succeeded();
    ask(&["members", "remove", "team/ci"]).failed(1, &["not_found"]);
    place.run(["workspaces", "delete", "team"]).succeeded();
    place.run(["workspaces", "delete", "default", "--force"]).failed(1, &["conflict", "default"]);
    assert_eq!(place.run(["workspaces", "list", "--quiet"]).succeeded().stdout, "default\n");
}

#[test]
fn a_daemon_url_must_be_valid_and_needs_a_token() {
    let place = Place::new();
    let list = ["workspaces", "list", "--daemon-url"];
    let ask = |url: &str| place.run([&list[..], &[url]].concat());
    ask("http://127.0.0.1:1").failed(2, &["--token-file", "NARTHEX_TOKEN"]);
    place.write("token", "nxs_x");
    let with_token = |url: &str| place.run([&list[..], &[url, "--token-file", "token"]].concat());
    with_token("127.0.0.1:1").failed(2, &["--daemon-url"]);
    with_token("http://127.0.0.1:1/mcp").failed(2, &["--daemon-url"]);
    let status = place.run(["status", "--daemon-url", "http://127.0.0.1:1"]);
    status.failed(2, &["--token-file", "NARTHEX_TOKEN"]);
    place.write("empty", "\n");
    let empty = place.run([&list[..], &["http://127.0.0.1:1", "--token-file", "empty"]].concat());
    empty.failed(1, &["holds no token"]);
    place.run(["workspaces", "list"]).failed(1, &["no daemon runs", "narthex up"]);
}

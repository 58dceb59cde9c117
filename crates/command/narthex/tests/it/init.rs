//! `narthex init`: the files that it writes, and that it overwrites nothing.

use std::os::unix::fs::symlink;

use fs_err as fs;
use serde_json::json;

use crate::support::{Done, Place};

fn empty() -> Place {
    let place = Place::with(&json!({}));
    fs::remove_file(place.path("mcp.json")).unwrap();
    place
}

/// §3.5 `init`: a minimal set, nothing of examples, and a second run changes nothing.
#[test]
fn init_writes_a_minimal_set_once() {
    let place = empty();
    let done = place.run(["init"]).succeeded();
    assert!(
        done.stdout.starts_with("[init] wrote mcp.json\n[init] wrote narthex.toml\n"),
        "{done:?}"
    );
    assert!(done.stdout.contains("narthex check mcp"), "{done:?}");
    assert!(!place.path("agents").exists());
    let up = place.run(["status", "--settings", "narthex.toml"]);
    up.failed(1, &["no daemon"]);
    place.write("mcp.json", "mine");
    let done = place.run(["init"]).succeeded();
    assert!(done.stdout.starts_with("[init] skipped mcp.json"), "{done:?}");
    assert!(!done.stdout.contains("wrote"), "{done:?}");
    assert_eq!(fs::read_to_string(place.path("mcp.json")).unwrap(), "mine");
}

/// A link that leads nowhere counts as an existing file.
#[test]
fn init_does_not_write_through_links() {
    let place = empty();
    symlink(place.path("elsewhere"), place.path("mcp.json")).unwrap();
    place.run(["init"]).succeeded();
    assert!(!place.path("elsewhere").exists());
}

/// §3.5 `init`, R-M34: writes two example agents and their servers, after a check for their
/// programs.
#[test]
fn r_m34_examples_are_written_on_demand() {
    let place = empty();
    let run = |words: &[&str]| {
        let mut command = place.command([&["init", "--with-mcp-examples"], words].concat());
        Done::from(command.env("PATH", place.path("bin")).output().unwrap()).succeeded()
    };
    let done = run(&[]);
    assert!(done.stdout.starts_with("[init] node is not in PATH"), "{done:?}");
    let agents =
        ["playwright-demo", "github-assistant"].map(|name| format!("agents/{name}/agent.yaml"));
    for path in &agents {
        assert!(done.stdout.contains(&format!("[init] wrote {path}")), "{done:?}");
        assert!(fs::read_to_string(place.path(path)).unwrap().contains("transport_type: stdio"));
    }
    assert!(
        done.stdout.contains("narthex agents apply --file agents/github-assistant/agent.yaml"),
        "{done:?}"
    );
    let list = place.run(["mcp", "list", "--json"]).succeeded().json();
    assert_eq!(list["data"]["configured"], json!(["github", "playwright"]));
    place.write(&agents[0], "mine");
    let outcome = run(&["--json"]).json();
    assert_eq!((&outcome["ok"], &outcome["data"]["written"]), (&json!(true), &json!([])));
    assert_eq!(outcome["data"]["skipped"].as_array().unwrap().len(), 4);
    assert_eq!(outcome["data"]["missing"], json!(["node", "npx"]));
    assert_eq!(fs::read_to_string(place.path(&agents[0])).unwrap(), "mine");
    let quiet = run(&["--quiet"]);
    assert!(quiet.stdout.lines().count() <= 3, "{quiet:?}");
}

/// R-M34: the example agents can be stored as they are, once the secret is set that is named.
#[test]
fn r_m34_example_agents_name_the_secrets_that_they_need() {
    let place = empty();
    let done = place.run(["init", "--with-mcp-examples"]).succeeded();
    place.write("mcp.json", r#"{"servers": {}}"#);
    let _daemon = place.up();
    let apply =
        |name: &str| place.run(["agents", "apply", "--file", &format!("agents/{name}/agent.yaml")]);
    apply("playwright-demo").succeeded();
    let name = "GITHUB_PERSONAL_ACCESS_TOKEN";
    let set = format!("narthex secrets set {name}");
    apply("github-assistant").failed(1, &[&set]);
    assert!(done.stdout.contains(&set), "{done:?}");
    place.pipe(&["secrets", "set", name], "ghp-of-the-example-77").succeeded();
    apply("github-assistant").succeeded();
}

/// A file that could not be written to its end is not there, so that the next try writes it.
#[test]
fn a_full_disk_leaves_no_part_of_a_file() {
    let place = empty();
    let full = |words: &str| {
        let script = format!("trap '' XFSZ; ulimit -f 0; exec \"$0\" {words}");
        let mut command = std::process::Command::new("sh");
        command.args(["-c", &script, crate::support::PROGRAM]).current_dir(place.path(""));
        Done::from(command.output().unwrap())
    };
    full("init").failed(1, &["mcp.json"]);
    full("--data d up --listen 127.0.0.1:0").failed(1, &["d/"]);
    assert!(!place.path("mcp.json").exists());
    assert!(!place.path("d/client.token").exists());
    let done = place.run(["init"]).succeeded();
    assert!(done.stdout.contains("[init] wrote mcp.json"), "{done:?}");
}

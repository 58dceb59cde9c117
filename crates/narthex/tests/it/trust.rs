//! A folder's `mcp.json` starts nothing until it was approved (D27).

use serde_json::json;

use crate::support::Place;

const UP: [&str; 3] = ["up", "--listen", "127.0.0.1:0"];

#[test]
fn d27_an_unknown_file_starts_nothing() {
    let place = Place::with(&json!({
        "marker": { "transport": "stdio", "command": "touch", "args": ["started"] },
    }));
    place.run(UP).failed(1, &["denied", "mcp.json", "narthex trust", "--config"]);
    assert!(!place.path("started").exists());
}

#[test]
fn d27_trust_holds_for_one_content() {
    let place = Place::new();
    let done = place.run(["trust"]).succeeded();
    assert!(done.stdout.contains("narthex-fixture --stdio"), "{done:?}");
    assert_eq!(place.mode("data/trust.json"), 0o600);
    let daemon = place.start(&UP);
    daemon.event("ready");
    drop(daemon);
    place.write("mcp.json", r#"{"servers": {}}"#);
    place.run(UP).failed(1, &["has changed", "narthex trust"]);
    place.run(["trust", "mcp.json"]).succeeded();
    place.start(&UP).event("ready");
}

#[test]
fn without_a_file_the_remedy_is_told() {
    let place = Place::new();
    fs_err::remove_file(place.path("mcp.json")).unwrap();
    place.run(UP).failed(1, &["no mcp.json", "--config"]);
}

/// S27: what is shown holds no value of the environment and no literal secret.
#[test]
fn s27_trust_shows_no_secrets() {
    let place = Place::with(&json!({
        "one": {
            "transport": "stdio",
            "command": "server",
            "args": ["--key", "${env:HIDDEN_ONE}", "ghp_0123456789abcdefghij"],
            "env": { "API_KEY": "hidden-two-hidden" },
        },
        "two": {
            "transport": "http",
            "url": "https://user:hidden-three@host.example/mcp?key=hidden-four",
            "headers": { "X-Key": "hidden-five-hidden" },
        },
    }));
    for words in [&["trust"][..], &["trust", "--json"]] {
        let mut command = place.command(words);
        let output = command.env("HIDDEN_ONE", "hidden-one").output().unwrap();
        let done = crate::support::Done::from(output).succeeded();
        assert!(done.stdout.contains("${env:HIDDEN_ONE}"), "{done:?}");
        assert!(done.stdout.contains("API_KEY") && done.stdout.contains("host.example"));
        let all = format!("{}{}", done.stdout, done.stderr);
        assert!(!all.contains("hidden-"), "{all}");
    }
}
